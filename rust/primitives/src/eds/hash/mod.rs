//! Keyed hashes behind one trait (paper 5.2): which bits an element has, and, in the form with one
//! filter a file, the keys of positions.
//!
//! Every hash takes a key of 32 bytes and gives 32 bytes. What goes in is mostly of 16 bytes: an
//! element, a position, a file id.

mod aes;
mod murmur;
mod once;
mod others;
#[cfg(test)]
mod tests;

use super::spec::Hash;
pub use aes::Aes;
pub use murmur::Murmur3;
pub use once::once;
pub use others::{Blake3, Highway, Sha256, Sip};

/// Bytes of a key.
pub const KEY: usize = 32;
/// Bytes of a digest.
pub const DIGEST: usize = 32;
/// Bytes of an element.
pub const ELEMENT: usize = 16;

/// A hash under one key. Keys are wiped when dropped.
pub trait KeyedHash: Send + Sync {
    /// The digest of any bytes.
    fn digest(&self, input: &[u8]) -> [u8; DIGEST];

    /// The digests of many elements; the same as one by one, and faster where the hash has
    /// instructions for many blocks. `out` is as long as `inputs`.
    fn digest_many(&self, inputs: &[[u8; ELEMENT]], out: &mut [[u8; DIGEST]]) {
        for (input, out) in inputs.iter().zip(out) {
            *out = self.digest(input);
        }
    }
}

/// The hash of a code, under a key.
pub fn keyed(hash: Hash, key: &[u8; KEY]) -> Box<dyn KeyedHash> {
    match hash {
        Hash::Aes128 => Box::new(Aes::new(key)),
        Hash::Highway => Box::new(Highway::new(key)),
        Hash::Sip => Box::new(Sip::new(key)),
        Hash::Blake3 => Box::new(Blake3::new(key)),
        Hash::Sha256 => Box::new(Sha256::new(key)),
        Hash::Murmur3 => Box::new(Murmur3::new(key)),
    }
}

/// The first half of a digest, or the second.
fn half(digest: &mut [u8; DIGEST], second: bool) -> &mut [u8; DIGEST / 2] {
    &mut digest.as_chunks_mut().0[usize::from(second)]
}
