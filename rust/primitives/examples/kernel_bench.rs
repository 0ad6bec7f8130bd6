//! Rows per second of one core, as JSON lines: `kernel_bench [bits] [rows] [name]`.

// Printing is what it is for.
#![allow(clippy::print_stdout)]

use louver_primitives::{Backend, Column, FixedBase, Kernel, Modulus};
use std::sync::Arc;
use std::time::Instant;

/// splitmix64.
fn bytes(seed: &mut u64, len: usize) -> Vec<u8> {
    let mut next = || {
        *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Best single run within 0.8 s: the least disturbed by other load on the machine.
fn report<T>(name: &str, backend: Backend, rows: usize, mut f: impl FnMut() -> T) {
    if std::env::args().nth(3).is_some_and(|only| only != name) {
        return;
    }
    std::hint::black_box(f());
    let (begin, mut best) = (Instant::now(), f64::INFINITY);
    while begin.elapsed().as_secs_f64() < 0.8 {
        let start = Instant::now();
        std::hint::black_box(f());
        best = best.min(start.elapsed().as_secs_f64() / rows as f64);
    }
    println!(
        "{{\"name\":\"{name}\",\"backend\":\"{backend:?}\",\"rows_per_s_per_core\":{:.0},\
         \"us_per_row\":{:.4}}}",
        1.0 / best,
        best * 1e6
    );
}

fn run(modulus: &Arc<Modulus>, backend: Backend, rows: usize) {
    let k = Kernel::with_backend(modulus.clone(), backend);
    if k.backend() != backend {
        return;
    }
    let (len, mut seed) = (modulus.byte_len(), 1);
    let mut column = || -> (Vec<u8>, Column) {
        let mut all = bytes(&mut seed, rows * len);
        all.chunks_exact_mut(len).for_each(|row| row[0] = 0);
        let column = k.load(&all).expect("below the modulus");
        (all, column)
    };
    let ((a_bytes, a), (_, b)) = (column(), column());
    let exponents: Vec<Vec<u8>> = (0..6).map(|_| bytes(&mut seed, 32)).collect();
    let shared: Vec<&[u8]> = exponents.iter().map(Vec::as_slice).collect();
    let few = k
        .load(&a_bytes[..len * rows.min(32)])
        .expect("below the modulus");
    report("load", backend, rows, || k.load(&a_bytes));
    report("store", backend, rows, || k.store(&a));
    report("add", backend, rows, || k.add(&a, &b));
    report("sum", backend, rows, || k.sum(&a));
    report("product", backend, rows, || k.mul(&a, &b));
    report("square", backend, rows, || k.square(&a));
    report("pow 256", backend, few.len(), || k.pow(&few, &exponents[0]));
    report("pow_many 2x256", backend, few.len(), || {
        k.pow_many(&few, &shared[..2])
    });
    report("pow_many 6x256", backend, few.len(), || {
        k.pow_many(&few, &shared)
    });
    let table = FixedBase::new(&k, &a_bytes[..len], &a_bytes[len..2 * len]).expect("base");
    let secret: Vec<[u8; 16]> = (0..rows)
        .map(|_| std::array::from_fn(|_| bytes(&mut seed, 1)[0]))
        .collect();
    report("fixed-base pow_mul", backend, rows, || {
        table.pow_mul(&k, &secret, &a)
    });
}

fn main() {
    let mut args = std::env::args()
        .skip(1)
        .filter_map(|a| a.parse::<usize>().ok());
    let (bits, rows) = (args.next().unwrap_or(2048), args.next().unwrap_or(1024));
    let mut n = bytes(&mut 5, bits.div_ceil(8));
    n[0] |= 0x80;
    *n.last_mut().expect("not empty") |= 1;
    let modulus = Modulus::from_be_bytes(&n).expect("odd");
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .expect("pool");
    for backend in [Backend::Portable, Backend::Ifma] {
        pool.install(|| run(&modulus, backend, rows));
    }
}
