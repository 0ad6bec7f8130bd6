//! Pseudo-random permutations of 64 and 128 bits, and AES-CMAC (RFC 4493), many values at a time
//! (`spec/eq.md`). Trusted code makes codes with them; a server opens one layer if it has the key.

use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes128Enc, Block};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Bytes of a key.
pub const KEY: usize = 16;
/// Rounds of the Feistel network: NIST's FF1 takes ten, two more are margin.
const ROUNDS: u64 = 12;
/// Values that go through AES together: a multiple of what it takes at once.
const BATCH: usize = 256;
const BLOCK: usize = 16;

/// A permutation of 64-bit numbers: a balanced Feistel network whose round function is AES-128.
#[derive(ZeroizeOnDrop)]
pub struct Prp64(Aes128Enc);

impl Prp64 {
    /// The permutation of a key.
    pub fn new(key: &[u8; KEY]) -> Self {
        Self(Aes128Enc::new(key.into()))
    }

    /// Replaces every number by its image.
    pub fn encrypt(&self, values: &mut [u64]) {
        let mut blocks = Blocks::new(values.len());
        for batch in values.chunks_mut(BATCH) {
            for round in 0..ROUNDS {
                self.round(round, batch, &mut blocks.all, |v| v as u32);
                for (value, block) in batch.iter_mut().zip(&blocks.all) {
                    let (left, right) = ((*value >> 32) as u32, *value as u32);
                    *value = u64::from(right) << 32 | u64::from(left ^ mask(block));
                }
            }
        }
    }

    /// Replaces every image by its number.
    pub fn decrypt(&self, values: &mut [u64]) {
        let mut blocks = Blocks::new(values.len());
        for batch in values.chunks_mut(BATCH) {
            for round in (0..ROUNDS).rev() {
                self.round(round, batch, &mut blocks.all, |v| (v >> 32) as u32);
                for (value, block) in batch.iter_mut().zip(&blocks.all) {
                    let (left, right) = ((*value >> 32) as u32, *value as u32);
                    *value = u64::from(right ^ mask(block)) << 32 | u64::from(left);
                }
            }
        }
    }

    /// The round function of one half of every value.
    fn round(&self, round: u64, values: &[u64], blocks: &mut [Block], half: impl Fn(u64) -> u32) {
        let tweak = u128::from(round) << 64;
        for (block, value) in blocks.iter_mut().zip(values) {
            *block = (tweak | u128::from(half(*value))).to_be_bytes().into();
        }
        self.0.encrypt_blocks(&mut blocks[..values.len()]);
    }
}

fn mask(block: &Block) -> u32 {
    u32::from_be_bytes([block[0], block[1], block[2], block[3]])
}

/// A permutation of 128-bit numbers: AES-128 of their big-endian bytes.
#[derive(ZeroizeOnDrop)]
pub struct Prp128(Aes128);

impl Prp128 {
    /// The permutation of a key.
    pub fn new(key: &[u8; KEY]) -> Self {
        Self(Aes128::new(key.into()))
    }

    /// Replaces every number by its image.
    pub fn encrypt(&self, values: &mut [u128]) {
        each(values, |blocks| self.0.encrypt_blocks(blocks));
    }

    /// Replaces every image by its number.
    pub fn decrypt(&self, values: &mut [u128]) {
        each(values, |blocks| self.0.decrypt_blocks(blocks));
    }
}

fn each(values: &mut [u128], f: impl Fn(&mut [Block])) {
    let mut blocks = Blocks::new(values.len());
    for batch in values.chunks_mut(BATCH) {
        for (block, value) in blocks.all.iter_mut().zip(&*batch) {
            *block = value.to_be_bytes().into();
        }
        f(&mut blocks.all[..batch.len()]);
        for (value, block) in batch.iter_mut().zip(&blocks.all) {
            *value = u128::from_be_bytes((*block).into());
        }
    }
}

/// AES-CMAC (RFC 4493): a pseudo-random function of strings, of many strings in step.
#[derive(ZeroizeOnDrop)]
pub struct Cmac {
    cipher: Aes128Enc,
    /// What the last block is mixed with: if it is whole, if it was filled up.
    last: [u128; 2],
}

impl Cmac {
    /// The function of a key.
    pub fn new(key: &[u8; KEY]) -> Self {
        let cipher = Aes128Enc::new(key.into());
        let mut zero = Block::default();
        cipher.encrypt_block(&mut zero);
        let whole = double(u128::from_be_bytes(zero.into()));
        let last = [whole, double(whole)];
        Self { cipher, last }
    }

    /// The function of every message, big endian.
    pub fn of(&self, messages: &[&[u8]]) -> Vec<u128> {
        let mut out = vec![0; messages.len()];
        for (messages, out) in messages.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
            self.batch(messages, out);
        }
        out
    }

    /// The tag of one message; of many, [`Cmac::of`] is quicker.
    pub fn one(&self, message: &[u8]) -> u128 {
        let mut state = 0;
        for at in (0..message.len().max(1)).step_by(BLOCK) {
            let mut block = Block::from((state ^ self.block(message, at)).to_be_bytes());
            self.cipher.encrypt_block(&mut block);
            state = u128::from_be_bytes(block.into());
        }
        state
    }

    fn batch(&self, messages: &[&[u8]], out: &mut [u128]) {
        let mut blocks = Blocks::new(messages.len());
        let mut left: Vec<usize> = (0..messages.len()).collect();
        for at in (0..).step_by(BLOCK) {
            for (block, &which) in blocks.all.iter_mut().zip(&left) {
                *block = (out[which] ^ self.block(messages[which], at))
                    .to_be_bytes()
                    .into();
            }
            self.cipher.encrypt_blocks(&mut blocks.all[..left.len()]);
            for (block, &which) in blocks.all.iter().zip(&left) {
                out[which] = u128::from_be_bytes((*block).into());
            }
            left.retain(|&which| messages[which].len() > at + BLOCK);
            if left.is_empty() {
                return;
            }
        }
    }

    /// The block of a message that begins at `at`; the last one is prepared.
    fn block(&self, message: &[u8], at: usize) -> u128 {
        let rest = &message[at..];
        let mut block = [0; BLOCK];
        let taken = rest.len().min(BLOCK);
        block[..taken].copy_from_slice(&rest[..taken]);
        if rest.len() > BLOCK {
            return u128::from_be_bytes(block);
        }
        if taken < BLOCK {
            block[taken] = 0x80;
        }
        u128::from_be_bytes(block) ^ self.last[usize::from(taken < BLOCK)]
    }
}

/// Times x in the field of 2^128 elements.
fn double(a: u128) -> u128 {
    (a << 1) ^ (0x87 & 0u128.wrapping_sub(a >> 127))
}

/// Room for a batch of blocks; those that were used are wiped when it is dropped.
struct Blocks {
    all: [Block; BATCH],
    used: usize,
}

impl Blocks {
    /// For so many values, in one batch or several.
    fn new(values: usize) -> Self {
        Self {
            all: [Block::from([0; BLOCK]); BATCH],
            used: values.min(BATCH),
        }
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        let blocks = self.all[..self.used].iter_mut();
        blocks.for_each(|block| block.as_mut_slice().zeroize());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 4493, section 4.
    #[test]
    fn the_examples_of_the_rfc() {
        let key = 0x2b7e151628aed2a6abf7158809cf4f3c_u128.to_be_bytes();
        let message = [
            0x6bc1bee22e409f96e93d7e117393172a_u128,
            0xae2d8a571e03ac9c9eb76fac45af8e51,
            0x30c81c46a35ce411e5fbc1191a0a52ef,
            0xf69f2445df4f9b17ad2b417be66c3710,
        ];
        let message = message.map(u128::to_be_bytes);
        let message = message.as_flattened();
        let messages = [0, 16, 40, 64].map(|length| &message[..length]);
        let wanted = [
            0xbb1d6929e95937287fa37d129b756746_u128,
            0x070a16b46b4d4144f79bdd9dd04a287c,
            0xdfa66747de9ae63030ca32611497c827,
            0x51f0bebf7e3b9d92fc49741779363cfe,
        ];
        let actual = Cmac::new(&key).of(&messages);
        assert_eq!(actual, wanted);
        assert_eq!(messages.map(|message| Cmac::new(&key).one(message)), wanted);
    }

    proptest! {
        #[test]
        fn there_and_back(
            key: [u8; KEY],
            narrow in prop::collection::vec(any::<u64>(), 0..600),
            wide in prop::collection::vec(any::<u128>(), 0..600),
        ) {
            let (mut a, mut b) = (narrow.clone(), wide.clone());
            let (small, large) = (Prp64::new(&key), Prp128::new(&key));
            small.encrypt(&mut a);
            large.encrypt(&mut b);
            for (value, image) in narrow.iter().zip(&a) {
                let mut alone = [*value];
                small.encrypt(&mut alone);
                prop_assert_eq!(alone[0], *image);
            }
            small.decrypt(&mut a);
            large.decrypt(&mut b);
            prop_assert_eq!((a, b), (narrow, wide));
        }

        #[test]
        fn messages_together_and_alone(
            key: [u8; KEY],
            messages in prop::collection::vec(any::<Vec<u8>>(), 0..40),
        ) {
            let cmac = Cmac::new(&key);
            let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
            let alone: Vec<u128> = messages.iter().map(|m| cmac.one(m)).collect();
            prop_assert_eq!(cmac.of(&messages), alone);
        }
    }
}
