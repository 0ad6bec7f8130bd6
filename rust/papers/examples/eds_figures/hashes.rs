//! Figures 6.6 to 6.8: how fast and how uniform keyed hashes are.

use super::{Dice, Run};
use louver_papers::eds::hash::{keyed, DIGEST, ELEMENT, KEY};
use louver_papers::eds::spec::Hash;
use rayon::prelude::*;
use std::hint::black_box;

const KEYED: [u8; KEY] = *b"a key for figures, thirty-two by";
const CALLS: usize = 1024;

pub(super) fn times(run: &Run) {
    for kind in Hash::ALL {
        let hash = keyed(kind, &KEYED);
        for length in [8, 16, 32, 64, 128, 256, 512, 1024] {
            let input = vec![7; length];
            let calls = || {
                for _ in 0..CALLS {
                    black_box(hash.digest(black_box(&input)));
                }
            };
            let ns = run.time(CALLS, calls);
            run.line("6.6", format!("{kind:?}"), length, ns, "ns");
        }
        let inputs = vec![[7; ELEMENT]; CALLS];
        let mut out = vec![[0; DIGEST]; CALLS];
        let ns = run.time(CALLS, || hash.digest_many(black_box(&inputs), &mut out));
        run.line("6.6", format!("{kind:?}, many at once"), ELEMENT, ns, "ns");
    }
}

/// Chi-square of 100 random numbers a bucket.
fn chi_square(kind: Hash, buckets: usize, seed: u64) -> f64 {
    let hash = keyed(kind, &KEYED);
    let mut dice = Dice(seed);
    let mut counts = vec![0_u32; buckets];
    let mut inputs = vec![[0; ELEMENT]; CALLS];
    let mut out = vec![[0; DIGEST]; CALLS];
    for _ in 0..100 * buckets / CALLS {
        for input in &mut inputs {
            input[..8].copy_from_slice(&dice.roll().to_le_bytes());
        }
        hash.digest_many(&inputs, &mut out);
        for digest in &out {
            let word = u64::from_le_bytes(*digest.first_chunk().expect("32 bytes"));
            counts[word as usize % buckets] += 1;
        }
    }
    let square = |count: &u32| (f64::from(*count) - 100.0).powi(2) / 100.0;
    counts.iter().map(square).sum()
}

/// Whether less than 5 in 100 uniform samples are above: Wilson and Hilferty's normal form.
fn deviates(chi: f64, freedom: f64) -> bool {
    let part = 2.0 / (9.0 * freedom);
    ((chi / freedom).cbrt() - (1.0 - part)) / part.sqrt() > 1.6449
}

pub(super) fn uniformity(run: &Run) {
    let threads = rayon::ThreadPoolBuilder::new().build().expect("threads");
    for buckets in [8192, 16384] {
        for kind in Hash::ALL {
            let runs = 0..run.pick(4, 50_u64);
            let statistics: Vec<f64> = threads.install(|| {
                runs.into_par_iter()
                    .map(|s| chi_square(kind, buckets, s))
                    .collect()
            });
            let mean = statistics.iter().sum::<f64>() / statistics.len() as f64;
            let bad = statistics
                .iter()
                .filter(|chi| deviates(**chi, buckets as f64 - 1.0))
                .count();
            let name = format!("{kind:?}");
            run.line("6.7", &name, buckets, mean, "mean chi-square");
            let share = bad as f64 * 50.0 / statistics.len() as f64;
            run.line("6.8", &name, buckets, share, "of 50 runs");
        }
    }
}
