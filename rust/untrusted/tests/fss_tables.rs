//! Tables under shares: what is computed equals what the shares are worth point by point, whole
//! or in parts, and nothing that does not fit makes it panic. The shares are random bytes of the
//! right form: what holds for them holds for those that select something.

mod fss_shares;

use fss_shares::Random;
use louver_primitives::fss::sample_slot;
use louver_untrusted::fss::{
    dot, evaluate_less, evaluate_point, record_tag, Group, PointShare, Points,
};
use louver_untrusted::fss_many::evaluate_owf;
use louver_untrusted::fss_table::{
    digest, record_tags, sample, search, select, sum, Entries, Records, Rows, Samples,
};
use proptest::prelude::*;

/// Control bits and values, point by point.
fn worth(share: &PointShare, points: &[u64]) -> (Vec<u8>, Vec<u128>) {
    let (mut bits, mut values) = (Vec::new(), Vec::new());
    let mut sink = |_: usize, more: &[u8], hits: &[u128]| {
        bits.extend_from_slice(more);
        values.extend_from_slice(hits);
    };
    evaluate_point(share, Points::Loose(points), 0..points.len(), &mut sink).unwrap();
    (bits, values)
}

fn chosen(bits: &[u8], values: &[u128], records: &[u8], width: usize, tags: &[u8]) -> Vec<u8> {
    let (mut record, mut mac) = (vec![0; width], 0_u128);
    for (at, (&bit, &value)) in bits.iter().zip(values).enumerate() {
        for (sum, byte) in record.iter_mut().zip(&records[at * width..]) {
            *sum ^= byte * bit;
        }
        let tag = &tags[at * 16..at * 16 + 16];
        mac ^= dot(value, u128::from_le_bytes(tag.try_into().unwrap()));
    }
    record.extend(mac.to_le_bytes());
    record
}

fn xored(parts: &[Vec<Vec<u8>>]) -> Vec<Vec<u8>> {
    let mut whole = parts[0].clone();
    for part in &parts[1..] {
        for (sum, more) in whole.iter_mut().zip(part) {
            sum.iter_mut().zip(more).for_each(|(a, b)| *a ^= b);
        }
    }
    whole
}

fn number(bytes: &[u8]) -> u128 {
    u128::from_le_bytes(bytes.try_into().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn records_are_selected(
        seed in any::<u64>(), bits in 1_u32..=64, most in 0_usize..300, units in 1_usize..70,
        together in 1_usize..5,
    ) {
        let mut random = Random(seed);
        let points = random.points(bits, most);
        let (count, width) = (points.len(), units * 16);
        let (records, tags) = (random.bytes(count * width), random.bytes(count * 16));
        let shares: Vec<_> = (0..together).map(|_| random.point(Group::Tag, bits)).collect();
        let encoded: Vec<Vec<u8>> = shares.iter().map(PointShare::encode).collect();
        let given: Vec<&[u8]> = encoded.iter().map(AsRef::as_ref).collect();
        let part = |from: usize, to: usize| {
            let table = Records {
                points: Some(&points[from..to]), first: 0, count: to - from,
                records: &records[from * width..to * width], width,
                tags: &tags[from * 16..to * 16],
            };
            select(&given, &table).unwrap()
        };
        let whole = part(0, count);
        for (share, hits) in shares.iter().zip(&whole) {
            let (bits, values) = worth(share, &points);
            prop_assert_eq!(hits, &chosen(&bits, &values, &records, width, &tags));
        }
        let cut = random.below(count + 1);
        prop_assert_eq!(xored(&[part(0, cut), part(cut, count)]), whole);
    }

    #[test]
    fn points_that_follow_each_other_need_not_be_given(
        seed in any::<u64>(), bits in 1_u32..=16, owf in any::<bool>(),
    ) {
        let mut random = Random(seed);
        let first = random.below(1 << bits) as u64;
        let count = random.below((1 << bits) + 1 - first as usize).min(20_000);
        let points: Vec<u64> = (first..first + count as u64).collect();
        let (records, tags) = (random.bytes(count * 32), random.bytes(count * 16));
        let (mut hits, mut values) = (Vec::new(), Vec::new());
        let share = if owf {
            let share = random.owf(bits);
            let mut sink = |_: usize, more: &[u8], worth: &[u128]| {
                hits.extend_from_slice(more);
                values.extend_from_slice(worth);
            };
            evaluate_owf(&share, Points::Loose(&points), 0..count, &mut sink).unwrap();
            share.encode()
        } else {
            let share = random.point(Group::Tag, bits);
            (hits, values) = worth(&share, &points);
            share.encode()
        };
        let part = |from: usize, to: usize, points: Option<&[u64]>| {
            let table = Records {
                points, first: first + from as u64, count: to - from,
                records: &records[from * 32..to * 32], width: 32, tags: &tags[from * 16..to * 16],
            };
            select(&[&share], &table).unwrap()
        };
        let whole = part(0, count, None);
        prop_assert_eq!(&whole, &part(0, count, Some(&points)));
        prop_assert_eq!(&whole[0], &chosen(&hits, &values, &records, 32, &tags));
        let cut = random.below(count + 1);
        prop_assert_eq!(xored(&[part(0, cut, None), part(cut, count, None)]), whole);
    }

    #[test]
    fn columns_are_summed_by_group(
        seed in any::<u64>(), bits in 1_u32..=64, most in 0_usize..300, columns in 1_usize..4,
        groups in 1_usize..5, interval in any::<bool>(), spread in any::<bool>(),
        counted in any::<bool>(),
    ) {
        let mut random = Random(seed);
        let points = random.points(bits, most);
        let columns = if counted { 1 } else { columns };
        let mut starts = vec![0_u32];
        for _ in &points {
            let more = if spread { random.below(4) as u32 } else { 1 };
            starts.push(starts[starts.len() - 1] + more);
        }
        let entries = starts[points.len()] as usize;
        let values: Vec<i64> = (0..entries * columns).map(|_| random.word() as i64).collect();
        let of: Vec<u32> = (0..entries).map(|_| random.below(groups) as u32).collect();
        let mut hits: Vec<u128> = Vec::new();
        let share = if interval {
            let share = random.interval(bits);
            let mut sink = |_: usize, _: &[u8], worth: &[u128]| hits.extend_from_slice(worth);
            evaluate_less(&share, Points::Loose(&points), 0..points.len(), &mut sink).unwrap();
            share.encode()
        } else {
            let share = random.point(Group::Wide, bits);
            hits = worth(&share, &points).1;
            share.encode()
        };
        let mut expected = vec![0_u128; groups * columns];
        for (at, worth) in hits.iter().enumerate() {
            for entry in starts[at] as usize..starts[at + 1] as usize {
                for column in 0..columns {
                    let value = if counted { 1 } else { values[entry * columns + column] };
                    let sum = &mut expected[of[entry] as usize * columns + column];
                    *sum = sum.wrapping_add(worth.wrapping_mul(i128::from(value) as u128));
                }
            }
        }
        let part = |from: usize, to: usize| -> Vec<u128> {
            let (start, end) = (starts[from] as usize, starts[to] as usize);
            let own: Vec<u32> = starts[from..=to].iter().map(|at| at - starts[from]).collect();
            let entries = Entries {
                points: &points[from..to],
                starts: spread.then_some(&own),
                groups: (groups > 1).then_some(&of[start..end]),
                values: (!counted).then_some(&values[start * columns..end * columns]),
                columns,
                group_count: groups,
            };
            let sums = sum(&[&share], &entries).unwrap();
            sums[0].chunks_exact(16).map(number).collect()
        };
        prop_assert_eq!(&part(0, points.len()), &expected);
        let cut = random.below(points.len() + 1);
        let pairs = part(0, cut).into_iter().zip(part(cut, points.len()));
        let joined: Vec<u128> = pairs.map(|(a, b)| a.wrapping_add(b)).collect();
        prop_assert_eq!(joined, expected);
    }

    #[test]
    fn rows_are_counted_and_sampled_by_prefix(
        seed in any::<u64>(), code_bits in 1_u32..9, index_bits in 0_u32..12,
        together in 1_usize..4, slots in 1_usize..9, units in 1_usize..5,
    ) {
        let mut random = Random(seed);
        let width = units * 16;
        let count = random.below((1 << index_bits) + 1);
        let codes: Vec<u64> =
            (0..count).map(|_| random.below(1 << code_bits) as u64).collect();
        let (records, tags) = (random.bytes(count * width), random.bytes(count * 16));
        let prefixes: Vec<u32> =
            (0..together).map(|_| random.below(index_bits as usize + 1) as u32).collect();
        let shares: Vec<PointShare> =
            prefixes.iter().map(|bits| random.point(Group::Wide, bits + code_bits)).collect();
        let encoded: Vec<Vec<u8>> = shares.iter().map(PointShare::encode).collect();
        let given: Vec<&[u8]> = encoded.iter().map(AsRef::as_ref).collect();
        let seeds = [random.word(), random.word()];
        let mut values = vec![0_u128; count];
        let cut = random.below(count + 1);
        for (at, share) in shares.iter().enumerate() {
            let prefix = prefixes[at];
            let point = |(row, code): (usize, &u64)| {
                (row as u64) >> (index_bits - prefix) << code_bits | code
            };
            let points: Vec<u64> = codes.iter().enumerate().map(point).collect();
            let hits = worth(share, &points).1;
            let part = |from: usize, to: usize| {
                let rows = Rows {
                    codes: &codes[from..to], code_bits, index_bits, first: from as u64,
                };
                number(&search(&[given[at]], &rows, prefix).unwrap()[0])
            };
            let expected = hits.iter().fold(0_u128, |sum, value| sum.wrapping_add(*value));
            prop_assert_eq!(part(0, count), expected);
            prop_assert_eq!(part(0, cut).wrapping_add(part(cut, count)), expected);
            values.iter_mut().zip(hits).for_each(|(a, b)| *a = a.wrapping_add(b));
        }
        let samples = Samples {
            rows: Rows { codes: &codes, code_bits, index_bits, first: 0 },
            records: &records, width, tags: &tags, slots, seeds: &seeds,
        };
        let hits = sample(&given, &prefixes, &samples).unwrap();
        let mut tables = vec![(vec![0_u8; width], 0_u128, 0_u128); slots * 2];
        for row in 0..count {
            let tag = number(&tags[row * 16..row * 16 + 16]);
            for (table, seed) in seeds.iter().enumerate() {
                let slot = &mut tables[table * slots + sample_slot(tag, *seed, slots)];
                let record = &records[row * width..(row + 1) * width];
                slot.0.iter_mut().zip(record).for_each(|(a, b)| *a ^= b * (values[row] as u8 & 1));
                slot.1 = slot.1.wrapping_add(values[row]);
                slot.2 = slot.2.wrapping_add(values[row].wrapping_mul(tag));
            }
        }
        let expected: Vec<u8> = tables.iter().flat_map(|(record, count, product)| {
            [record.clone(), count.to_le_bytes().into(), product.to_le_bytes().into()].concat()
        }).collect();
        prop_assert_eq!(hits, expected);
    }

    #[test]
    fn nothing_that_does_not_fit_panics(
        seed in any::<u64>(), bits in 1_u32..=64, kind in 0_usize..5, lengths in any::<[u8; 6]>(),
    ) {
        let mut random = Random(seed);
        let mut share = match kind {
            0 => random.point(Group::Tag, bits).encode(),
            1 => random.point(Group::Wide, bits).encode(),
            2 => random.interval(bits).encode(),
            3 => random.owf(bits.min(24)).encode(),
            _ => random.bytes(200),
        };
        for _ in 0..random.below(3) {
            let at = random.below(share.len());
            share[at] = random.word() as u8;
        }
        share.truncate(share.len() - random.below(3).saturating_sub(1));
        let few = lengths.map(|length| usize::from(length % 6));
        let points: Vec<u64> = (0..few[0]).map(|_| random.word() >> random.below(64)).collect();
        let (records, tags) = (random.bytes(few[1] * 16), random.bytes(few[2] * 16));
        let first = random.word();
        for points in [Some(&points[..]), None] {
            let table = Records {
                points, first: first >> random.below(64), count: few[3], records: &records,
                width: few[4] * 8, tags: &tags,
            };
            let _ = select(&[&share, &share], &table);
        }
        let small: Vec<u32> = (0..few[1]).map(|_| random.below(4) as u32).collect();
        let numbers: Vec<i64> = (0..few[2]).map(|_| random.word() as i64).collect();
        let entries = Entries {
            points: &points,
            starts: (few[3] > 2).then_some(&small),
            groups: (few[4] > 2).then_some(&small),
            values: (few[5] > 2).then_some(&numbers),
            columns: few[4],
            group_count: if few[5] == 5 { usize::MAX } else { few[5] },
        };
        let _ = sum(&[&share], &entries);
        let rows = Rows {
            codes: &points, code_bits: bits.saturating_sub(few[0] as u32), first,
            index_bits: few[1] as u32,
        };
        let _ = search(&[&share], &rows, few[2] as u32);
        let samples = Samples {
            rows, records: &records, width: few[4] * 8, tags: &tags, slots: few[5],
            seeds: &points,
        };
        let _ = sample(&[&share], &[few[2] as u32], &samples);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut random = Random(1);
    let shares = [20, 21].map(|bits| random.point(Group::Tag, bits).encode());
    let wide = random.point(Group::Wide, 20).encode();
    let table = |count, first| Records {
        points: None,
        first,
        count,
        records: &[1; 64],
        width: 32,
        tags: &[1; 32],
    };
    assert!(select(&[&shares[0]], &table(2, 0)).is_ok());
    assert!(select(&[&shares[0]], &table(2, (1 << 20) - 2)).is_ok());
    assert!(select(&[&shares[0]], &table(2, (1 << 20) - 1)).is_err());
    assert!(select(&[&shares[0]], &table(2, u64::MAX)).is_err());
    assert!(select(&[&shares[0]], &table(3, 0)).is_err());
    assert!(select(&[&shares[0], &shares[1]], &table(2, 0)).is_err());
    assert!(select(&[&wide], &table(2, 0)).is_err());
    let unsorted = Records {
        points: Some(&[2, 1]),
        ..table(2, 0)
    };
    assert!(select(&[&shares[0]], &unsorted).is_err());
}

#[test]
fn tags_are_those_of_the_records() {
    let records = Random(2).bytes(1000 * 48);
    let tags = record_tags(7, &records, 48).unwrap();
    for (tag, record) in tags.chunks(16).zip(records.chunks(48)) {
        assert_eq!(number(tag), record_tag(7, record));
    }
    assert!(record_tags(7, &records, 0).is_err());
    assert!(record_tags(7, &records[1..], 48).is_err());
}

#[test]
fn digests_distinguish_buffers() {
    let all = [
        digest(&[]),
        digest(&[b""]),
        digest(&[b"ab"]),
        digest(&[b"a", b"b"]),
    ];
    for (at, single) in all.iter().enumerate() {
        assert!(!all[at + 1..].contains(single));
    }
}
