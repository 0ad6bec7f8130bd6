//! Look-ups: the rows that were asked for and no other, whatever the server answers.

use crate::keys::RootSecret;
use crate::{AnswerColumn, Epochs, Error, Key, KeyRing, LookUp, Tag};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BinaryArray, Int64Array, StringArray};
use arrow_schema::DataType;
use proptest::prelude::*;
use std::sync::Arc;

fn ring() -> KeyRing {
    KeyRing::from_root(RootSecret::from_bytes(&[7; 32]).unwrap())
}

fn look_up(most: usize) -> LookUp {
    let column = |column, data_type| AnswerColumn {
        sealed: Some((1, column, 0)),
        data_type,
    };
    let key = Key {
        label: "key:1:k".to_owned(),
        domains: vec!["int".to_owned()],
        columns: vec![0],
    };
    let columns = vec![column(1, DataType::Int64), column(2, DataType::Utf8)];
    LookUp::new(columns, vec![key], most).unwrap()
}

fn epochs() -> Epochs {
    Epochs::new(1, Vec::new()).unwrap()
}

/// Rows as a server has them: row ids, and both columns sealed.
fn stored(ring: &KeyRing, keys: &[i64]) -> (ArrayRef, Vec<ArrayRef>) {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..keys.len() as i64));
    let numbers: ArrayRef = Arc::new(Int64Array::from(keys.to_vec()));
    let texts = keys.iter().map(|key| format!("text {key}"));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
    let seal = |column, values: &ArrayRef| {
        ring.seal_column((1, column, 0), &epochs(), values, &ids)
            .unwrap()
    };
    let sealed = vec![seal(1, &numbers), seal(2, &texts)];
    (ids, sealed)
}

fn tag(ring: &KeyRing, key: i64) -> Tag {
    let values: ArrayRef = Arc::new(Int64Array::from(vec![key]));
    let tags = ring.key_tags("key:1:k", &["int".to_owned()], &[values]);
    let tags = tags.unwrap();
    tags.as_fixed_size_binary().value(0).try_into().unwrap()
}

proptest! {
    #[test]
    fn rows_of_other_keys_are_left_out(
        keys in prop::collection::vec(-3_i64..3, 0..6),
        wanted in prop::collection::vec(-3_i64..3, 1..4),
    ) {
        let ring = ring();
        let (ids, sealed) = stored(&ring, &keys);
        let tags: Vec<Tag> = wanted.iter().map(|&key| tag(&ring, key)).collect();
        let opened = look_up(9).open(&ring, &epochs(), &ids, &sealed, &[tags]).unwrap();
        let expected: Vec<i64> = keys.iter().copied().filter(|key| wanted.contains(key)).collect();
        let numbers = keys.iter().zip(0..).filter(|(key, _)| wanted.contains(key));
        let numbers: Vec<i64> = numbers.map(|(_, number)| number).collect();
        prop_assert_eq!(opened[0].as_primitive::<Int64Type>().values().to_vec(), numbers);
        prop_assert_eq!(opened[1].as_primitive::<Int64Type>().values().to_vec(), expected.clone());
        let texts = opened[2].as_string::<i32>().iter().flatten().map(str::to_owned);
        let named: Vec<String> = expected.iter().map(|key| format!("text {key}")).collect();
        prop_assert_eq!(texts.collect::<Vec<_>>(), named);
    }

    #[test]
    fn an_altered_byte_is_found(position in 0_usize..10_000, bit in 0_u8..8, column in 0_usize..2) {
        let ring = ring();
        let (ids, mut sealed) = stored(&ring, &[5]);
        let mut bytes = sealed[column].as_binary::<i32>().value(0).to_vec();
        let position = position % bytes.len();
        bytes[position] ^= 1 << bit;
        sealed[column] = Arc::new(BinaryArray::from_iter_values([bytes]));
        let opened = look_up(9).open(&ring, &epochs(), &ids, &sealed, &[vec![tag(&ring, 5)]]);
        prop_assert!(matches!(opened, Err(Error::Verify(_))));
    }
}

#[test]
fn rows_that_repeat_or_are_too_many_or_moved_are_refused() {
    let ring = ring();
    let (ids, sealed) = stored(&ring, &[5, 6]);
    let tags = || vec![vec![tag(&ring, 5), tag(&ring, 6)]];
    let open = |most, ids: &ArrayRef, sealed: &[ArrayRef]| {
        look_up(most).open(&ring, &epochs(), ids, sealed, &tags())
    };
    assert_eq!(open(2, &ids, &sealed).unwrap()[0].len(), 2);
    assert!(matches!(open(1, &ids, &sealed), Err(Error::Verify(_))));
    let other = |ids: Vec<Option<i64>>| -> ArrayRef { Arc::new(Int64Array::from(ids)) };
    for ids in [
        vec![Some(0), Some(0)],
        vec![Some(1), Some(0)],
        vec![Some(0), None],
    ] {
        assert!(matches!(
            open(2, &other(ids), &sealed),
            Err(Error::Verify(_))
        ));
    }
    let swapped = vec![Arc::clone(&sealed[1]), Arc::clone(&sealed[0])];
    assert!(matches!(open(2, &ids, &swapped), Err(Error::Verify(_))));
    assert!(open(2, &ids, &sealed[..1]).is_err());
    assert!(open(2, &sealed[0], &sealed).is_err());
}

#[test]
fn a_look_up_is_by_keys_that_it_reads() {
    let column = || AnswerColumn {
        sealed: None,
        data_type: DataType::Int64,
    };
    let key = |columns: Vec<usize>| Key {
        label: String::new(),
        domains: vec!["int".to_owned(); columns.len()],
        columns,
    };
    assert!(LookUp::new(vec![column()], vec![key(vec![0])], 1).is_ok());
    assert!(LookUp::new(vec![column()], vec![key(vec![1])], 1).is_err());
    assert!(LookUp::new(vec![column()], vec![key(vec![])], 1).is_err());
    assert!(LookUp::new(vec![column()], vec![], 1).is_ok());
}
