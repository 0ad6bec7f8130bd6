//! AES-CMAC (RFC 4493): a pseudo-random function of short strings.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};

const BLOCK: usize = 16;

pub(super) struct Cmac {
    cipher: Aes128Enc,
    /// What the last block is mixed with: if it is whole, if it was filled up.
    last: [u128; 2],
}

impl Cmac {
    pub(super) fn new(key: &[u8; 16]) -> Self {
        let cipher = Aes128Enc::new(key.into());
        let mut zero = Block::default();
        cipher.encrypt_block(&mut zero);
        let whole = double(u128::from_be_bytes(zero.into()));
        let last = [whole, double(whole)];
        Self { cipher, last }
    }

    pub(super) fn of(&self, message: &[u8]) -> [u8; 16] {
        let last = message.len().saturating_sub(1) / BLOCK * BLOCK;
        let (blocks, rest) = message.split_at(last);
        let mut state = Block::default();
        for block in blocks.chunks_exact(BLOCK) {
            state.iter_mut().zip(block).for_each(|(s, b)| *s ^= b);
            self.cipher.encrypt_block(&mut state);
        }
        let mut filled = [0; BLOCK];
        filled[..rest.len()].copy_from_slice(rest);
        let whole = rest.len() == BLOCK;
        if !whole {
            filled[rest.len()] = 0x80;
        }
        let end = u128::from_be_bytes(filled) ^ self.last[usize::from(!whole)];
        let mut state = Block::from((u128::from_be_bytes(state.into()) ^ end).to_be_bytes());
        self.cipher.encrypt_block(&mut state);
        state.into()
    }
}

/// Times x in the field of 2^128 elements.
fn double(a: u128) -> u128 {
    (a << 1) ^ (0x87 & 0u128.wrapping_sub(a >> 127))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for (length, mac) in [
            (0, 0xbb1d6929e95937287fa37d129b756746_u128),
            (16, 0x070a16b46b4d4144f79bdd9dd04a287c),
            (40, 0xdfa66747de9ae63030ca32611497c827),
            (64, 0x51f0bebf7e3b9d92fc49741779363cfe),
        ] {
            assert_eq!(
                u128::from_be_bytes(Cmac::new(&key).of(&message[..length])),
                mac
            );
        }
    }
}
