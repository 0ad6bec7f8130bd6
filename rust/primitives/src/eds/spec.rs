//! What an index is made of: eight public bytes that are part of every segment and token.

use super::hash::{Aes, KeyedHash, DIGEST, KEY};
use super::kind::{Kind, Positions};
use super::segment::Shape;
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

/// What an index can be made of. The product has one such type, [`Spec`].
pub trait Form: Copy + Eq + fmt::Debug + Send + Sync {
    /// Reads a spec.
    ///
    /// # Errors
    /// [`FormatError`] for another length, an unknown code, and sizes that are not allowed.
    fn decode(bytes: &[u8]) -> Result<Self, FormatError>;

    /// Its eight bytes.
    fn encode(&self) -> [u8; SPEC];

    /// Bits of a filter: a power of two.
    fn bits(&self) -> u32;

    /// Bits of an element.
    fn k(&self) -> u8;

    /// The hash of elements under a key.
    fn hash(&self, key: &[u8; KEY]) -> Box<dyn KeyedHash>;

    /// The bits of an element, by its digest.
    fn positions(&self, digest: &[u8; DIGEST]) -> Positions;

    /// How a segment of so many files is laid out: a row for every position, with a bit for every
    /// file, unless the form has another way.
    fn shape(&self, files: u32) -> Shape {
        Shape::of_bits(self.bits(), files)
    }
}

/// The code of AES-128 as the hash of elements.
const AES: u8 = 0;
/// The code of the encryption of each bit by a key of its position.
const XOR_BIT: u8 = 1;

/// The spec of an index: its elements are hashed with AES-128, and each bit is encrypted by a key
/// of its position.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Spec {
    /// Kind of the filters.
    pub kind: Kind,
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
        let other = FormatError("an index has a form that this release does not read");
        let kind = Kind::from_code(kind).ok_or(other)?;
        if hash != AES || encryption != XOR_BIT {
            return Err(other);
        }
        let bits = u32::from_le_bytes(bits);
        let spec = Self { kind, k, bits };
        spec.kind.allows(spec.bits, k).then_some(spec).ok_or(bad)
    }

    fn encode(&self) -> [u8; SPEC] {
        let mut out = [0; SPEC];
        out[..4].copy_from_slice(&[self.kind.code(), AES, XOR_BIT, self.k]);
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
        Box::new(Aes::new(key))
    }

    fn positions(&self, digest: &[u8; DIGEST]) -> Positions {
        self.kind.positions(self.bits, self.k, digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_read_is_written_again(
            bytes: [u8; SPEC],
            size in 0..20_u32,
            kind in 0..6_u8,
            hash in 0..2_u8,
            encryption in 0..3_u8,
        ) {
            let mut near = [kind, hash, encryption, 8, 0, 0, 0, 0];
            near[4..].copy_from_slice(&(1_u32 << size).to_le_bytes());
            for bytes in [bytes, near] {
                if let Ok(spec) = Spec::decode(&bytes) {
                    prop_assert_eq!(spec.encode(), bytes);
                }
            }
            let bits = 1_u32 << size;
            let offered = matches!((kind, hash, encryption), (0 | 2, 0, 1));
            let fits = offered && (1024..=65536).contains(&bits);
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
