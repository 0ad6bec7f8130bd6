//! Updates with powers 0 and 1 against plain arithmetic: more rows than a task takes, some NULL.

use arrow_array::cast::AsArray;
use arrow_array::types::Int8Type;
use arrow_array::*;
use arrow_schema::DataType;
use louver_untrusted::server::*;
use num_bigint::BigUint;

const ROWS: u32 = 200;
/// Column `i` is NULL in every 50th row from row `i` on.
const R: u32 = 10;
const A: u32 = 11;
const B: u32 = 12;
const WA: u32 = 13;
const WB: u32 = 14;

fn n() -> BigUint {
    (BigUint::from(1u8) << 2047u32) + BigUint::from(977u32)
}

fn number(row: u32, column: u32) -> BigUint {
    let seed = BigUint::from(row * 2_654_435 + column + 3);
    (0..6).fold(seed, |v, _| &v * &v * 7u32 % n())
}

fn column(i: u32) -> BinaryArray {
    let of = |row: u32| (row % 50 != i).then(|| number(row, i).to_bytes_be());
    BinaryArray::from_iter((0..ROWS).map(of))
}

fn constant(value: &[u8]) -> BinaryArray {
    BinaryArray::from_iter_values(vec![value; ROWS as usize])
}

fn update(p: &[u8], q: &BigUint) -> BinaryArray {
    constant(&encode_update(p, &q.to_bytes_be()).unwrap())
}

fn modulus() -> BinaryArray {
    constant(&n().to_bytes_be())
}

#[track_caller]
fn check(got: louver_untrusted::Result<ArrayRef>, nulls: &[u32], wanted: impl Fn(u32) -> BigUint) {
    let got = got.unwrap();
    for row in 0..ROWS {
        let at = row as usize;
        assert_eq!(got.is_null(at), nulls.contains(&(row % 50)), "row {row}");
        if got.is_null(at) {
            continue;
        }
        let wanted = wanted(row) % n();
        if got.data_type() == &DataType::Int8 {
            let sign = if wanted > n() >> 1u32 { -1 } else { 1 };
            assert_eq!(got.as_primitive::<Int8Type>().value(at), sign, "row {row}");
        } else {
            let got = BigUint::from_bytes_be(got.as_binary::<i32>().value(at));
            assert_eq!(got, wanted, "row {row}");
        }
    }
}

#[test]
fn without_a_helper() {
    let (a, b, n) = (column(A), column(B), modulus());
    let (qa, qb) = (number(1, 20), number(2, 21));
    let (ka, kb) = (update(&[], &qa), update(&[], &qb));
    let linear = |row| &qa * number(row, A) + &qb * number(row, B);
    check(sdb_linear(&a, &b, &ka, &kb, &n), &[A, B], linear);
    check(sdb_compare_kept(&a, &b, &ka, &kb, &n), &[A, B], linear);
    let moved = |row| &qa * number(row, A);
    check(sdb_key_update(&a, &column(WA), &ka, &n), &[A, WA], moved);
    let product = |row| number(row, A) * number(row, B);
    check(sdb_mul(&a, &b, &n), &[A, B], product);
    let sum = |row| number(row, A) + number(row, B);
    check(sdb_int_add(&a, &b, &n), &[A, B], sum);
    let helped = update(&[1], &qb);
    assert!(sdb_linear(&a, &b, &ka, &helped, &n).is_err());
    assert!(sdb_compare_kept(&a, &b, &helped, &kb, &n).is_err());
}

#[test]
fn with_kept_powers() {
    let [r, a, b, wa, wb] = [R, A, B, WA, WB].map(column);
    let n = modulus();
    let (qa, qb) = (number(1, 20), number(2, 21));
    let (ka, kb) = (update(&[1], &qa), update(&[1], &qb));
    let moved = |row| &qa * number(row, A) * number(row, WA);
    check(sdb_key_update(&a, &wa, &ka, &n), &[A, WA], moved);
    let sum = |row| moved(row) + &qb * number(row, B) * number(row, WB);
    let sums = sdb_add_kept(&a, &b, &wa, &wb, &ka, &kb, &n);
    check(sums, &[A, B, WA, WB], sum);
    let signs = sdb_compare_sum(&r, &a, &b, &wa, &wb, &ka, &kb, &n);
    check(signs, &[R, A, B, WA, WB], |row| sum(row) * number(row, R));
    let (five, unit) = (update(&[5], &qa), update(&[1], &BigUint::from(1u8)));
    let mixed = sdb_add_kept(&a, &b, &wa, &wb, &five, &unit, &n);
    check(mixed, &[A, B, WA, WB], |row| {
        &qa * number(row, A) * number(row, WA).pow(5) + number(row, B) * number(row, WB)
    });
}

/// An error names the row of the call, not of a task.
#[test]
fn errors_name_the_row() {
    let values = (0..ROWS).map(|row| if row == 133 { n() } else { number(row, A) }.to_bytes_be());
    let bad = BinaryArray::from_iter_values(values);
    let error = sdb_mul(&bad, &bad, &modulus()).unwrap_err().to_string();
    assert!(error.contains("133"), "{error}");
}
