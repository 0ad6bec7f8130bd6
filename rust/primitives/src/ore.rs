//! The layout of order-revealing ciphertexts and tokens, and the hash that hides a comparison's
//! result (`spec/ore.md`).

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};

/// The first byte of a ciphertext and of a token.
pub const VERSION: u8 = 1;
/// Bytes of a nonce, and of a token's key.
pub const KEY: usize = 16;
/// Bits of a block.
pub const BLOCK_BITS: u32 = 4;
/// Values of a block.
pub const BLOCK_VALUES: usize = 1 << BLOCK_BITS;
/// Bytes that a ciphertext has a block.
pub const RIGHT: usize = 4;
/// Bytes that a token has a block: a key, and where to look.
pub const LEFT: usize = KEY + 1;
/// Bytes of a ciphertext before its blocks.
pub const HEAD: usize = 1 + KEY;
/// Most blocks: of 64 bits, and of one more for NULL.
pub const MOST_BLOCKS: usize = 17;

/// What is hidden in a ciphertext's block: how the token's value compares with the stored one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Entry {
    /// Both are equal.
    Equal = 0,
    /// The token's is less.
    Less = 1,
    /// The token's is greater.
    Greater = 2,
}

/// The hash of keys under one nonce: E(nonce, key) + key, of which the remainder by 3 counts.
pub struct Masks(Aes128Enc);

impl Masks {
    /// The hash of a nonce.
    pub fn new(nonce: &[u8; KEY]) -> Self {
        Self(Aes128Enc::new(nonce.into()))
    }

    /// A key's mask: 0, 1 or 2.
    pub fn one(&self, key: &[u8; KEY]) -> u8 {
        let mut block = Block::from(*key);
        self.0.encrypt_block(&mut block);
        mask(&block, key)
    }

    /// The masks of many keys; `room` is as long as `keys`, and overwritten.
    pub fn many<'a>(
        &self,
        keys: &'a [Block],
        room: &'a mut [Block],
    ) -> impl Iterator<Item = u8> + 'a {
        room.copy_from_slice(keys);
        self.0.encrypt_blocks(room);
        room.iter().zip(keys).map(|(block, key)| mask(block, key))
    }
}

fn mask(block: &[u8], key: &[u8]) -> u8 {
    let head = |bytes: &[u8]| u64::from_be_bytes(*bytes.first_chunk().expect("16 bytes"));
    ((head(block) ^ head(key)) % 3) as u8
}

/// The order of a stored value and a token's: greater where the stored one is. `None` if one of
/// them is malformed, or they do not belong together. The empty token is below every value.
pub fn compare(stored: &[u8], token: &[u8]) -> Option<std::cmp::Ordering> {
    use std::cmp::Ordering;
    let (head, blocks) = stored.split_first_chunk::<HEAD>()?;
    let (blocks, rest) = blocks.as_chunks::<RIGHT>();
    if head[0] != VERSION || !rest.is_empty() || !(1..=MOST_BLOCKS).contains(&blocks.len()) {
        return None;
    }
    if token.is_empty() {
        return Some(Ordering::Greater);
    }
    let (version, token) = token.split_first()?;
    let (parts, rest) = token.as_chunks::<LEFT>();
    if *version != VERSION || !rest.is_empty() || parts.len() != blocks.len() {
        return None;
    }
    let masks = Masks::new(head[1..].try_into().ok()?);
    for (block, part) in blocks.iter().zip(parts) {
        let [key @ .., slot] = part;
        if usize::from(*slot) >= BLOCK_VALUES {
            return None;
        }
        let entry = (u32::from_be_bytes(*block) >> (2 * slot)) as u8 & 3;
        if entry == 3 {
            return None;
        }
        match (entry + 3 - masks.one(key)) % 3 {
            0 => {}
            1 => return Some(Ordering::Greater),
            _ => return Some(Ordering::Less),
        }
    }
    Some(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes(stored: Vec<u8>, token: Vec<u8>, blocks in 1..18_usize) {
            compare(&stored, &token);
            let (mut right, mut left) = (stored, token);
            right.resize(HEAD + RIGHT * blocks, 0);
            left.resize(1 + LEFT * blocks, 7);
            (right[0], left[0]) = (VERSION, VERSION);
            compare(&right, &left);
            left.push(0);
            prop_assert_eq!(compare(&right, &left), None);
        }
    }
}
