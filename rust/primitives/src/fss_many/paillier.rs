//! The form of shares and replies of the additive scheme (`spec/fss-many.md`, "paillier").

use crate::fss::{Group, Header, Scheme, ShareError, HEADER_BYTES};
use crate::{Kernel, KernelError, Modulus, ModulusError};
use num_bigint::BigUint;
use std::sync::Arc;

/// Most bits of a point.
pub const PAILLIER_MAX_BITS: u32 = 32;
/// Most parties.
pub const PAILLIER_MAX_PARTIES: u8 = 64;
/// Fewest and most bytes of N.
pub const MODULUS_BYTES: std::ops::RangeInclusive<usize> = 32..=256;
/// Bytes of x, y, t and w among the uniform parts of a row; the last party's have one more each.
pub const PART_BYTES: [usize; 4] = [18, 18, 50, 34];
/// Bytes of a row of uniform parts.
pub const ROW_BYTES: usize = 120;
/// Bytes of a row of the last party.
pub const LAST_ROW_BYTES: usize = ROW_BYTES + 4;
/// Bytes of the key of a party's uniform parts.
pub const ROW_KEY: usize = 32;
/// Bits of a ciphertext that one sum takes.
pub const SUM_BITS: u32 = 96;
/// The first byte of a reply.
const REPLY_VERSION: u8 = 1;
/// Bytes before a reply's ciphertexts.
const REPLY_HEADER: usize = 5;

const CONTEXT: &str = "louver 2026-11 fss paillier generator v1";

/// How points are arranged in rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaillierLayout {
    /// Low bits of a point, which are its column.
    pub column_bits: u32,
    /// High bits of a point, which are its row.
    pub row_bits: u32,
}

impl PaillierLayout {
    /// The layout of points of some bits.
    ///
    /// # Errors
    /// [`ShareError::Header`] for other than 1 to 32 bits.
    pub fn new(bits: u32) -> Result<Self, ShareError> {
        if !(1..=PAILLIER_MAX_BITS).contains(&bits) {
            return Err(ShareError::Header);
        }
        let column_bits = bits.saturating_sub(4) / 2;
        Ok(Self {
            column_bits,
            row_bits: bits - column_bits,
        })
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        1 << self.row_bits
    }

    /// Columns.
    pub fn columns(&self) -> usize {
        1 << self.column_bits
    }

    /// Row and column of a point.
    pub fn place(&self, point: u64) -> (usize, usize) {
        let column = point & (self.columns() as u64 - 1);
        ((point >> self.column_bits) as usize, column as usize)
    }
}

/// What a party has of the rows.
#[derive(Clone, PartialEq, Eq)]
pub enum Rows {
    /// The key of its uniform parts.
    Key([u8; ROW_KEY]),
    /// The last party's parts, [`LAST_ROW_BYTES`] a row.
    Parts(Vec<u8>),
}

/// One party's share of an interval.
#[derive(Clone, PartialEq, Eq)]
pub struct PaillierShare {
    /// What it is a share of.
    pub header: Header,
    /// How points are arranged.
    pub layout: PaillierLayout,
    /// N, big endian, its top bit set.
    pub modulus: Vec<u8>,
    /// V and W of every column, big endian, twice the bytes of N each.
    pub bases: Vec<u8>,
    /// Its parts of the rows.
    pub rows: Rows,
}

impl PaillierShare {
    /// The header of a party's share.
    pub fn header(bits: u32, party: u8, parties: u8) -> Header {
        Header {
            scheme: Scheme::Paillier,
            group: Group::Wide,
            bits,
            party,
            parties,
            words: 0,
        }
    }

    /// Reads a share. Whether its bases are units is not seen here.
    ///
    /// # Errors
    /// Bytes that [`PaillierShare::encode`] does not write.
    pub fn decode(share: &[u8]) -> Result<Self, ShareError> {
        let (header, body) = Header::decode(share)?;
        if header.scheme != Scheme::Paillier {
            return Err(ShareError::Scheme);
        }
        if header.group != Group::Wide || header.parties > PAILLIER_MAX_PARTIES {
            return Err(ShareError::Header);
        }
        let layout = PaillierLayout::new(header.bits)?;
        let (bytes, body) = body.split_first_chunk().ok_or(ShareError::Length)?;
        let bytes = usize::from(u16::from_le_bytes(*bytes));
        if !MODULUS_BYTES.contains(&bytes) {
            return Err(ShareError::Form);
        }
        if share.len() != Self::len(&header, &layout, bytes) {
            return Err(ShareError::Length);
        }
        let (modulus, body) = body.split_at(bytes);
        if modulus[0] < 128 || modulus[bytes - 1] & 1 == 0 {
            return Err(ShareError::Form);
        }
        let (bases, rows) = body.split_at(4 * bytes * layout.columns());
        Ok(Self {
            header,
            layout,
            modulus: modulus.to_vec(),
            bases: bases.to_vec(),
            rows: match rows.try_into() {
                Ok(key) if !is_last(&header) => Rows::Key(key),
                _ => Rows::Parts(rows.to_vec()),
            },
        })
    }

    /// The share's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let bytes = self.modulus.len();
        let mut out = Vec::with_capacity(Self::len(&self.header, &self.layout, bytes));
        out.extend(self.header.encode());
        out.extend((bytes as u16).to_le_bytes());
        out.extend(&self.modulus);
        out.extend(&self.bases);
        match &self.rows {
            Rows::Key(key) => out.extend(key),
            Rows::Parts(parts) => out.extend(parts),
        }
        out
    }

    fn len(header: &Header, layout: &PaillierLayout, modulus_bytes: usize) -> usize {
        let rows = match is_last(header) {
            true => layout.rows() * LAST_ROW_BYTES,
            false => ROW_KEY,
        };
        HEADER_BYTES + 2 + modulus_bytes + 4 * modulus_bytes * layout.columns() + rows
    }

    /// Arithmetic modulo N².
    ///
    /// # Errors
    /// [`ModulusError`], which the form of a share rules out.
    pub fn kernel(&self) -> Result<Kernel, ModulusError> {
        let n = BigUint::from_bytes_be(&self.modulus);
        Modulus::from_be_bytes(&(&n * &n).to_bytes_be()).map(Kernel::new)
    }
}

/// Whether the share is the last party's.
fn is_last(header: &Header) -> bool {
    header.party + 1 == header.parties
}

/// The uniform parts that a key expands to, [`ROW_BYTES`] a row.
pub fn uniform_rows(key: &[u8; ROW_KEY], rows: usize) -> Vec<u8> {
    let mut out = vec![0; rows * ROW_BYTES];
    blake3::Hasher::new_keyed(key).finalize_xof().fill(&mut out);
    out
}

/// The generators of all columns, big endian, as long as N² each.
///
/// # Errors
/// None for what [`PaillierShare::kernel`] gives.
pub fn generators(k: &Kernel, modulus: &[u8], columns: usize) -> Result<Vec<u8>, KernelError> {
    let bytes = k.modulus().byte_len();
    let square = BigUint::from_bytes_be(&k.modulus().to_be_bytes());
    let mut wide = vec![0; bytes + 16];
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    hasher.update(modulus);
    let hashed: Vec<Vec<u8>> = (0..columns as u64)
        .map(|column| {
            let mut hasher = hasher.clone();
            hasher.update(&column.to_le_bytes());
            hasher.finalize_xof().fill(&mut wide);
            (BigUint::from_bytes_be(&wide) % &square).to_bytes_be()
        })
        .collect();
    let column = k.load_rows(hashed.iter().map(Vec::as_slice))?;
    Ok(k.store(&k.square(&column)))
}

/// Sums that one ciphertext holds under a modulus of so many bytes.
pub fn sums_of_ciphertext(modulus_bytes: usize) -> usize {
    (8 * modulus_bytes - 130) / SUM_BITS as usize
}

/// A reply's number of sums, and its ciphertexts.
///
/// # Errors
/// Bytes that are not a reply under a modulus of so many bytes.
pub fn read_reply(reply: &[u8], modulus_bytes: usize) -> Result<(usize, &[u8]), ShareError> {
    let (&[version, a, b, c, d], rest) = reply
        .split_first_chunk::<REPLY_HEADER>()
        .ok_or(ShareError::Length)?;
    if version != REPLY_VERSION {
        return Err(ShareError::Version);
    }
    let sums = u32::from_le_bytes([a, b, c, d]) as usize;
    let ciphertexts = sums.div_ceil(sums_of_ciphertext(modulus_bytes));
    if rest.len() != ciphertexts * 2 * modulus_bytes {
        return Err(ShareError::Length);
    }
    Ok((sums, rest))
}

/// A reply of so many sums.
pub fn write_reply(sums: u32, ciphertexts: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(REPLY_HEADER + ciphertexts.len());
    out.push(REPLY_VERSION);
    out.extend(sums.to_le_bytes());
    out.extend(ciphertexts);
    out
}

/// The product of several replies, ciphertext by ciphertext: of parts of a table, or of parties.
///
/// # Errors
/// [`ShareError`] for no reply, bytes that are not one, and replies of different numbers of sums.
pub fn join_replies(
    square: &Arc<Modulus>,
    modulus_bytes: usize,
    replies: &[&[u8]],
) -> Result<Vec<u8>, ShareError> {
    let (k, mut joined) = (Kernel::new(square.clone()), None);
    for reply in replies {
        let (sums, ciphertexts) = read_reply(reply, modulus_bytes)?;
        let rows = ciphertexts.chunks_exact(2 * modulus_bytes);
        let column = k.load_rows(rows).map_err(|_| ShareError::Form)?;
        joined = match joined {
            None => Some((sums, column)),
            Some((all, product)) if all == sums => Some((sums, k.mul(&product, &column))),
            Some(_) => return Err(ShareError::Length),
        };
    }
    let (sums, product) = joined.ok_or(ShareError::Length)?;
    Ok(write_reply(sums as u32, &k.store(&product)))
}
