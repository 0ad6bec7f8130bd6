//! Shares made and evaluated a second on one core, over the width of the domain: Louver's and
//! those of crate fss-rs. Prints a JSON object a line. `--quick` takes fewer points.
//!
//! Each figure is the best of several runs, in time that this thread computed: other load on the
//! machine counts less. The two take turns, so that a machine which slows down does so for both.

mod louver;
mod many;
mod peer;

use louver_trusted::fss_many::PaillierModulus;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

pub const WIDTHS: [u32; 7] = [8, 16, 24, 32, 40, 48, 64];
pub const FULL_WIDTHS: [u32; 3] = [8, 16, 24];
pub const OWF_WIDTHS: [u32; 5] = [8, 12, 16, 20, 24];
pub const PAILLIER_WIDTHS: [u32; 3] = [8, 16, 24];

fn main() {
    let quick = std::env::args().any(|word| word == "--quick");
    let points = if quick { 1 << 14 } else { 1 << 18 };
    for bits in WIDTHS {
        louver::loose(bits, points);
        peer::loose(bits, points / 8);
        louver::sorted(bits, if quick { 1 << 16 } else { 1 << 20 });
        louver::made(bits);
        peer::made(bits);
    }
    for bits in FULL_WIDTHS {
        if quick && bits == 24 {
            continue;
        }
        louver::all(bits);
        peer::all(bits);
    }
    for bits in OWF_WIDTHS {
        many::owf(bits, if quick { 1 << 14 } else { 1 << 18 });
    }
    let modulus = Arc::new(PaillierModulus::new().expect("randomness"));
    for bits in PAILLIER_WIDTHS {
        if quick && bits > 8 {
            continue;
        }
        many::paillier(&modulus, bits, 256);
    }
}

/// Different numbers below 2^bits, in no order.
pub fn scrambled(bits: u32, count: usize) -> Vec<u64> {
    let mask = u64::MAX >> (64 - bits);
    (0..count as u64)
        .map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits.max(1))) & mask)
        .collect()
}

/// Run until enough time was spent and tell the best.
pub fn report(who: &str, what: &str, bits: u32, count: usize, mut run: impl FnMut() -> u128) {
    let mut best = f64::MAX;
    let begun = Instant::now();
    let mut runs = 0;
    // What takes seconds is not done again and again.
    while (runs < 3 && begun.elapsed().as_secs_f64() < 20.0)
        || (begun.elapsed().as_secs_f64() < 1.0 && runs < 2_000)
    {
        let start = computed_s();
        black_box(run());
        best = best.min(computed_s() - start);
        runs += 1;
    }
    println!(
        "{{\"who\":\"{who}\",\"what\":\"{what}\",\"bits\":{bits},\"count\":{count},\
         \"seconds\":{best:.9},\"per_s\":{:.1}}}",
        count as f64 / best
    );
}

/// Seconds that this thread has computed.
fn computed_s() -> f64 {
    let told = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    told.tv_sec as f64 + told.tv_nsec as f64 * 1e-9
}
