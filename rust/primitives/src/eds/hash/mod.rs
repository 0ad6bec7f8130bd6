//! Keyed hashes behind one trait (paper 5.2): they say which bits an element has.
//!
//! Every hash takes a key of 32 bytes and gives 32 bytes. What goes in is mostly of 16 bytes.

mod aes;
#[cfg(test)]
mod tests;

pub use aes::Aes;

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

/// The first half of a digest, or the second.
pub fn half(digest: &mut [u8; DIGEST], second: bool) -> &mut [u8; DIGEST / 2] {
    &mut digest.as_chunks_mut().0[usize::from(second)]
}
