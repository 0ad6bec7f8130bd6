//! Intervals of several parties: right for all ends, private in every coalition, and false replies
//! are detected.

use super::modulus::PaillierModulus;
use super::paillier::PaillierSum;
use crate::Error;
use louver_primitives::fss_many::PaillierShare;
use louver_untrusted::fss_many::{paillier_join, paillier_sum};
use louver_untrusted::fss_table::Entries;
use num_bigint::BigUint;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// As small as three sums to a ciphertext need.
fn modulus() -> &'static Arc<PaillierModulus> {
    static MODULUS: OnceLock<Arc<PaillierModulus>> = OnceLock::new();
    MODULUS.get_or_init(|| Arc::new(PaillierModulus::of_bits(448).unwrap()))
}

fn counted(points: &[u64]) -> Entries<'_> {
    Entries {
        points,
        starts: None,
        groups: None,
        values: None,
        columns: 1,
        group_count: 1,
    }
}

fn ask(sum: &PaillierSum, entries: &Entries<'_>) -> Vec<Vec<u8>> {
    let shares = sum.shares().iter();
    shares
        .map(|share| paillier_sum(share, entries).unwrap())
        .collect()
}

fn open(sum: &PaillierSum, replies: &[Vec<u8>]) -> crate::Result<Vec<i128>> {
    let replies: Vec<&[u8]> = replies.iter().map(Vec::as_slice).collect();
    sum.open(&replies)
}

/// Every interval of small domains, at every point: the points are the groups.
#[test]
fn small_domains_are_right_everywhere() {
    for (bits, parties) in [(1, 2), (2, 5), (3, 3), (4, 2)] {
        let points: Vec<u64> = (0..1 << bits).collect();
        let groups: Vec<u32> = (0..1 << bits).collect();
        let entries = Entries {
            groups: Some(&groups),
            group_count: points.len(),
            ..counted(&points)
        };
        for low in 0..1 << bits {
            for high in low..1 << bits {
                let sum = PaillierSum::new(modulus(), bits, Some((low, high)), parties).unwrap();
                let opened = open(&sum, &ask(&sum, &entries)).unwrap();
                let inside = |x: u64| i128::from((low..=high).contains(&x));
                let expected: Vec<i128> = points.iter().map(|x| inside(*x)).collect();
                assert_eq!(opened, expected, "{bits} {low} {high}");
            }
        }
    }
}

/// Domains with several columns: ends in one row, in neighbouring rows, at both ends of a row.
#[test]
fn rows_and_columns_are_right_at_their_ends() {
    for (bits, parties) in [(7, 2), (8, 3), (8, 4), (10, 5)] {
        let points: Vec<u64> = (0..1 << bits).collect();
        let ends = [
            0,
            1,
            3,
            4,
            5,
            6,
            7,
            8,
            63,
            64,
            (1 << bits) - 2,
            (1 << bits) - 1,
        ];
        for (at, low) in ends.into_iter().enumerate() {
            let high = ends[at + (parties as usize * at) % (ends.len() - at)];
            let sum = PaillierSum::new(modulus(), bits, Some((low, high)), parties).unwrap();
            // Each point by itself, in one ciphertext of three sums at a time.
            let near: Vec<u64> = [low.wrapping_sub(1), low, high, high + 1].into();
            let near: BTreeSet<u64> = near.into_iter().filter(|x| x >> bits == 0).collect();
            let near: Vec<u64> = near.into_iter().collect();
            let groups: Vec<u32> = (0..near.len() as u32).collect();
            let entries = Entries {
                groups: Some(&groups),
                group_count: near.len(),
                ..counted(&near)
            };
            let opened = open(&sum, &ask(&sum, &entries)).unwrap();
            let expected = near.iter().map(|x| i128::from((low..=high).contains(x)));
            assert_eq!(opened, expected.collect::<Vec<_>>());
            let all = open(&sum, &ask(&sum, &counted(&points))).unwrap();
            assert_eq!(all, [i128::from(high - low + 1)]);
        }
    }
}

/// Two columns of values in five groups; any number of entries a point.
struct Table {
    points: Vec<u64>,
    starts: Vec<u32>,
    groups: Vec<u32>,
    values: Vec<i64>,
}

/// Two values, a group, and how many entries the next point has.
type Number = (i64, i64, u32, usize);

impl Table {
    fn new(points: Vec<u64>, numbers: &[Number]) -> Self {
        let (mut starts, mut groups, mut values) = (vec![0], Vec::new(), Vec::new());
        let mut given = numbers.iter();
        for _ in &points {
            let entries = numbers[groups.len() % numbers.len()].3;
            for (low, high, group, _) in given.by_ref().take(entries) {
                groups.push(*group);
                // The ends of what 64 bits hold come often.
                values.extend([*low, if high % 3 == 0 { i64::MIN } else { *high }]);
            }
            starts.push(groups.len() as u32);
        }
        Self {
            points,
            starts,
            groups,
            values,
        }
    }

    fn entries(&self) -> Entries<'_> {
        Entries {
            points: &self.points,
            starts: Some(&self.starts),
            groups: Some(&self.groups),
            values: Some(&self.values),
            columns: 2,
            group_count: 5,
        }
    }

    fn expected(&self, interval: Option<(u64, u64)>) -> [[i128; 2]; 5] {
        let mut sums = [[0; 2]; 5];
        for (at, point) in self.points.iter().enumerate() {
            if interval.is_some_and(|(low, high)| (low..=high).contains(point)) {
                for entry in self.starts[at] as usize..self.starts[at + 1] as usize {
                    let sums = &mut sums[self.groups[entry] as usize];
                    sums[0] += i128::from(self.values[2 * entry]);
                    sums[1] += i128::from(self.values[2 * entry + 1]);
                }
            }
        }
        sums
    }

    /// The points before one, and the others.
    fn parts(&self, cut: usize) -> [Self; 2] {
        let first = self.starts[cut];
        let (head, tail) = self.groups.split_at(first as usize);
        let (head_values, tail_values) = self.values.split_at(2 * first as usize);
        let rest = self.starts[cut..].iter().map(|start| start - first);
        let (low, high) = self.points.split_at(cut);
        let part = |points: &[u64], starts: Vec<u32>, groups: &[u32], values: &[i64]| Self {
            points: points.to_vec(),
            starts,
            groups: groups.to_vec(),
            values: values.to_vec(),
        };
        [
            part(low, self.starts[..=cut].to_vec(), head, head_values),
            part(high, rest.collect(), tail, tail_values),
        ]
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn sums_are_those_of_the_table(
        bits in 1..13_u32,
        parties in 2..=5_u8,
        ends: [u64; 2],
        dummy: bool,
        keys: BTreeSet<u64>,
        numbers in prop::collection::vec((any::<i64>(), any::<i64>(), 0..5_u32, 0..4_usize), 100),
        cut: prop::sample::Index,
    ) {
        let most = (1_u64 << bits) - 1;
        let points: BTreeSet<u64> = keys.iter().map(|key| key & most).chain([0, most]).collect();
        let points: Vec<u64> = points.into_iter().take(25).collect();
        let ends = ends.map(|end| end & most);
        let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        let interval = (!dummy).then_some((low, high));
        let table = Table::new(points, &numbers);
        let sum = PaillierSum::new(modulus(), bits, interval, parties).unwrap();
        let opened = open(&sum, &ask(&sum, &table.entries())).unwrap();
        let expected = table.expected(interval).as_flattened().to_vec();
        prop_assert_eq!(&opened, &expected);
        // Parts of a table give the same when joined.
        let parts = table.parts(cut.index(table.points.len()));
        let joined = sum.shares().iter().map(|share| {
            let parts = parts.each_ref().map(|part| paillier_sum(share, &part.entries()).unwrap());
            paillier_join(share, &parts.each_ref().map(Vec::as_slice)).unwrap()
        });
        let joined: Vec<Vec<u8>> = joined.collect();
        prop_assert_eq!(open(&sum, &joined).unwrap(), opened);
    }

    #[test]
    fn false_replies_are_detected(
        at: prop::sample::Index,
        liar in 0..3_usize,
        flip in 1..=255_u8,
        delta in 1..1000_u32,
    ) {
        let sum = PaillierSum::new(modulus(), 6, Some((9, 40)), 3).unwrap();
        let points = [3, 9, 20, 41];
        let mut replies = ask(&sum, &counted(&points));
        prop_assert_eq!(open(&sum, &replies).unwrap(), [2]);
        prop_assert!(matches!(open(&sum, &replies[1..]), Err(Error::Value(_))));
        let honest = replies[liar].clone();
        let target = at.index(honest.len());
        replies[liar][target] ^= flip;
        prop_assert!(open(&sum, &replies).is_err());
        replies[liar] = honest[..target].to_vec();
        prop_assert!(matches!(open(&sum, &replies), Err(Error::Value(_))));
        // A cheat that multiplies by a power of 1 + N does not know by which.
        let n = &modulus().n;
        let factor: BigUint = n * delta + 1u8;
        let other = BigUint::from_bytes_be(&honest[5..]) * factor % (n * n);
        let bytes = other.to_bytes_be();
        replies[liar] = honest[..5].to_vec();
        replies[liar].resize(honest.len() - bytes.len(), 0);
        replies[liar].extend(bytes);
        prop_assert!(matches!(open(&sum, &replies), Err(Error::Verify(_))));
        // Nor does one provider's other data count.
        replies[liar] = paillier_sum(&sum.shares()[liar], &counted(&points[..3])).unwrap();
        prop_assert!(matches!(open(&sum, &replies), Err(Error::Verify(_))));
    }
}

#[test]
fn what_is_out_of_bounds_is_refused() {
    let n = modulus();
    for (bits, interval, parties) in [
        (0, None, 3),
        (33, None, 3),
        (8, None, 1),
        (8, None, 65),
        (8, Some((3, 2)), 3),
        (8, Some((3, 256)), 3),
    ] {
        let refused = PaillierSum::new(n, bits, interval, parties);
        assert!(matches!(refused, Err(Error::Value(_))), "{bits} {parties}");
    }
    let sum = PaillierSum::new(n, 8, None, 64).unwrap();
    assert_eq!(
        format!("{sum:?} {n:?}"),
        "PaillierSum(redacted) PaillierModulus(448 bits)"
    );
    assert_eq!(sum.shares().len(), 64);
    let share = &sum.shares()[0];
    assert!(paillier_sum(share, &counted(&[255])).is_ok());
    assert!(paillier_sum(share, &counted(&[256])).is_err());
    assert!(paillier_sum(share, &counted(&[2, 1])).is_err());
    // A base that has no inverse.
    let mut read = PaillierShare::decode(share).unwrap();
    read.bases.fill(0);
    assert!(paillier_sum(&read.encode(), &counted(&[255])).is_err());
}

/// Shares are of one length for all intervals, and only the last party's rows and the bases differ.
#[test]
fn shares_show_their_length_alone() {
    let lengths = |interval| -> Vec<usize> {
        let sum = PaillierSum::new(modulus(), 9, interval, 4).unwrap();
        sum.shares().iter().map(Vec::len).collect()
    };
    let expected = lengths(Some((0, 511)));
    assert!([None, Some((7, 7)), Some((0, 0))]
        .iter()
        .all(|i| lengths(*i) == expected));
}
