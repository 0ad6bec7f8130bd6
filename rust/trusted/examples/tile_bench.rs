//! Sealing and opening tiles on one core: bytes of plaintext column a second.
//!
//! `cargo run --release -p louver-trusted --example tile_bench [rows [name]]`. Time is that of the
//! processor.

use arrow_array::{Array, ArrayRef, Date32Array, Decimal128Array, Float64Array, Int64Array};
use arrow_array::{Int32Array, StringArray};
use louver_trusted::tiles::{tile_unit, TileColumn, TileForm, TILE_ROWS};
use louver_trusted::{Epochs, KeyRing};
use std::sync::Arc;

fn main() {
    let rows = std::env::args().nth(1).and_then(|word| word.parse().ok());
    let rows: usize = rows.unwrap_or(4 << 20);
    let path = std::env::temp_dir().join(format!("tile-bench-{}", std::process::id()));
    let path = path.to_str().expect("a path in UTF-8");
    KeyRing::create(path, "").expect("a key file");
    let ring = KeyRing::open(path).expect("a key file");
    std::fs::remove_file(path).expect("it is there");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.expect("a thread").install(|| run(&ring, rows));
}

fn run(ring: &KeyRing, rows: usize) {
    let all = || (0..rows).map(draw);
    let ints = |bits: u32| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(
            all().map(|n| (n >> (64 - bits)) as i64),
        ))
    };
    let packed = |bits, nulls| TileForm::Packed {
        base: 0,
        bits,
        nulls,
    };
    measure(ring, "i64, 20 bits", packed(20, false), &ints(20));
    measure(ring, "i64, 20 bits, NULLs", packed(20, true), &ints(20));
    measure(ring, "i64, 6 bits", packed(6, false), &ints(6));
    measure(ring, "i64, 40 bits", packed(40, false), &ints(40));
    measure(ring, "i64, 64 bits", packed(64, false), &ints(63));
    let dates: ArrayRef = Arc::new(Date32Array::from_iter_values(
        all().map(|n| (n >> 52) as i32),
    ));
    measure(ring, "date, 12 bits", packed(12, false), &dates);
    let small: ArrayRef = Arc::new(Int32Array::from_iter_values(
        all().map(|n| (n >> 44) as i32),
    ));
    measure(ring, "i32, 20 bits", packed(20, false), &small);
    let decimals = Decimal128Array::from_iter_values(all().map(|n| i128::from(n >> 41)));
    measure(
        ring,
        "decimal, 23 bits",
        packed(23, false),
        &(Arc::new(decimals) as ArrayRef),
    );
    let floats = Float64Array::from_iter_values(all().map(|n| n as f64));
    measure(
        ring,
        "f64",
        packed(64, false),
        &(Arc::new(floats) as ArrayRef),
    );
    texts(ring, rows);
}

fn draw(row: usize) -> u64 {
    (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn texts(ring: &KeyRing, rows: usize) {
    let all = || (0..rows).map(draw);
    let units = |values: &ArrayRef| TileForm::Units {
        unit: tile_unit(values, 1 << 20, TILE_ROWS).expect("texts"),
        limit: 1 << 20,
    };
    let flags = ["R", "A", "N"];
    let texts = StringArray::from_iter_values(all().map(|n| flags[(n >> 60) as usize % 3]));
    let texts: ArrayRef = Arc::new(texts);
    measure(ring, "text, 3 kinds", units(&texts), &texts);
    let modes = ["TRUCK", "MAIL", "REG AIR", "SHIP", "RAIL", "FOB", "AIR"];
    let texts = StringArray::from_iter_values(all().map(|n| modes[(n >> 60) as usize % 7]));
    let texts: ArrayRef = Arc::new(texts);
    measure(ring, "text, 7 kinds", units(&texts), &texts);
    let words = [
        "slyly", "final", "deposits", "quickly", "the", "furious", "requests", "sleep",
    ];
    let word = |n: u64, at: u32| words[(n >> (3 * at)) as usize % 8];
    let comment = |n: u64| {
        (20..24 + n as u32 % 3)
            .map(|at| word(n, at))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let texts = StringArray::from_iter_values(all().map(comment));
    let texts: ArrayRef = Arc::new(texts);
    measure(ring, "text, comments", units(&texts), &texts);
}

/// Seconds of processor time of this thread.
fn clock_s() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the clock exists, and the struct is ours to fill.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn best(mut work: impl FnMut()) -> f64 {
    let time = || {
        let start = clock_s();
        work();
        clock_s() - start
    };
    std::iter::repeat_with(time)
        .take(9)
        .fold(f64::MAX, f64::min)
}

#[allow(clippy::print_stdout)]
fn measure(ring: &KeyRing, name: &str, form: TileForm, values: &ArrayRef) {
    if std::env::args().nth(2).is_some_and(|word| word != name) {
        return;
    }
    let epochs = Epochs::new(0, vec![(1, [7; 16])]).expect("one epoch");
    let column = TileColumn {
        id: (1, 2, 3),
        epochs: &epochs,
        form,
    };
    let seal = || {
        ring.seal_tiles(&column, values, 1 << 36, TILE_ROWS)
            .expect("values")
    };
    let sealed = seal();
    let firsts = (0..sealed.len()).map(|tile| (1 << 36) + (tile * TILE_ROWS) as i64);
    let firsts = Int64Array::from_iter_values(firsts);
    let open = || {
        let opened = ring.open_tiles(&column, &sealed, &firsts, values.data_type(), None);
        opened.expect("what was sealed").0
    };
    assert_eq!(&open(), values);
    let plain = values
        .to_data()
        .buffers()
        .iter()
        .map(|b| b.len())
        .sum::<usize>() as f64;
    let (sealing, opening) = (best(|| drop(seal())), best(|| drop(open())));
    let copied = best(|| {
        let copies: Vec<Vec<u8>> = values
            .to_data()
            .buffers()
            .iter()
            .map(|b| b.to_vec())
            .collect();
        std::hint::black_box(copies);
    });
    let bytes: usize = sealed.to_data().buffers()[1].len();
    println!(
        "{name:22} seal {:6.2}  open {:6.2}  copy {:6.2} GB/s  {:5.2} ns/value  {:6.2} B/value",
        plain / sealing / 1e9,
        plain / opening / 1e9,
        plain / copied / 1e9,
        opening * 1e9 / values.len() as f64,
        bytes as f64 / values.len() as f64,
    );
}
