//! AES-128 as a keyed hash: one block of an element under either half of the key.

use super::{half, KeyedHash, DIGEST, ELEMENT, KEY};
use crate::prp::Cmac;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use zeroize::Zeroize;

/// Elements that go through AES together.
const BATCH: usize = 256;
/// What the keys for strings are made of: no element equals it, since its side byte is not used.
const STRINGS: [u8; ELEMENT] = [0xfe; ELEMENT];

/// AES-128. An element of 16 bytes is one block under each half of the key; whatever has another
/// length goes through AES-CMAC under keys of its own.
pub struct Aes([Part; 2]);

struct Part {
    block: Aes128Enc,
    string: Cmac,
}

impl Aes {
    /// The hash of a key.
    pub fn new(key: &[u8; KEY]) -> Self {
        let [first, second] = *key.as_chunks().0 else {
            unreachable!("a key has two halves")
        };
        Self([Part::new(first), Part::new(second)])
    }
}

impl Part {
    fn new(mut key: [u8; KEY / 2]) -> Self {
        let block = Aes128Enc::new(&key.into());
        let mut strings = Block::from(STRINGS);
        block.encrypt_block(&mut strings);
        let string = Cmac::new(strings.as_slice().try_into().expect("a block"));
        strings.as_mut_slice().zeroize();
        key.zeroize();
        Self { block, string }
    }

    fn digest(&self, input: &[u8]) -> [u8; DIGEST / 2] {
        match <[u8; ELEMENT]>::try_from(input) {
            Ok(element) => {
                let mut block = Block::from(element);
                self.block.encrypt_block(&mut block);
                block.into()
            }
            Err(_) => self.string.one(input).to_be_bytes(),
        }
    }
}

impl KeyedHash for Aes {
    fn digest(&self, input: &[u8]) -> [u8; DIGEST] {
        let mut out = [0; DIGEST];
        for (second, part) in [false, true].into_iter().zip(&self.0) {
            *half(&mut out, second) = part.digest(input);
        }
        out
    }

    fn digest_many(&self, inputs: &[[u8; ELEMENT]], out: &mut [[u8; DIGEST]]) {
        let mut blocks = [Block::default(); BATCH];
        for (inputs, out) in inputs.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
            for (second, part) in [false, true].into_iter().zip(&self.0) {
                for (block, input) in blocks.iter_mut().zip(inputs) {
                    *block = Block::from(*input);
                }
                part.block.encrypt_blocks(&mut blocks[..inputs.len()]);
                for (out, block) in out.iter_mut().zip(&blocks) {
                    *half(out, second) = (*block).into();
                }
            }
        }
    }
}
