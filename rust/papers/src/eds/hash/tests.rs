//! Published answers of the hashes, and that many at once are like one by one. Those of AES are
//! the product's.

use super::murmur::x64_128;
use super::*;
use proptest::prelude::*;

/// The bytes 0, 1, 2...
fn counted<const N: usize>() -> [u8; N] {
    std::array::from_fn(|at| at as u8)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first answers of the reference's list for 256 bits.
#[test]
fn highway() {
    let hash = Highway::new(&counted());
    let digest = hash.digest(b"");
    let words = digest.as_chunks().0.iter();
    let words: Vec<u64> = words.map(|word| u64::from_le_bytes(*word)).collect();
    let wanted = [
        0xdd44_482a_c2c8_74f5,
        0xd946_0173_13c7_351f,
        0xb3ae_becc_b987_14ff,
        0x41da_2331_4575_1df4,
    ];
    assert_eq!(words, wanted);
}

/// The reference's vectors of SipHash-2-4 with 128 bits.
#[test]
fn sip() {
    let mut key = [0; KEY];
    key[16..].copy_from_slice(&counted::<16>());
    let hash = Sip::new(&key);
    let second = |input: &[u8]| hex(&hash.digest(input)[16..]);
    assert_eq!(second(&[]), "a3817f04ba25a8e66df67214c7550293");
    assert_eq!(second(&[0]), "da87c1d86b99af44347659119b22fc45");
}

/// The test vectors of BLAKE3 with a key.
#[test]
fn blake3() {
    let hash = Blake3::new(b"whats the Elvish word for friend");
    let wanted = [
        "92b2b75604ed3c761f9d6f62392c8a9227ad0ea3f09573e783f1498a4ed60d26",
        "6d7878dfff2f485635d39013278ae14f1454b8c0a3a2d34bc1ab38228a80c95b",
    ];
    assert_eq!(hex(&hash.digest(&[])), wanted[0]);
    assert_eq!(hex(&hash.digest(&[0])), wanted[1]);
}

/// RFC 4231, case 1; HMAC fills keys up with zeros.
#[test]
fn sha256() {
    let mut key = [0; KEY];
    key[..20].fill(0x0b);
    let wanted = "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7";
    assert_eq!(hex(&Sha256::new(&key).digest(b"Hi There")), wanted);
}

/// SMHasher's verification value of Murmur3F, which digests of 256 keys go into.
#[test]
fn murmur3() {
    let mut all = Vec::new();
    for length in 0..256_usize {
        let input = &counted::<256>()[..length];
        all.extend(x64_128(input, 256 - length as u32));
    }
    assert_eq!(x64_128(&all, 0)[..4], 0x6384_ba69_u32.to_le_bytes());
    let mut key = [0; KEY];
    key[16] = 1;
    let digest = Murmur3::new(&key).digest(b"hello");
    let first = u64::from_le_bytes(*digest.first_chunk().unwrap());
    assert_eq!(first, 0xcbd8_a7b3_41bd_9b02);
    assert_eq!(digest[16..], x64_128(b"hello", 1));
}

proptest! {
    #[test]
    fn many_are_like_one_by_one(
        key: [u8; KEY],
        inputs in prop::collection::vec(any::<[u8; ELEMENT]>(), 0..600),
    ) {
        for kind in Hash::ALL {
            let hash = keyed(kind, &key);
            let mut out = vec![[0; DIGEST]; inputs.len()];
            hash.digest_many(&inputs, &mut out);
            let alone: Vec<_> = inputs.iter().map(|input| hash.digest(input)).collect();
            prop_assert_eq!(out, alone);
        }
    }

    #[test]
    fn keys_and_inputs_matter(mut key: [u8; KEY], input: Vec<u8>, second: bool) {
        for kind in Hash::ALL {
            let digest = keyed(kind, &key).digest(&input);
            let mut longer = input.clone();
            longer.push(0);
            prop_assert_ne!(keyed(kind, &key).digest(&longer), digest);
            key[usize::from(second) * 16] ^= 1;
            prop_assert_ne!(keyed(kind, &key).digest(&input), digest);
        }
    }
}
