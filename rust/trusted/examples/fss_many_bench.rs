//! Schemes of more than two parties: time to make shares, their size, and evaluations a second on
//! one core, against the number of bits and of parties (figures 12 and 13 of Splinter's paper).
//! One JSON object a line. An argument names the most bits that are measured (24 by default).

#![allow(clippy::print_stdout)]

use louver_trusted::fss_many::{OwfPoint, PaillierModulus, PaillierSum};
use louver_untrusted::fss::Points;
use louver_untrusted::fss_many::{evaluate_owf, paillier_sum, OwfShare};
use louver_untrusted::fss_table::Entries;
use serde_json::json;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Points of a table, or all of a smaller domain.
const TABLE: u64 = 1 << 20;
/// How long one number is measured at least.
const LEAST: Duration = Duration::from_millis(300);

fn main() {
    let most = std::env::args()
        .nth(1)
        .map_or(24, |bits| bits.parse().expect("a number of bits"));
    // One core, as the paper's figures.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.expect("a thread").install(|| {
        for bits in (8..=most).step_by(4) {
            (3..=5).for_each(|parties| owf(bits, parties));
        }
        let begun = Instant::now();
        let modulus = Arc::new(PaillierModulus::new().expect("randomness"));
        println!(
            "{}",
            json!({"scheme": "paillier", "modulus_s": begun.elapsed().as_secs_f64()})
        );
        for bits in (8..=most).step_by(4) {
            paillier(&modulus, bits, 3);
        }
    });
}

fn owf(bits: u32, parties: u8) {
    let make = || OwfPoint::new(bits, Some(1), parties).expect("randomness");
    let generation = seconds(|| drop(black_box(make())));
    let point = make();
    let share = OwfShare::decode(&point.shares()[0]).expect("it is one");
    let points: Vec<u64> = sorted(bits);
    let evaluation = seconds(|| {
        let mut sink = |_: usize, bits: &[u8], values: &[u128]| {
            black_box((bits, values));
        };
        let points = Points::Sorted(&points);
        evaluate_owf(&share, points, 0..points.len(), &mut sink).expect("inside");
    });
    let line = json!({
        "scheme": "owf",
        "bits": bits,
        "parties": parties,
        "generation_s": generation,
        "share_bytes": point.shares()[0].len(),
        "last_share_bytes": point.shares()[0].len(),
        "points": points.len(),
        "evaluations_per_s": points.len() as f64 / evaluation,
    });
    println!("{line}");
}

fn paillier(modulus: &Arc<PaillierModulus>, bits: u32, parties: u8) {
    let interval = Some((1, (1 << bits) - 2));
    let make = || PaillierSum::new(modulus, bits, interval, parties).expect("randomness");
    let generation = seconds(|| drop(black_box(make())));
    let sum = make();
    let (first, last) = (&sum.shares()[0], &sum.shares()[usize::from(parties) - 1]);
    let points = sorted(bits);
    let values: Vec<i64> = points.iter().map(|p| (*p as i64) << 20).collect();
    let entries = Entries {
        points: &points,
        starts: None,
        groups: None,
        values: Some(&values),
        columns: 1,
        group_count: 1,
    };
    let evaluation = seconds(|| drop(black_box(paillier_sum(last, &entries).expect("inside"))));
    let replies: Vec<Vec<u8>> = sum
        .shares()
        .iter()
        .map(|s| paillier_sum(s, &entries).expect("inside"))
        .collect();
    let replies: Vec<&[u8]> = replies.iter().map(Vec::as_slice).collect();
    let opening = seconds(|| drop(black_box(sum.open(&replies).expect("honest"))));
    let line = json!({
        "scheme": "paillier",
        "bits": bits,
        "parties": parties,
        "generation_s": generation,
        "share_bytes": first.len(),
        "last_share_bytes": last.len(),
        "reply_bytes": replies[0].len(),
        "points": points.len(),
        "evaluation_s": evaluation,
        "evaluations_per_s": points.len() as f64 / evaluation,
        "opening_s": opening,
    });
    println!("{line}");
}

/// Evenly spread points of a domain.
fn sorted(bits: u32) -> Vec<u64> {
    let count = TABLE.min(1 << bits);
    let step = (1 << bits) / count;
    // Scattered within their steps, so that all columns of a share's grid come up.
    let within = |at: u64| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % step;
    (0..count).map(|at| at * step + within(at)).collect()
}

/// Seconds that it takes once: the least of several times.
fn seconds(mut work: impl FnMut()) -> f64 {
    let begun = Instant::now();
    let mut least = f64::INFINITY;
    loop {
        let once = Instant::now();
        work();
        least = least.min(once.elapsed().as_secs_f64());
        if begun.elapsed() > LEAST {
            return least;
        }
    }
}
