//! Three parties: the scheme of one-way functions and that over Paillier's group.

use crate::{report, scrambled};
use louver_trusted::fss_many::{OwfPoint, PaillierModulus, PaillierSum};
use louver_untrusted::fss::Points;
use louver_untrusted::fss_many::{evaluate_owf, paillier_sum, OwfShare};
use louver_untrusted::fss_table::Entries;
use std::sync::Arc;

const WHO: &str = "louver, three";
const PARTIES: u8 = 3;

/// Shares made and evaluated with one-way functions, at most 24 bits.
pub fn owf(bits: u32, count: usize) {
    let secret = scrambled(bits, 3)[2];
    let made = || OwfPoint::new(bits, Some(secret), PARTIES).expect("a point of the domain");
    report(WHO, "make point, one-way", bits, 1, || {
        u128::from(made().shares()[0][0])
    });
    let point = made();
    let share = OwfShare::decode(&point.shares()[0]).expect("our own share");
    let mut keys = scrambled(bits, count);
    keys.sort_unstable();
    keys.dedup();
    report(WHO, "point, one-way", bits, keys.len(), || {
        let mut seen = 0;
        let mut sink = |_: usize, bits: &[u8], values: &[u128]| {
            seen ^= values[values.len() - 1] ^ u128::from(bits[0]);
        };
        let points = Points::Sorted(&keys);
        evaluate_owf(&share, points, 0..keys.len(), &mut sink).expect("points of the domain");
        seen
    });
}

/// Shares of an interval made over Paillier's group, and entries that one provider sums.
pub fn paillier(modulus: &Arc<PaillierModulus>, bits: u32, count: usize) {
    let last = (1u64 << bits) - 1;
    let made = || {
        PaillierSum::new(modulus, bits, Some((last / 3, last / 2)), PARTIES).expect("an interval")
    };
    report(WHO, "make interval, Paillier", bits, 1, || {
        u128::from(made().shares()[0][0])
    });
    let sum = made();
    let mut keys = scrambled(bits, count);
    keys.sort_unstable();
    keys.dedup();
    let entries = Entries {
        points: &keys,
        starts: None,
        groups: None,
        values: None,
        columns: 1,
        group_count: 1,
    };
    report(WHO, "interval, Paillier", bits, keys.len(), || {
        let told = paillier_sum(&sum.shares()[0], &entries).expect("points of the domain");
        u128::from(told[0])
    });
}
