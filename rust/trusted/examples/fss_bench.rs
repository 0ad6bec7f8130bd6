//! How fast the two-party shares are made and evaluated, on one core. Prints a JSON object a line.
//!
//! `cargo run --release -p louver-trusted --example fss_bench`

use louver_primitives::fss::{Group, Header, LessShare, PointShare, Prg, Scheme};
use louver_trusted::fss::{less_shares, point_shares};
use louver_untrusted::fss::{evaluate_leaves, evaluate_less, evaluate_point, Points};
use std::hint::black_box;

const RUNS: usize = 15;

const BITS: u32 = 24;
const MANY: usize = 1 << 20;

fn main() {
    let point = point_shares(header(Scheme::Point, Group::Tag), 12_345, &[6]).expect("shares");
    let less = less_shares(header(Scheme::Less, Group::Wide), &[(12_345, &[7])], &[0]);
    let less = less.expect("shares");
    let (blocks, mut out) = (vec![6; 1024], vec![0; 1024]);
    report("one AES block", 1024, || {
        Prg::best().values(&blocks, 0, &mut out);
        out[1023]
    });
    let loose: Vec<u64> = (0..MANY as u64).map(scramble).collect();
    let mut sorted = loose.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let distinct = sorted.len();
    report("point, loose", MANY, || {
        points(&point[0], Points::Loose(&loose))
    });
    report("less, loose", MANY, || {
        lesses(&less[0], Points::Loose(&loose))
    });
    report("point, sorted", distinct, || {
        points(&point[0], Points::Sorted(&sorted))
    });
    report("less, sorted", distinct, || {
        lesses(&less[0], Points::Sorted(&sorted))
    });
    report("point, all", 1 << BITS, || {
        points(&point[0], Points::All(1 << BITS))
    });
    report("less, all", 1 << BITS, || {
        lesses(&less[0], Points::All(1 << BITS))
    });
    let head = Header {
        words: 1,
        ..header(Scheme::Point, Group::Words)
    };
    let words = point_shares(head, 12_345, &[7]).expect("shares");
    report("words, all", 1 << BITS, || leaves(&words[0]));
    report("make point", 1, || {
        let shares = point_shares(header(Scheme::Point, Group::Tag), 12_345, &[6]);
        shares.expect("shares")[1].last[0]
    });
    report("make less", 1, || {
        let shares = less_shares(header(Scheme::Less, Group::Wide), &[(12_345, &[7])], &[0]);
        shares.expect("shares")[1].constant[0]
    });
}

fn header(scheme: Scheme, group: Group) -> Header {
    Header {
        scheme,
        group,
        bits: BITS,
        party: 0,
        parties: 2,
        words: 0,
    }
}

/// Different numbers below 2^24, in no order.
fn scramble(at: u64) -> u64 {
    at.wrapping_mul(0x9e_3779_b97f_4a7d) >> 13 & ((1 << BITS) - 1)
}

fn points(share: &PointShare, points: Points<'_>) -> u128 {
    let mut seen = 0;
    let mut sink = |_: usize, bits: &[u8], values: &[u128]| {
        seen ^= values[values.len() - 1] ^ u128::from(bits[0]);
    };
    evaluate_point(share, points, 0..points.len(), &mut sink).expect("points in the domain");
    seen
}

/// All points, two words of 64 bits a leaf.
fn leaves(share: &PointShare) -> u128 {
    let mut seen = 0;
    let mut sink = |_: usize, values: &[u128]| seen ^= values[values.len() - 1];
    evaluate_leaves(share, 0..1 << (BITS - 1), &mut sink).expect("leaves of the domain");
    seen
}

fn lesses(share: &LessShare, points: Points<'_>) -> u128 {
    let mut seen = 0;
    let mut sink = |_: usize, _: &[u8], values: &[u128]| seen ^= values[values.len() - 1];
    evaluate_less(share, points, 0..points.len(), &mut sink).expect("points in the domain");
    seen
}

/// What this thread has computed: others on the machine make it wait, which is not counted.
fn seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes to the address that it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The best of several runs.
fn report(name: &str, count: usize, mut run: impl FnMut() -> u128) {
    let repeat = (200_000 / count).max(1);
    let mut best = f64::MAX;
    for _ in 0..RUNS {
        let start = seconds();
        for _ in 0..repeat {
            black_box(run());
        }
        best = best.min((seconds() - start) / repeat as f64);
    }
    let (each, rate) = (best * 1e9 / count as f64, count as f64 / best);
    #[allow(clippy::print_stdout)]
    {
        println!(
            "{{\"what\":\"{name}\",\"count\":{count},\"total_ms\":{:.4},\"each_ns\":{each:.2},\
             \"per_second\":{rate:.0}}}",
            best * 1e3
        );
    }
}
