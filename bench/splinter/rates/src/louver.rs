//! What a provider of Louver evaluates and its client makes.

use crate::{report, scrambled};
use louver_primitives::fss::{Group, Header, LessShare, PointShare, Scheme};
use louver_trusted::fss::{less_shares, point_shares};
use louver_untrusted::fss::{evaluate_leaves, evaluate_less, evaluate_point, Points};

const WHO: &str = "louver";

/// Points one by one, as a list in no order.
pub fn loose(bits: u32, count: usize) {
    let keys = scrambled(bits, count);
    let (point, less) = (point(bits), less(bits));
    report(WHO, "point", bits, count, || {
        points(&point, Points::Loose(&keys))
    });
    report(WHO, "comparison", bits, count, || {
        lesses(&less, Points::Loose(&keys))
    });
}

/// A sorted list of distinct keys, with prefixes shared.
pub fn sorted(bits: u32, count: usize) {
    let mut keys = scrambled(bits, count);
    keys.sort_unstable();
    keys.dedup();
    let (point, less) = (point(bits), less(bits));
    report(WHO, "point, sorted", bits, keys.len(), || {
        points(&point, Points::Sorted(&keys))
    });
    report(WHO, "comparison, sorted", bits, keys.len(), || {
        lesses(&less, Points::Sorted(&keys))
    });
}

/// The whole domain.
pub fn all(bits: u32) {
    let count = 1u64 << bits;
    let (point, less) = (point(bits), less(bits));
    report(WHO, "point, all", bits, count as usize, || {
        points(&point, Points::All(count))
    });
    report(WHO, "comparison, all", bits, count as usize, || {
        lesses(&less, Points::All(count))
    });
    let head = Header {
        words: 1,
        ..header(Scheme::Point, Group::Words, bits)
    };
    let [share, _] = point_shares(head, scrambled(bits, 3)[2], &[7]).expect("a point");
    // A leaf of 128 bits holds the words of two points.
    let mut words = vec![0u128; count as usize / 2];
    report(WHO, "point, all to words", bits, count as usize, || {
        let mut sink = |first: usize, values: &[u128]| {
            words[first..first + values.len()].copy_from_slice(values);
        };
        evaluate_leaves(&share, 0..count as usize / 2, &mut sink).expect("leaves");
        words[0]
    });
}

/// Both shares.
pub fn made(bits: u32) {
    let turns = 100;
    report(WHO, "make point", bits, turns, || {
        (0..turns).map(|_| u128::from(point(bits).last[0])).sum()
    });
    report(WHO, "make comparison", bits, turns, || {
        (0..turns).map(|_| u128::from(less(bits).constant[0])).sum()
    });
}

fn header(scheme: Scheme, group: Group, bits: u32) -> Header {
    Header {
        scheme,
        group,
        bits,
        party: 0,
        parties: 2,
        words: 0,
    }
}

fn point(bits: u32) -> PointShare {
    let secret = scrambled(bits, 3)[2];
    let [one, _] = point_shares(header(Scheme::Point, Group::Tag, bits), secret, &[6])
        .expect("a point of the domain");
    one
}

fn less(bits: u32) -> LessShare {
    let secret = scrambled(bits, 3)[2];
    let [one, _] = less_shares(
        header(Scheme::Less, Group::Wide, bits),
        &[(secret, &[7])],
        &[0],
    )
    .expect("an end of the domain");
    one
}

fn points(share: &PointShare, points: Points<'_>) -> u128 {
    let mut seen = 0;
    let mut sink = |_: usize, bits: &[u8], values: &[u128]| {
        seen ^= values[values.len() - 1] ^ u128::from(bits[0]);
    };
    evaluate_point(share, points, 0..points.len(), &mut sink).expect("points of the domain");
    seen
}

fn lesses(share: &LessShare, points: Points<'_>) -> u128 {
    let mut seen = 0;
    let mut sink = |_: usize, _: &[u8], values: &[u128]| seen ^= values[values.len() - 1];
    evaluate_less(share, points, 0..points.len(), &mut sink).expect("points of the domain");
    seen
}
