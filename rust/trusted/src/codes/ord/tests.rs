//! Order codes: strict order, one value as many, and the shape of the distribution.

use super::*;
use crate::error::Error;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::*;
use proptest::prelude::*;

fn ring() -> KeyRing {
    KeyRing::from_root(RootSecret::from_bytes(&[7; 32]).unwrap())
}

fn interval(low: i128, bits: u32) -> Interval<'static> {
    Interval {
        domain: "int",
        low,
        bits,
    }
}

fn narrow(bits: u32, values: &[i64]) -> Vec<i64> {
    let array = Int64Array::from(values.to_vec());
    let codes = ring().ord_codes((1, 2, 3), "", interval(0, bits), &array);
    codes.unwrap().as_primitive::<Int64Type>().values().to_vec()
}

/// The whole function of a small domain: strict, in its range, and the same one value at a time.
#[test]
fn a_whole_domain() {
    for bits in [1, 2, 5, 10] {
        let all: Vec<i64> = (0..1 << bits).collect();
        let codes = narrow(bits, &all);
        assert!(codes[0] > 0 && codes.windows(2).all(|pair| pair[0] < pair[1]));
        for &value in &all {
            assert_eq!(narrow(bits, &[value]), [codes[value as usize]]);
        }
    }
}

/// Where there are hardly more ciphertexts than plaintexts, draws are exact and none is lost.
#[test]
fn a_dense_range() {
    for (bits, range) in [(3, 4), (6, 7), (10, 11), (10, 14), (4, 20)] {
        let tree = Tree::new(&[bits as u8; 32], bits, range);
        let all: Vec<u64> = (0..1 << bits).collect();
        let codes = tree.encrypt(&all);
        assert!(codes[0] > 0 && codes.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(*codes.last().unwrap() < 1 << range);
        let alone: Vec<u128> = all.iter().flat_map(|rank| tree.encrypt(&[*rank])).collect();
        assert_eq!(alone, codes);
    }
}

/// The number of plaintexts in the left half has a hypergeometric draw's mean M/2, variance
/// M/4 · (N−M)/(N−1), and no skew.
#[test]
fn halves_are_drawn_from_the_right_distribution() {
    for (bits, range) in [(3, 5), (5, 40), (7, 30), (9, 40), (9, 14), (16, 40)] {
        let (m, n) = (2_f64.powi(bits), 2_f64.powi(range));
        let deviation = (m / 4.0 * (n - m) / (n - 1.0)).sqrt();
        // Code 0 does not exist: the left half has one ciphertext less.
        let lost = m / (2.0 * n) / deviation;
        let keys = 4000_u32;
        let mut sums = [0.0; 3];
        for key in 0..keys {
            let mut bytes = [0; 32];
            bytes[..4].copy_from_slice(&key.to_le_bytes());
            bytes[16..20].copy_from_slice(&key.to_le_bytes());
            let tree = Tree::new(&bytes, bits as u32, range as u32);
            let shift = (tree.drawn_at_root() as f64 - m / 2.0) / deviation + lost;
            (0..3).for_each(|power| sums[power] += shift.powi(power as i32 + 1));
        }
        let [mean, square, cube] = sums.map(|sum| sum / f64::from(keys));
        assert!(mean.abs() < 0.07, "{bits} {range}: mean {mean}");
        assert!(
            (square - 1.0).abs() < 0.1,
            "{bits} {range}: variance {square}"
        );
        assert!(cube.abs() < 0.3, "{bits} {range}: skew {cube}");
    }
}

#[test]
fn outside_is_refused() {
    for value in [9, 26] {
        let array = Int64Array::from(vec![value]);
        let outcome = ring().ord_codes((1, 2, 3), "", interval(10, 4), &array);
        assert!(matches!(outcome, Err(Error::Value(_))));
    }
    for bits in [0, 65] {
        let array = Int64Array::from(vec![1]);
        let outcome = ring().ord_codes((1, 2, 3), "", interval(0, bits), &array);
        assert!(outcome.is_err());
    }
    let text = StringArray::from(vec!["a"]);
    let outcome = ring().ord_codes((1, 2, 3), "", interval(0, 8), &text);
    assert!(outcome.is_err());
}

#[test]
fn groups_share_and_columns_do_not() {
    let array = Int64Array::from(vec![Some(5), None]);
    let codes = |id, group, low| {
        let outcome = ring()
            .ord_codes(id, group, interval(low, 8), &array)
            .unwrap();
        assert!(outcome.is_null(1));
        outcome.as_primitive::<Int64Type>().value(0)
    };
    assert_eq!(codes((1, 1, 1), "g", 0), codes((2, 9, 4), "g", 0));
    assert_ne!(codes((1, 1, 1), "g", 0), codes((1, 1, 1), "g", 1));
    assert_ne!(codes((1, 1, 1), "", 0), codes((1, 1, 2), "", 0));
    assert_ne!(codes((1, 1, 1), "", 0), codes((1, 1, 1), "g", 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn order_is_strict(mut values in prop::collection::vec(0..1_i64 << 47, 2..300)) {
        let codes = narrow(47, &values);
        let mut pairs: Vec<(i64, i64)> = values.iter().copied().zip(codes).collect();
        pairs.sort_unstable();
        pairs.dedup();
        values.sort_unstable();
        values.dedup();
        prop_assert_eq!(pairs.len(), values.len());
        prop_assert!(pairs.windows(2).all(|pair| pair[0].1 < pair[1].1));
        prop_assert!(pairs[0].1 > 0);
    }

    #[test]
    fn wide_order_is_strict(values in prop::collection::vec(any::<f64>(), 2..100)) {
        let array = Float64Array::from(values.clone());
        let all = Interval { domain: "double", low: 0, bits: 64 };
        let codes = ring().ord_codes((1, 2, 3), "", all, &array).unwrap();
        let codes = codes.as_fixed_size_binary();
        for (i, a) in values.iter().enumerate() {
            for (j, b) in values.iter().enumerate() {
                // NaN comes last.
                let less = a < b || (!a.is_nan() && b.is_nan());
                prop_assert_eq!(less, codes.value(i) < codes.value(j));
            }
        }
    }

    #[test]
    fn texts_by_their_first_bytes(a in ".{0,12}", b in ".{0,12}") {
        let array = StringArray::from(vec![a.as_str(), b.as_str()]);
        let all = Interval { domain: "text", low: 0, bits: 64 };
        let codes = ring().ord_codes((1, 2, 3), "", all, &array).unwrap();
        let codes = codes.as_fixed_size_binary();
        let head = |text: &str| {
            let mut head = text.as_bytes().to_vec();
            head.resize(8, 0);
            head
        };
        prop_assert_eq!(head(&a).cmp(&head(&b)), codes.value(0).cmp(codes.value(1)));
    }
}

/// What a tree remembers of one search changes none of the next, whatever their order.
#[test]
fn a_tree_that_remembers() {
    let values = || prop::collection::vec(prop_oneof![any::<u64>(), 0..20_u64], 1..40);
    proptest!(|(values in values(), bits in 1..=64_u32, wide in any::<bool>())| {
        let range = RANGES[usize::from(wide || bits > NARROW_DOMAIN)];
        let fresh = || Tree::new(&[9; 32], bits, range);
        let tree = fresh();
        for value in values {
            let plain = [value & u64::MAX >> (64 - bits)];
            prop_assert_eq!(tree.encrypt(&plain), fresh().encrypt(&plain));
            prop_assert_eq!(tree.encrypt(&plain), fresh().encrypt(&plain));
        }
    });
}

#[test]
fn threads_share_a_tree() {
    let tree = Tree::new(&[3; 32], 64, 127);
    let of = |first: u64| (0..200).map(move |n| n * 77 + first);
    let alone = |n: u64| Tree::new(&[3; 32], 64, 127).encrypt(&[n]);
    std::thread::scope(|scope| {
        for first in 0..4 {
            let tree = &tree;
            scope.spawn(move || of(first).for_each(|n| assert_eq!(tree.encrypt(&[n]), alone(n))));
        }
    });
}
