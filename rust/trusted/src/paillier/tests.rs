//! Known answers of `spec/vectors/hom.json`, sums of random rows, and nonsense.

use super::PaillierSpace;
use crate::keys::RootSecret;
use crate::KeyRing;
use arrow_array::cast::AsArray;
use arrow_array::*;
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};
use louver_untrusted::server::hom_sum;
use proptest::prelude::*;
use serde_json::Value;
use std::sync::{Arc, LazyLock};

const VECTORS: &str = include_str!("../../../../spec/vectors/hom.json");
const BITS: u32 = 512;

static SPACE: LazyLock<PaillierSpace> = LazyLock::new(|| ring().paillier(None, BITS).unwrap());

fn ring() -> KeyRing {
    let root: [u8; 32] = std::array::from_fn(|i| i as u8);
    KeyRing::from_root(RootSecret::from_bytes(&root).unwrap())
}

fn unhex(text: &Value) -> Vec<u8> {
    let text = text.as_str().unwrap();
    let digits = (0..text.len()).step_by(2).map(|at| &text[at..at + 2]);
    digits
        .map(|two| u8::from_str_radix(two, 16).unwrap())
        .collect()
}

fn column(values: Vec<Option<i64>>) -> (Field, ArrayRef) {
    let field = Field::new("v", DataType::Int64, true);
    (field, Arc::new(Int64Array::from(values)))
}

/// What the server makes of some ciphertexts.
fn product(ciphertexts: &[&[u8]]) -> ArrayRef {
    let values: ArrayRef = Arc::new(BinaryArray::from_iter_values(ciphertexts));
    let item = Arc::new(Field::new("l", DataType::Binary, true));
    let offsets = OffsetBuffer::from_lengths([ciphertexts.len()]);
    let lists = ListArray::new(item, offsets, values, None);
    let modulus = BinaryArray::from_iter_values([SPACE.modulus()]);
    hom_sum(&lists, &modulus).unwrap()
}

#[test]
fn known_answers() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    assert_eq!(SPACE.modulus(), unhex(&vectors["modulus"]));
    assert_eq!(SPACE.slots() as u64, vectors["slots"].as_u64().unwrap());
    let rows: Vec<Vec<u8>> = vectors["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| unhex(&row["ciphertext"]))
        .collect();
    for sum in vectors["sums"].as_array().unwrap() {
        let indices = sum["rows"].as_array().unwrap().iter();
        let parts: Vec<&[u8]> = indices
            .map(|p| &rows[p.as_u64().unwrap() as usize][..])
            .collect();
        let ciphertext = product(&parts);
        assert_eq!(
            ciphertext.as_binary::<i32>().value(0),
            unhex(&sum["ciphertext"])
        );
        let totals = sum["totals"].as_array().unwrap().iter();
        let totals = totals.map(|t| {
            (
                t[0].as_str().unwrap().parse().unwrap(),
                t[1].as_u64().unwrap(),
            )
        });
        let opened = SPACE.open(&ciphertext, &[parts.len() as u64]).unwrap();
        assert_eq!(opened, [totals.collect::<Vec<(i128, u64)>>()]);
    }
    for case in vectors["refused"].as_array().unwrap() {
        let ciphertext = BinaryArray::from_iter_values([unhex(&case["ciphertext"])]);
        let opened = SPACE.open(&ciphertext, &[case["rows"].as_u64().unwrap()]);
        assert!(opened.is_err(), "{case}");
    }
}

#[test]
fn the_hint_gives_the_same_space() {
    let again = ring().paillier(Some(SPACE.hint()), BITS).unwrap();
    assert_eq!(again.modulus(), SPACE.modulus());
    assert!(ring().paillier(Some(SPACE.hint()), 1024).is_err());
    assert!(ring().paillier(Some(b"x"), BITS).is_err());
    assert!(ring().paillier(None, 4096).is_err());
    assert!(ring().paillier(None, 128).is_err());
}

#[test]
fn nonsense_is_refused() {
    let single = || column(vec![Some(1)]);
    assert!(SPACE.seal(&[], 1).is_err());
    assert!(SPACE
        .seal(&[single(), single(), single(), single()], 1)
        .is_err());
    assert!(SPACE.seal(&[single()], 2).is_err());
    let text = Field::new("v", DataType::Utf8, true);
    assert!(SPACE
        .seal(&[(text, Arc::new(StringArray::from(vec!["1"])))], 1)
        .is_err());
    let large = Field::new("v", DataType::UInt64, true);
    let values: ArrayRef = Arc::new(UInt64Array::from(vec![1 << 63]));
    assert!(SPACE.seal(&[(large, values)], 1).is_err());
    assert_eq!(SPACE.seal(&[column(vec![])], 0).unwrap().len(), 0);
    let sealed = SPACE.seal(&[single()], 1).unwrap();
    assert!(SPACE.open(&sealed, &[]).is_err());
    assert!(SPACE.open(&sealed, &[0]).is_err());
    assert!(SPACE.open(&sealed, &[1 << 32]).is_err());
    let none = BinaryArray::from(vec![None::<&[u8]>]);
    assert_eq!(SPACE.open(&none, &[0]).unwrap(), [[(0, 0); 3]]);
}

#[test]
fn equal_rows_have_different_ciphertexts() {
    let sealed = SPACE.seal(&[column(vec![Some(5); 9])], 9).unwrap();
    let sealed = sealed.as_binary::<i32>();
    let different: std::collections::HashSet<_> = sealed.iter().collect();
    assert_eq!(different.len(), 9);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn sums_open(
        rows in prop::collection::vec([any::<Option<i64>>(), any::<Option<i64>>()], 1..40),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 1..300),
    ) {
        let columns = [0, 1].map(|c| column(rows.iter().map(|row| row[c]).collect()));
        let sealed = SPACE.seal(&columns, rows.len()).unwrap();
        let sealed = sealed.as_binary::<i32>();
        let picks: Vec<usize> = picks.iter().map(|pick| pick.index(rows.len())).collect();
        let parts: Vec<&[u8]> = picks.iter().map(|&at| sealed.value(at)).collect();
        let opened = SPACE.open(&product(&parts), &[parts.len() as u64]).unwrap();
        let wanted = [0, 1].map(|c| {
            let values = picks.iter().filter_map(|&at| rows[at][c]).map(i128::from);
            (values.clone().sum::<i128>(), values.count() as u64)
        });
        prop_assert_eq!(&opened[0][..2], &wanted);
        prop_assert_eq!(opened[0][2], (0, 0));
    }

    #[test]
    fn no_bytes_make_it_panic(
        bytes in prop::collection::vec(any::<u8>(), 128),
        rows in any::<u64>(),
    ) {
        let _ = SPACE.open(&BinaryArray::from_iter_values([&bytes]), &[rows]);
        let _ = SPACE.open(&BinaryArray::from_iter_values([&bytes[..9]]), &[rows]);
    }
}
