//! Shares and replies of the additive scheme as bytes.

use super::*;
use crate::fss::ShareError;
use crate::Modulus;
use num_bigint::BigUint;
use proptest::prelude::*;

fn share(bits: u32, party: u8, parties: u8, bytes: usize) -> PaillierShare {
    let layout = PaillierLayout::new(bits).unwrap();
    PaillierShare {
        header: PaillierShare::header(bits, party, parties),
        layout,
        modulus: vec![0xf1; bytes],
        bases: vec![3; 4 * bytes * layout.columns()],
        rows: match party + 1 == parties {
            true => Rows::Parts(vec![7; layout.rows() * LAST_ROW_BYTES]),
            false => Rows::Key([9; ROW_KEY]),
        },
    }
}

proptest! {
    #[test]
    fn shares_and_hostile_bytes(
        bits in 1..11_u32,
        parties in 2..=5_u8,
        bytes in MODULUS_BYTES,
        last: bool,
        at: prop::sample::Index,
        early: bool,
        flip in 1..=255_u8,
        noise: Vec<u8>,
    ) {
        let party = if last { parties - 1 } else { 0 };
        let given = share(bits, party, parties, bytes);
        let bytes = given.encode();
        prop_assert!(PaillierShare::decode(&bytes).unwrap() == given);
        let mut other = bytes.clone();
        let at = at.index(if early { 12 } else { other.len() });
        other[at] ^= flip;
        if let Ok(read) = PaillierShare::decode(&other) {
            prop_assert_eq!(read.encode(), other);
        }
        prop_assert!(PaillierShare::decode(&bytes[..at]).is_err());
        let mut long = bytes;
        long.push(0);
        prop_assert!(PaillierShare::decode(&long).is_err());
        prop_assert!(PaillierShare::decode(&noise).is_err());
    }

    #[test]
    fn replies_and_hostile_bytes(sums in 0..40_u32, noise: Vec<u8>, at: prop::sample::Index) {
        let bytes = 32;
        prop_assert_eq!(sums_of_ciphertext(bytes), 1);
        let reply = write_reply(sums, &vec![5; sums as usize * 64]);
        prop_assert_eq!(read_reply(&reply, bytes).unwrap().0, sums as usize);
        prop_assert!(read_reply(&reply[..at.index(reply.len())], bytes).is_err());
        let _ = read_reply(&noise, bytes);
        let square = Modulus::from_be_bytes(&[0xf1; 64]).unwrap();
        let joined = join_replies(&square, bytes, &[&reply, &reply]).unwrap();
        let product = BigUint::from_bytes_be(&[5; 64]).pow(2) % BigUint::from_bytes_be(&[0xf1; 64]);
        if sums > 0 {
            let actual = BigUint::from_bytes_be(&joined[5..69]);
            prop_assert_eq!(actual, product);
        }
        let other = write_reply(sums + 1, &vec![5; (sums as usize + 1) * 64]);
        let refused = join_replies(&square, bytes, &[&reply, &other]);
        prop_assert_eq!(refused, Err(ShareError::Length));
        prop_assert!(join_replies(&square, bytes, &[&reply, &noise]).is_err());
    }
}

#[test]
fn sizes_are_those_of_the_spec() {
    let sizes = |bits| [0, 2].map(|party| share(bits, party, 3, 256).encode().len());
    assert_eq!(sizes(8), [4_394, 12_298]);
    assert_eq!(sizes(24), [1_048_874, 3_080_458]);
    assert_eq!(sums_of_ciphertext(256), 19);
    for bits in 1..=PAILLIER_MAX_BITS {
        let layout = PaillierLayout::new(bits).unwrap();
        assert_eq!(layout.rows() * layout.columns(), 1 << bits);
    }
    assert!(PaillierLayout::new(33).is_err() && PaillierLayout::new(0).is_err());
}

#[test]
fn uniform_rows_do_not_depend_on_how_many_there_are() {
    let (few, many) = (uniform_rows(&[1; 32], 3), uniform_rows(&[1; 32], 200));
    assert_eq!(few, many[..3 * ROW_BYTES]);
    assert_eq!(PART_BYTES.iter().sum::<usize>(), ROW_BYTES);
}
