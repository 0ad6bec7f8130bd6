//! The outer layer of a code (`spec/onion.md`): a pad that a row has for itself. NULL is code 0.

use sha2::{Digest, Sha256};

/// Bytes of a layer's key.
pub const LAYER_KEY: usize = 32;

/// A layer of one column.
pub struct Layer(Sha256);

impl Layer {
    /// The layer of a key.
    pub fn new(key: &[u8; LAYER_KEY]) -> Self {
        Self(Sha256::new_with_prefix(key))
    }

    /// Puts the pad of a row on a narrow code, or takes it off.
    pub fn narrow(&self, row_id: i64, code: u64) -> u64 {
        code ^ (self.pad(row_id) >> 64) as u64
    }

    /// The same of a wide code.
    pub fn wide(&self, row_id: i64, code: u128) -> u128 {
        code ^ self.pad(row_id)
    }

    /// The first 16 bytes of SHA-256 of key and row id.
    fn pad(&self, row_id: i64) -> u128 {
        let digest = self.0.clone().chain_update(row_id.to_be_bytes()).finalize();
        let (first, _) = digest.split_first_chunk::<16>().expect("32 bytes");
        u128::from_be_bytes(*first)
    }
}
