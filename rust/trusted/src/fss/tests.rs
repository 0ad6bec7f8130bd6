//! Shares, evaluated by the other side's code.

use super::{less_shares, point_shares};
use louver_primitives::fss::{Backend, Group, Header, LessShare, PointShare, Prg, Scheme};
use louver_untrusted::fss::{evaluate_leaves, evaluate_less_words, evaluate_packed};
use louver_untrusted::fss::{evaluate_less_with, evaluate_point_with, Points};
use proptest::prelude::*;

pub(super) fn header(scheme: Scheme, group: Group, bits: u32) -> Header {
    Header {
        scheme,
        group,
        bits,
        party: 0,
        parties: 2,
        words: 0,
    }
}

/// One party's control bits and values at the points.
pub(super) fn one_point(
    prg: &'static Prg,
    share: &PointShare,
    points: Points<'_>,
) -> (Vec<u8>, Vec<u128>) {
    let (mut bits, mut values) = (Vec::new(), Vec::new());
    let mut sink = |first: usize, b: &[u8], v: &[u128]| {
        assert!(first == values.len() && v.len() <= 1024 && b.len() == v.len());
        bits.extend_from_slice(b);
        values.extend_from_slice(v);
    };
    evaluate_point_with(prg, share, points, 0..points.len(), &mut sink).unwrap();
    (bits, values)
}

pub(super) fn one_less(prg: &'static Prg, share: &LessShare, points: Points<'_>) -> Vec<u128> {
    let mut values = Vec::new();
    let mut sink = |_: usize, _: &[u8], v: &[u128]| values.extend_from_slice(v);
    evaluate_less_with(prg, share, points, 0..points.len(), &mut sink).unwrap();
    values
}

/// Both parties' shares at the points, joined: control bits and values.
fn point(shares: &[PointShare; 2], points: Points<'_>) -> (Vec<u8>, Vec<u128>) {
    let [(bits0, values0), (bits1, values1)] =
        [0, 1].map(|party| one_point(Prg::best(), &shares[party], points));
    let tag = shares[0].header.group == Group::Tag;
    let join = |(a, b): (&u128, &u128)| if tag { a ^ b } else { a.wrapping_add(*b) };
    let bits = bits0.iter().zip(&bits1).map(|(a, b)| a ^ b).collect();
    (bits, values0.iter().zip(&values1).map(join).collect())
}

fn less(shares: &[LessShare; 2], points: Points<'_>) -> Vec<u128> {
    let [first, second] = [0, 1].map(|party| one_less(Prg::best(), &shares[party], points));
    first
        .iter()
        .zip(&second)
        .map(|(a, b)| a.wrapping_add(*b))
        .collect()
}

const PAYLOAD: u128 = 0x1234_5678_9abc_def0_1122_3344_5566_7788;

#[test]
fn every_point_of_small_domains() {
    for bits in 1..=6 {
        let size = 1 << bits;
        for at in 0..size {
            for group in [Group::Tag, Group::Wide] {
                let head = header(Scheme::Point, group, bits);
                let shares = point_shares(head, at, &[PAYLOAD]).unwrap();
                let (ones, values) = point(&shares, Points::All(size));
                for x in 0..size {
                    assert_eq!(ones[x as usize], u8::from(x == at));
                    assert_eq!(values[x as usize], PAYLOAD * u128::from(x == at));
                }
            }
            let head = header(Scheme::Less, Group::Wide, bits);
            let shares = less_shares(head, &[(at, &[7])], &[5]).unwrap();
            let values = less(&shares, Points::All(size));
            for x in 0..size {
                assert_eq!(values[x as usize], 5 + 7 * u128::from(x < at));
            }
        }
    }
}

/// Points of a domain: near to a secret one, at both ends, and anywhere.
fn questions(bits: u32) -> impl Strategy<Value = (u64, Vec<u64>)> {
    let most = u64::MAX >> (64 - bits);
    let at = prop_oneof![Just(0), Just(most), 0..=most];
    let near = proptest::collection::vec((any::<u64>(), 0..=bits), 1..60);
    (at, near, 0..4_usize).prop_map(move |(at, near, times)| {
        let parted = |(random, below): &(u64, u32)| {
            (at ^ random & (most.checked_shr(bits - below).unwrap_or(0))) & most
        };
        let mut points: Vec<u64> = near.iter().map(parted).collect();
        points.extend([at, 0, most]);
        let rest = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits);
        points.extend((0..times as u64 * 1500).map(rest));
        (at, points)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_width_any_points((bits, (at, loose)) in (1..=64_u32).prop_flat_map(|bits| {
        (Just(bits), questions(bits))
    })) {
        let mut sorted = loose.clone();
        sorted.sort_unstable();
        sorted.dedup();
        for group in [Group::Tag, Group::Wide] {
            let head = header(Scheme::Point, group, bits);
            let shares = point_shares(head, at, &[PAYLOAD]).unwrap();
            for share in &shares {
                prop_assert!(PointShare::decode(&share.encode()).unwrap() == *share);
                prop_assert_eq!(share.encode().len(), PointShare::len(&head));
            }
            for points in [Points::Loose(&loose), Points::Sorted(&sorted)] {
                let (ones, values) = point(&shares, points);
                let list = if let Points::Loose(_) = points { &loose } else { &sorted };
                for (index, x) in list.iter().enumerate() {
                    prop_assert_eq!(ones[index], u8::from(*x == at));
                    prop_assert_eq!(values[index], PAYLOAD * u128::from(*x == at));
                }
            }
        }
        let scheme = [Scheme::Less, Scheme::Interval][at as usize % 2];
        let other = loose[0];
        let ends = [(at, &[PAYLOAD][..]), (other, &[u128::MAX][..])];
        let ends = &ends[..1 + at as usize % 2];
        let shares = less_shares(header(scheme, Group::Wide, bits), ends, &[9]).unwrap();
        for share in &shares {
            prop_assert!(LessShare::decode(&share.encode()).unwrap() == *share);
            prop_assert_eq!(share.encode().len(), LessShare::len(&share.header));
        }
        let ways = [(Points::Loose(&loose), &loose), (Points::Sorted(&sorted), &sorted)];
        for (points, list) in ways {
            for (x, value) in list.iter().zip(less(&shares, points)) {
                let wanted = ends.iter().map(|(end, payload)| payload[0] * u128::from(x < end));
                prop_assert_eq!(value, wanted.fold(9, u128::wrapping_add));
            }
        }
    }
}

#[test]
fn all_ways_and_backends_agree_share_by_share() {
    let all: Vec<u64> = (0..1 << 14).collect();
    let kinds = [
        Points::All(1 << 14),
        Points::Sorted(&all),
        Points::Loose(&all),
    ];
    let backends = [Backend::Portable, Backend::Wide].map(Prg::with);
    for group in [Group::Tag, Group::Wide] {
        let shares = point_shares(header(Scheme::Point, group, 14), 77, &[PAYLOAD]).unwrap();
        for share in &shares {
            let wanted = one_point(Prg::best(), share, Points::Loose(&all));
            for prg in backends.iter().flatten() {
                for points in kinds {
                    assert!(one_point(prg, share, points) == wanted);
                }
            }
        }
    }
    let ends = [(77, &[5][..]), (9000, &[PAYLOAD][..])];
    let shares = less_shares(header(Scheme::Interval, Group::Wide, 14), &ends, &[3]).unwrap();
    for share in &shares {
        let wanted = one_less(Prg::best(), share, Points::Loose(&all));
        for prg in backends.iter().flatten() {
            for points in kinds {
                assert!(one_less(prg, share, points) == wanted);
            }
        }
    }
}

#[test]
fn the_work_does_not_depend_on_the_secret() {
    let sorted: Vec<u64> = (0..5000).map(|at| at * at % 65_521 + at).collect();
    let mut sorted = sorted;
    sorted.sort_unstable();
    sorted.dedup();
    let prg = Prg::counting(Backend::Portable).unwrap();
    let mut seen = Vec::new();
    for at in [0, 1, 25, 12_345, 0xffff_ffff] {
        let shares = point_shares(header(Scheme::Point, Group::Tag, 32), at, &[6]).unwrap();
        let ends = [(at, &[5][..]), (at / 2, &[0][..])];
        let interval = less_shares(header(Scheme::Interval, Group::Wide, 32), &ends, &[3]).unwrap();
        let mut calls = Vec::new();
        for party in [0, 1] {
            for points in [
                Points::All(3000),
                Points::Sorted(&sorted),
                Points::Loose(&sorted),
            ] {
                one_point(prg, &shares[party], points);
                calls.push(prg.counted());
                one_less(prg, &interval[party], points);
                calls.push(prg.counted());
            }
        }
        assert!(calls.iter().all(|calls| *calls > 0));
        // One AES call a level and point; two for comparisons, but for the last level.
        assert_eq!(calls[4], 32 * sorted.len());
        assert_eq!(calls[5], 2 * 63 * sorted.len());
        seen.push(calls);
    }
    assert!(seen.iter().all(|calls| *calls == seen[0]));
}

#[test]
fn ranges_are_parts_of_the_whole() {
    let shares = point_shares(header(Scheme::Point, Group::Tag, 20), 5000, &[6]).unwrap();
    let all: Vec<u64> = (0..20_000).map(|at| at * 3).collect();
    for points in [
        Points::All(20_000),
        Points::Sorted(&all),
        Points::Loose(&all),
    ] {
        let (_, whole) = one_point(Prg::best(), &shares[0], points);
        for range in [0..0, 0..1, 4095..4097, 1000..9000, 19_999..20_000] {
            let mut actual = Vec::new();
            let mut sink = |first: usize, _: &[u8], v: &[u128]| {
                assert_eq!(first, range.start + actual.len());
                actual.extend_from_slice(v);
            };
            evaluate_point_with(Prg::best(), &shares[0], points, range.clone(), &mut sink).unwrap();
            assert_eq!(actual, whole[range]);
        }
    }
    let mut sink = |_: usize, _: &[u8], _: &[u128]| unreachable!("nothing is evaluated");
    let outside = [Points::Loose(&[1 << 20]), Points::Sorted(&[1 << 20])];
    for points in outside {
        assert!(evaluate_point_with(Prg::best(), &shares[0], points, 0..1, &mut sink).is_err());
    }
    let (few, backwards) = (Points::All(5), std::ops::Range { start: 3, end: 2 });
    assert!(evaluate_point_with(Prg::best(), &shares[0], few, 0..6, &mut sink).is_err());
    assert!(evaluate_point_with(Prg::best(), &shares[0], few, backwards, &mut sink).is_err());
}

/// Two words of each sum modulo 2^64.
fn join(left: &[u128], right: &[u128]) -> Vec<u64> {
    let words = |blocks: &[u128]| -> Vec<u64> {
        blocks
            .iter()
            .flat_map(|block| [*block as u64, (block >> 64) as u64])
            .collect()
    };
    let pairs = words(left).into_iter().zip(words(right));
    pairs.map(|(a, b)| a.wrapping_add(b)).collect()
}

#[test]
fn values_of_several_words() {
    for (bits, words, at) in [
        (1, 1, 1),
        (1, 2, 0),
        (9, 1, 300),
        (10, 3, 1023),
        (64, 5, u64::MAX),
    ] {
        let head = Header {
            words,
            ..header(Scheme::Point, Group::Words, bits)
        };
        let payload: Vec<u128> = (0..head.value_blocks() as u128).map(|at| at + 5).collect();
        let shares = point_shares(head, at, &payload).unwrap();
        let points = [at, at ^ 1, 0];
        let [first, second] = [0, 1].map(|party| {
            let share = PointShare::decode(&shares[party].encode()).unwrap();
            let mut actual = Vec::new();
            evaluate_packed(&share, &points, &mut |_, v| actual.extend_from_slice(v)).unwrap();
            actual
        });
        let all = join(&first, &second);
        let (actual, blocks) = (all[0], head.value_blocks() * 2);
        assert_eq!((actual, all[blocks]), (5, 0), "{bits} bits, {words} words");
    }
}

#[test]
fn leaves_of_a_whole_domain() {
    for group in [Group::Bits, Group::Words] {
        let head = header(Scheme::Point, group, 9);
        let head = Header {
            words: u16::from(group == Group::Words),
            ..head
        };
        let shares = point_shares(head, 300, &[7]).unwrap();
        let [first, second] = [0, 1].map(|party| {
            let mut actual = Vec::new();
            let leaves = 512 >> head.folded();
            evaluate_leaves(&shares[party], 0..leaves, &mut |_, v| {
                actual.extend_from_slice(v)
            })
            .unwrap();
            actual
        });
        for x in 0..512 {
            let wanted = u64::from(x == 300);
            let actual = match group {
                Group::Bits => ((first[x / 128] ^ second[x / 128]) >> (x % 128)) as u64 & 1,
                _ => join(&first, &second)[x] / 7,
            };
            assert_eq!(actual, wanted);
        }
    }
}

#[test]
fn comparisons_of_several_words() {
    let head = Header {
        words: 3,
        ..header(Scheme::Less, Group::Words, 8)
    };
    let shares = less_shares(head, &[(100, &[1 << 64 | 2, 3])], &[4, 5]).unwrap();
    let points: Vec<u64> = (0..256).collect();
    let [first, second] = [0, 1].map(|party| {
        let share = LessShare::decode(&shares[party].encode()).unwrap();
        let mut actual = Vec::new();
        evaluate_less_words(&share, &points, &mut |_, v| actual.extend_from_slice(v)).unwrap();
        actual
    });
    for (x, actual) in join(&first, &second).chunks(4).enumerate() {
        let below = u64::from(x < 100);
        assert_eq!(actual[..3], [4 + 2 * below, below, 5 + 3 * below]);
    }
}
