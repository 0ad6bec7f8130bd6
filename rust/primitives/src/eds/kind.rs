//! The kinds of Bloom filters of an index, and which bits an element has in each (paper 5.3).
//!
//! An element comes as a digest of 256 bits. Numbers in it are little endian.

/// Most bits that an element has.
pub const MOST_POSITIONS: usize = 16;
/// Bits of the smallest and of the largest filter.
pub const BITS: std::ops::RangeInclusive<u32> = 1 << 10..=1 << 16;
/// Bits of a block of split blocks.
pub const BLOCK_BITS: u32 = 256;
/// Lanes of a split block, each of 32 bits.
pub const LANES: u8 = 8;
/// What a lane multiplies by, as in Parquet's split-block filters.
pub const ODD: [u32; LANES as usize] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// A kind of Bloom filter; its number is the code in a spec.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Any bits, by double hashing (paper 5.3.1).
    Basic = 0,
    /// One bit in each of eight 32-bit lanes of a block, by multiply-shift of 32 bits (5.3.3).
    SplitBlock64 = 2,
}

impl Kind {
    /// All kinds, by their codes.
    pub const ALL: [Self; 2] = [Self::Basic, Self::SplitBlock64];

    /// The kind of a code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// The code of a kind.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Whether there is a filter of so many bits, with so many bits for an element: a power of two
    /// from 1,024 to 65,536; 1 to 16 bits, of split blocks always eight.
    pub fn allows(self, bits: u32, k: u8) -> bool {
        let probes = match self {
            Self::SplitBlock64 => k == LANES,
            Self::Basic => (1..=MOST_POSITIONS as u8).contains(&k),
        };
        probes && bits.is_power_of_two() && BITS.contains(&bits)
    }

    /// The bits of an element in a filter of `bits` bits; what [`Kind::allows`] must hold.
    ///
    /// Double hashing is h1 + i·h2 + i²·h3, of which the highest bits count. The paper's h1 + i·h2
    /// modulo a power of two makes two elements equal as soon as their low bits agree: at 16,384
    /// bits that costs a thousand times as many false positives.
    pub fn positions(self, bits: u32, k: u8, digest: &[u8; 32]) -> Positions {
        debug_assert!(self.allows(bits, k));
        let words = words(digest);
        match self {
            Self::Basic => {
                let hash = mixed(&words);
                Positions::new(k, |i| share((hash(i) >> 32) as u32, bits))
            }
            Self::SplitBlock64 => {
                let block = share(words[1], bits / BLOCK_BITS);
                Positions::new(k, |i| block * BLOCK_BITS + lane(i, words[0]))
            }
        }
    }
}

/// The bits of one element; a slice of numbers below the filter's size.
#[derive(Clone, Copy)]
pub struct Positions {
    at: [u32; MOST_POSITIONS],
    len: u8,
}

impl Positions {
    /// The positions that `position_of` returns for 0 to k − 1.
    pub fn new(k: u8, position_of: impl Fn(u32) -> u32) -> Self {
        let mut at = [0; MOST_POSITIONS];
        for (i, at) in (0..u32::from(k)).zip(&mut at) {
            *at = position_of(i);
        }
        Self { at, len: k }
    }
}

impl std::ops::Deref for Positions {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.at[..usize::from(self.len)]
    }
}

/// A digest as words.
pub fn words(digest: &[u8; 32]) -> [u32; 8] {
    std::array::from_fn(|at| u32::from_le_bytes(digest.as_chunks().0[at]))
}

/// h1 + i·h2 + i²·h3 modulo 2^64.
pub fn mixed(words: &[u32; 8]) -> impl Fn(u32) -> u64 {
    let pair = |at: usize| u64::from(words[at + 1]) << 32 | u64::from(words[at]);
    let (start, step, bend) = (pair(0), pair(2) | 1, pair(4));
    move |i| {
        let i = u64::from(i);
        let line = start.wrapping_add(step.wrapping_mul(i));
        line.wrapping_add(bend.wrapping_mul(i * i))
    }
}

/// A 32-bit hash scaled down to a number below `parts`, by its high bits.
pub fn share(hash: u32, parts: u32) -> u32 {
    ((u64::from(hash) * u64::from(parts)) >> 32) as u32
}

/// The bit of a lane in its block.
pub fn lane(lane: u32, hash: u32) -> u32 {
    lane * 32 + (ODD[lane as usize].wrapping_mul(hash) >> 27)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn codes() {
        for (code, kind) in [0, 2].into_iter().zip(Kind::ALL) {
            assert_eq!((kind.code(), Kind::from_code(code)), (code, Some(kind)));
        }
        for code in [1, 3, 4, 5] {
            assert_eq!(Kind::from_code(code), None);
        }
        assert!(!Kind::SplitBlock64.allows(16384, 7));
        assert!(!Kind::Basic.allows(16384, 0) && !Kind::Basic.allows(16384, 17));
        assert!(!Kind::Basic.allows(512, 8) && !Kind::Basic.allows(3072, 8));
    }

    /// Computed by hand from the description in the paper.
    #[test]
    fn known_positions() {
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&0x8000_0000_0000_0001_u64.to_le_bytes());
        digest[8..16].copy_from_slice(&6_u64.to_le_bytes());
        let of = |kind: Kind, k| kind.positions(1024, k, &digest).to_vec();
        assert_eq!(of(Kind::Basic, 3), [512, 512, 512]);
        let lanes = [8, 8, 17, 20, 14, 5, 19, 11];
        let wanted: Vec<u32> = (0..8).map(|i| 512 + 32 * i + lanes[i as usize]).collect();
        assert_eq!(of(Kind::SplitBlock64, 8), wanted);
    }

    proptest! {
        #[test]
        fn positions_lie_in_the_filter(digest: [u8; 32], size in 10..17_u32, k in 1..17_u8) {
            for kind in Kind::ALL {
                let k = if kind.allows(1024, k) { k } else { 8 };
                let positions = kind.positions(1 << size, k, &digest);
                prop_assert_eq!(positions.len(), usize::from(k));
                prop_assert!(positions.iter().all(|position| *position < 1 << size));
                if kind == Kind::SplitBlock64 {
                    let block = positions[0] / BLOCK_BITS;
                    prop_assert!(positions.iter().all(|position| position / BLOCK_BITS == block));
                }
            }
        }
    }
}
