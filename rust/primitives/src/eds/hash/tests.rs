//! Published answers of AES, and that many at once are like one by one.

use super::*;
use proptest::prelude::*;

/// The bytes 0, 1, 2...
fn counted<const N: usize>() -> [u8; N] {
    std::array::from_fn(|at| at as u8)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// FIPS 197, appendix B and C.1, one key in either half.
#[test]
fn aes() {
    let mut key = [0; KEY];
    key[..16].copy_from_slice(&counted::<16>());
    key[16..].copy_from_slice(&0x2b7e151628aed2a6abf7158809cf4f3c_u128.to_be_bytes());
    let hash = Aes::new(&key);
    let digest = hash.digest(&0x00112233445566778899aabbccddeeff_u128.to_be_bytes());
    assert_eq!(hex(&digest[..16]), "69c4e0d86a7b0430d8cdb78070b4c55a");
    let digest = hash.digest(&0x3243f6a8885a308d313198a2e0370734_u128.to_be_bytes());
    assert_eq!(hex(&digest[16..]), "3925841d02dc09fbdc118597196a0b32");
}

proptest! {
    #[test]
    fn many_are_like_one_by_one(
        key: [u8; KEY],
        inputs in prop::collection::vec(any::<[u8; ELEMENT]>(), 0..600),
    ) {
        let hash = Aes::new(&key);
        let mut out = vec![[0; DIGEST]; inputs.len()];
        hash.digest_many(&inputs, &mut out);
        let alone: Vec<_> = inputs.iter().map(|input| hash.digest(input)).collect();
        prop_assert_eq!(out, alone);
    }

    #[test]
    fn keys_and_inputs_matter(mut key: [u8; KEY], input: Vec<u8>, second: bool) {
        let digest = Aes::new(&key).digest(&input);
        let mut longer = input.clone();
        longer.push(0);
        prop_assert_ne!(Aes::new(&key).digest(&longer), digest);
        key[usize::from(second) * 16] ^= 1;
        prop_assert_ne!(Aes::new(&key).digest(&input), digest);
    }
}
