//! Murmur3 (x64, 128 bits). Not a pseudo-random function: chosen inputs collide under every
//! seed. It serves the paper's comparison and is in no product setting.

use super::{half, KeyedHash, DIGEST, KEY};

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// Murmur3 with two seeds of 32 bits: the first four bytes of either half of the key.
pub struct Murmur3([u32; 2]);

impl Murmur3 {
    /// The hash of a key.
    pub fn new(key: &[u8; KEY]) -> Self {
        let words = key.as_chunks().0;
        Self([words[0], words[4]].map(u32::from_le_bytes))
    }
}

impl KeyedHash for Murmur3 {
    fn digest(&self, input: &[u8]) -> [u8; DIGEST] {
        let mut out = [0; DIGEST];
        for (second, seed) in [false, true].into_iter().zip(self.0) {
            *half(&mut out, second) = x64_128(input, seed);
        }
        out
    }
}

/// MurmurHash3_x64_128 of Appleby's SMHasher.
pub(super) fn x64_128(input: &[u8], seed: u32) -> [u8; DIGEST / 2] {
    let (mut h1, mut h2) = (u64::from(seed), u64::from(seed));
    let (blocks, tail) = input.as_chunks::<16>();
    for block in blocks {
        let (k1, k2) = words(block);
        h1 ^= first(k1);
        h1 = h1.rotate_left(27).wrapping_add(h2);
        h1 = h1.wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= second(k2);
        h2 = h2.rotate_left(31).wrapping_add(h1);
        h2 = h2.wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    // Bytes that are missing count as zeros, of which both mixes make zero.
    let mut last = [0; 16];
    last[..tail.len()].copy_from_slice(tail);
    let (k1, k2) = words(&last);
    h1 ^= first(k1) ^ input.len() as u64;
    h2 ^= second(k2) ^ input.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1, h2) = (finish(h1), finish(h2));
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (u128::from(h2) << 64 | u128::from(h1)).to_le_bytes()
}

fn words(block: &[u8; 16]) -> (u64, u64) {
    let both = u128::from_le_bytes(*block);
    (both as u64, (both >> 64) as u64)
}

fn first(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn second(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

fn finish(mut k: u64) -> u64 {
    k ^= k >> 33;
    k = k.wrapping_mul(0xff51_afd7_ed55_8ccd);
    k ^= k >> 33;
    k = k.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ k >> 33
}
