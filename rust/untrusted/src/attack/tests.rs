//! The attacks on columns made with explicit keys.

use super::*;
use arrow_array::BinaryArray;

/// 2^256 - 189 and 2^255 - 19 are prime.
fn n() -> BigUint {
    ((BigUint::one() << 256u32) - 189u32) * ((BigUint::one() << 255u32) - 19u32)
}

fn number(seed: u64) -> BigUint {
    let n = n();
    (0..40u64).fold(BigUint::from(seed + 3), |x, i| (&x * &x + i + seed) % &n)
}

fn residue(value: i64) -> BigUint {
    let n = BigInt::from(n());
    BigInt::from(value).mod_floor(&n).magnitude().clone()
}

fn column(values: impl IntoIterator<Item = Option<BigUint>>) -> BinaryArray {
    let bytes = values.into_iter().map(|v| v.map(|v| v.to_bytes_be()));
    bytes.collect()
}

fn ints(values: &[Option<i64>]) -> Vec<Option<BigInt>> {
    values.iter().map(|v| v.map(BigInt::from)).collect()
}

#[test]
fn a_common_key_hides_nothing() {
    let values = [
        Some(0),
        Some(-60),
        None,
        Some(77),
        Some(1 << 40),
        Some(-35),
        Some(3),
    ];
    let key = number(1);
    let sealed = values.map(|v| v.map(|v| residue(v) * &key % n()));
    let recovered = common_key(&column(sealed), &n().to_bytes_be()).unwrap();
    let minus: Vec<Option<i64>> = values.iter().map(|v| v.map(|v| -v)).collect();
    assert!(
        recovered == ints(&values) || recovered == ints(&minus),
        "{recovered:?}"
    );
    let scaled = [Some(30), Some(-60), Some(90)];
    let sealed = scaled.map(|v| v.map(|v| residue(v) * &key % n()));
    let recovered = common_key(&column(sealed), &n().to_bytes_be()).unwrap();
    assert_eq!(recovered, ints(&[Some(1), Some(-2), Some(3)]));
    let zeros = common_key(&column([Some(BigUint::ZERO), None]), &n().to_bytes_be()).unwrap();
    assert_eq!(zeros, ints(&[Some(0), None]));
}

#[test]
fn row_keys_resist() {
    let sealed = (0..20).map(|i| Some(residue(i + 1) * number(i as u64) % n()));
    let recovered = common_key(&column(sealed), &n().to_bytes_be()).unwrap();
    assert_eq!(
        recovered.iter().flatten().count(),
        1,
        "only the reference itself"
    );
}

#[test]
fn a_key_a_row_gives_the_ratio() {
    let rows = [
        (Some(35), Some(12)),
        (Some(-9), Some(4)),
        (Some(6), Some(4)),
        (None, Some(1)),
    ];
    let under = |row: usize, v: i64| residue(v) * number(row as u64) % n();
    let rows = rows
        .into_iter()
        .chain([(Some(0), Some(5)), (Some(5), Some(0))]);
    let (a, b): (Vec<_>, Vec<_>) = rows
        .enumerate()
        .map(|(i, (a, b))| (a.map(|v| under(i, v)), b.map(|v| under(i, v))))
        .unzip();
    let recovered = coprime(&column(a), &column(b), &n().to_bytes_be()).unwrap();
    let pair = |a: i64, b: i64| Some((BigInt::from(a), BigInt::from(b)));
    let wanted = [
        pair(35, 12),
        pair(-9, 4),
        pair(3, 2),
        None,
        pair(0, 1),
        pair(1, 0),
    ];
    assert_eq!(recovered, wanted);
}

#[test]
fn a_constant_gives_the_column() {
    let random = [1_000_003u64, 998_244_353, 1 << 33];
    let values = [Some(-5i64), Some(0), Some(123_456)];
    let r_u = random.map(|r| Some(BigUint::from(r) * 4000u32));
    let times = |(r, v): (u64, &Option<i64>)| v.map(|v| residue(v) * r % n());
    let r_a = random.into_iter().zip(&values).map(times);
    let recovered = linear(&column(r_u), &column(r_a), &n().to_bytes_be()).unwrap();
    assert_eq!(recovered.constant, BigUint::from(4000u32));
    assert_eq!(recovered.values, ints(&values));
}

#[test]
fn unusable_input_is_an_error() {
    let unit = column([Some(BigUint::one())]);
    assert!(common_key(&unit, &[5]).is_err());
    assert!(common_key(&column([Some(n())]), &n().to_bytes_be()).is_err());
    assert!(coprime(&unit, &column([]), &n().to_bytes_be()).is_err());
    assert!(linear(&column([None]), &unit, &n().to_bytes_be()).is_err());
}
