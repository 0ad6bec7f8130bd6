//! Figures 6.10 to 6.15: the time to query one filter, by kind, hash and encryption.

use super::{root, spec, Dice, Run, PLACE};
use louver_papers::eds::kind::Kind;
use louver_papers::eds::secret::file::FileIndex;
use louver_papers::eds::server::file::{Prober, Work};
use louver_papers::eds::spec::{Encryption, Hash, Spec};
use louver_trusted::eds::{Ranges, RANGE};

type Id = [u8; 16];

/// Filters, their file ids, and for each a token.
struct Case {
    filters: Vec<(Id, Vec<u8>)>,
    probers: Vec<Prober>,
}

impl Case {
    fn new(spec: &Spec, count: usize, meet: bool) -> Self {
        let index = FileIndex::new(&root(), PLACE, *spec);
        let mut dice = Dice(15);
        let (mut filters, mut probers) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let (low, high) = dice.range(63);
            let id = dice.id();
            filters.push((id, filter(&index, &id, low, high)));
            let (a, b) = dice.range(63);
            let range = if meet {
                (a.min(high), b.max(low))
            } else {
                (a | 1 << 63, b | 1 << 63)
            };
            let token = index.token(range.0, range.1, false).expect("a range");
            probers.push(Prober::new(&token).expect("a token"));
        }
        Self { filters, probers }
    }

    fn ask(&self, work: &mut Work) -> usize {
        let both = self.filters.iter().zip(&self.probers);
        let matches = both.filter(|((id, filter), prober)| {
            prober.matches_counted(id, filter, work).expect("a filter")
        });
        matches.count()
    }

    /// Nanoseconds of a query.
    fn time(&self, run: &Run) -> f64 {
        run.time(self.filters.len(), || self.ask(&mut Work::default()))
    }
}

fn filter(index: &FileIndex, id: &Id, low: u64, high: u64) -> Vec<u8> {
    let range = Ranges {
        lows: &[low],
        highs: &[high],
        states: &[RANGE],
    };
    index.filter(id, &range).expect("a range")
}

/// The smallest filter of a kind that errs in less than 1 of 100 cases.
fn smallest(kind: Kind, k: u8) -> u32 {
    let errs = |bits: &u32| {
        let spec = spec(kind, Hash::Aes128, Encryption::Open, *bits, k);
        let case = Case::new(&spec, 1000, false);
        case.ask(&mut Work::default()) < 10
    };
    (10..17).map(|size| 1 << size).find(errs).unwrap_or(1 << 16)
}

const MEETS: [(&str, bool); 2] = [("intersecting", true), ("not intersecting", false)];

fn kinds(run: &Run, count: usize) {
    let kinds = [
        (Kind::Basic, 6, Encryption::XorBit),
        (Kind::RegisterBlocked, 6, Encryption::XorBlock),
        (Kind::SplitBlock64, 8, Encryption::XorBlock),
        (Kind::SplitBlock256, 8, Encryption::XorBlock),
        (Kind::CacheSectorized, 8, Encryption::XorBlock),
    ];
    for (kind, k, way) in kinds {
        let bits = smallest(kind, k);
        run.line(
            "6.11",
            "bits of a filter",
            format!("{kind:?}"),
            bits.into(),
            "bits",
        );
        for (name, meet) in MEETS {
            let open = spec(kind, Hash::Aes128, Encryption::Open, bits, k);
            let case = Case::new(&open, count, meet);
            run.line("6.11", format!("{kind:?}"), name, case.time(run), "ns");
            if kind == Kind::Basic {
                matching(run, &case, name);
            }
            for hash in [Hash::Highway, Hash::Aes128] {
                let case = Case::new(&spec(kind, hash, way, bits, k), count, meet);
                let series = format!("{kind:?}, {way:?}, {hash:?}");
                run.line("6.12", series, name, case.time(run), "ns");
                let mut work = Work::default();
                case.ask(&mut work);
                if hash == Hash::Highway {
                    let mean = work.decryptions as f64 / count as f64;
                    run.line(
                        "6.13",
                        format!("{kind:?}, {way:?}"),
                        name,
                        mean,
                        "decryptions",
                    );
                }
            }
        }
    }
}

/// How many pairs of a sub-token match before one does not.
fn matching(run: &Run, case: &Case, name: &str) {
    let mut work = Work::default();
    case.ask(&mut work);
    for (pairs, count) in work.matching.iter().enumerate().take(7) {
        let mean = *count as f64 / case.filters.len() as f64;
        run.line("6.14", name, pairs, mean, "sub-tokens of 128");
    }
}

pub(super) fn queries(run: &Run) {
    let count = run.pick(50, 1000);
    if run.wants(&["6.10"]) {
        for kind in [Kind::SplitBlock64, Kind::SplitBlock256] {
            for (name, meet) in MEETS {
                let spec = spec(kind, Hash::Aes128, Encryption::Open, 16_384, 8);
                let case = Case::new(&spec, count, meet);
                run.line("6.10", format!("{kind:?}"), name, case.time(run), "ns");
            }
        }
    }
    if run.wants(&["6.11", "6.12", "6.13", "6.14"]) {
        kinds(run, count);
    }
    if run.wants(&["6.15"]) {
        for way in Encryption::ALL {
            for hash in [Hash::Highway, Hash::Aes128] {
                for (name, meet) in MEETS {
                    let spec = spec(Kind::SplitBlock64, hash, way, 16_384, 8);
                    let case = Case::new(&spec, count, meet);
                    let series = format!("{way:?}, {hash:?}");
                    run.line("6.15", series, name, case.time(run), "ns");
                }
            }
        }
    }
}
