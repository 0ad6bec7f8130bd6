//! What a provider's passes over its tables cost, as JSON lines:
//! `fss_table_bench [threads] [part of a name] [seconds]`.

// Printing is what it is for.
#![allow(clippy::print_stdout)]

#[path = "../tests/fss_shares/mod.rs"]
mod fss_shares;

use arrow_array::StringArray;
use fss_shares::Random;
use louver_untrusted::fss::{evaluate_point, Group, PointShare, Points};
use louver_untrusted::fss_table::{
    digest, hash_texts, record_tags, sample, search, select, sum, Entries, Records, Rows, Samples,
};
use std::time::Instant;

/// Nanoseconds that all threads ran, which other load on the machine does not lengthen; zero
/// where the system does not report it.
fn ran() -> f64 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return 0.0;
    };
    let files = tasks.flatten().map(|task| task.path().join("schedstat"));
    let texts = files.filter_map(|file| std::fs::read_to_string(file).ok());
    let first = texts.filter_map(|text| text.split(' ').next()?.parse::<f64>().ok());
    first.sum()
}

/// For how long something is run, 0.8 seconds unless the third argument says otherwise.
fn seconds() -> f64 {
    let argument = std::env::args().nth(3);
    argument.and_then(|text| text.parse().ok()).unwrap_or(0.8)
}

/// Best of some runs, by the clock and by the time that threads ran.
fn report<T>(name: &str, items: usize, bytes: usize, mut f: impl FnMut() -> T) {
    let only = std::env::args().nth(2);
    if only.is_some_and(|only| !name.contains(&only)) {
        return;
    }
    std::hint::black_box(f());
    let (begin, mut best, mut busy) = (Instant::now(), f64::INFINITY, f64::INFINITY);
    while begin.elapsed().as_secs_f64() < seconds() {
        let (start, before) = (Instant::now(), ran());
        std::hint::black_box(f());
        busy = busy.min((ran() - before) / 1e9);
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!(
        "{{\"name\":\"{name}\",\"ms\":{:.2},\"busy_ms\":{:.2},\"million_per_s\":{:.1},\
         \"gb_per_s\":{:.2}}}",
        best * 1e3,
        busy * 1e3,
        items as f64 / busy / 1e6,
        bytes as f64 / busy / 1e9
    );
}

fn filled(random: &mut Random, bytes: usize) -> Vec<u8> {
    let some = random.bytes(1 << 16);
    some.iter().copied().cycle().take(bytes).collect()
}

/// Rising points, on the average so far apart that `count` of them fill the domain.
fn spread(random: &mut Random, bits: u32, count: usize) -> Vec<u64> {
    let gap = (1_u64 << bits) / count as u64;
    let points = (0..count as u64).map(|at| at * gap + random.word() % gap);
    points.collect()
}

fn selections(random: &mut Random) {
    let forms = [
        ("select_2^20_of_64_all", 20, 1 << 20, 64, false),
        ("select_2^20_of_16_all", 20, 1 << 20, 16, false),
        ("select_800k_of_512", 24, 800_000, 512, true),
        ("select_40k_of_4096", 24, 40_000, 4096, true),
    ];
    for (name, bits, count, width, sorted) in forms {
        let points = spread(random, bits, count);
        let records = filled(random, count * width);
        let tags = filled(random, count * 16);
        let table = Records {
            points: sorted.then_some(&points),
            first: 0,
            count,
            records: &records,
            width,
            tags: &tags,
        };
        let shares: Vec<PointShare> = (0..16).map(|_| random.point(Group::Tag, bits)).collect();
        let encoded: Vec<Vec<u8>> = shares.iter().map(PointShare::encode).collect();
        let all: Vec<&[u8]> = encoded.iter().map(AsRef::as_ref).collect();
        for together in [1, 4, 16] {
            let name = format!("{name}_by_{together}");
            report(&name, count * together, records.len(), || {
                select(&all[..together], &table).expect("what fits")
            });
        }
        let (points, range) = match sorted {
            true => (Points::Sorted(&points), 0..count),
            false => (Points::All(count as u64), 0..count),
        };
        report(&format!("{name}_shares_alone"), count, 0, || {
            let mut seen = 0;
            let mut sink = |_: usize, bits: &[u8], _: &[u128]| seen ^= bits[0];
            evaluate_point(&shares[0], points, range.clone(), &mut sink).expect("what fits");
            seen
        });
    }
}

fn sums(random: &mut Random) {
    let count = 6_000_000;
    let points = spread(random, 24, count);
    let values: Vec<i64> = (0..count).map(|_| random.word() as i64).collect();
    let shares = [random.interval(24).encode(), random.interval(24).encode()];
    let both: Vec<&[u8]> = shares.iter().map(AsRef::as_ref).collect();
    for together in [1, 2] {
        let entries = Entries {
            points: &points,
            starts: None,
            groups: None,
            values: Some(&values),
            columns: 1,
            group_count: 1,
        };
        let name = format!("sum_6m_interval_by_{together}");
        report(&name, count * together, values.len() * 8, || {
            sum(&both[..together], &entries).expect("what fits")
        });
    }
    let point = random.point(Group::Wide, 24).encode();
    let groups: Vec<u32> = (0..count).map(|_| random.below(10) as u32).collect();
    let entries = Entries {
        points: &points[..count / 2],
        starts: None,
        groups: Some(&groups[..count / 2]),
        values: Some(&values),
        columns: 2,
        group_count: 10,
    };
    report(
        "sum_3m_point_2_columns_10_groups",
        count / 2,
        count * 8,
        || sum(&[&point], &entries).expect("what fits"),
    );
}

fn disjoint(random: &mut Random) {
    let count = 1 << 20;
    let form = [("few_codes", 14, 14), ("many_codes", 40, 40)];
    for (name, code_bits, used) in form {
        let codes: Vec<u64> = (0..count).map(|_| random.word() >> (64 - used)).collect();
        let rows = Rows {
            codes: &codes,
            code_bits,
            index_bits: 20,
            first: 0,
        };
        let share = |random: &mut Random, prefix| random.point(Group::Wide, prefix + code_bits);
        for prefix in [1, 10, 20] {
            let shares: Vec<_> = (0..3).map(|_| share(random, prefix).encode()).collect();
            let given: Vec<&[u8]> = shares.iter().map(AsRef::as_ref).collect();
            let name = format!("search_2^20_{name}_{prefix}_prefix_bits_by_3");
            report(&name, count * 3, 0, || {
                search(&given, &rows, prefix).expect("what fits")
            });
        }
        let prefixes: Vec<u32> = (0..21).flat_map(|bits| [bits, bits]).collect();
        let shares = prefixes
            .iter()
            .map(|prefix| share(random, *prefix).encode());
        let shares: Vec<_> = shares.collect();
        let given: Vec<&[u8]> = shares.iter().map(AsRef::as_ref).collect();
        let (records, tags) = (filled(random, count * 64), filled(random, count * 16));
        let samples = Samples {
            rows,
            records: &records,
            width: 64,
            tags: &tags,
            slots: 30,
            seeds: &[1, 2, 3],
        };
        report(&format!("sample_2^20_{name}_by_42"), count * 42, 0, || {
            sample(&given, &prefixes, &samples).expect("what fits")
        });
    }
}

fn preparations(random: &mut Random) {
    let records = filled(random, 100 << 20);
    for width in [64, 512, 4096] {
        let name = format!("tags_of_{width}");
        report(&name, records.len() / width, records.len(), || {
            record_tags(0, &records, width).expect("what fits")
        });
    }
    report("digest", 1, records.len(), || digest(&[&records]));
    let texts = (0..200_000).map(|_| format!("{:08}", random.below(1 << 24)));
    let texts = StringArray::from_iter_values(texts);
    report("hash_of_texts", 200_000, 200_000 * 8, || {
        hash_texts(b"salt", &[&texts, &texts]).expect("texts")
    });
}

fn main() {
    let threads = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(1));
    pool.build().expect("threads").install(|| {
        let mut random = Random(1);
        selections(&mut random);
        sums(&mut random);
        disjoint(&mut random);
        preparations(&mut random);
    });
}
