//! Every way to evaluate a share agrees with evaluation point by point, for any arrangement.

use super::{evaluate_less_with, evaluate_point_with, Backend, Group, Header};
use super::{LessShare, PointShare, Points, Prg, Scheme};
use louver_primitives::fss::{Comparison, Tree};

/// Numbers in no order.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.0 ^ self.0 >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ self.0 >> 32
    }

    fn block(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }

    /// What a provider may receive: it cannot decide whether this is a share of anything.
    fn tree(&mut self, levels: u32) -> Tree {
        let level = |_| {
            let left = self.block();
            [left, left ^ (left >> 7 & 1)]
        };
        Tree {
            levels: (0..levels).map(level).collect(),
            root: 5 << 90 | 1,
        }
    }
}

fn header(scheme: Scheme, group: Group, bits: u32) -> Header {
    Header {
        scheme,
        group,
        bits,
        party: 1,
        parties: 2,
        words: 0,
    }
}

fn less(numbers: &mut Numbers, bits: u32) -> LessShare {
    let mut part = || Comparison {
        tree: numbers.tree(bits - 1),
        values: (0..bits).map(|_| numbers.block()).collect(),
    };
    LessShare {
        header: header(Scheme::Interval, Group::Wide, bits),
        parts: vec![part(), part()],
        constant: vec![12_345],
    }
}

/// Even points, random ones, all of a range, clusters of several sizes, and the ends.
fn lists(numbers: &mut Numbers, bits: u32) -> Vec<Vec<u64>> {
    let most = u64::MAX >> (64 - bits);
    let mut lists = vec![vec![0], vec![most], vec![0, most]];
    for count in [3, 100, 2047, 2049, 5000_u64] {
        let begin = (most / 2).saturating_sub(count / 2);
        lists.push((0..count).map(|at| begin.wrapping_add(at) & most).collect());
        lists.push((0..count).map(|at| (at * 16) & most).collect());
        lists.push((0..count).map(|_| numbers.next() & most).collect());
        for cluster in [3, 8, 50] {
            let begins: Vec<u64> = (0..=count / cluster).map(|_| numbers.next()).collect();
            let near = |begin: &u64| (*begin..=u64::MAX).take(cluster as usize);
            lists.push(begins.iter().flat_map(near).map(|x| x & most).collect());
        }
    }
    for list in &mut lists {
        list.sort_unstable();
        list.dedup();
    }
    lists
}

fn point_at(prg: &'static Prg, share: &PointShare, points: Points<'_>) -> (Vec<u8>, Vec<u128>) {
    let (mut bits, mut values) = (Vec::new(), Vec::new());
    let mut sink = |first: usize, b: &[u8], v: &[u128]| {
        assert_eq!(first, values.len());
        bits.extend_from_slice(b);
        values.extend_from_slice(v);
    };
    evaluate_point_with(prg, share, points, 0..points.len(), &mut sink).unwrap();
    (bits, values)
}

fn less_at(prg: &'static Prg, share: &LessShare, points: Points<'_>) -> Vec<u128> {
    let mut values = Vec::new();
    let mut sink = |first: usize, _: &[u8], v: &[u128]| {
        assert_eq!(first, values.len());
        values.extend_from_slice(v);
    };
    evaluate_less_with(prg, share, points, 0..points.len(), &mut sink).unwrap();
    values
}

#[test]
fn every_way_gives_what_each_point_gives() {
    let numbers = &mut Numbers(7);
    let backends = [Backend::Portable, Backend::Wide].map(Prg::with);
    for bits in [1, 2, 6, 9, 11, 17, 24, 40, 63, 64] {
        let group = [Group::Tag, Group::Wide][bits as usize % 2];
        let share = PointShare {
            header: header(Scheme::Point, group, bits),
            tree: numbers.tree(bits),
            last: vec![6 << 50],
        };
        let below = less(numbers, bits);
        let all = 1 << bits.min(14);
        let mut ways = lists(numbers, bits);
        ways.push((0..all).collect());
        for (at, list) in ways.iter().enumerate() {
            let wanted = point_at(Prg::best(), &share, Points::Loose(list));
            let sums = less_at(Prg::best(), &below, Points::Loose(list));
            for prg in backends.iter().flatten() {
                let mut kinds = vec![Points::Sorted(list)];
                if at + 1 == ways.len() {
                    kinds.push(Points::All(all));
                }
                for points in kinds {
                    assert!(point_at(prg, &share, points) == wanted, "{bits}, {at}");
                    assert!(less_at(prg, &below, points) == sums, "{bits}, {at}");
                }
            }
        }
    }
}
