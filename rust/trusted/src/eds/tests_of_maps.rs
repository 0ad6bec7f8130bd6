//! Properties of the maps of values. That their order is DuckDB's is tested against DuckDB, in
//! `tests/lake/test_eds_maps.py`.

use super::map::{bounds, mappable, values};
use arrow_array::*;
use proptest::prelude::*;
use std::sync::Arc;

/// Values of a type from their texts.
pub(super) fn column(name: &str, texts: &[&str]) -> ArrayRef {
    let of = texts.iter();
    match name {
        "BIGINT" => Arc::new(of.map(|t| t.parse::<i64>().ok()).collect::<Int64Array>()),
        "UBIGINT" => Arc::new(of.map(|t| t.parse::<u64>().ok()).collect::<UInt64Array>()),
        "DOUBLE" => Arc::new(of.map(|t| t.parse::<f64>().ok()).collect::<Float64Array>()),
        "HUGEINT" => huge(&of.map(|t| t.parse().unwrap()).collect::<Vec<i128>>()),
        _ => Arc::new(StringArray::from_iter_values(of)),
    }
}

fn huge(values: &[i128]) -> ArrayRef {
    let bytes = values.iter().map(|value| value.to_le_bytes());
    Arc::new(FixedSizeBinaryArray::try_from_iter(bytes).unwrap())
}

fn number(array: &dyn Array, type_: &str, letters: bool) -> u64 {
    values(array, type_, letters).unwrap().value(0)
}

proptest! {
    #[test]
    fn huge_numbers_keep_their_order(a: i128, b: i128, shift in 0..127_u32) {
        let (a, b) = (a >> shift, b >> shift);
        let of = |value: i128| number(&huge(&[value]), "HUGEINT", false);
        let of_decimal = |value: i128| {
            let array = Decimal128Array::from(vec![value]).with_data_type(
                arrow_schema::DataType::Decimal128(38, 2),
            );
            number(&array, "DECIMAL(38,2)", false)
        };
        prop_assert_eq!(of(a), of_decimal(a));
        prop_assert!(a > b || of(a) <= of(b));
        prop_assert!(of(a) != of(b) || a == b || a.abs_diff(b) < 1 << 65);
    }

    #[test]
    fn unsigned_huge_numbers_keep_their_order(a: u128, b: u128, shift in 0..127_u32) {
        let (a, b) = (a >> shift, b >> shift);
        let of = |value: u128| number(&huge(&[value.cast_signed()]), "UHUGEINT", false);
        prop_assert!(a > b || of(a) <= of(b));
    }

    #[test]
    fn strings_keep_their_order(a: Vec<u8>, b: Vec<u8>) {
        let of = |value: &[u8]| number(&BinaryArray::from(vec![value]), "BLOB", false);
        prop_assert!(a > b || of(&a) <= of(&b));
    }

    #[test]
    fn letters_keep_the_order_of_any_bytes(a in "[`a-c{zA~é]{0,14}", b in "[`a-c{zA~é]{0,14}") {
        let of = |value: &str| number(&StringArray::from(vec![value]), "VARCHAR", true);
        prop_assert!(a > b || of(&a) <= of(&b));
    }

    #[test]
    fn bounds_are_those_of_the_values(rows: Vec<Option<f64>>) {
        let array = Float64Array::from(rows);
        let mapped = values(&array, "DOUBLE", false).unwrap();
        let (extent, nulls) = bounds(&array, "DOUBLE", false).unwrap();
        let live = || mapped.iter().flatten();
        prop_assert_eq!(extent, live().min().zip(live().max()));
        prop_assert_eq!(nulls, array.null_count());
    }
}

#[test]
fn labels_have_the_order_in_which_they_were_declared() {
    let type_ = "ENUM('z', 'it''s', 'a, b', '')";
    let array = StringArray::from(vec![Some("z"), Some("it's"), None, Some("a, b"), Some("")]);
    let numbers = values(&array, type_, false).unwrap();
    assert_eq!(
        numbers,
        UInt64Array::from(vec![Some(0), Some(1), None, Some(2), Some(3)])
    );
    let keys = Int8Array::from(vec![Some(1), None, Some(0)]);
    let labels = Arc::new(StringArray::from(vec!["a, b", "z"]));
    let dictionary = DictionaryArray::new(keys, labels);
    let numbers = values(&dictionary, type_, false).unwrap();
    assert_eq!(numbers, UInt64Array::from(vec![Some(0), None, Some(2)]));
    assert!(values(&StringArray::from(vec!["other"]), type_, false).is_err());
    for broken in [
        "ENUM()",
        "ENUM('a)",
        "ENUM(a)",
        "ENUM('a' 'b')",
        "ENUM('a',)",
    ] {
        assert!(!mappable(broken, false), "{broken}");
    }
}

#[test]
fn types_without_an_order_of_ours() {
    let none = [
        "INTERVAL",
        "BIT",
        "TIME WITH TIME ZONE",
        "INTEGER[]",
        "STRUCT(a INTEGER)",
        "mood",
    ];
    assert!(none.iter().all(|name| !mappable(name, false)));
    assert!(mappable("DECIMAL(38,10)", false) && !mappable("DECIMAL(39,1)", false));
}

/// A unit taken for another would lose files.
#[test]
fn arrays_of_another_type_are_refused() {
    let wrong: [(ArrayRef, &str); 6] = [
        (
            Arc::new(TimestampNanosecondArray::from(vec![1])),
            "TIMESTAMP",
        ),
        (
            Arc::new(TimestampMicrosecondArray::from(vec![1])),
            "TIMESTAMP_S",
        ),
        (Arc::new(Time64NanosecondArray::from(vec![1])), "TIME"),
        (Arc::new(Int64Array::from(vec![1])), "UBIGINT"),
        (Arc::new(Int32Array::from(vec![1])), "DATE"),
        (Arc::new(StringArray::from(vec!["1"])), "INTEGER"),
    ];
    for (array, type_) in wrong {
        assert!(values(&array, type_, false).is_err(), "{type_}");
    }
    let nulls = NullArray::new(3);
    assert_eq!(bounds(&nulls, "BIGINT", false).unwrap(), (None, 3));
}
