//! Whether run time depends on secrets, measured as dudect does it: two classes of input in random
//! order, Welch's t-test on their times, outliers cut off (Reparaz, Balasch, Verbauwhede, 2017).
//!
//! `cargo test` measures a comparison that stops at the first difference, which must be found. The
//! product's own code is measured where `LOUVER_SOAK` is set, on a machine that does little else.

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BinaryArray, Int64Array};
use arrow_schema::DataType;
use ctutils::CtEq;
use louver_trusted::fss::Point;
use louver_trusted::{fuzz, Epochs, KeyRing};
use louver_untrusted::fss_table::{select, Records};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

/// Beyond this, dudect calls a difference certain.
const CERTAIN: f64 = 10.0;
/// A leak shows in all of so many measurements; what else a busy machine does, it does once.
const ATTEMPTS: usize = 3;
/// Slowest shares of the samples that are cut off, in turn.
const CUTS: [f64; 4] = [0.5, 0.25, 0.1, 0.02];
/// Pairs of a tag that one sample compares.
const PAIRS: usize = 256;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.next() as u8)
    }
}

/// Mean, variance and number of some times.
fn moments(times: &[f64]) -> (f64, f64, f64) {
    let count = times.len() as f64;
    let mean = times.iter().sum::<f64>() / count;
    let squares = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>();
    (mean, squares / (count - 1.0), count)
}

/// Welch's t of two classes, the largest over all cuts.
fn welch(samples: &[(bool, f64)]) -> f64 {
    let mut sorted: Vec<f64> = samples.iter().map(|(_, time)| *time).collect();
    sorted.sort_by(f64::total_cmp);
    let of_cut = |cut: f64| {
        let most = sorted[(sorted.len() as f64 * (1.0 - cut)) as usize];
        let class = |wanted: bool| {
            let times = samples.iter().filter(|(of, t)| *of == wanted && *t <= most);
            moments(&times.map(|(_, time)| *time).collect::<Vec<f64>>())
        };
        let ((a, va, na), (b, vb, nb)) = (class(false), class(true));
        if na < 2.0 || nb < 2.0 {
            // All that is fast is of one class: there is no clearer sign.
            return f64::INFINITY;
        }
        ((a - b) / (va / na + vb / nb).sqrt().max(f64::MIN_POSITIVE)).abs()
    };
    CUTS.map(of_cut).into_iter().fold(0.0, f64::max)
}

/// Times `work` on inputs of both classes in random order; the least t of some attempts.
///
/// Each sample works on a copy, so that inputs of both classes lie in the same place: where one
/// lies costs time too.
fn leak<T: Clone>(samples: usize, classes: &[Vec<T>; 2], mut work: impl FnMut(&T)) -> f64 {
    let mut random = Random(samples as u64);
    let mut least = f64::INFINITY;
    for _ in 0..ATTEMPTS {
        let mut seen = Vec::with_capacity(samples);
        for _ in 0..samples {
            let (class, at) = (random.next() >> 63 == 1, random.next() as usize);
            let inputs = &classes[usize::from(class)];
            let input = inputs[at % inputs.len()].clone();
            let began = Instant::now();
            work(black_box(&input));
            seen.push((class, began.elapsed().as_nanos() as f64));
        }
        // The first ones fill caches.
        least = least.min(welch(&seen[samples / 10..]));
    }
    least
}

type Tags = Vec<([u8; 16], [u8; 16])>;

/// Pairs of tags that differ in one byte: the first, or the last.
fn tags() -> [Vec<Tags>; 2] {
    let mut random = Random(3);
    [0, 15].map(|index| {
        let mut pair = || {
            let tag: [u8; 16] = random.bytes();
            let mut other = tag;
            other[index] ^= 1;
            (tag, other)
        };
        (0..8)
            .map(|_| (0..PAIRS).map(|_| pair()).collect())
            .collect()
    })
}

/// What must not be used on tags: it stops at the first difference.
fn early(a: &[u8; 16], b: &[u8; 16]) -> bool {
    for at in 0..16 {
        if black_box(a[at]) != black_box(b[at]) {
            return false;
        }
    }
    true
}

fn compared(equal: impl Fn(&[u8; 16], &[u8; 16]) -> bool) -> impl FnMut(&Tags) {
    move |tags| {
        for (a, b) in tags {
            black_box(equal(black_box(a), black_box(b)));
        }
    }
}

/// Sealed values: all genuine, of one number or of random ones; or the last one's tag altered in
/// its first or in its last byte.
fn sealed(ring: &KeyRing, row_ids: &Int64Array, altered: bool) -> [Vec<ArrayRef>; 2] {
    let mut random = Random(5);
    let rows = row_ids.len();
    [false, true].map(|second| {
        let mut column = || -> ArrayRef {
            let numbers: Int64Array = (0..rows)
                .map(|_| {
                    Some(if second && !altered {
                        random.next().cast_signed()
                    } else {
                        7
                    })
                })
                .collect();
            let numbers: ArrayRef = Arc::new(numbers);
            let ciphertext = ring
                .seal_column((1, 2, 3), &Epochs::legacy(), &numbers, row_ids)
                .expect("numbers");
            let mut values: Vec<Vec<u8>> = ciphertext
                .as_binary::<i32>()
                .iter()
                .flatten()
                .map(<[u8]>::to_vec)
                .collect();
            if altered {
                let last = values.last_mut().expect("rows");
                let index = last.len() - if second { 1 } else { 16 };
                last[index] ^= 1;
            }
            Arc::new(BinaryArray::from_iter_values(values))
        };
        (0..16).map(|_| column()).collect()
    })
}

/// Shares of one point, or of random ones.
fn shares(bits: u32) -> [Vec<Vec<u8>>; 2] {
    let mut random = Random(7);
    [false, true].map(|second| {
        let mut share = |_| {
            let at = if second {
                random.next() >> (64 - bits)
            } else {
                5
            };
            Point::new(bits, Some(at)).expect("a point").shares()[0].clone()
        };
        (0..64).map(&mut share).collect()
    })
}

fn soak() -> Option<usize> {
    let factor = std::env::var("LOUVER_SOAK").ok()?;
    Some(factor.parse().expect("a whole number"))
}

#[test]
fn a_comparison_that_stops_early_is_detected() {
    let t = leak(4_000, &tags(), compared(early));
    assert!(t > CERTAIN, "t is {t:.1}");
}

#[test]
fn what_is_secret_takes_one_time() {
    let Some(factor) = soak() else { return };
    let samples = 20_000 * factor;
    let constant = |a: &[u8; 16], b: &[u8; 16]| a.ct_eq(b).to_bool();
    let mut measurements = vec![(
        "comparison of tags",
        leak(samples, &tags(), compared(constant)),
    )];
    let epochs = Epochs::legacy();
    let (ring, row_ids) = (fuzz::ring(), Int64Array::from_iter_values(0..128));
    for (name, altered) in [("opening", false), ("refusing an altered tag", true)] {
        let open = |column: &ArrayRef| {
            let opened = ring.open_column((1, 2, 3), &epochs, column, &row_ids, &DataType::Int64);
            assert_eq!(black_box(opened).is_err(), altered);
        };
        measurements.push((name, leak(samples, &sealed(&ring, &row_ids, altered), open)));
    }
    let (records, tags) = (vec![7; 256 * 32], vec![9; 256 * 16]);
    let table = Records {
        points: None,
        first: 0,
        count: 256,
        records: &records,
        width: 32,
        tags: &tags,
    };
    let evaluate = |share: &Vec<u8>| drop(black_box(select(&[share], &table).expect("a share")));
    measurements.push(("evaluation of shares", leak(samples, &shares(8), evaluate)));
    let points = [
        vec![5_u64; 64],
        (0..64).map(|at| at * 0x0101_0101_0101).collect(),
    ];
    let make = |at: &u64| drop(black_box(Point::new(48, Some(*at)).expect("a point")));
    measurements.push(("making of shares", leak(samples, &points, make)));
    eprintln!("{samples} samples, least |t| of {ATTEMPTS}: {measurements:.1?}");
    let leaking: Vec<_> = measurements.iter().filter(|(_, t)| *t > CERTAIN).collect();
    assert!(leaking.is_empty(), "{leaking:?}");
}
