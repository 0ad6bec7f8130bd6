//! Times of the lake's index in every kind and encryption, and its false positives:
//! `cargo run --release -p louver-papers --example eds_bench [files] [rounds]`.
//! Build with `RUSTFLAGS='--cfg aes_backend="soft"'` to see a machine without AES instructions.

#![allow(clippy::print_stdout)]

use louver_papers::eds::kind::Kind;
use louver_papers::eds::secret::Index;
use louver_papers::eds::server::Token;
use louver_papers::eds::spec::{Encryption, Hash, Spec};
use louver_papers::Root;
use louver_trusted::eds::Ranges;
use std::time::{Duration, Instant};

const SEGMENT: usize = 32_768;
/// Segments that stay in memory to be timed.
const TIMED: usize = 8;

/// Numbers that look random: SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Files in one half of the domain, so that the other half has none.
fn files(dice: &mut Dice, count: usize) -> (Vec<u64>, Vec<u64>) {
    let low: Vec<u64> = (0..count).map(|_| dice.roll() >> 1).collect();
    let high = low.iter().map(|low| low + (dice.roll() >> 24)).collect();
    (low, high)
}

fn segment(index: &Index, dice: &mut Dice, count: usize) -> (Vec<u8>, Duration) {
    let (lows, highs) = files(dice, count);
    let states = vec![0; count];
    let ranges = Ranges {
        lows: &lows,
        highs: &highs,
        states: &states,
    };
    let start = Instant::now();
    let segment_bytes = index.segment(&ranges).expect("good ranges");
    (segment_bytes, start.elapsed())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Least time of some rounds.
fn best(rounds: usize, mut act: impl FnMut()) -> Duration {
    let round = |_| {
        let start = Instant::now();
        act();
        start.elapsed()
    };
    (0..rounds).map(round).min().unwrap_or_default()
}

/// Tokens of ranges above all files: every hit is a false positive.
fn tokens(index: &Index, rounds: usize, sides: bool) -> Vec<Token> {
    let token = |round: usize| {
        let low = (3 << 62) + (Dice(round as u64).roll() >> 2);
        let token = index.token(low, low | 0xffff, sides);
        Token::new(&token.expect("a range")).expect("a token")
    };
    (0..rounds).map(token).collect()
}

fn matches(tokens: &[Token], segment: &[u8]) -> u32 {
    let sweep = |token: &Token| token.sweep(segment).expect("a segment");
    let count = |hits: Vec<u8>| hits.iter().map(|byte| byte.count_ones()).sum::<u32>();
    tokens.iter().map(|token| count(sweep(token))).sum()
}

/// Least and greatest time of a sweep over segments, over ranges of very different sizes.
fn times(index: &Index, segments: &[Vec<u8>]) -> (Duration, Duration) {
    let time = |size: u32| {
        let high = u64::MAX.checked_shr(64 - size).unwrap_or(0);
        let token = index.token(0, high, false).expect("a range");
        let token = Token::new(&token).expect("a token");
        best(7, || {
            for segment in segments {
                std::hint::black_box(token.sweep(segment).expect("a segment"));
            }
        })
    };
    let all: Vec<Duration> = (0..=63).step_by(9).map(time).collect();
    let least = all.iter().min().copied().unwrap_or_default();
    (least, all.into_iter().max().unwrap_or_default())
}

fn measure(spec: Spec, total: usize, rounds: usize) {
    let (index, mut dice) = (Index::new(&Root::new([7; 32]), [1; 3], spec), Dice(7));
    let small = (0..5).map(|_| segment(&index, &mut dice, 1000).1).min();
    let (hidden, with_sides) = (tokens(&index, rounds, false), tokens(&index, rounds, true));
    let (mut segments, mut vain, mut vain_told) = (Vec::new(), 0, 0);
    for start in (0..total).step_by(SEGMENT) {
        let (segment, _) = segment(&index, &mut dice, SEGMENT.min(total - start));
        vain += matches(&hidden, &segment);
        vain_told += matches(&with_sides, &segment);
        if segments.len() < TIMED {
            segments.push(segment);
        }
    }
    let (fastest, slowest) = times(&index, &segments);
    let million = 1e6 / total.min(TIMED * SEGMENT) as f64;
    println!(
        "{:<32} {:>6} bits: 1,000 files made in {:.1} ms; \
         a million swept in {:.1} to {:.1} ms; \
         in vain of {total} files {:.2} a query, {:.2} with sides",
        format!("{:?}, {:?}", spec.kind, spec.encryption),
        spec.bits,
        ms(small.unwrap_or_default()),
        ms(fastest) * million,
        ms(slowest) * million,
        f64::from(vain) / rounds as f64,
        f64::from(vain_told) / rounds as f64,
    );
}

fn main() {
    let number = |at: usize, default: usize| {
        let given = std::env::args().nth(at);
        given.and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (total, rounds) = (number(1, 100_000), number(2, 20));
    let spec = |kind, encryption, bits| Spec {
        kind,
        hash: Hash::Aes128,
        encryption,
        k: 8,
        bits,
    };
    for bits in [16_384, 32_768] {
        for kind in Kind::ALL {
            measure(spec(kind, Encryption::XorBit, bits), total, rounds);
        }
    }
    for encryption in Encryption::ALL {
        measure(spec(Kind::SplitBlock64, encryption, 16_384), total, rounds);
    }
}
