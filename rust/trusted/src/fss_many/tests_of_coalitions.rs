//! Can all parties but one distinguish two intervals by what they see? False alarms are negligibly
//! rare, and known leaks are detected.
//!
//! Shares are random, so no seed makes this repeatable. If two samples of n views come from one
//! distribution, then for any yes-no question the shares of yes differ by t or more with
//! probability at most 2 exp(-n t^2) (Hoeffding's inequality, which is not an approximation). The
//! questions are every bit of a view and the parity of every two; the bound on t is such that one
//! of them is passed by chance with probability `FALSE_ALARM`.

use super::modulus::PaillierModulus;
use super::paillier::PaillierSum;
use louver_primitives::fss_many::{PaillierShare, Rows, PART_BYTES, ROW_BYTES};
use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_traits::{One, ToPrimitive, Zero};
use std::sync::{Arc, OnceLock};

/// Of each interval: a question whose yes differs by a sixth or more is found.
const VIEWS: usize = 1_200;
/// For two intervals and one coalition, of which there are nine here.
const FALSE_ALARM: f64 = 1e-8;
const BITS: u32 = 6;
const PARTIES: usize = 3;
/// The first two differ in the rows and columns of both ends; the third adds nothing.
const INTERVALS: [Option<(u64, u64)>; 3] = [Some((0, 63)), Some((21, 22)), None];

/// All parties' shares of one interval.
type Shares = Vec<PaillierShare>;

/// A mistake that a construction could have.
#[derive(Clone, Copy, PartialEq)]
enum Leak {
    None,
    /// The missing party's part of one number is not subtracted.
    Bare,
    /// Every row's numbers are masked by the same parts.
    MaskAgain,
    /// Bases of columns up to the high end's are not squares.
    NoSquare,
}

/// As small as can be: nothing here depends on how hard it is to factor.
fn modulus() -> &'static Arc<PaillierModulus> {
    static MODULUS: OnceLock<Arc<PaillierModulus>> = OnceLock::new();
    MODULUS.get_or_init(|| Arc::new(PaillierModulus::of_bits(448).unwrap()))
}

/// Many shares of each of the intervals.
fn drawn() -> &'static [Vec<Shares>; 3] {
    static DRAWN: OnceLock<[Vec<Shares>; 3]> = OnceLock::new();
    DRAWN.get_or_init(|| {
        INTERVALS.map(|interval| {
            let draw = |_| {
                let sum = PaillierSum::new(modulus(), BITS, interval, PARTIES as u8).unwrap();
                let shares = sum.shares().iter();
                shares.map(|s| PaillierShare::decode(s).unwrap()).collect()
            };
            (0..VIEWS).map(draw).collect()
        })
    })
}

/// What a coalition sees of shares of one interval: every bit of all views, view by view.
struct Seen(Vec<[u64; VIEWS.div_ceil(64)]>);

impl Seen {
    fn of(which: usize, missing: usize, leak: Leak) -> Self {
        let mut seen = Vec::new();
        for (at, shares) in drawn()[which].iter().enumerate() {
            let mut bits = bits_of_bases(shares, INTERVALS[which], leak);
            bits.extend(bits_of_rows(shares, missing, leak));
            seen.resize(bits.len(), [0; VIEWS.div_ceil(64)]);
            for (seen, bit) in seen.iter_mut().zip(bits) {
                seen[at / 64] |= u64::from(bit) << (at % 64);
            }
        }
        Self(seen)
    }

    /// In how many views a bit is 1, or the parity of two.
    fn ones(&self, first: usize, second: usize) -> f64 {
        let words = self.0[first].iter().zip(&self.0[second]);
        let ones = |(a, b): (&u64, &u64)| if first == second { *a } else { a ^ b }.count_ones();
        f64::from(words.map(ones).sum::<u32>())
    }

    /// A difference between these views and others, if there is one.
    fn difference(&self, other: &Self) -> Option<String> {
        let bits = self.0.len();
        assert_eq!(bits, other.0.len());
        let questions = (bits * (bits + 1) / 2) as f64;
        let bound = ((2.0 * questions / FALSE_ALARM).ln() / VIEWS as f64).sqrt();
        let mut pairs =
            (0..bits).flat_map(|first| (first..bits).map(move |second| (first, second)));
        pairs.find_map(|(first, second)| {
            let apart = (self.ones(first, second) - other.ones(first, second)).abs() / VIEWS as f64;
            (apart > bound)
                .then(|| format!("bits {first} and {second}: {apart:.3} over {bound:.3}"))
        })
    }
}

#[test]
fn coalitions_cannot_distinguish_intervals() {
    for missing in 0..PARTIES {
        let seen = [0, 1, 2].map(|which| Seen::of(which, missing, Leak::None));
        for (first, second) in [(0, 1), (0, 2), (1, 2)] {
            assert_eq!(
                seen[first].difference(&seen[second]),
                None,
                "{missing} {first} {second}"
            );
        }
    }
}

#[test]
fn known_leaks_are_detected() {
    for leak in [Leak::Bare, Leak::MaskAgain, Leak::NoSquare] {
        for missing in 0..PARTIES - 1 {
            let [first, second] = [0, 1].map(|which| Seen::of(which, missing, leak));
            assert!(first.difference(&second).is_some());
        }
    }
}

/// Low bits of all bases, modulo N too, and Jacobi symbols: what is seen of them without factors.
fn bits_of_bases(shares: &[PaillierShare], interval: Option<(u64, u64)>, leak: Leak) -> Vec<bool> {
    let n = &modulus().n;
    let columns = shares[0].bases.chunks_exact(2 * shares[0].modulus.len());
    let mut bits = Vec::new();
    for (at, base) in columns.enumerate() {
        let mut base = BigUint::from_bytes_be(base);
        let high = interval.map_or(0, |(_, high)| shares[0].layout.place(high).1);
        if leak == Leak::NoSquare && at % 2 == 0 && at / 2 <= high {
            let mut numbers = (2_u32..).map(BigUint::from);
            base = base * numbers.find(|number| !is_one(number, n)).unwrap() % (n * n);
        }
        let rest = &base % n;
        bits.extend((0..24).map(|bit| base.bit(bit * 37)));
        bits.extend((0..24).map(|bit| rest.bit(bit * 18)));
        bits.push(is_one(&rest, n));
    }
    bits
}

/// Bits of the sums of a coalition's parts of every row's numbers: what is missing makes them
/// the numbers themselves.
fn bits_of_rows(shares: &[PaillierShare], missing: usize, leak: Leak) -> Vec<bool> {
    let rows = shares[0].layout.rows();
    let streams: Vec<Option<Vec<u8>>> = shares.iter().map(|share| stream(share, rows)).collect();
    let mut bits = Vec::new();
    for row in 0..rows {
        for (which, bytes) in PART_BYTES.into_iter().enumerate() {
            let part =
                |party: usize, row| part(&shares[party], streams[party].as_deref(), row, which);
            let present = (0..PARTIES).filter(|party| *party != missing);
            let mut total: BigInt = present.map(|party| part(party, row)).sum();
            match leak {
                Leak::Bare if which == 0 => total += part(missing, row),
                Leak::MaskAgain => total += part(missing, row) - part(missing, 0),
                _ => (),
            }
            // The lowest bits, the middle, and the highest that is still even.
            let positions = [0, 1, 2, 40, 8 * bytes as u64 - 2];
            bits.extend(positions.map(|position| total.bit(position)));
        }
    }
    bits
}

fn stream(share: &PaillierShare, rows: usize) -> Option<Vec<u8>> {
    match &share.rows {
        Rows::Key(key) => Some(louver_primitives::fss_many::uniform_rows(key, rows)),
        Rows::Parts(_) => None,
    }
}

/// One party's part of a number of a row.
fn part(share: &PaillierShare, stream: Option<&[u8]>, row: usize, which: usize) -> BigInt {
    let (bytes, first) = (PART_BYTES[which], PART_BYTES[..which].iter().sum::<usize>());
    match (&share.rows, stream) {
        // The last party's numbers have a byte more each.
        (Rows::Parts(parts), _) => {
            let start = row * (ROW_BYTES + PART_BYTES.len()) + first + which;
            BigInt::from_signed_bytes_le(&parts[start..][..bytes + 1])
        }
        (Rows::Key(_), Some(stream)) => {
            BigUint::from_bytes_le(&stream[row * ROW_BYTES + first..][..bytes]).into()
        }
        (Rows::Key(_), None) => BigInt::zero(),
    }
}

/// Whether the Jacobi symbol of a number over an odd one is 1.
fn is_one(number: &BigUint, over: &BigUint) -> bool {
    let (mut a, mut n, mut positive) = (number % over, over.clone(), true);
    let low = |number: &BigUint| (number % 8_u8).to_u8().unwrap();
    while !a.is_zero() {
        let twos = a.trailing_zeros().unwrap();
        a >>= twos;
        positive ^= twos.is_odd() && matches!(low(&n), 3 | 5);
        positive ^= low(&a) % 4 == 3 && low(&n) % 4 == 3;
        (a, n) = (&n % &a, a);
    }
    positive && n.is_one()
}
