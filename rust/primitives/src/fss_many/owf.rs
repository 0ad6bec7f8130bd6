//! The form of a share of the one-way-function scheme (`spec/fss-many.md`, "owf").

use crate::fss::{Group, Header, Scheme, ShareError, HEADER_BYTES};

/// Most bits of a point.
pub const OWF_MAX_BITS: u32 = 24;
/// Most parties.
pub const OWF_MAX_PARTIES: u8 = 5;

/// Bytes of a seed and of a value.
const BLOCK: usize = 16;

/// How points are arranged in rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwfLayout {
    /// Low bits of a point, which are its column.
    pub column_bits: u32,
    /// High bits of a point, which are its row.
    pub row_bits: u32,
    /// Seeds that one party holds of a row: half of all.
    pub held: usize,
}

impl OwfLayout {
    /// The layout of points of some bits among some parties.
    ///
    /// # Errors
    /// [`ShareError::Header`] for more bits or parties than the scheme takes, or fewer.
    pub fn new(bits: u32, parties: u8) -> Result<Self, ShareError> {
        let bits_fit = (1..=OWF_MAX_BITS).contains(&bits);
        if !bits_fit || !(2..=OWF_MAX_PARTIES).contains(&parties) {
            return Err(ShareError::Header);
        }
        let more = u32::from(parties) - 2;
        let column_bits = (bits + more).div_ceil(2).min(bits);
        Ok(Self {
            column_bits,
            row_bits: bits - column_bits,
            held: 1 << more,
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

    /// Bytes of a share.
    pub fn share_bytes(&self) -> usize {
        let seeds = self.rows() * self.held * BLOCK;
        HEADER_BYTES + self.rows().div_ceil(8) + seeds + self.columns() * BLOCK
    }
}

/// One party's share of a point function.
#[derive(Clone, PartialEq, Eq)]
pub struct OwfShare {
    /// What it is a share of.
    pub header: Header,
    /// How points are arranged.
    pub layout: OwfLayout,
    /// One bit a row, the lowest first: whether the correction belongs to this party's sum.
    pub corrected: Vec<u8>,
    /// [`OwfLayout::held`] seeds a row; the lowest bit of each is 0.
    pub seeds: Vec<u128>,
    /// One block a column.
    pub correction: Vec<u128>,
}

impl OwfShare {
    /// The header of a party's share.
    pub fn header(bits: u32, party: u8, parties: u8) -> Header {
        Header {
            scheme: Scheme::Owf,
            group: Group::Tag,
            bits,
            party,
            parties,
            words: 0,
        }
    }

    /// Reads a share.
    ///
    /// # Errors
    /// Bytes that [`OwfShare::encode`] does not write.
    pub fn decode(share: &[u8]) -> Result<Self, ShareError> {
        let (header, body) = Header::decode(share)?;
        if header.scheme != Scheme::Owf {
            return Err(ShareError::Scheme);
        }
        if header.group != Group::Tag {
            return Err(ShareError::Header);
        }
        let layout = OwfLayout::new(header.bits, header.parties)?;
        if share.len() != layout.share_bytes() {
            return Err(ShareError::Length);
        }
        let rows = layout.rows();
        let (corrected, body) = body.split_at(rows.div_ceil(8));
        let (seeds, correction) = body.split_at(rows * layout.held * BLOCK);
        let spare = rows < 8 && corrected[0] >> rows != 0;
        let seeds = blocks(seeds);
        if spare || seeds.iter().fold(0, |all, seed| all | seed) & 1 != 0 {
            return Err(ShareError::Form);
        }
        Ok(Self {
            header,
            layout,
            corrected: corrected.to_vec(),
            seeds,
            correction: blocks(correction),
        })
    }

    /// The share's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.layout.share_bytes());
        out.extend(self.header.encode());
        out.extend(&self.corrected);
        for block in self.seeds.iter().chain(&self.correction) {
            out.extend(block.to_le_bytes());
        }
        out
    }

    /// All ones if the correction belongs to this party's sum in a row, else 0.
    pub fn mask(&self, row: usize) -> u128 {
        u128::from(self.corrected[row / 8] >> (row % 8) & 1).wrapping_neg()
    }
}

fn blocks(bytes: &[u8]) -> Vec<u128> {
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    blocks.iter().map(|b| u128::from_le_bytes(*b)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn share(bits: u32, party: u8, parties: u8) -> OwfShare {
        let layout = OwfLayout::new(bits, parties).unwrap();
        let rows = layout.rows();
        OwfShare {
            header: OwfShare::header(bits, party, parties),
            layout,
            corrected: vec![if rows < 8 { 1 } else { 0x5a }; rows.div_ceil(8)],
            seeds: (0..rows * layout.held).map(|s| s as u128 * 6).collect(),
            correction: (0..layout.columns()).map(|c| c as u128 * 7).collect(),
        }
    }

    #[test]
    fn layouts_cover_the_domain() {
        for parties in 2..=OWF_MAX_PARTIES {
            for bits in 1..=OWF_MAX_BITS {
                let layout = OwfLayout::new(bits, parties).unwrap();
                assert_eq!(layout.rows() * layout.columns(), 1 << bits);
                let last = (1_u64 << bits) - 1;
                let corner = (layout.rows() - 1, layout.columns() - 1);
                assert_eq!(layout.place(last), corner);
            }
        }
        for (bits, parties) in [(0, 3), (25, 3), (8, 1), (8, 6)] {
            assert_eq!(OwfLayout::new(bits, parties), Err(ShareError::Header));
        }
        let bytes = [3, 4, 5].map(|p| OwfLayout::new(24, p).unwrap().share_bytes());
        assert_eq!(bytes, [196_872, 262_408, 393_352]);
    }

    proptest! {
        #[test]
        fn shares_and_hostile_bytes(
            bits in 1..13_u32,
            parties in 2..=5_u8,
            at: prop::sample::Index,
            flip in 1..=255_u8,
            noise: Vec<u8>,
        ) {
            let given = share(bits, parties - 1, parties);
            let bytes = given.encode();
            prop_assert_eq!(bytes.len(), given.layout.share_bytes());
            prop_assert!(OwfShare::decode(&bytes).unwrap() == given);
            let mut other = bytes.clone();
            let at = at.index(other.len());
            other[at] ^= flip;
            if let Ok(read) = OwfShare::decode(&other) {
                prop_assert_eq!(read.encode(), other);
            }
            prop_assert!(OwfShare::decode(&bytes[..at]).is_err());
            let mut long = bytes;
            long.push(0);
            prop_assert!(OwfShare::decode(&long).is_err());
            prop_assert!(OwfShare::decode(&noise).is_err());
        }
    }
}
