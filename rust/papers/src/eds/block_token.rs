//! Tokens that open other units than rows of single bits: blocks, whole filters, or the positions
//! of the form with one filter a file (`spec/eds.md`, "Tokens of blocks").
//!
//! After the header: u16 number of units; each unit as u16 number and its key, ascending; then the
//! positions of all sub-tokens as u16. All little endian. Nothing is trusted while it is read.

use super::cbc;
use super::spec::{Encryption, Spec};
use super::TokenHeader as Header;
use louver_primitives::eds::spec::FormatError;
use louver_primitives::eds::token::{HEADER, MAGIC, PAIR_KEY, SUB_TOKENS};

/// What begins a token of the form with one filter a file, instead of a segment token's magic.
const FILE_MAGIC: &[u8; 4] = b"LVTF";

/// For which stored form a token is; their keys differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Segments of blocks or of whole filters.
    Segment,
    /// One filter a file, as in the paper's manifests.
    File,
}

/// How many units a filter has, and how many bytes the key of each; bits, blocks, or the whole.
pub fn units(spec: &Spec) -> (u32, usize) {
    match spec.encryption {
        Encryption::Open => (0, 0),
        Encryption::XorBit => (spec.bits, PAIR_KEY),
        Encryption::XorBlock => (spec.bits / spec.kind.block_bits(), PAIR_KEY),
        Encryption::Aes | Encryption::AesEmptyIv => (1, cbc::KEY),
    }
}

/// The unit of a position; `None` where nothing is encrypted.
pub fn unit(spec: &Spec, position: u32) -> Option<u32> {
    match spec.encryption {
        Encryption::Open => None,
        Encryption::XorBit => Some(position),
        Encryption::XorBlock => Some(spec.kind.block(position)),
        Encryption::Aes | Encryption::AesEmptyIv => Some(0),
    }
}

/// A unit that a token opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unit {
    /// Which one.
    pub number: u32,
    /// Its key: 32 bytes for AES, else the first 16.
    pub key: [u8; cbc::KEY],
}

/// A token of units.
pub struct BlockToken {
    /// What it says of itself.
    pub header: Header,
    /// What it opens, ascending.
    pub units: Vec<Unit>,
    /// The positions of all sub-tokens, `k` of each.
    pub positions: Vec<u32>,
}

impl BlockToken {
    /// The units of all positions, ascending, each once.
    pub fn needed(spec: &Spec, positions: &[u32]) -> Vec<u32> {
        let mut numbers: Vec<u32> = positions.iter().filter_map(|p| unit(spec, *p)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// The bytes of a token; `keys` has a key for every needed unit, one after the other.
    pub fn encode(header: &Header, form: Form, positions: &[u32], keys: &[u8]) -> Vec<u8> {
        let spec = &header.spec;
        let numbers = Self::needed(spec, positions);
        let (_, width) = units(spec);
        debug_assert_eq!(keys.len(), numbers.len() * width);
        let mut out = header.encode().to_vec();
        if form == Form::File {
            out[..FILE_MAGIC.len()].copy_from_slice(FILE_MAGIC);
        }
        out.extend_from_slice(&(numbers.len() as u16).to_le_bytes());
        for (number, key) in numbers.iter().zip(keys.chunks(width.max(1))) {
            out.extend_from_slice(&(*number as u16).to_le_bytes());
            out.extend_from_slice(key);
        }
        let positions = positions.iter();
        out.extend(positions.flat_map(|position| (*position as u16).to_le_bytes()));
        out
    }

    /// Reads a token of the form given.
    ///
    /// # Errors
    /// As [`Header::decode`]; for another form or length, units out of order or beyond the filter,
    /// positions beyond it, and positions whose unit is not opened.
    pub fn decode(bytes: &[u8], form: Form) -> Result<Self, FormatError> {
        let bad = FormatError("a token of blocks is malformed");
        let (head, rest) = bytes.split_first_chunk::<HEADER>().ok_or(bad)?;
        let mut head = *head;
        if form == Form::File {
            if head[..4] != *FILE_MAGIC {
                return Err(FormatError("a token is not for filters of single files"));
            }
            head[..4].copy_from_slice(MAGIC);
        }
        let header = Header::decode(&head)?;
        let spec = &header.spec;
        let (most, width) = units(spec);
        let (count, rest) = rest.split_first_chunk().ok_or(bad)?;
        let count = usize::from(u16::from_le_bytes(*count));
        let positions = SUB_TOKENS * usize::from(spec.k);
        if rest.len() != count * (2 + width) + 2 * positions {
            return Err(FormatError("a token of blocks was cut or has grown"));
        }
        let (opened, rest) = rest.split_at(count * (2 + width));
        let units: Vec<Unit> = opened.chunks_exact(2 + width).map(read_unit).collect();
        let positions: Vec<u32> = rest.as_chunks().0.iter().map(|p| number(*p)).collect();
        let numbers: Vec<u32> = units.iter().map(|unit| unit.number).collect();
        let right = positions.iter().all(|position| *position < spec.bits)
            && numbers.iter().all(|number| *number < most)
            && numbers == Self::needed(spec, &positions);
        let token = Self {
            header,
            units,
            positions,
        };
        right.then_some(token).ok_or(bad)
    }

    /// The positions of every sub-token.
    pub fn sub_tokens(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        self.positions.chunks_exact(usize::from(self.header.spec.k))
    }
}

fn read_unit(bytes: &[u8]) -> Unit {
    let (head, rest) = bytes.split_at(2);
    let mut key = [0; cbc::KEY];
    key[..rest.len()].copy_from_slice(rest);
    Unit {
        number: number([head[0], head[1]]),
        key,
    }
}

fn number(bytes: [u8; 2]) -> u32 {
    u16::from_le_bytes(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::super::kind::Kind;
    use super::super::spec::Hash;
    use super::*;
    use proptest::prelude::*;

    fn token(kind: u8, encryption: u8, form: Form, seed: u32) -> (Vec<u8>, Vec<u32>) {
        let spec = Spec {
            kind: Kind::from_code(kind).unwrap(),
            hash: Hash::Aes128,
            encryption: Encryption::from_code(encryption).unwrap(),
            k: 8,
            bits: 2048,
        };
        let header = Header {
            spec,
            index_id: [3; 16],
            sides: false,
        };
        let positions: Vec<u32> = (0..SUB_TOKENS as u32 * 8)
            .map(|at| (at * 77 + seed) % 2048)
            .collect();
        let count = BlockToken::needed(&spec, &positions).len();
        let keys = vec![5; count * units(&spec).1];
        (
            BlockToken::encode(&header, form, &positions, &keys),
            positions,
        )
    }

    proptest! {
        #[test]
        fn tokens_and_hostile_bytes(
            kind in 0..5_u8,
            encryption in 0..5_u8,
            file: bool,
            seed: u16,
            at: prop::sample::Index,
            flip in 1..=255_u8,
            noise: Vec<u8>,
        ) {
            let (form, other) = match file {
                true => (Form::File, Form::Segment),
                false => (Form::Segment, Form::File),
            };
            let (mut bytes, positions) = token(kind, encryption, form, seed.into());
            let read = BlockToken::decode(&bytes, form).unwrap();
            prop_assert_eq!(&read.positions, &positions);
            prop_assert_eq!(read.sub_tokens().len(), SUB_TOKENS);
            prop_assert!(BlockToken::decode(&bytes, other).is_err());
            bytes[at.index(HEADER + 40)] ^= flip;
            let _ = BlockToken::decode(&bytes, form).map(|token| token.units.len());
            bytes.pop();
            prop_assert!(BlockToken::decode(&bytes, form).is_err());
            prop_assert!(BlockToken::decode(&noise, form).is_err());
        }
    }
}
