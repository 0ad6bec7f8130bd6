//! Keys and the server's functions together: what is opened is what plain arithmetic gives.

use super::super::{SdbKey, SdbUpdate};
use super::space::{all, ids, kind, space};
use crate::{Epochs, Error};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, Int8Type};
use arrow_array::*;
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};
use louver_untrusted::server;
use num_bigint::{BigInt, BigUint};
use num_traits::One;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

fn sealed(column: u32, values: &[i64]) -> ArrayRef {
    sealed_in(1, column, values, 0)
}

fn sealed_in(table: u32, column: u32, values: &[i64], first: i64) -> ArrayRef {
    let array: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
    let ids = ids(first..first + values.len() as i64);
    let long = kind(&DataType::Int64);
    space()
        .seal((table, column, 0), &Epochs::legacy(), &long, &array, &ids)
        .unwrap()
}

fn constant(value: &[u8], rows: usize) -> ArrayRef {
    Arc::new(BinaryArray::from_iter_values(vec![value; rows]))
}

fn modulus(rows: usize) -> ArrayRef {
    constant(&space().modulus(), rows)
}

/// The wire form of an update for one slot; no exponent may be longer than a sum of offsets.
fn wire(update: &SdbUpdate, slot: u32, rows: usize) -> ArrayRef {
    let power = update.powers.get(&slot).cloned().unwrap_or_default();
    assert!(BigUint::from_bytes_be(&power).bits() <= 258);
    constant(
        &server::encode_update(&power, &update.factor).unwrap(),
        rows,
    )
}

fn opened(key: &SdbKey, column: &ArrayRef, slots: &[(u32, ArrayRef)]) -> Vec<i64> {
    let slots: BTreeMap<u32, ArrayRef> = slots.iter().cloned().collect();
    let long = kind(&DataType::Int64);
    let (low, high) = all();
    let column = space()
        .open(key, &Epochs::legacy(), column, &slots, &long, (&low, &high))
        .unwrap();
    column.as_primitive::<Int64Type>().values().to_vec()
}

fn columns() -> impl Strategy<Value = Vec<(i64, i64)>> {
    // The product of two of these and a constant below 100 fits into 64 bits.
    let number = prop_oneof![-5i64..5, -(1i64 << 28)..(1i64 << 28)];
    prop::collection::vec((number.clone(), number), 1..25)
}

fn signs(column: &ArrayRef) -> Vec<i8> {
    column.as_primitive::<Int8Type>().values().to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn products_and_constants(rows in columns(), u in prop_oneof![-9i64..-1, 1i64..99]) {
        let (a, b): (Vec<i64>, Vec<i64>) = rows.into_iter().unzip();
        let (space, count) = (space(), a.len());
        let product = server::sdb_mul(&sealed(1, &a), &sealed(2, &b), &modulus(count)).unwrap();
        let key = space.column_key(1, 1, 0, 0);
        let key = space.multiply(&key, &space.column_key(1, 2, 0, 0)).unwrap();
        let key = space.scale(&key, &BigInt::from(u)).unwrap();
        let expected: Vec<i64> = a.iter().zip(&b).map(|(a, b)| a * b * u).collect();
        prop_assert_eq!(opened(&key, &product, &[(0, ids(0..count as i64))]), expected);
    }

    #[test]
    fn sums_and_comparisons(rows in columns(), u in -1000i64..1000) {
        let (a, b): (Vec<i64>, Vec<i64>) = rows.into_iter().unzip();
        let (space, count) = (space(), a.len());
        let ones = space.seal_ones(1, &Epochs::legacy(), &ids(0..count as i64));
        let (n, ones) = (modulus(count), ones.unwrap());
        let (ka, kb) = (space.column_key(1, 1, 0, 0), space.column_key(1, 2, 0, 0));
        let minus = space.scale(&kb, &BigInt::from(-1)).unwrap();
        let move_to = |key: &SdbKey, target: &SdbKey| {
            wire(&space.update(key, target).unwrap(), 0, count)
        };
        let target = space.sum_target(&[&ka, &minus], b"difference").unwrap();
        let (x, y) = (move_to(&ka, &target), move_to(&minus, &target));
        let (a_e, b_e) = (sealed(1, &a), sealed(2, &b));
        let sum = server::sdb_add(&a_e, &b_e, &ones, &x, &y, &n).unwrap();
        let expected: Vec<i64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
        prop_assert_eq!(opened(&target, &sum, &[(0, ids(0..count as i64))]), expected);

        let random = space.seal_random(1, 0, &Epochs::legacy(), &ids(0..count as i64)).unwrap();
        let target = space.compare_target(&space.random_key(1, 0, 0));
        let (x, y) = (move_to(&ka, &target), move_to(&minus, &target));
        let got = server::sdb_compare_sum(&random, &a_e, &b_e, &ones, &ones, &x, &y, &n).unwrap();
        let expected: Vec<i8> = a.iter().zip(&b).map(|(a, b)| a.cmp(b) as i8).collect();
        prop_assert_eq!(signs(&got), expected);

        // A - u: the constant is S under <-u * m_S, 1>, or is under the plain key for 0.
        if u != 0 {
            let constant = space.scale(&space.ones_key(1, 0), &BigInt::from(-u)).unwrap();
            let target = space.sum_target(&[&ka, &constant], b"constant").unwrap();
            let (x, y) = (move_to(&ka, &target), move_to(&constant, &target));
            let got = server::sdb_add(&a_e, &ones, &ones, &x, &y, &n).unwrap();
            let expected: Vec<i64> = a.iter().map(|a| a - u).collect();
            prop_assert_eq!(opened(&target, &got, &[(0, ids(0..count as i64))]), expected);
        }
    }

    #[test]
    fn a_sum_over_rows(rows in columns()) {
        let a: Vec<i64> = rows.into_iter().map(|(a, _)| a).collect();
        let (space, count) = (space(), a.len());
        let ones = space.seal_ones(1, &Epochs::legacy(), &ids(0..count as i64)).unwrap();
        let target = space.common_target(b"sum");
        let update = space.update(&space.column_key(1, 1, 0, 0), &target).unwrap();
        let k = wire(&update, 0, count);
        let moved = server::sdb_key_update(&sealed(1, &a), &ones, &k, &modulus(count)).unwrap();
        prop_assert_eq!(opened(&target, &moved, &[]), a.clone());
        let item = Arc::new(Field::new("l", DataType::Binary, true));
        let offsets = OffsetBuffer::from_lengths([0, count]);
        let lists = ListArray::new(item, offsets, moved, None);
        let sums = server::sdb_sum(&lists, &modulus(2)).unwrap();
        prop_assert!(sums.is_null(0));
        let total = opened(&target, &sums.slice(1, 1), &[]);
        prop_assert_eq!(total, vec![a.iter().sum::<i64>()]);
    }
}

#[test]
fn a_product_of_two_tables() {
    let space = space();
    let (a, b) = (vec![3, -4, 5], vec![7, 7, -9]);
    let (a_e, b_e) = (sealed_in(1, 1, &a, 0), sealed_in(2, 1, &b, 50));
    let n = modulus(3);
    let (ka, kb) = (space.column_key(1, 1, 0, 0), space.column_key(2, 1, 0, 1));
    let key = space.multiply(&ka, &kb).unwrap();
    assert_eq!(key.slots(), [0, 1]);
    let product = server::sdb_mul(&a_e, &b_e, &n).unwrap();
    let slots = [(0, ids(0..3)), (1, ids(50..53))];
    assert_eq!(opened(&key, &product, &slots), [21, -28, -45]);

    // A + B: each is lifted into the other's table by that table's ones (Rule 12).
    let target = space.sum_target(&[&ka, &kb], b"a+b").unwrap();
    assert!(target.slots().is_empty());
    let ones = [
        space.seal_ones(1, &Epochs::legacy(), &ids(0..3)).unwrap(),
        space.seal_ones(2, &Epochs::legacy(), &ids(50..53)).unwrap(),
    ];
    let lift = |column: &ArrayRef, key: &SdbKey, slot: u32| {
        let update = space.update(key, &target).unwrap();
        assert_eq!(update.powers.keys().copied().collect::<Vec<_>>(), [slot]);
        let k = wire(&update, slot, 3);
        server::sdb_key_update(column, &ones[slot as usize], &k, &n).unwrap()
    };
    let plain = constant(&server::encode_update(&[], &[1]).unwrap(), 3);
    let (x, y) = (lift(&a_e, &ka, 0), lift(&b_e, &kb, 1));
    let sum = server::sdb_add(&x, &y, &ones[0], &plain, &plain, &n).unwrap();
    assert_eq!(opened(&target, &sum, &slots), [10, 3, -4]);
}

#[test]
fn lifting_to_a_positive_offset_in_an_absent_slot() {
    let space = space();
    let a_e = sealed_in(1, 1, &[6, -6], 0);
    let ka = space.column_key(1, 1, 0, 0);
    let target = space.multiply(&ka, &space.ones_key(2, 1)).unwrap();
    let update = space.update(&ka, &target).unwrap();
    assert_eq!(update.powers[&1], [1]);
    let ones = space.seal_ones(2, &Epochs::legacy(), &ids(8..10)).unwrap();
    let k = wire(&update, 1, 2);
    let lifted = server::sdb_key_update(&a_e, &ones, &k, &modulus(2)).unwrap();
    assert_eq!(
        opened(&target, &lifted, &[(0, ids(0..2)), (1, ids(8..10))]),
        [6, -6]
    );
}

#[test]
fn constants() {
    let space = space();
    let target = space.common_target(b"c");
    for value in [-7i64, 0, 1 << 40] {
        let literal = space.literal(&target, &BigInt::from(value)).unwrap();
        assert_eq!(opened(&target, &constant(&literal, 1), &[]), [value]);
    }
    let zero = space.scale(&target, &BigInt::ZERO);
    assert!(matches!(zero, Err(Error::Value(_))));
    let key = space.column_key(1, 1, 0, 0);
    assert!(matches!(
        space.literal(&key, &BigInt::one()),
        Err(Error::Value(_))
    ));
    // A column cannot go down: the power would be negative, and is never reduced instead.
    let down = space.update(&space.plain_key(), &key);
    assert!(matches!(down, Err(Error::Value(_))));
    let other = space.column_key(2, 1, 0, 0);
    assert!(matches!(space.multiply(&key, &other), Err(Error::Value(_))));
}
