//! Point functions of several parties: right at every point, and private in every coalition.

use super::owf::{member, Coins, OwfPoint};
use crate::Error;
use louver_primitives::fss::{dot, record_tag};
use louver_untrusted::fss::Points;
use louver_untrusted::fss_many::{evaluate_owf, OwfLayout, OwfShare};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn values(share: &OwfShare, points: Points<'_>) -> (Vec<u8>, Vec<u128>) {
    let (mut bits, mut values) = (Vec::new(), Vec::new());
    let mut sink = |first: usize, b: &[u8], v: &[u128]| {
        assert_eq!(first, bits.len());
        bits.extend_from_slice(b);
        values.extend_from_slice(v);
    };
    evaluate_owf(share, points, 0..points.len(), &mut sink).unwrap();
    (bits, values)
}

/// What all shares give together.
fn joined(shares: &[OwfShare], points: Points<'_>) -> (Vec<u8>, Vec<u128>) {
    let mut all = values(&shares[0], points);
    for share in &shares[1..] {
        let (bits, values) = values(share, points);
        all.0.iter_mut().zip(bits).for_each(|(a, b)| *a ^= b);
        all.1.iter_mut().zip(values).for_each(|(a, b)| *a ^= b);
    }
    all
}

fn decode(point: &OwfPoint) -> Vec<OwfShare> {
    let shares = point.shares().iter();
    shares.map(|s| OwfShare::decode(s).unwrap()).collect()
}

#[test]
fn small_domains_are_right_everywhere() {
    for parties in 2..=5 {
        for bits in 1..=6 {
            for at in 0..1 << bits {
                let point = OwfPoint::new(bits, Some(at), parties).unwrap();
                let (bits, values) = joined(&decode(&point), Points::All(1 << bits));
                for (x, (bit, value)) in bits.iter().zip(&values).enumerate() {
                    assert_eq!(*bit == 1, x as u64 == at, "{parties} {at} {x}");
                    assert_eq!(*value != 0, x as u64 == at);
                    assert_eq!(*value as u8 & 1, *bit);
                }
            }
        }
    }
}

#[test]
fn large_domains_are_right_at_their_ends() {
    for (bits, parties) in [(24, 2), (24, 3), (23, 4), (24, 5), (13, 3)] {
        let last = (1 << bits) - 1;
        for at in [0, 1, last / 3, last] {
            let shares = decode(&OwfPoint::new(bits, Some(at), parties).unwrap());
            let points = [last, 0, at, last - 1, at, 1];
            let (joined_sums, _) = joined(&shares, Points::Loose(&points));
            assert_eq!(joined_sums, points.map(|x| u8::from(x == at)));
        }
    }
}

proptest! {
    #[test]
    fn records_open_and_false_replies_do_not(
        bits in 1..12_u32,
        parties in 2..=5_u8,
        at: u64,
        level in 0..3_u32,
        keys: std::collections::BTreeSet<u64>,
        lie: prop::sample::Index,
        liar: prop::sample::Index,
        flip in 1..=255_u8,
    ) {
        let most = (1_u64 << bits) - 1;
        let (at, mut keys) = (at & most, keys);
        keys = keys.into_iter().map(|key| key & most).collect();
        let keys: Vec<u64> = keys.into_iter().collect();
        let point = OwfPoint::new(bits, Some(at), parties).unwrap();
        let record = |key: u64| [key.to_le_bytes(), [7; 8]].concat();
        let reply = |share: &OwfShare| {
            let (bits, values) = values(share, Points::Sorted(&keys));
            let mut out = vec![0; 16];
            let mut mac = 0;
            for ((key, bit), value) in keys.iter().zip(bits).zip(values) {
                let record = record(*key);
                mac ^= dot(value, record_tag(level, &record));
                out.iter_mut().zip(record).for_each(|(out, byte)| *out ^= byte * bit);
            }
            out.extend(mac.to_le_bytes());
            out
        };
        let mut replies: Vec<Vec<u8>> = decode(&point).iter().map(reply).collect();
        let open = |replies: &[Vec<u8>]| {
            let replies: Vec<&[u8]> = replies.iter().map(Vec::as_slice).collect();
            point.open(&replies, level)
        };
        let expected = keys.contains(&at).then(|| record(at));
        prop_assert_eq!(open(&replies).unwrap(), expected);
        prop_assert!(matches!(open(&replies[1..]), Err(Error::Value(_))));
        let liar = liar.index(replies.len());
        let target = lie.index(replies[liar].len());
        replies[liar][target] ^= flip;
        prop_assert!(matches!(open(&replies), Err(Error::Verify(_))));
    }
}

#[test]
fn what_is_out_of_bounds_is_refused() {
    for (bits, at, parties) in [
        (0, None, 3),
        (25, None, 3),
        (8, None, 1),
        (8, None, 6),
        (8, Some(256), 3),
    ] {
        let refused = OwfPoint::new(bits, at, parties);
        assert!(matches!(refused, Err(Error::Value(_))), "{bits} {parties}");
    }
    let none = OwfPoint::new(8, None, 3).unwrap();
    assert_eq!(format!("{none:?}"), "OwfPoint(redacted)");
    assert_eq!(none.shares().len(), 3);
}

/// Exactly: over all coins of a row, what any coalition of all but one sees of the row's matrix has
/// the same distribution in the point's row as in any other.
#[test]
fn every_coalition_sees_the_same_of_every_row() {
    for parties in 2..=5_u8 {
        for missing in 0..parties {
            let seen = |special: u8| {
                let mut all = BTreeMap::<Vec<u8>, u32>::new();
                for shift in 0..1 << (parties - 1) {
                    let column = |j: u8| {
                        let others = (0..parties).filter(|party| *party != missing);
                        others.fold(0, |column, party| {
                            column << 1 | member(j ^ shift, party, parties, special)
                        })
                    };
                    let matrix: Vec<u8> = (0..1 << (parties - 1)).map(column).collect();
                    // One seed of every row is unknown to them.
                    assert_eq!(matrix.iter().filter(|c| **c == 0).count(), 1);
                    *all.entry(matrix).or_default() += 1;
                }
                all
            };
            assert_eq!(seen(0), seen(1), "{parties} without {missing}");
        }
    }
}

/// What p - 1 shares give together at any point is no more often 1 for one secret than for another;
/// nor is what their rows show.
#[test]
fn coalitions_cannot_distinguish_points() {
    const TIMES: usize = 2000;
    const BITS: u32 = 6;
    let count = |at: u64, parties: u8, missing: usize| {
        let layout = OwfLayout::new(BITS, parties).unwrap();
        let mut ones = vec![0_i64; (1 << BITS) * 3 + layout.rows() * (parties as usize - 1)];
        for _ in 0..TIMES {
            let mut shares = decode(&OwfPoint::new(BITS, Some(at), parties).unwrap());
            shares.remove(missing);
            let (_, values) = joined(&shares, Points::All(1 << BITS));
            let bits = values.iter().flat_map(|v| [v & 1, v >> 64 & 1, v >> 127]);
            let rows = shares
                .iter()
                .flat_map(|share| (0..layout.rows()).map(|row| share.mask(row) & 1));
            let seen = ones.iter_mut().zip(bits.chain(rows));
            seen.for_each(|(ones, bit)| *ones += bit as i64);
        }
        ones
    };
    for parties in 2..=5 {
        for missing in 0..parties as usize {
            let (first, other) = (count(5, parties, missing), count(50, parties, missing));
            for (first, other) in first.iter().zip(&other) {
                // Seven standard deviations of a difference of two such counts, of which there
                // are some 3,000: one is passed in vain once in 10^8 runs, and by Hoeffding's
                // inequality surely less than once in 6 · 10^6.
                let limit = 7.0 * (TIMES as f64 / 2.0).sqrt();
                assert!(((first - other).abs() as f64) < limit, "{first} {other}");
                assert!(((first - TIMES as i64 / 2).abs() as f64) < limit);
            }
        }
    }
}

#[test]
fn the_coins_alone_make_the_shares() {
    let layout = OwfLayout::new(4, 3).unwrap();
    let coins = |alpha| Coins {
        alpha,
        seeds: (0..layout.rows() * 4).map(|s| s as u128 * 2).collect(),
        shifts: vec![0; layout.rows()],
        other: 0,
    };
    let (first, other) = (coins(1).split(4, 9, 3), coins(1).split(4, 9, 3));
    assert!(first == other);
    // The payload shows in one block of the correction, which cannot be separated.
    let other = coins(3).split(4, 9, 3);
    let pairs = first[0].correction.iter().zip(&other[0].correction);
    let apart: Vec<u128> = pairs.map(|(a, b)| a ^ b).collect();
    assert_eq!(apart.iter().filter(|d| **d != 0).count(), 1);
    assert_eq!(apart[layout.place(9).1], 2);
}
