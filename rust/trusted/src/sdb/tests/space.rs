//! Sealing and opening whole columns.

use super::super::{NumberType, SdbKey, SdbSpace, RANDOM_BITS};
use crate::keys::RootSecret;
use crate::{Epochs, Error, KeyRing};
use arrow_array::builder::FixedSizeBinaryBuilder;
use arrow_array::types::*;
use arrow_array::*;
use arrow_schema::{DataType, Field, TimeUnit};
use num_bigint::BigInt;
use num_traits::One;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

pub(crate) fn ring(seed: u8) -> KeyRing {
    KeyRing::from_root(RootSecret::from_bytes(&[seed; 32]).unwrap())
}

/// A small modulus keeps the tests quick; the arithmetic is the same.
pub(crate) fn space() -> &'static SdbSpace {
    static SPACE: OnceLock<SdbSpace> = OnceLock::new();
    SPACE.get_or_init(|| ring(3).sdb(None, 512).unwrap())
}

pub(crate) fn ids(rows: std::ops::Range<i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(rows))
}

pub(crate) fn kind(data_type: &DataType) -> NumberType {
    NumberType::new(&Field::new("", data_type.clone(), true)).unwrap()
}

pub(crate) fn all() -> (BigInt, BigInt) {
    let most = BigInt::one() << 200;
    (-&most, most)
}

fn round_trip(values: ArrayRef, kind: &NumberType) {
    let space = space();
    for rows in [values.len(), 3.min(values.len()), 0] {
        let values = values.slice(values.len() - rows, rows);
        let ids = ids(1000..1000 + rows as i64);
        let sealed = space
            .seal((1, 2, 0), &Epochs::legacy(), kind, &values, &ids)
            .unwrap();
        assert_eq!(sealed.null_count(), values.null_count());
        let key = space.column_key(1, 2, 0, 5);
        let (low, high) = all();
        let slots = BTreeMap::from([(5, ids)]);
        let opened = space
            .open(
                &key,
                &Epochs::legacy(),
                &sealed,
                &slots,
                kind,
                (&low, &high),
            )
            .unwrap();
        assert_eq!(opened.to_data(), values.to_data());
    }
}

#[test]
fn every_number_type_comes_back() {
    let wide = || (0..40).map(|i: i64| (i % 7 != 3).then_some(i * 1_000_003 - 9_000_000));
    let long: Int64Array = wide()
        .chain([Some(i64::MIN), Some(i64::MAX), Some(0)])
        .collect();
    let cast = |unit| PrimitiveArray::<Int64Type>::from(long.to_data()).reinterpret(unit);
    round_trip(Arc::new(long.clone()), &kind(&DataType::Int64));
    let stamp = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    round_trip(cast(stamp.clone()), &kind(&stamp));
    let small = Int8Array::from(vec![Some(-128), None, Some(127), Some(0)]);
    round_trip(Arc::new(small), &kind(&DataType::Int8));
    let days = Date32Array::from(vec![Some(i32::MIN), Some(-1), None, Some(19_000)]);
    round_trip(Arc::new(days), &kind(&DataType::Date32));
    let unsigned = UInt64Array::from(vec![u64::MAX, 0, 1]);
    round_trip(Arc::new(unsigned), &kind(&DataType::UInt64));
    let decimals = Decimal128Array::from(vec![Some(10i128.pow(38) - 1), None, Some(-5)])
        .with_precision_and_scale(38, 2)
        .unwrap();
    let decimal = decimals.data_type().clone();
    round_trip(Arc::new(decimals), &kind(&decimal));
}

trait Reinterpret {
    fn reinterpret(self, data_type: DataType) -> ArrayRef;
}

impl Reinterpret for Int64Array {
    fn reinterpret(self, data_type: DataType) -> ArrayRef {
        make_array(
            self.into_data()
                .into_builder()
                .data_type(data_type)
                .build()
                .unwrap(),
        )
    }
}

#[test]
fn hugeints_come_back_signed_or_not() {
    let mut builder = FixedSizeBinaryBuilder::new(16);
    for value in [i128::MIN, i128::MAX, -1, 0, 5] {
        builder.append_value(value.to_le_bytes()).unwrap();
    }
    let array: ArrayRef = Arc::new(builder.finish());
    round_trip(array.clone(), &kind(array.data_type()));
    let metadata = HashMap::from([(
        "ARROW:extension:metadata".to_owned(),
        r#"{"type_name": "uhugeint", "vendor_name": "DuckDB"}"#.to_owned(),
    )]);
    let field = Field::new("", array.data_type().clone(), true).with_metadata(metadata);
    round_trip(array, &NumberType::new(&field).unwrap());
}

#[test]
fn numbers_only() {
    for data_type in [DataType::Utf8, DataType::Boolean, DataType::Float64] {
        let field = Field::new("", data_type, true);
        assert!(matches!(NumberType::new(&field), Err(Error::Value(_))));
    }
}

#[test]
fn an_altered_or_moved_ciphertext_raises() {
    let space = space();
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(1..=20));
    let long = kind(&DataType::Int64);
    let sealed = space
        .seal((1, 2, 0), &Epochs::legacy(), &long, &values, &ids(0..20))
        .unwrap();
    let key = space.column_key(1, 2, 0, 0);
    let (low, high) = (BigInt::from(1), BigInt::from(20));
    let open = |key: &SdbKey, sealed: &ArrayRef, ids: ArrayRef, low: &BigInt, high: &BigInt| {
        let slots = BTreeMap::from([(0, ids)]);
        space.open(key, &Epochs::legacy(), sealed, &slots, &long, (low, high))
    };
    assert!(open(&key, &sealed, ids(0..20), &low, &high).is_ok());
    let refused = |r: crate::Result<ArrayRef>| assert!(matches!(r, Err(Error::Verify(_))), "{r:?}");
    refused(open(&key, &sealed, ids(1..21), &low, &high));
    refused(open(&key, &sealed, ids(0..20), &low, &BigInt::from(19)));
    refused(open(&key, &sealed, ids(0..20), &BigInt::from(2), &high));
    for other in [(2, 2, 0), (1, 3, 0), (1, 2, 1)] {
        let key = space.column_key(other.0, other.1, other.2, 0);
        refused(open(&key, &sealed, ids(0..20), &low, &high));
    }
    let sealed = sealed.as_any().downcast_ref::<BinaryArray>().unwrap();
    let mut bytes: Vec<Vec<u8>> = sealed.iter().map(|v| v.unwrap().to_vec()).collect();
    bytes[7][40] ^= 1;
    let flipped: ArrayRef = Arc::new(BinaryArray::from_iter_values(&bytes));
    let error = open(&key, &flipped, ids(0..20), &low, &high).unwrap_err();
    assert!(error.to_string().contains("row id 7"), "{error}");
    bytes[7] = vec![0xff; 64];
    let unreduced: ArrayRef = Arc::new(BinaryArray::from_iter_values(&bytes));
    refused(open(&key, &unreduced, ids(0..20), &low, &high));
    let unknown: ArrayRef = Arc::new(Int64Array::from(vec![None; 20]));
    refused(open(&key, &unreduced, unknown, &low, &high));
}

/// Over several tasks: the same numbers as row by row, and the first bad row is named.
#[test]
fn many_rows() {
    let space = space();
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(-700..700));
    let long = kind(&DataType::Int64);
    let sealed = space
        .seal((1, 2, 0), &Epochs::legacy(), &long, &values, &ids(0..1400))
        .unwrap();
    for row in [0, 699, 700, 1399] {
        let row_value = values.slice(row as usize, 1);
        let row_value = space.seal(
            (1, 2, 0),
            &Epochs::legacy(),
            &long,
            &row_value,
            &ids(row..row + 1),
        );
        assert_eq!(&sealed.slice(row as usize, 1), &row_value.unwrap());
    }
    let key = space.column_key(1, 2, 0, 0);
    let bounds = (&BigInt::from(-700), &BigInt::from(699));
    let open = |sealed: &dyn Array| {
        let slots = BTreeMap::from([(0, ids(0..1400))]);
        space.open(&key, &Epochs::legacy(), sealed, &slots, &long, bounds)
    };
    assert_eq!(&open(&sealed).unwrap(), &values);
    let sealed = sealed.as_any().downcast_ref::<BinaryArray>().unwrap();
    let mut bytes: Vec<Vec<u8>> = sealed.iter().map(|v| v.unwrap().to_vec()).collect();
    for (row, altered) in [
        (1301, vec![0xff; 64]),
        (700, vec![1]),
        (600, vec![0xff; 64]),
    ] {
        bytes[row] = altered;
        let error = open(&BinaryArray::from_iter_values(&bytes)).unwrap_err();
        let named = format!("row id {row} ");
        assert!(error.to_string().contains(&named), "{error}");
    }
}

#[test]
fn random_numbers_are_positive_and_bounded() {
    let space = space();
    let sealed = space
        .seal_random(1, 0, &Epochs::legacy(), &ids(0..50))
        .unwrap();
    let key = space.random_key(1, 0, 0);
    let huge = kind(&DataType::FixedSizeBinary(16));
    let (low, high) = (BigInt::one(), BigInt::one() << RANDOM_BITS);
    let slots = BTreeMap::from([(0, ids(0..50))]);
    // Numbers of 128 bits need an unsigned reading.
    let metadata = HashMap::from([(
        "ARROW:extension:metadata".to_owned(),
        r#"{"type_name": "uhugeint"}"#.to_owned(),
    )]);
    let field = Field::new("", DataType::FixedSizeBinary(16), true).with_metadata(metadata);
    let unsigned = NumberType::new(&field).unwrap();
    assert!(space
        .open(
            &key,
            &Epochs::legacy(),
            &sealed,
            &slots,
            &unsigned,
            (&low, &high)
        )
        .is_ok());
    let _ = huge;
}

#[test]
fn the_hint_finds_the_space_again() {
    let first = ring(9).sdb(None, 256).unwrap();
    let again = ring(9).sdb(Some(first.hint()), 256).unwrap();
    assert_eq!(first.modulus(), again.modulus());
    assert_eq!(first.modulus(), ring(9).sdb(None, 256).unwrap().modulus());
    assert!(matches!(
        ring(8).sdb(Some(first.hint()), 256),
        Err(Error::Verify(_))
    ));
    assert!(matches!(
        ring(9).sdb(Some(first.hint()), 512),
        Err(Error::Value(_))
    ));
    assert!(matches!(ring(9).sdb(None, 100), Err(Error::Value(_))));
}
