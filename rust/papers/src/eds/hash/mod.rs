//! The keyed hashes of the paper beside AES, which is the product's (paper 5.2).

mod murmur;
mod once;
mod others;
#[cfg(test)]
mod tests;

use super::spec::Hash;
pub use louver_primitives::eds::hash::{half, Aes, KeyedHash, DIGEST, ELEMENT, KEY};
pub use murmur::Murmur3;
pub use once::once;
pub use others::{Blake3, Highway, Sha256, Sip};

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
