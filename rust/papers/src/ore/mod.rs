//! An order-revealing baseline that skipping by Bloom filters is measured against, and nothing
//! else: the left/right scheme of Lewi and Wu (CCS 2016) with blocks of 12 bits, as in the paper's
//! chapter 6.7. Its product form with blocks of 4 bits is `spec/ore.md`; blocks of 4,096 slots
//! need other packing, another shuffle and a hash without a key schedule, hence a form of its own.
//!
//! A right ciphertext is a nonce and, of every block, two bits a slot. A left one is, of every
//! block, one slot and its key.

pub mod secret;
pub mod server;

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};

/// Bits of a block; the last one has what is left.
pub const BLOCK_BITS: u32 = 12;
/// Bytes of a nonce and of the key of a slot.
pub const KEY: usize = 16;
/// Blocks of 64 bits: five of 12, one of 4.
pub const MOST_BLOCKS: usize = 6;

/// Bits of the blocks of a domain of 64 or 32 bits, the highest first.
pub fn widths(domain_bits: u32) -> Vec<u32> {
    let whole = domain_bits / BLOCK_BITS;
    let mut widths = vec![BLOCK_BITS; whole as usize];
    widths.extend(Some(domain_bits % BLOCK_BITS).filter(|rest| *rest != 0));
    widths
}

/// Bytes of a right ciphertext.
pub fn right_bytes(domain_bits: u32) -> usize {
    let slots: usize = widths(domain_bits).iter().map(|width| 1 << width).sum();
    KEY + slots / 4
}

/// What an entry hides: how the value of its slot compares with the stored one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Entry {
    /// Both are equal.
    Equal = 0,
    /// The value of the slot is less.
    Less = 1,
    /// The value of the slot is greater.
    Greater = 2,
}

/// A left ciphertext: a key and a slot for every block.
#[derive(Clone, PartialEq, Eq)]
pub struct Left(pub Vec<([u8; KEY], u16)>);

/// The hash of a slot's key under a nonce, as a number below 3: a fixed permutation of their sum,
/// plus the sum. A fixed key saves a key schedule a ciphertext, on both sides.
pub struct Mask(Aes128Enc);

impl Default for Mask {
    fn default() -> Self {
        Self(Aes128Enc::new(&Block::from(*b"louver/baseline1")))
    }
}

impl Mask {
    /// Hashes sums of keys and nonces, many at once; `room` is as long, and overwritten.
    pub fn many<'a>(
        &self,
        sums: &'a [Block],
        room: &'a mut [Block],
    ) -> impl Iterator<Item = u8> + 'a {
        self.0.encrypt_blocks_b2b(sums, room).expect("as long");
        room.iter().zip(sums).map(|(out, sum)| {
            let head = |block: &Block| u32::from_le_bytes([block[0], block[1], block[2], block[3]]);
            ((u64::from(head(out) ^ head(sum)) * 3) >> 32) as u8
        })
    }
}

/// A key plus a nonce.
pub fn sum(key: &[u8; KEY], nonce: &[u8; KEY]) -> Block {
    (u128::from_ne_bytes(*key) ^ u128::from_ne_bytes(*nonce))
        .to_ne_bytes()
        .into()
}
