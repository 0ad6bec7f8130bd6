//! HighwayHash, SipHash, BLAKE3 and SHA-256 as keyed hashes.

use super::{half, KeyedHash, DIGEST, KEY};
use highway::{HighwayHash, HighwayHasher};
use hmac::{Hmac, KeyInit, Mac};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher;
use zeroize::Zeroizing;

/// HighwayHash of 256 bits.
pub struct Highway(Zeroizing<[u64; 4]>);

impl Highway {
    /// The hash of a key.
    pub fn new(key: &[u8; KEY]) -> Self {
        let words = key.as_chunks().0;
        Self(Zeroizing::new(std::array::from_fn(|at| {
            u64::from_le_bytes(words[at])
        })))
    }
}

impl KeyedHash for Highway {
    fn digest(&self, input: &[u8]) -> [u8; DIGEST] {
        let words = HighwayHasher::new(highway::Key(*self.0)).hash256(input);
        let mut out = [0; DIGEST];
        out.as_chunks_mut()
            .0
            .copy_from_slice(&words.map(u64::to_le_bytes));
        out
    }
}

/// SipHash-2-4 with 128 bits, under either half of the key.
pub struct Sip(Zeroizing<[u8; KEY]>);

impl Sip {
    /// The hash of a key.
    pub fn new(key: &[u8; KEY]) -> Self {
        Self(Zeroizing::new(*key))
    }
}

impl KeyedHash for Sip {
    fn digest(&self, input: &[u8]) -> [u8; DIGEST] {
        let mut out = [0; DIGEST];
        for (second, key) in [false, true].into_iter().zip(self.0.as_chunks().0) {
            let mut hasher = SipHasher24::new_with_key(key);
            hasher.write(input);
            *half(&mut out, second) = hasher.finish128().as_bytes();
        }
        out
    }
}

/// BLAKE3 with a key.
pub struct Blake3(Zeroizing<[u8; KEY]>);

impl Blake3 {
    /// The hash of a key.
    pub fn new(key: &[u8; KEY]) -> Self {
        Self(Zeroizing::new(*key))
    }
}

impl KeyedHash for Blake3 {
    fn digest(&self, input: &[u8]) -> [u8; DIGEST] {
        blake3::keyed_hash(&self.0, input).into()
    }
}

/// HMAC-SHA-256 (RFC 2104); the two states that depend on the key are computed once.
pub struct Sha256(Hmac<sha2::Sha256>);

impl Sha256 {
    /// The hash of a key.
    pub fn new(key: &[u8; KEY]) -> Self {
        Self(Hmac::new_from_slice(key).expect("HMAC takes any key"))
    }
}

impl KeyedHash for Sha256 {
    fn digest(&self, input: &[u8]) -> [u8; DIGEST] {
        self.0
            .clone()
            .chain_update(input)
            .finalize()
            .into_bytes()
            .into()
    }
}
