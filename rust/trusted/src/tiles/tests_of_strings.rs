//! Tiles of byte strings.

use super::tests::there_and_back;
use super::{tile_unit, TileForm, TILE_ROWS};
use crate::Error;
use arrow_array::builder::{ListBuilder, StringBuilder, StringDictionaryBuilder};
use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_schema::DataType;
use proptest::prelude::*;
use std::sync::Arc;

const FORM: TileForm = TileForm::Units {
    unit: 100,
    limit: 1 << 20,
};

fn holds(values: &ArrayRef) {
    for rows in [TILE_ROWS, 33] {
        assert_eq!(&there_and_back(FORM, values, rows).unwrap(), values);
    }
}

/// Texts: few or many different ones, NULLs or none, short or long.
fn texts(kinds: usize, nulls: bool, length: usize) -> Vec<Option<String>> {
    let text = |row: usize| {
        let kind = row * 7919 % kinds;
        let text = format!("{kind}ü{}", "x".repeat(kind % (length + 1)));
        (!nulls || row % 3 != 1).then_some(text)
    };
    (0..2500).map(text).collect()
}

#[test]
fn texts_and_bytes_come_back_in_every_type() {
    for (kinds, nulls, length) in [
        (1, false, 0),
        (3, true, 5),
        (300, false, 300),
        (2500, true, 40),
        (2500, false, 700),
    ] {
        let texts = texts(kinds, nulls, length);
        let arrays: [ArrayRef; 6] = [
            Arc::new(StringArray::from_iter(&texts)),
            Arc::new(LargeStringArray::from_iter(&texts)),
            Arc::new(StringViewArray::from_iter(&texts)),
            Arc::new(BinaryArray::from_iter(
                texts.iter().map(|t| t.as_ref().map(String::as_bytes)),
            )),
            Arc::new(LargeBinaryArray::from_iter(
                texts.iter().map(|t| t.as_ref().map(String::as_bytes)),
            )),
            Arc::new(BinaryViewArray::from_iter(
                texts.iter().map(|t| t.as_ref().map(String::as_bytes)),
            )),
        ];
        arrays.iter().for_each(holds);
    }
    holds(&(Arc::new(StringArray::from(vec![None::<&str>; 50])) as ArrayRef));
    holds(&(Arc::new(StringArray::from(vec![""; 50])) as ArrayRef));
    holds(&(Arc::new(StringArray::from(Vec::<&str>::new())) as ArrayRef));
}

#[test]
fn floats_and_nested_values_come_back() {
    let floats = |row: usize| (row % 4 != 1).then(|| f64::from_bits((row as u64 % 40) << 50 | 1));
    holds(&(Arc::new(Float64Array::from_iter((0..3000).map(floats))) as ArrayRef));
    let all = (0..3000).map(|row| f64::from(row).sqrt());
    holds(&(Arc::new(Float64Array::from_iter_values(all)) as ArrayRef));
    let wide = Decimal256Array::from_iter_values((0..3000).map(arrow_buffer::i256::from));
    holds(&(Arc::new(wide) as ArrayRef));
    holds(&(Arc::new(NullArray::new(40)) as ArrayRef));
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in 0..3000 {
        (0..row % 4).for_each(|item| lists.values().append_value(format!("{row} {item}")));
        lists.append(row % 5 > 0);
    }
    holds(&(Arc::new(lists.finish()) as ArrayRef));
}

#[test]
fn a_dictionary_is_sealed_as_its_values() {
    let mut builder = StringDictionaryBuilder::<Int32Type>::new();
    builder.extend(texts(5, true, 3));
    let values: ArrayRef = Arc::new(builder.finish());
    let array = there_and_back(FORM, &values, TILE_ROWS).unwrap();
    assert_eq!(array.data_type(), &DataType::Utf8);
    let plain: ArrayRef = Arc::new(StringArray::from_iter(texts(5, true, 3)));
    assert_eq!(&array, &plain);
}

#[test]
fn values_beyond_the_limit_are_not_sealed() {
    let values: ArrayRef = Arc::new(StringArray::from(vec!["twelve bytes"; 10]));
    let form = |limit| TileForm::Units { unit: 16, limit };
    assert!(there_and_back(form(120), &values, 10).is_ok());
    let error = there_and_back(form(119), &values, 10).unwrap_err();
    assert!(matches!(error, Error::Widen(_)));
    assert!(there_and_back(form(119), &values, 9).is_ok());
    for (unit, limit) in [(0, 5), (1 << 31, 5), (1, u32::MAX)] {
        let error = there_and_back(TileForm::Units { unit, limit }, &values, 9);
        assert!(matches!(error, Err(Error::Value(_))));
    }
}

#[test]
fn nearly_all_tiles_take_one_unit() {
    let text = |row: usize| {
        format!(
            "{:x} {}",
            row.wrapping_mul(0x9e37_79b9),
            "y".repeat(row % 37)
        )
    };
    let values: ArrayRef = Arc::new(StringArray::from_iter_values((0..200_000).map(text)));
    let unit = tile_unit(&values.slice(0, 100_000), 1 << 20, TILE_ROWS).unwrap();
    let (ring, epochs) = (super::tests::ring(1), super::tests::epochs());
    let column = super::TileColumn {
        id: (1, 2, 3),
        epochs: &epochs,
        form: TileForm::Units {
            unit,
            limit: 1 << 20,
        },
    };
    let sealed = ring
        .seal_tiles(&column, &values, 5 << 36, TILE_ROWS)
        .unwrap();
    let sealed = cast::AsArray::as_binary::<i32>(&sealed);
    let singles = sealed
        .iter()
        .flatten()
        .filter(|tile| tile.len() == unit as usize + 29);
    assert!(singles.count() > sealed.len() * 95 / 100);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_texts_come_back(
        texts in proptest::collection::vec(proptest::option::of(".{0,12}"), 0..300),
        repeated in 1_usize..5,
        rows in 1_usize..=TILE_ROWS,
        unit in 1_u32..5000,
    ) {
        let texts = texts.iter().cycle().take(texts.len() * repeated);
        let values: ArrayRef = Arc::new(StringArray::from_iter(texts));
        let form = TileForm::Units { unit, limit: 1 << 20 };
        prop_assert_eq!(&there_and_back(form, &values, rows).unwrap(), &values);
    }
}
