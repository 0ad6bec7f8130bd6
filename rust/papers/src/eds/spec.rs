//! What an index can be made of, in the paper: a kind, a hash, an encryption.

use super::hash::{keyed, KeyedHash, DIGEST, KEY};
use super::kind::{Kind, Positions};
use louver_primitives::eds::segment::Shape;
use louver_primitives::eds::spec::{Form, FormatError, SPEC};

/// The keyed hash that says which bits an element has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Hash {
    /// AES-128 of the element, the product's.
    Aes128 = 0,
    /// HighwayHash.
    Highway = 1,
    /// SipHash.
    Sip = 2,
    /// BLAKE3 with a key.
    Blake3 = 3,
    /// SHA-256 behind a key.
    Sha256 = 4,
    /// Murmur3, which is not a PRF: for comparison only.
    Murmur3 = 5,
}

impl Hash {
    /// All hashes, by their codes.
    pub const ALL: [Self; 6] = [
        Self::Aes128,
        Self::Highway,
        Self::Sip,
        Self::Blake3,
        Self::Sha256,
        Self::Murmur3,
    ];

    /// The hash of a code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// How the bits of a filter are hidden.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Encryption {
    /// They are not.
    Open = 0,
    /// Each bit by a key of its position, the product's.
    XorBit = 1,
    /// Each block by a key of its number.
    XorBlock = 2,
    /// The whole by AES, tweaked by the file.
    Aes = 3,
    /// The whole by AES without an initial vector, as in the paper: for comparison only.
    AesEmptyIv = 4,
}

impl Encryption {
    /// All ways, by their codes.
    pub const ALL: [Self; 5] = [
        Self::Open,
        Self::XorBit,
        Self::XorBlock,
        Self::Aes,
        Self::AesEmptyIv,
    ];

    /// The way of a code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// How a segment's bits are laid out.
    pub fn layout(self) -> Layout {
        match self {
            Self::Open | Self::XorBit => Layout::BitMajor,
            Self::XorBlock => Layout::BlockMajor,
            Self::Aes | Self::AesEmptyIv => Layout::FileMajor,
        }
    }
}

/// The order of the bits of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Layout {
    /// A row for every position, with a bit for every file.
    BitMajor = 0,
    /// For every block number the blocks of all files.
    BlockMajor = 1,
    /// One filter after the other.
    FileMajor = 2,
}

/// The spec of an index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Spec {
    /// Kind of the filters.
    pub kind: Kind,
    /// Keyed hash.
    pub hash: Hash,
    /// How bits are hidden.
    pub encryption: Encryption,
    /// Bits of an element.
    pub k: u8,
    /// Bits of a filter: a power of two.
    pub bits: u32,
}

impl Form for Spec {
    fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let bad = FormatError("the spec of an index is malformed");
        let bytes: &[u8; SPEC] = bytes.try_into().map_err(|_| bad)?;
        let [kind, hash, encryption, k, bits @ ..] = *bytes;
        let spec = Self {
            kind: Kind::from_code(kind).ok_or(bad)?,
            hash: Hash::from_code(hash).ok_or(bad)?,
            encryption: Encryption::from_code(encryption).ok_or(bad)?,
            k,
            bits: u32::from_le_bytes(bits),
        };
        spec.kind.allows(spec.bits, k).then_some(spec).ok_or(bad)
    }

    fn encode(&self) -> [u8; SPEC] {
        let mut out = [0; SPEC];
        let codes = [
            self.kind.code(),
            self.hash as u8,
            self.encryption as u8,
            self.k,
        ];
        out[..4].copy_from_slice(&codes);
        out[4..].copy_from_slice(&self.bits.to_le_bytes());
        out
    }

    fn bits(&self) -> u32 {
        self.bits
    }

    fn k(&self) -> u8 {
        self.k
    }

    fn hash(&self, key: &[u8; KEY]) -> Box<dyn KeyedHash> {
        keyed(self.hash, key)
    }

    fn positions(&self, digest: &[u8; DIGEST]) -> Positions {
        self.kind.positions(self.bits, self.k, digest)
    }

    fn shape(&self, files: u32) -> Shape {
        let layout = self.encryption.layout();
        let (rows, row_bytes) = match layout {
            Layout::BitMajor => return Shape::of_bits(self.bits, files),
            Layout::BlockMajor => (
                self.bits / self.kind.block_bits(),
                self.kind.block_bits() / 8 * files,
            ),
            Layout::FileMajor => (files, self.bits / 8),
        };
        Shape {
            code: layout as u8,
            rows: rows as usize,
            row_bytes: row_bytes as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_read_is_written_again(bytes: [u8; SPEC], size in 0..20_u32, few in 0..6_u8) {
            let mut near = [few, few, few % 5, 8, 0, 0, 0, 0];
            near[4..].copy_from_slice(&(1_u32 << size).to_le_bytes());
            for bytes in [bytes, near] {
                if let Ok(spec) = Spec::decode(&bytes) {
                    prop_assert_eq!(spec.encode(), bytes);
                }
            }
            let bits = 1_u32 << size;
            let fits = few < 5 && (1024..=65536).contains(&bits);
            prop_assert_eq!(Spec::decode(&near).is_ok(), fits);
        }
    }

    #[test]
    fn other_lengths_are_refused() {
        for length in [0, 7, 9] {
            assert!(Spec::decode(&vec![0; length]).is_err());
        }
    }
}
