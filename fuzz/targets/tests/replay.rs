//! Every corpus once more, and some thousand mutations of it from a fixed seed: what coverage
//! found is found without it, in seconds.

use louver_fuzz_targets::{Counting, Target, TARGETS};
use std::fmt::Write;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Panics seen, also those that a decoder catches.
static PANICS: AtomicUsize = AtomicUsize::new(0);
/// Longest input that a mutation makes.
const LONGEST: usize = 1 << 14;
/// Mutations of each target, and the time after which no more are made.
const MUTATIONS: usize = 20_000;
const TIME: Duration = Duration::from_millis(600);
/// Longest time that one input may take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(5);

/// The inputs of a corpus: one a line, in hexadecimal.
fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    let path = folder.join(format!("{}.hex", target.name));
    let text = std::fs::read_to_string(&path).expect("every target has a corpus");
    let read = |line: &str| {
        let pairs = line.as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        pairs.map(byte).collect::<Option<Vec<u8>>>()
    };
    let lines = text.lines().map(read);
    lines.map(|input| input.expect("hexadecimal")).collect()
}

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

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// A few changes, as libFuzzer makes them.
    fn mutated(&mut self, data: &[u8], other: &[u8]) -> Vec<u8> {
        let mut out = data.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(out.len());
            match self.below(8) {
                _ if out.is_empty() => out.push(self.next() as u8),
                0 => out[at] ^= 1 << self.below(8),
                1 => out[at] = self.next() as u8,
                2 => out[at] = [0, 1, 0x7f, 0x80, 0xff][self.below(5)],
                3 => out.truncate(at),
                4 => out.insert(at, self.next() as u8),
                5 => drop(out.remove(at)),
                6 => {
                    let end = (at + 8).min(out.len());
                    let number = [0, u64::MAX, 1 << 61, u64::from(u32::MAX)][self.below(4)];
                    out[at..end].copy_from_slice(&number.to_le_bytes()[..end - at]);
                }
                _ => {
                    out.truncate(at);
                    out.extend_from_slice(&other[self.below(other.len())..]);
                }
            }
        }
        out.truncate(LONGEST);
        out
    }
}

/// Runs one input; what it did wrong, if anything.
fn wrong(target: &Target, data: &[u8]) -> Option<String> {
    let (seen, began) = (PANICS.load(Relaxed), Instant::now());
    let done = catch_unwind(AssertUnwindSafe(|| target.check(data)));
    let slow = began.elapsed() > PATIENCE;
    if done.is_ok() && !slow && PANICS.load(Relaxed) == seen {
        return None;
    }
    let mut text = format!("{} (slow: {slow}): ", target.name);
    for byte in data {
        write!(text, "{byte:02x}").expect("a string takes it");
    }
    Some(text)
}

#[test]
fn corpora_and_mutations_are_judged() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |about| {
        PANICS.fetch_add(1, Relaxed);
        hook(about);
    }));
    let soak = std::env::var("LOUVER_SOAK").ok();
    let soak: u32 = soak.map_or(1, |factor| factor.parse().expect("a whole number"));
    for target in TARGETS {
        let mut inputs = (target.seeds)();
        assert!(inputs.len() > 2, "{}", target.name);
        inputs.iter().for_each(|seed| (target.run)(seed));
        inputs.extend(corpus(target));
        for input in &inputs {
            assert_eq!(wrong(target, input), None);
        }
        let (mut random, began) = (Random(1), Instant::now());
        for _ in 0..MUTATIONS * soak as usize {
            let (first, other) = (random.below(inputs.len()), random.below(inputs.len()));
            let input = random.mutated(&inputs[first], &inputs[other]);
            assert_eq!(wrong(target, &input), None);
            if began.elapsed() > TIME * soak {
                break;
            }
        }
    }
}
