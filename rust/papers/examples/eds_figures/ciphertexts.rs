//! Figures 6.26 to 6.28: what it takes to make ciphertexts and to prune by them, beside an
//! order-revealing baseline that was optimised with equal care.

use super::{root, spec, Dice, Run, PLACE};
use louver_papers::eds::kind::Kind;
use louver_papers::eds::secret::file::FileIndex;
use louver_papers::eds::secret::Index;
use louver_papers::eds::server::file::Prober;
use louver_papers::eds::server::Token;
use louver_papers::eds::spec::{Encryption, Hash, Spec};
use louver_papers::ore::right_bytes;
use louver_papers::ore::secret::{Baseline, Room};
use louver_papers::ore::server::{compare, prune, Column};
use louver_trusted::eds::{Ranges, RANGE};

const MANIFEST: usize = 1000;
const WAYS: [Encryption; 3] = [Encryption::XorBit, Encryption::XorBlock, Encryption::Aes];

/// Ranges of files; clustered ones share their first 36 bits, as small integers do.
struct Files {
    lows: Vec<u64>,
    highs: Vec<u64>,
    states: Vec<u8>,
}

impl Files {
    fn new(count: usize, bits: u32) -> Self {
        let mut dice = Dice(27);
        let (lows, highs) = (0..count).map(|_| dice.range(bits)).unzip();
        Self {
            lows,
            highs,
            states: vec![RANGE; count],
        }
    }

    fn ranges(&self) -> Ranges<'_> {
        Ranges {
            lows: &self.lows,
            highs: &self.highs,
            states: &self.states,
        }
    }

    fn one(&self) -> Ranges<'_> {
        Ranges {
            lows: &self.lows[..1],
            highs: &self.highs[..1],
            states: &self.states[..1],
        }
    }
}

fn split(encryption: Encryption, bits: u32) -> Spec {
    spec(Kind::SplitBlock64, Hash::Aes128, encryption, bits, 8)
}

pub(super) fn generation(run: &Run) {
    let files = Files::new(MANIFEST, 64);
    let mut number_ns = 0.0;
    for bits in [32, 64] {
        let ore = Baseline::new(&root(), 1, bits);
        let (mut room, mut out) = (Room::default(), vec![0; right_bytes(bits)]);
        let mut dice = Dice(1);
        number_ns = run.time(1, || {
            let value = dice.roll() >> (64 - bits);
            ore.right(value, &mut room, &mut out).expect("randomness");
        });
        let series = format!("ORE, {bits} bits");
        run.line("6.27", &series, "one number", number_ns, "ns");
        run.line("6.27", &series, "one range", 2.0 * number_ns, "ns");
        run.line(
            "6.27",
            "bytes of a range",
            &series,
            2.0 * right_bytes(bits) as f64,
            "bytes",
        );
    }
    for hash in [Hash::Highway, Hash::Aes128] {
        for way in WAYS {
            let spec = spec(Kind::SplitBlock64, hash, way, 16_384, 8);
            let index = FileIndex::new(&root(), PLACE, spec);
            let ns = run.time(1, || index.filter(&[7; 16], &files.one()).expect("a range"));
            let series = format!("BF-EDS, {way:?}, {hash:?}");
            run.line("6.27", series, "one range", ns, "ns");
        }
    }
    manifests(run, &files, 2e-6 * number_ns * MANIFEST as f64);
}

fn manifests(run: &Run, files: &Files, ore_ms: f64) {
    run.line("6.28", "ORE, 64 bits", "any", ore_ms, "ms");
    for size in 10..17 {
        for way in WAYS {
            let spec = split(way, 1 << size);
            let index = Index::new(&root(), PLACE, spec);
            let segment = || index.segment(&files.ranges()).expect("ranges");
            let ns = run.time(1, segment);
            run.line(
                "6.28",
                format!("segment, {way:?}"),
                1 << size,
                ns / 1e6,
                "ms",
            );
            if way == Encryption::Aes {
                let index = FileIndex::new(&root(), PLACE, spec);
                let all = || {
                    for _ in 0..MANIFEST {
                        let output = index.filter(&[7; 16], &files.one());
                        std::hint::black_box(output.expect("a range"));
                    }
                };
                let ns = run.time(1, all);
                run.line(
                    "6.28",
                    "file by file, Aes (paper)",
                    1 << size,
                    ns / 1e6,
                    "ms",
                );
            }
        }
    }
}

/// All right ciphertexts of one bound.
fn rights(ore: &Baseline, values: &[u64]) -> Vec<Vec<u8>> {
    let mut room = Room::default();
    let encrypt = |value: &u64| {
        let mut out = vec![0; right_bytes(64)];
        ore.right(*value, &mut room, &mut out).expect("randomness");
        out
    };
    values.iter().map(encrypt).collect()
}

pub(super) fn pruning(run: &Run) {
    let count = run.pick(500, 8192);
    for (name, bits) in [("random values", 64), ("values below 2^28", 28)] {
        let files = Files::new(count, bits);
        let (low, high) = Dice(5).range(bits);
        baseline(run, name, &files, (low, high));
        for way in [
            Encryption::Open,
            Encryption::XorBit,
            Encryption::XorBlock,
            Encryption::Aes,
        ] {
            let spec = split(way, 16_384);
            let index = Index::new(&root(), PLACE, spec);
            let segment = index.segment(&files.ranges()).expect("ranges");
            let token = index.token(low, high, false).expect("a range");
            let ready = Token::new(&token).expect("a token");
            let ns = run.time(count, || ready.sweep(&segment).expect("a segment"));
            run.line(
                "6.26",
                format!("BF-EDS, {way:?}, sweep"),
                name,
                ns,
                "ns a file",
            );
            let index = FileIndex::new(&root(), PLACE, spec);
            let some = &files.one();
            let filter = index.filter(&[7; 16], some).expect("a range");
            let token = index.token(low, high, false).expect("a range");
            let prober = Prober::new(&token).expect("a token");
            let filters = vec![filter; count];
            let ask = |filter: &Vec<u8>| prober.matches(&[7; 16], filter).expect("a filter");
            let ns = run.time(count, || {
                filters.iter().filter(|filter| ask(filter)).count()
            });
            run.line(
                "6.26",
                format!("BF-EDS, {way:?}, file by file"),
                name,
                ns,
                "ns a file",
            );
        }
    }
}

fn baseline(run: &Run, name: &str, files: &Files, (low, high): (u64, u64)) {
    let ore = Baseline::new(&root(), 1, 64);
    let mut room = Room::default();
    let (left_low, left_high) = (ore.left(low, &mut room), ore.left(high, &mut room));
    let (least, greatest) = (rights(&ore, &files.lows), rights(&ore, &files.highs));
    let count = least.len();
    let one_by_one = || {
        let both = least.iter().zip(&greatest);
        let hits = both.filter(|(least, greatest)| {
            let least = compare(64, least, &left_high).expect("a ciphertext");
            let greatest = compare(64, greatest, &left_low).expect("a ciphertext");
            least.is_le() && greatest.is_ge()
        });
        hits.count()
    };
    let wanted = files.lows.iter().zip(&files.highs);
    let wanted = wanted
        .filter(|(least, greatest)| **least <= high && **greatest >= low)
        .count();
    assert_eq!(one_by_one(), wanted, "the baseline is exact");
    let ns = run.time(count, one_by_one);
    run.line("6.26", "ORE, file by file", name, ns, "ns a file");
    let column = |rights: &[Vec<u8>]| {
        let rights: Vec<&[u8]> = rights.iter().map(Vec::as_slice).collect();
        Column::new(64, &rights).expect("ciphertexts")
    };
    let (least, greatest) = (column(&least), column(&greatest));
    let ns = run.time(count, || {
        prune(&least, &greatest, &left_low, &left_high).expect("the same domain")
    });
    run.line("6.26", "ORE, sweep", name, ns, "ns a file");
}
