//! What an index is made of: eight public bytes that stand in every segment and token.

use super::kind::Kind;
use std::fmt;

/// Bytes of a spec.
pub const SPEC: usize = 8;

/// Why bytes make no spec, segment or token, or why two of them do not belong together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FormatError(pub &'static str);

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for FormatError {}

/// The keyed hash that says which bits an element has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Hash {
    /// AES-128 of the element; in production.
    Aes128 = 0,
    /// HighwayHash.
    Highway = 1,
    /// SipHash.
    Sip = 2,
    /// BLAKE3 with a key.
    Blake3 = 3,
    /// SHA-256 behind a key.
    Sha256 = 4,
    /// Murmur3, which is no PRF: for comparison only.
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
    /// Each bit by a key of its position; in production.
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

/// In which order the bits of a segment lie.
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

impl Spec {
    /// Reads a spec.
    ///
    /// # Errors
    /// [`FormatError`] for another length, an unknown code, and sizes that its kind does not allow.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
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

    /// Its eight bytes.
    pub fn encode(&self) -> [u8; SPEC] {
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
