//! A hash under a key that is used once or twice: the paper's F2, whose key is that of a position.

use super::{half, Blake3, Highway, KeyedHash, Murmur3, Sha256, DIGEST, ELEMENT, KEY};
use crate::eds::spec::Hash;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher;

/// The digest of a file id under the key of a position or block. Both halves of it are used as
/// keystream: AES and SipHash make them from two inputs. Those of AES differ in the last bit of
/// the id, so two ids that differ in it alone would share keystream; ids are random.
pub fn once(hash: Hash, key: &[u8; KEY / 2], file_id: &[u8; ELEMENT]) -> [u8; DIGEST] {
    match hash {
        Hash::Aes128 => {
            let mut blocks = [Block::from(*file_id); 2];
            blocks[1][ELEMENT - 1] ^= 1;
            Aes128Enc::new(key.into()).encrypt_blocks(&mut blocks);
            let mut out = [0; DIGEST];
            out[..16].copy_from_slice(&blocks[0]);
            out[16..].copy_from_slice(&blocks[1]);
            out
        }
        Hash::Sip => {
            let mut out = [0; DIGEST];
            for second in [false, true] {
                let mut hasher = SipHasher24::new_with_key(key);
                hasher.write(file_id);
                hasher.write(&[u8::from(second)]);
                *half(&mut out, second) = hasher.finish128().as_bytes();
            }
            out
        }
        Hash::Highway => Highway::new(&twice(key)).digest(file_id),
        Hash::Blake3 => Blake3::new(&twice(key)).digest(file_id),
        Hash::Sha256 => Sha256::new(&twice(key)).digest(file_id),
        Hash::Murmur3 => Murmur3::new(&twice(key)).digest(file_id),
    }
}

/// A key as long as the hashes want it; its halves differ.
fn twice(key: &[u8; KEY / 2]) -> [u8; KEY] {
    let mut out = [0; KEY];
    out[..KEY / 2].copy_from_slice(key);
    out[KEY / 2..].copy_from_slice(&key.map(|byte| !byte));
    out
}
