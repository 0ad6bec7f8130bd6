//! The paper's micro figures (6.1 to 6.15, 6.26 to 6.28) on one thread, in processor time, as JSON
//! lines:
//! `cargo run --release -p louver-papers --example eds_figures [--quick] [figure ...]`.
//!
//! A line: {"figure": "6.3", "series": "...", "x": ..., "y": ..., "unit": "..."}.

// Printing is what it is for.
#![allow(clippy::print_stdout)]

mod ciphertexts;
mod false_positives;
mod filters;
mod hashes;
mod tree;

use louver_papers::eds::kind::Kind;
use louver_papers::eds::spec::{Encryption, Hash, Spec};
use louver_papers::Root;
use std::fmt::Display;
use std::time::Instant;

/// What was requested.
struct Run {
    quick: bool,
    only: Vec<String>,
}

impl Run {
    /// A figure's number is a whole argument; without arguments all are wanted.
    fn wants(&self, figures: &[&str]) -> bool {
        self.only.is_empty()
            || figures
                .iter()
                .any(|figure| self.only.iter().any(|o| o == figure))
    }

    /// The first where time matters, else the second.
    fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick {
            quick
        } else {
            full
        }
    }

    fn line(&self, figure: &str, series: impl Display, x: impl Display, y: f64, unit: &str) {
        println!(
            "{{\"figure\":\"{figure}\",\"series\":\"{series}\",\"x\":\"{x}\",\"y\":{y:.4},\
             \"unit\":\"{unit}\"}}"
        );
    }

    /// Nanoseconds of one of `count` things that `act` does: the least of several rounds.
    fn time<T>(&self, count: usize, mut act: impl FnMut() -> T) -> f64 {
        std::hint::black_box(act());
        let budget = self.pick(0.02, 0.25);
        let (begin, mut best) = (Instant::now(), f64::INFINITY);
        while begin.elapsed().as_secs_f64() < budget {
            let start = processor_ns();
            std::hint::black_box(act());
            best = best.min(processor_ns() - start);
        }
        best / count as f64
    }
}

/// Time that this process has had a processor: others on the machine count for less.
fn processor_ns() -> f64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a live timespec, which the call only writes.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut now) };
    assert_eq!(failed, 0, "the clock of a process");
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// Numbers that look random: SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A range, its ends in order, of numbers of so many bits.
    fn range(&mut self, bits: u32) -> (u64, u64) {
        let (a, b) = (self.roll() >> (64 - bits), self.roll() >> (64 - bits));
        (a.min(b), a.max(b))
    }

    fn id(&mut self) -> [u8; 16] {
        (u128::from(self.roll()) << 64 | u128::from(self.roll())).to_le_bytes()
    }
}

/// Figures, and what prints them.
type Section = (&'static [&'static str], fn(&Run));

fn spec(kind: Kind, hash: Hash, encryption: Encryption, bits: u32, k: u8) -> Spec {
    Spec {
        kind,
        hash,
        encryption,
        k,
        bits,
    }
}

/// Where the index of the figures is: a table, a column, a generation.
const PLACE: [u32; 3] = [1, 1, 1];

fn root() -> Root {
    Root::new(*b"a secret of figures, 32 bytes of")
}

fn main() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
    pool.build_global().expect("the first pool");
    let mut run = Run {
        quick: false,
        only: Vec::new(),
    };
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--quick" => run.quick = true,
            _ => run.only.push(argument),
        }
    }
    let sections: [Section; 8] = [
        (&["6.1", "6.2", "6.3"], tree::coverage),
        (&["6.4", "6.5"], tree::covers),
        (&["6.6"], hashes::times),
        (&["6.7", "6.8"], hashes::uniformity),
        (&["6.9"], false_positives::variants),
        (
            &["6.10", "6.11", "6.12", "6.13", "6.14", "6.15"],
            filters::queries,
        ),
        (&["6.27", "6.28"], ciphertexts::generation),
        (&["6.26"], ciphertexts::pruning),
    ];
    for (figures, section) in sections {
        if run.wants(figures) {
            section(&run);
        }
    }
}
