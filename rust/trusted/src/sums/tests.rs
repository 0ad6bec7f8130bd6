//! Known answers of `spec/vectors/sum.json`, sums against their values, and nonsense.

use super::{run_set, Sums, NARROW_BITS, WIDE_BITS};
use crate::keys::RootSecret;
use crate::{Epochs, KeyRing};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::*;
use arrow_schema::{DataType, Field};
use louver_primitives::rowset::from_ids;
use proptest::prelude::*;
use serde_json::Value;
use std::sync::Arc;

const VECTORS: &str = include_str!("../../../../spec/vectors/sum.json");
const ID: (u32, u32, u32) = (3, 7, 2);

fn ring() -> KeyRing {
    let root: [u8; 32] = std::array::from_fn(|i| i as u8);
    KeyRing::from_root(RootSecret::from_bytes(&root).unwrap())
}

/// Limbs and flags of some rows as columns of numbers.
fn sealed(values: &ArrayRef, ids: &[i64]) -> [Vec<i128>; 3] {
    let field = Field::new("v", values.data_type().clone(), true);
    let ids = Int64Array::from(ids.to_vec());
    let columns = ring()
        .sum_seal(ID, &Epochs::legacy(), &field, values, &ids)
        .unwrap();
    columns.map(|column| {
        let column = column.as_primitive::<UInt64Type>().values().iter();
        column.map(|&limb| i128::from(limb)).collect()
    })
}

fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(value: &Value) -> T {
    value.as_str().unwrap().parse().unwrap()
}

fn narrow(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn wide(values: &[Option<i128>]) -> ArrayRef {
    let bytes = values.iter().map(|v| v.map(i128::to_le_bytes));
    Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes, 16).unwrap())
}

#[test]
fn known_answers() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    for case in vectors["cases"].as_array().unwrap() {
        let rows = case["rows"].as_array().unwrap();
        let ids: Vec<i64> = rows.iter().map(|r| r["row_id"].as_i64().unwrap()).collect();
        let values = rows.iter().map(|row| &row["value"]);
        let values = values.map(|v| (!v.is_null()).then(|| number::<i128>(v)));
        let values: Vec<Option<i128>> = values.collect();
        let limb_bits = case["limb_bits"].as_u64().unwrap() as u32;
        let column = if limb_bits == WIDE_BITS {
            wide(&values)
        } else {
            let small = values.iter().map(|v| v.map(|v| i64::try_from(v).unwrap()));
            narrow(&small.collect::<Vec<_>>())
        };
        for (name, actual) in ["low", "high", "count"].iter().zip(sealed(&column, &ids)) {
            let wanted: Vec<i128> = rows.iter().map(|row| number(&row[name])).collect();
            assert_eq!(actual, wanted, "{name}");
        }
        for sum in case["sums"].as_array().unwrap() {
            let ids = sum["ids"].as_array().unwrap().iter();
            let mut ids: Vec<i64> = ids.map(|id| id.as_i64().unwrap()).collect();
            let part = |name: &str| [number::<i128>(&sum[name])];
            let (low, high, count) = (part("low"), part("high"), part("count"));
            let mut sums = Sums {
                limb_bits,
                low: &low,
                high: Some(&high),
                count: Some(&count),
                sets: &[from_ids(&mut ids).unwrap()],
            };
            let not_null = sum["not_null"].as_u64().unwrap();
            let opened = ring().sum_open(ID, &Epochs::legacy(), &sums).unwrap();
            assert_eq!(opened, (vec![number(&sum["total"])], Some(vec![not_null])));
            (sums.high, sums.count) = (None, None);
            let opened = ring().sum_open(ID, &Epochs::legacy(), &sums).unwrap();
            assert_eq!(opened, (vec![number(&sum["total_of_low"])], None));
        }
    }
}

#[test]
fn runs_are_merged_and_checked() {
    let whole = run_set(&[(0, 1_000)]).unwrap();
    assert_eq!(run_set(&[(400, 600), (9, 0), (0, 400)]).unwrap(), whole);
    assert_eq!(
        from_ids(&mut (0..1_000).collect::<Vec<_>>()).unwrap(),
        whole
    );
    assert!(run_set(&[(0, 2), (1, 2)]).is_err());
    assert!(run_set(&[(-1, 2)]).is_err());
    assert!(run_set(&[(0, -2)]).is_err());
    assert!(run_set(&[(i64::MAX, i64::MAX), (0, i64::MAX)]).is_err());
}

#[test]
fn nonsense_is_refused() {
    let ring = ring();
    let seal = |values: ArrayRef, ids: ArrayRef| {
        let field = Field::new("v", values.data_type().clone(), true);
        ring.sum_seal(ID, &Epochs::legacy(), &field, &values, &ids)
            .is_err()
    };
    let ids = |ids: Vec<Option<i64>>| -> ArrayRef { Arc::new(Int64Array::from(ids)) };
    assert!(seal(narrow(&[Some(1)]), ids(vec![None])));
    assert!(seal(narrow(&[Some(1)]), ids(vec![Some(-1)])));
    assert!(seal(narrow(&[Some(1)]), ids(vec![Some(1 << 61)])));
    assert!(seal(narrow(&[Some(1)]), ids(vec![])));
    assert!(seal(
        Arc::new(BooleanArray::from(vec![true])),
        ids(vec![Some(1)])
    ));
    assert!(seal(
        Arc::new(Float64Array::from(vec![1.0])),
        ids(vec![Some(1)])
    ));
    assert!(seal(
        Arc::new(Date32Array::from(vec![1])),
        ids(vec![Some(1)])
    ));
    let open = |limb_bits, low: &[i128], sets: &[Vec<u8>]| {
        let (high, count) = (None, None);
        let sums = Sums {
            limb_bits,
            low,
            high,
            count,
            sets,
        };
        ring.sum_open(ID, &Epochs::legacy(), &sums).is_err()
    };
    let set = run_set(&[(0, 1)]).unwrap();
    assert!(!open(NARROW_BITS, &[1], std::slice::from_ref(&set)));
    assert!(open(61, &[1], std::slice::from_ref(&set)));
    assert!(open(NARROW_BITS, &[1, 2], &[set]));
    assert!(open(NARROW_BITS, &[1], &[vec![]]));
    assert!(open(NARROW_BITS, &[1], &[vec![1, 1, 1]]));
    assert_eq!(NumberOf(&DataType::Int8).limb_bits(), NARROW_BITS);
    assert_eq!(
        NumberOf(&DataType::Decimal128(18, 2)).limb_bits(),
        NARROW_BITS
    );
    assert_eq!(
        NumberOf(&DataType::Decimal128(19, 2)).limb_bits(),
        WIDE_BITS
    );
}

struct NumberOf<'a>(&'a DataType);

impl NumberOf<'_> {
    fn limb_bits(&self) -> u32 {
        super::seal::limb_bits(&Field::new("v", self.0.clone(), true)).unwrap()
    }
}

/// Row ids in some order with repeats, and a value for each row.
fn rows<T: std::fmt::Debug>(
    value: impl Strategy<Value = T>,
) -> impl Strategy<Value = (Vec<(i64, Option<T>)>, Vec<prop::sample::Index>)> {
    let far = prop_oneof![0i64..50, 0i64..(1 << 61)];
    let value = prop::option::weighted(0.8, value);
    let table = prop::collection::btree_map(far, value, 1..60)
        .prop_map(|table| table.into_iter().collect::<Vec<_>>());
    (
        table,
        prop::collection::vec(any::<prop::sample::Index>(), 0..200),
    )
}

fn check(column: &ArrayRef, ids: &[i64], values: &[Option<i128>], picks: &[usize], bits: u32) {
    let parts = sealed(column, ids);
    let [low, high, count] = parts.map(|p| [picks.iter().map(|&at| p[at]).sum::<i128>()]);
    let sums = Sums {
        limb_bits: bits,
        low: &low,
        high: Some(&high),
        count: Some(&count),
        sets: &[from_ids(&mut picks.iter().map(|&at| ids[at]).collect::<Vec<_>>()).unwrap()],
    };
    let total = picks.iter().filter_map(|&at| values[at]);
    let total = total.fold(0i128, |sum, value| sum.wrapping_add(value));
    let live = picks.iter().filter(|&&at| values[at].is_some()).count() as u64;
    assert_eq!(
        ring().sum_open(ID, &Epochs::legacy(), &sums).unwrap(),
        (vec![total], Some(vec![live]))
    );
    let low = Sums {
        high: None,
        count: None,
        ..sums
    };
    let (actual, _) = ring().sum_open(ID, &Epochs::legacy(), &low).unwrap();
    assert_eq!(total.wrapping_sub(actual[0]) % (1 << bits), 0);
    assert!(actual[0] >= -(1 << (bits - 1)) && actual[0] < 1 << (bits - 1));
}

proptest! {
    #[test]
    fn narrow_sums((table, picks) in rows(any::<i64>())) {
        let picks: Vec<usize> = picks.iter().map(|pick| pick.index(table.len())).collect();
        let (ids, values): (Vec<i64>, Vec<Option<i64>>) = table.into_iter().unzip();
        let exact: Vec<Option<i128>> = values.iter().map(|v| v.map(i128::from)).collect();
        check(&narrow(&values), &ids, &exact, &picks, NARROW_BITS);
    }

    #[test]
    fn wide_sums_wrap_at_2_to_the_127((table, picks) in rows(any::<i128>())) {
        let picks: Vec<usize> = picks.iter().map(|pick| pick.index(table.len())).collect();
        let (ids, values): (Vec<i64>, Vec<Option<i128>>) = table.into_iter().unzip();
        let column = wide(&values);
        let parts = sealed(&column, &ids);
        prop_assert!(parts.iter().flatten().all(|&limb| limb >= 0));
        check(&column, &ids, &values, &picks, WIDE_BITS);
    }

    #[test]
    fn no_row_set_makes_it_panic(set in any::<Vec<u8>>()) {
        let sums = Sums {
            limb_bits: NARROW_BITS,
            low: &[i128::MIN],
            high: Some(&[i128::MAX]),
            count: Some(&[-1]),
            sets: &[set],
        };
        let _ = ring().sum_open(ID, &Epochs::legacy(), &sums);
    }
}
