//! Order-revealing values compare as their values do, and show nothing else of their order.

use super::*;
use arrow_array::cast::AsArray;
use arrow_array::*;
use louver_primitives::ore::compare;
use proptest::prelude::*;
use std::cmp::Ordering;

fn ring() -> KeyRing {
    KeyRing::from_root(RootSecret::from_bytes(&[9; 32]).unwrap())
}

fn interval(low: i128, bits: u32) -> Interval<'static> {
    Interval {
        domain: "int",
        low,
        bits,
    }
}

#[test]
fn a_whole_domain_and_null() {
    let all = Int64Array::from((-4..4).map(Some).chain([None]).collect::<Vec<_>>());
    let domain = interval(-4, 3);
    let sealed = ring().ore_seal((1, 2, 3), domain, &all).unwrap();
    let sealed = sealed.as_binary::<i32>();
    assert_eq!((sealed.null_count(), sealed.value(0).len()), (0, 21));
    for value in -4..4 {
        let single = Int64Array::from(vec![value]);
        let token = ring().ore_token((1, 2, 3), domain, &single).unwrap();
        for row in 0..9 {
            let wanted = (row as i64 - 4).cmp(&value);
            assert_eq!(compare(sealed.value(row), &token), Some(wanted));
        }
        let other = ring()
            .ore_token((1, 2, 3), interval(-4, 7), &single)
            .unwrap();
        assert_eq!(compare(sealed.value(0), &other), None);
    }
    assert_eq!(compare(sealed.value(0), b""), Some(Ordering::Greater));
}

#[test]
fn no_token_of_null_or_of_many() {
    for values in [vec![None], vec![], vec![Some(1), Some(2)]] {
        let values = Int64Array::from(values);
        let token = ring().ore_token((1, 2, 3), interval(0, 8), &values);
        assert!(matches!(token, Err(Error::Value(_))));
    }
}

#[test]
fn equal_values_do_not_show() {
    let values = Int64Array::from(vec![7; 50]);
    let sealed = ring()
        .ore_seal((1, 2, 3), interval(0, 32), &values)
        .unwrap();
    let mut bodies: Vec<&[u8]> = sealed.as_binary::<i32>().iter().flatten().collect();
    bodies.sort_unstable();
    bodies.dedup();
    assert_eq!(bodies.len(), 50);
    let mut permutation: Vec<u8> = places(&Block::from([3; 16])).to_vec();
    permutation.sort_unstable();
    assert_eq!(permutation, (0..16).collect::<Vec<u8>>());
}

proptest! {
    #[test]
    fn they_compare_as_values(a: i64, b: i64, near in 0..70_i64) {
        for b in [b, a.saturating_add(near - 35)] {
            let value = Int64Array::from(vec![Some(a), None]);
            let domain = interval(i128::from(i64::MIN), 64);
            let sealed = ring().ore_seal((1, 2, 3), domain, &value).unwrap();
            let sealed = sealed.as_binary::<i32>();
            let token = ring().ore_token((1, 2, 3), domain, &Int64Array::from(vec![b])).unwrap();
            prop_assert_eq!(compare(sealed.value(0), &token), Some(a.cmp(&b)));
            prop_assert_eq!(compare(sealed.value(1), &token), Some(Ordering::Greater));
        }
    }
}
