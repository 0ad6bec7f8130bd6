//! The kinds of Bloom filters of the paper, and which bits an element has in each (5.3). Two are
//! the product's own.

pub use louver_primitives::eds::kind::Positions;
use louver_primitives::eds::kind::{self, lane, mixed, share, words, BLOCK_BITS, LANES};

/// Bits of a register-blocked filter's block, and of a sector.
const WORD_BITS: u32 = 64;
/// Bits of a cache line.
const LINE_BITS: u32 = 512;
/// Groups of sectors that a cache line has.
const GROUPS: u32 = 2;
/// A kind of Bloom filter; its number is the code in a spec.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Any bits, by double hashing (paper 5.3.1).
    Basic = 0,
    /// Bits of one 64-bit word by double hashing; one more hash chooses the word (5.3.2).
    RegisterBlocked = 1,
    /// One bit in each of eight 32-bit lanes of a block, by multiply-shift of 32 bits (5.3.3).
    SplitBlock64 = 2,
    /// The same, but every lane has 32 bits of the digest of its own.
    SplitBlock256 = 3,
    /// Within a cache line, one 64-bit sector of each of two groups; see [`Kind::positions`].
    CacheSectorized = 4,
}

impl Kind {
    /// All kinds, by their codes.
    pub const ALL: [Self; 5] = [
        Self::Basic,
        Self::RegisterBlocked,
        Self::SplitBlock64,
        Self::SplitBlock256,
        Self::CacheSectorized,
    ];

    /// The kind of a code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The code of a kind.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Whether there is a filter of so many bits, with so many bits for an element: as the
    /// product's kinds have it, split blocks always eight.
    pub fn allows(self, bits: u32, k: u8) -> bool {
        let split = self != Self::SplitBlock256 || k == LANES;
        let like = match self {
            Self::SplitBlock64 => kind::Kind::SplitBlock64,
            _ => kind::Kind::Basic,
        };
        split && like.allows(bits, k)
    }

    /// Bits of a block that block encryption opens at once.
    pub fn block_bits(self) -> u32 {
        match self {
            Self::RegisterBlocked => WORD_BITS,
            _ => BLOCK_BITS,
        }
    }

    /// The block of a position, for block encryption.
    pub fn block(self, position: u32) -> u32 {
        position / self.block_bits()
    }

    /// The bits of an element in a filter of `bits` bits; what [`Kind::allows`] must hold.
    ///
    /// Cache-sectorized (Lang, Neumann, Kemper, Boncz: "Performance-Optimal Filtering", PVLDB
    /// 2019, which the paper's chapter 7 asks for): a block is a cache line of 512 bits = 8
    /// sectors of 64 bits = 2 groups of 4 sectors. The digest's first 32 bits choose the block;
    /// of every group two bits choose the sector, and every element's bit i is in the sector of
    /// group i mod 2, at six bits of the digest of its own. A group is one block of encryption.
    pub fn positions(self, bits: u32, k: u8, digest: &[u8; 32]) -> Positions {
        debug_assert!(self.allows(bits, k));
        let words = words(digest);
        match self {
            Self::Basic => kind::Kind::Basic.positions(bits, k, digest),
            Self::SplitBlock64 => kind::Kind::SplitBlock64.positions(bits, k, digest),
            Self::RegisterBlocked => {
                let hash = mixed(&words);
                let block = share(words[7], bits / WORD_BITS);
                Positions::new(k, |i| {
                    block * WORD_BITS + share((hash(i) >> 32) as u32, WORD_BITS)
                })
            }
            Self::SplitBlock256 => {
                let block = share(words[1], bits / BLOCK_BITS);
                Positions::new(k, |i| block * BLOCK_BITS + lane(i, words[i as usize]))
            }
            Self::CacheSectorized => {
                let block = share(words[0], bits / LINE_BITS);
                let sectors = LINE_BITS / WORD_BITS / GROUPS;
                let own = wide(digest);
                Positions::new(k, |i| {
                    let group = i % GROUPS;
                    let chosen = words[1] >> (2 * group) & (sectors - 1);
                    let bit = (own >> (6 * i)) as u32 % WORD_BITS;
                    block * LINE_BITS + (group * sectors + chosen) * WORD_BITS + bit
                })
            }
        }
    }
}

/// The second half of the digest.
fn wide(digest: &[u8; 32]) -> u128 {
    u128::from_le_bytes(digest.as_chunks::<16>().0[1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn codes() {
        for (code, kind) in (0..).zip(Kind::ALL) {
            assert_eq!((kind.code(), Kind::from_code(code)), (code, Some(kind)));
        }
        assert_eq!(Kind::from_code(5), None);
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
        assert_eq!(of(Kind::RegisterBlocked, 3), [32, 32, 32]);
        let lanes = [8, 8, 17, 20, 14, 5, 19, 11];
        let wanted: Vec<u32> = (0..8).map(|i| 512 + 32 * i + lanes[i as usize]).collect();
        assert_eq!(of(Kind::SplitBlock64, 8), wanted);
        let lanes = [8, 16, 6, 0, 0, 0, 0, 0];
        let wanted: Vec<u32> = (0..8).map(|i| 512 + 32 * i + lanes[i as usize]).collect();
        assert_eq!(of(Kind::SplitBlock256, 8), wanted);
        digest[4] = 0b0110;
        digest[16] = 0b01_000011;
        let actual = Kind::CacheSectorized.positions(1024, 2, &digest).to_vec();
        assert_eq!(actual, [2 * 64 + 3, 256 + 64 + 1]);
    }

    proptest! {
        #[test]
        fn positions_lie_in_the_filter(digest: [u8; 32], size in 10..17_u32, k in 1..17_u8) {
            for kind in Kind::ALL {
                let k = if kind.allows(1024, k) { k } else { 8 };
                let positions = kind.positions(1 << size, k, &digest);
                prop_assert_eq!(positions.len(), usize::from(k));
                prop_assert!(positions.iter().all(|number| *number < 1 << size));
                let mut blocks: Vec<u32> = positions.iter().map(|p| kind.block(*p)).collect();
                blocks.dedup();
                match kind {
                    Kind::Basic => {}
                    Kind::CacheSectorized => {
                        prop_assert!(blocks.iter().all(|block| block / 2 == blocks[0] / 2));
                    }
                    _ => prop_assert_eq!(blocks.len(), 1),
                }
            }
        }
    }
}
