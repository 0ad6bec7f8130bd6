//! Simultaneous powers: the product of many bases, each to a whole number of its own.
//!
//! Pippenger's method with digits of both signs. The eight lanes of a block are eight neighbouring
//! digits of one base's exponent; each lane has buckets of its own.

use crate::column::{Column, Line, LANES};
use crate::kernel::Kernel;
use crate::Stop;
use num_bigint::BigUint;
use rayon::prelude::*;

/// Words of an exponent.
pub const EXPONENT_WORDS: usize = 8;
/// A whole number in two's complement, the lowest word first.
pub type Exponent = [u64; EXPONENT_WORDS];

/// Narrowest and widest digits.
const WIDTHS: std::ops::RangeInclusive<usize> = 3..=11;
/// Bases that one task takes at least.
const TASK: usize = 512;

/// Bases and their inverses.
pub struct Bases {
    kernel: Kernel,
    /// Words of the bases' rows, then of their inverses'.
    rows: [Vec<u64>; 2],
    count: usize,
}

/// Which base, and its exponent's size and sign.
struct Term {
    base: usize,
    negative: bool,
    size: Exponent,
    bits: usize,
}

impl Bases {
    /// Takes rows that all have an inverse; `None` if one has not, or is not below the modulus.
    pub fn new<'a>(kernel: &Kernel, rows: impl ExactSizeIterator<Item = &'a [u8]>) -> Option<Self> {
        let column = kernel.load_rows(rows).ok()?;
        let inverses = inverses(kernel, &column)?;
        Some(Self {
            kernel: kernel.clone(),
            count: column.len(),
            rows: [words_of(kernel, &column), words_of(kernel, &inverses)],
        })
    }

    /// For each list of exponents, one a base, the product of the powers: one row a list. `None`
    /// if it was stopped.
    ///
    /// # Panics
    /// If a list has not one exponent a base.
    pub fn powers(&self, lists: &[Vec<Exponent>], stop: &Stop) -> Option<Column> {
        let engine = self.kernel.engine();
        let terms: Vec<Vec<Term>> = lists.par_iter().map(|list| self.terms(list)).collect();
        let width = best_width(&terms);
        let bits = terms.iter().flatten().map(|term| term.bits).max();
        let groups = (bits.unwrap_or(0) + 1).div_ceil(width * LANES);
        let mut tasks = Vec::new();
        for (list, terms) in terms.iter().enumerate() {
            for group in 0..groups {
                let first = group * width * LANES;
                let live: Vec<&Term> = terms.iter().filter(|t| t.bits + 1 > first).collect();
                let parts = live.chunks(self.part(live.len(), lists.len() * groups));
                tasks.extend(parts.map(|part| (list, group, part.to_vec())));
            }
        }
        let sums = tasks.par_iter().map(|(list, group, part)| {
            // A task takes milliseconds.
            let sum = (!stop.is_set()).then(|| self.buckets(part, *group, width));
            Some((*list, *group, sum?))
        });
        // One block a list and group: eight windows' products.
        let unit = self.kernel.one(LANES).lines;
        let mut windows = vec![unit; lists.len() * groups];
        for (list, group, sum) in sums.collect::<Option<Vec<_>>>()? {
            engine.mul_assign(&mut windows[list * groups + group], &sum, LANES);
        }
        Some(self.join(&windows, lists.len(), groups, width))
    }

    /// How many terms a task takes, so that all threads have work.
    fn part(&self, terms: usize, tasks: usize) -> usize {
        let parts = rayon::current_num_threads().div_ceil(tasks.max(1));
        terms.div_ceil(parts).max(TASK)
    }

    fn terms(&self, list: &[Exponent]) -> Vec<Term> {
        assert_eq!(list.len(), self.count, "one exponent a base");
        let terms = list.iter().enumerate().map(|(base, exponent)| {
            let negative = exponent[EXPONENT_WORDS - 1] >> 63 == 1;
            let size = if negative {
                negated(exponent)
            } else {
                *exponent
            };
            let bits = bits(&size);
            Term {
                base,
                negative,
                size,
                bits,
            }
        });
        terms.filter(|term| term.bits > 0).collect()
    }

    /// The products of eight windows over some terms.
    fn buckets(&self, terms: &[&Term], group: usize, width: usize) -> Vec<Line> {
        let engine = self.kernel.engine();
        let (words, half) = (engine.row_words(), 1 << (width - 1));
        // Bucket 0 takes what has no digit; it is never read.
        let unit = words_of(&self.kernel, &self.kernel.one(1));
        let mut buckets: [Vec<u64>; LANES] = std::array::from_fn(|_| unit.repeat(half + 1));
        let [mut block, mut factor] = [0; 2].map(|_| vec![Line::default(); engine.width()]);
        for term in terms {
            let digits: [i32; LANES] =
                std::array::from_fn(|lane| digit(&term.size, group * LANES + lane, width));
            if digits == [0; LANES] {
                continue;
            }
            let at = digits.map(|digit| digit.unsigned_abs() as usize * words);
            let base = |lane: usize| {
                let inverse = usize::from((digits[lane] < 0) != term.negative);
                &self.rows[inverse][term.base * words..][..words]
            };
            engine.set_words(&mut factor, &std::array::from_fn(base));
            let bucket = |lane: usize| &buckets[lane][at[lane]..][..words];
            engine.set_words(&mut block, &std::array::from_fn(bucket));
            engine.mul_assign(&mut block, &factor, LANES);
            for (lane, buckets) in buckets.iter_mut().enumerate() {
                engine.get_words(&block, lane, &mut buckets[at[lane]..][..words]);
            }
        }
        let mut running = self.kernel.one(LANES).lines;
        let mut total = running.clone();
        for bucket in (1..=half).rev() {
            let row = |lane: usize| &buckets[lane][bucket * words..][..words];
            engine.set_words(&mut block, &std::array::from_fn(row));
            engine.mul_assign(&mut running, &block, LANES);
            engine.mul_assign(&mut total, &running, LANES);
        }
        total
    }

    /// Squares and multiplies the windows of each list together.
    fn join(&self, windows: &[Vec<Line>], lists: usize, groups: usize, width: usize) -> Column {
        let engine = self.kernel.engine();
        let mut out = self.kernel.one(lists);
        let words = engine.row_words();
        let blocks = out.lines.par_chunks_exact_mut(engine.width());
        blocks.enumerate().for_each(|(block, acc)| {
            let live = LANES.min(lists - block * LANES);
            let mut rows = vec![vec![0; words]; LANES];
            let mut factor = vec![Line::default(); engine.width()];
            for window in (0..groups * LANES).rev() {
                (0..width).for_each(|_| engine.sqr_assign(acc, live));
                for (lane, row) in rows.iter_mut().enumerate() {
                    // Lanes past the last list repeat an existing one and are never read.
                    let list = block * LANES + lane.min(live - 1);
                    let lines = &windows[list * groups + window / LANES];
                    engine.get_words(lines, window % LANES, row);
                }
                let row = |lane: usize| rows[lane].as_slice();
                engine.set_words(&mut factor, &std::array::from_fn(row));
                engine.mul_assign(acc, &factor, live);
            }
        });
        out
    }
}

/// The width of digits with the fewest products.
fn best_width(lists: &[Vec<Term>]) -> usize {
    let cost = |width: &usize| {
        let span = width * LANES;
        let list = |terms: &Vec<Term>| {
            let groups = terms.iter().map(|term| (term.bits + 1).div_ceil(span));
            let most = groups.clone().max().unwrap_or(0);
            groups.sum::<usize>() + most * (2 << (width - 1))
        };
        lists.iter().map(list).sum::<usize>()
    };
    WIDTHS.min_by_key(cost).unwrap_or(*WIDTHS.start())
}

/// Digit `at` of a number: between -2^(width - 1) and 2^(width - 1).
fn digit(number: &Exponent, at: usize, width: usize) -> i32 {
    let here = window(number, at * width, width);
    // What was rounded up in the digit below comes from the highest bit there.
    let carry = match at {
        0 => 0,
        _ => window(number, at * width - 1, 1),
    };
    let digit = here + carry;
    match here >> (width - 1) {
        0 => digit as i32,
        _ => digit as i32 - (1 << width),
    }
}

fn window(number: &Exponent, first: usize, width: usize) -> u64 {
    let (word, shift) = (first / 64, first % 64);
    let low = number.get(word).unwrap_or(&0) >> shift;
    let high = match shift {
        0 => 0,
        _ => number.get(word + 1).unwrap_or(&0) << (64 - shift),
    };
    (low | high) & ((1 << width) - 1)
}

fn bits(number: &Exponent) -> usize {
    let top = number.iter().rposition(|word| *word != 0);
    top.map_or(0, |at| 64 * at + 64 - number[at].leading_zeros() as usize)
}

fn negated(number: &Exponent) -> Exponent {
    let mut carry = true;
    number.map(|word| {
        let (word, over) = (!word).overflowing_add(u64::from(carry));
        carry = over;
        word
    })
}

fn words_of(kernel: &Kernel, column: &Column) -> Vec<u64> {
    let engine = kernel.engine();
    let words = engine.row_words();
    let mut out = vec![0; column.rows * words];
    for (row, out) in out.chunks_exact_mut(words).enumerate() {
        let block = &column.lines[row / LANES * column.width..][..column.width];
        engine.get_words(block, row % LANES, out);
    }
    out
}

/// All rows' inverses: one inversion, and three products a row (Montgomery's trick).
fn inverses(kernel: &Kernel, column: &Column) -> Option<Column> {
    let (engine, width) = (kernel.engine(), column.width);
    let mut padded = kernel.one(column.rows.next_multiple_of(LANES));
    let rows = words_of(kernel, column);
    let unit = words_of(kernel, &kernel.one(1));
    let row = |at: usize| rows.chunks_exact(engine.row_words()).nth(at);
    for (block, lines) in padded.lines.chunks_exact_mut(width).enumerate() {
        let lane = |lane: usize| row(block * LANES + lane).unwrap_or(&unit);
        engine.set_words(lines, &std::array::from_fn(lane));
    }
    // before[b] is the product of all blocks below b.
    let mut before = vec![kernel.one(LANES).lines];
    for lines in padded.lines.chunks_exact(width) {
        let mut next = before.last()?.clone();
        engine.mul_assign(&mut next, lines, LANES);
        before.push(next);
    }
    let lanes = Column {
        lines: before.pop()?,
        rows: LANES,
        ..padded
    };
    let inverted = lane_inverses(kernel, &kernel.store(&lanes))?;
    let mut after = kernel.load(&inverted).ok()?.lines;
    let mut out = kernel.zero(column.rows);
    let blocks = out.lines.chunks_exact_mut(width).zip(before);
    for ((out, before), lines) in blocks.zip(padded.lines.chunks_exact(width)).rev() {
        engine.mul(out, &after, &before, LANES);
        engine.mul_assign(&mut after, lines, LANES);
    }
    Some(out)
}

/// Inverses of a few rows, by one inversion.
fn lane_inverses(kernel: &Kernel, rows: &[u8]) -> Option<Vec<u8>> {
    let bytes = kernel.modulus().byte_len();
    let n = kernel.modulus().value();
    let numbers: Vec<BigUint> = rows
        .chunks_exact(bytes)
        .map(BigUint::from_bytes_be)
        .collect();
    let mut before = vec![BigUint::from(1u8)];
    for number in &numbers {
        before.push(before.last()? * number % n);
    }
    let mut after = before.pop()?.modinv(n)?;
    let mut out = Vec::with_capacity(numbers.len());
    for (number, before) in numbers.iter().zip(before).rev() {
        out.push(crate::wide::to_fixed(&(&after * before % n), bytes));
        after = after * number % n;
    }
    out.reverse();
    Some(out.concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Backend, Modulus};
    use num_bigint::{BigInt, Sign};
    use proptest::prelude::*;

    fn value(exponent: &Exponent) -> BigInt {
        let bytes: Vec<u8> = exponent
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        BigInt::from_signed_bytes_le(&bytes)
    }

    /// A number of at most so many bits, with its sign.
    fn cut(words: [u64; EXPONENT_WORDS], bits: usize, negative: bool) -> Exponent {
        let mut out = [0; EXPONENT_WORDS];
        for (at, word) in words.iter().enumerate() {
            let keep = bits.saturating_sub(64 * at).min(64);
            out[at] = word & (1_u64.checked_shl(keep as u32).unwrap_or(0).wrapping_sub(1));
        }
        if negative {
            negated(&out)
        } else {
            out
        }
    }

    proptest! {
        #[test]
        fn digits_make_the_number(words: [u64; 8], bits in 0..511_usize, width in 1..13_usize) {
            let number = cut(words, bits, false);
            let digits = (0..=512 / width).map(|at| {
                BigInt::from(digit(&number, at, width)) << (at * width)
            });
            prop_assert_eq!(digits.sum::<BigInt>(), value(&number));
        }

        #[test]
        fn powers_are_those_of_big_integers(
            seeds in prop::collection::vec((any::<[u64; 8]>(), 0..511_usize, any::<bool>()), 1..40),
            lists in 1..11_usize,
            portable: bool,
        ) {
            let n: BigUint = (BigUint::from(1u8) << 521) - 1u8;
            let modulus = Modulus::from_be_bytes(&n.to_bytes_be()).unwrap();
            let backend = if portable { Backend::Portable } else { Backend::Ifma };
            let kernel = Kernel::with_backend(modulus, backend);
            let base = |seed: &[u64; 8]| BigUint::from_slice(&seed.map(|w| w as u32 | 1)) % &n;
            let numbers: Vec<BigUint> = seeds.iter().map(|(seed, ..)| base(seed)).collect();
            let rows: Vec<Vec<u8>> = numbers.iter().map(BigUint::to_bytes_be).collect();
            let bases = Bases::new(&kernel, rows.iter().map(Vec::as_slice)).unwrap();
            let list = |which: usize| -> Vec<Exponent> {
                let exponent = |(words, bits, negative): &([u64; 8], usize, bool)| {
                    cut(words.map(|w| w.rotate_left(which as u32)), *bits, *negative)
                };
                seeds.iter().map(exponent).collect()
            };
            let lists: Vec<Vec<Exponent>> = (0..lists).map(list).collect();
            let actual = kernel.store(&bases.powers(&lists, &Stop::new()).unwrap());
            let row_bytes = n.bits().div_ceil(8) as usize;
            let rows = actual.chunks_exact(row_bytes);
            for (list, actual) in lists.iter().zip(rows) {
                let powers = numbers.iter().zip(list).map(|(base, exponent)| {
                    let exponent = value(exponent);
                    let base = match exponent.sign() {
                        Sign::Minus => base.modinv(&n).unwrap(),
                        _ => base.clone(),
                    };
                    base.modpow(exponent.magnitude(), &n)
                });
                let expected = powers.fold(BigUint::from(1u8), |all, power| all * power % &n);
                prop_assert_eq!(BigUint::from_bytes_be(actual), expected);
            }
        }
    }

    #[test]
    fn what_is_stopped_has_no_powers() {
        let kernel = Kernel::new(Modulus::from_be_bytes(&[255; 8]).unwrap());
        let bases = Bases::new(&kernel, [&[2][..]].into_iter()).unwrap();
        let (lists, stop) = ([vec![[5, 0, 0, 0, 0, 0, 0, 0]]], Stop::new());
        assert!(bases.powers(&lists, &stop).is_some());
        stop.set();
        assert!(bases.powers(&lists, &stop).is_none());
    }

    #[test]
    fn what_has_no_inverse_is_refused() {
        let n = BigUint::from(u64::MAX); // 3 · 5 · 17 · …
        let kernel = Kernel::new(Modulus::from_be_bytes(&n.to_bytes_be()).unwrap());
        let bases = |rows: &[&[u8]]| Bases::new(&kernel, rows.iter().copied()).is_some();
        assert!(bases(&[&[2], &[7], &[11]]));
        assert!(!bases(&[&[2], &[15], &[11]]));
        assert!(!bases(&[&[0]]));
        assert!(!bases(&[&[255; 8]]));
        assert!(!bases(&[&[1; 9]]));
    }
}
