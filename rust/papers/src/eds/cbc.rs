//! Whole filters under AES-256 in CBC mode (paper 5.3.3). The paper starts every filter with an
//! empty vector, so that files with equal bounds look alike; ours starts with the encrypted file
//! id (NIST SP 800-38A, appendix C).

use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes256Dec, Aes256Enc, Block};

/// Bytes of a key.
pub const KEY: usize = 32;
/// Bytes of a block of AES; filters have a whole number of them.
pub const BLOCK: usize = 16;

/// CBC under one key.
pub struct Cbc {
    forth: Aes256Enc,
    back: Aes256Dec,
    tweaked: bool,
}

impl Cbc {
    /// With the file id as tweak, or with an empty vector as the paper does.
    pub fn new(key: &[u8; KEY], tweaked: bool) -> Self {
        let (forth, back) = (Aes256Enc::new(key.into()), Aes256Dec::new(key.into()));
        Self {
            forth,
            back,
            tweaked,
        }
    }

    fn vector(&self, file_id: &[u8; BLOCK]) -> Block {
        let mut vector = Block::default();
        if self.tweaked {
            vector = Block::from(*file_id);
            self.forth.encrypt_block(&mut vector);
        }
        vector
    }

    /// Encrypts a filter in place.
    pub fn encrypt(&self, file_id: &[u8; BLOCK], filter: &mut [u8]) {
        let mut before = self.vector(file_id);
        for block in filter.as_chunks_mut::<BLOCK>().0 {
            xor(&mut before, block);
            self.forth.encrypt_block(&mut before);
            *block = before.into();
        }
    }

    /// Encrypts filters of `size` bytes stored one after the other, like [`Cbc::encrypt`] each:
    /// block by block of all of them, because the blocks of one wait for each other.
    pub fn encrypt_many(&self, file_ids: &[[u8; BLOCK]], size: usize, filters: &mut [u8]) {
        let mut before: Vec<Block> = file_ids.iter().map(|id| self.vector(id)).collect();
        for at in (0..size).step_by(BLOCK) {
            let own = |filter: usize| filter * size + at..filter * size + at + BLOCK;
            for (filter, block) in before.iter_mut().enumerate() {
                let plain = filters[own(filter)].first_chunk().expect("whole blocks");
                xor(block, plain);
            }
            self.forth.encrypt_blocks(&mut before);
            for (filter, block) in before.iter().enumerate() {
                filters[own(filter)].copy_from_slice(block);
            }
        }
    }

    /// Decrypts those blocks of a filter whose numbers are given, into as many of `out`; many at
    /// once, which decryption allows. A number beyond the filter gives zeros.
    pub fn decrypt(&self, file_id: &[u8; BLOCK], filter: &[u8], which: &[u16], out: &mut [Block]) {
        let (blocks, _) = filter.as_chunks::<BLOCK>();
        let at = |number: usize| blocks.get(number).copied().unwrap_or_default();
        for (out, number) in out.iter_mut().zip(which) {
            *out = Block::from(at(usize::from(*number)));
        }
        self.back.decrypt_blocks(out);
        for (out, number) in out.iter_mut().zip(which) {
            match usize::from(*number) {
                0 => xor(out, &self.vector(file_id).into()),
                number => xor(out, &at(number - 1)),
            }
        }
    }
}

fn xor(block: &mut Block, other: &[u8; BLOCK]) {
    let both = u128::from_ne_bytes((*block).into()) ^ u128::from_ne_bytes(*other);
    *block = both.to_ne_bytes().into();
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// NIST SP 800-38A, F.2.5, whose vector we get by mixing it into the first block.
    #[test]
    fn the_example_of_nist() {
        let key = [
            0x603deb1015ca71be2b73aef0857d7781_u128,
            0x1f352c073b6108d72d9810a30914dff4,
        ];
        let key: [u8; KEY] = key
            .map(u128::to_be_bytes)
            .as_flattened()
            .try_into()
            .unwrap();
        let vector = 0x000102030405060708090a0b0c0d0e0f_u128;
        let plain = [
            0x6bc1bee22e409f96e93d7e117393172a ^ vector,
            0xae2d8a571e03ac9c9eb76fac45af8e51,
        ];
        let mut filter = plain.map(u128::to_be_bytes).as_flattened().to_vec();
        Cbc::new(&key, false).encrypt(&[7; BLOCK], &mut filter);
        let wanted = [
            0xf58c4c04d6e5f1ba779eabfb5f7bfbd6_u128,
            0x9cfc4e967edb808d679f777bc6702c7d,
        ];
        assert_eq!(filter, wanted.map(u128::to_be_bytes).as_flattened());
    }

    proptest! {
        #[test]
        fn there_and_back(
            key: [u8; KEY],
            file_id: [u8; BLOCK],
            filter in prop::collection::vec(any::<[u8; BLOCK]>(), 1..300),
            tweaked: bool,
        ) {
            let cbc = Cbc::new(&key, tweaked);
            let mut sealed = filter.as_flattened().to_vec();
            cbc.encrypt(&file_id, &mut sealed);
            let which: Vec<u16> = (0..filter.len() as u16).rev().collect();
            let mut out = vec![Block::default(); filter.len()];
            cbc.decrypt(&file_id, &sealed, &which, &mut out);
            let out: Vec<[u8; BLOCK]> = out.into_iter().rev().map(Into::into).collect();
            prop_assert_eq!(out, filter.clone());
            let mut many = [filter.as_flattened(), filter.as_flattened()].concat();
            cbc.encrypt_many(&[file_id, file_id], sealed.len(), &mut many);
            prop_assert_eq!(many, [&sealed[..], &sealed[..]].concat());
            let mut other = filter.as_flattened().to_vec();
            cbc.encrypt(&file_id.map(|byte| !byte), &mut other);
            prop_assert_eq!(other == sealed, !tweaked);
            let mut beyond = [Block::default(); 1];
            cbc.decrypt(&file_id, &sealed, &[u16::MAX], &mut beyond);
        }
    }
}
