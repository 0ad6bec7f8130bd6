//! The outer layer of a code (`spec/onion.md`): a pad that a row has for itself. NULL is code 0.

use sha2::block_api::compress256;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Bytes of a layer's key.
pub const LAYER_KEY: usize = 32;
/// Bytes of a row id.
const ROW_ID: usize = 8;
/// The first state of SHA-256 (FIPS 180-4, section 5.3.3).
const START: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// A layer of one column: the only block that SHA-256 takes, with room for the row id.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Layer([u8; 64]);

impl Layer {
    /// The layer of a key.
    pub fn new(key: &[u8; LAYER_KEY]) -> Self {
        let mut block = [0; 64];
        block[..LAYER_KEY].copy_from_slice(key);
        block[LAYER_KEY + ROW_ID] = 0x80;
        let bits = 8 * (LAYER_KEY + ROW_ID) as u64;
        block[64 - 8..].copy_from_slice(&bits.to_be_bytes());
        Self(block)
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
        let (mut block, mut state) = (self.0, START);
        block[LAYER_KEY..LAYER_KEY + ROW_ID].copy_from_slice(&row_id.to_be_bytes());
        compress256(&mut state, &[block]);
        let [a, b, c, d, ..] = state.map(u128::from);
        a << 96 | b << 64 | c << 32 | d
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sha2::{Digest, Sha256};

    proptest! {
        #[test]
        fn pads_are_sha256(key: [u8; LAYER_KEY], row_id: i64, code: u64) {
            let layer = Layer::new(&key);
            let digest = Sha256::new().chain_update(key).chain_update(row_id.to_be_bytes());
            let digest = digest.finalize();
            prop_assert_eq!(&layer.wide(row_id, 0).to_be_bytes()[..], &digest[..16]);
            prop_assert_eq!(&layer.narrow(row_id, 0).to_be_bytes()[..], &digest[..8]);
            prop_assert_eq!(layer.narrow(row_id, layer.narrow(row_id, code)), code);
        }
    }
}
