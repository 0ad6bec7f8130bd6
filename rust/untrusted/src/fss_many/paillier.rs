//! Sums over intervals by the additive scheme.
//!
//! Every sum is a product of powers of few bases. What a row of the table adds to their exponents
//! is a row of the share times the row's value: whole numbers, so a long table costs additions.

use super::limbs::{add_times, extended, signed};
use crate::error::{go_on, Error, Result};
use crate::fss_table::Entries;
use crate::Stop;
use louver_primitives::fss_many::{
    generators, join_replies, sums_of_ciphertext, uniform_rows, write_reply, Bases, Exponent,
    PaillierLayout, PaillierShare, Rows, LAST_ROW_BYTES, PART_BYTES, ROW_BYTES, SUM_BITS,
};
use louver_primitives::{Kernel, Modulus};
use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use rayon::prelude::*;
use std::ops::Range;

/// Words of x, y, t and w of a row, and of their sums over a table.
const PART_WORDS: [usize; 4] = [4, 4, 8, 6];
/// Words of a row.
const ROW_WORDS: usize = 22;
/// Words of a column's exponents: x, y, t.
const COLUMN_WORDS: usize = 16;
/// Bytes of exponents that a task keeps.
const SPACE: usize = 4 << 20;
/// Fewest points of a task.
const TASK: usize = 4096;
/// Entries that are added before the flag is looked at.
const LOOK: usize = 4 << 10;
/// Most bytes of an answer.
const LARGEST: u64 = crate::fss_table::LARGEST as u64;

/// The reply to one share: sums of values by group, column by column, under the share's function.
///
/// # Errors
/// Bytes that are not a share, bases without an inverse, points out of order or domain, and
/// entries that do not fit together.
pub fn paillier_sum(share: &[u8], entries: &Entries<'_>) -> Result<Vec<u8>> {
    paillier_sum_until(share, entries, &Stop::new())
}

/// As [`paillier_sum`], until it is stopped.
///
/// # Errors
/// As for [`paillier_sum`]; [`Error::Stopped`].
pub fn paillier_sum_until(share: &[u8], entries: &Entries<'_>, stop: &Stop) -> Result<Vec<u8>> {
    go_on(stop)?;
    let share = PaillierShare::decode(share)?;
    entries.check(share.header.bits)?;
    let count = entries.group_count.checked_mul(entries.columns);
    let count = count.and_then(|count| u32::try_from(count).ok());
    let slots = sums_of_ciphertext(share.modulus.len());
    let bytes = count.map_or(usize::MAX, |c| (c as usize).div_ceil(slots)) as u64;
    let fits = bytes.saturating_mul(2 * share.modulus.len() as u64) <= LARGEST;
    let Some(count) = count.filter(|_| fits) else {
        return Err(Error::new("so many sums do not fit an answer"));
    };
    let ready = Ready::new(&share)?;
    // Fewer sums at a time than would fill the caches with exponents.
    let step = (SPACE / (share.layout.columns() * COLUMN_WORDS * 8)).max(1);
    let mut sums = Vec::with_capacity(count as usize);
    for first in (0..count as usize).step_by(step) {
        let range = first..(first + step).min(count as usize);
        let exponents = ready.exponents(entries, range, stop)?;
        sums.extend(ready.powers(&exponents, stop)?);
    }
    let packed = ready.pack(&sums, slots, stop)?;
    Ok(write_reply(count, &packed))
}

/// Replies to one share over parts of a table as the reply over all of it.
///
/// # Errors
/// Bytes that are not a share or not a reply to it, and replies of different numbers of sums.
pub fn paillier_join(share: &[u8], replies: &[&[u8]]) -> Result<Vec<u8>> {
    let share = PaillierShare::decode(share)?;
    let n = BigUint::from_bytes_be(&share.modulus);
    let square = Modulus::from_be_bytes(&(&n * &n).to_bytes_be());
    let square = square.map_err(|e| Error::new(e.to_string()))?;
    Ok(join_replies(&square, share.modulus.len(), replies)?)
}

/// A share prepared to be evaluated.
struct Ready {
    layout: PaillierLayout,
    n: BigInt,
    kernel: Kernel,
    /// V and W of every column, then the generators.
    bases: Bases,
    /// [`ROW_WORDS`] a row.
    rows: Vec<u64>,
}

/// What a table adds up to: exponents sum by sum and column by column, and of 1 + N.
struct Exponents {
    columns: Vec<u64>,
    plain: Vec<u64>,
}

impl Ready {
    fn new(share: &PaillierShare) -> Result<Self> {
        let kernel = share.kernel().map_err(|e| Error::new(e.to_string()))?;
        let bytes = kernel.modulus().byte_len();
        let stored = generators(&kernel, &share.modulus, share.layout.columns())?;
        let all: Vec<&[u8]> = share
            .bases
            .chunks_exact(bytes)
            .chain(stored.chunks_exact(bytes))
            .collect();
        let bases = Bases::new(&kernel, all.into_iter());
        let bases = bases.ok_or_else(|| Error::new("a share's base has no inverse"))?;
        Ok(Self {
            layout: share.layout,
            n: BigInt::from(BigUint::from_bytes_be(&share.modulus)),
            kernel,
            bases,
            rows: rows(share),
        })
    }

    fn exponents(
        &self,
        entries: &Entries<'_>,
        sums: Range<usize>,
        stop: &Stop,
    ) -> Result<Exponents> {
        let pieces = entries.points.len().div_ceil(TASK);
        let pieces = pieces.clamp(1, rayon::current_num_threads());
        let parts = (0..pieces).into_par_iter().map(|piece| {
            let points = entries.cut(piece, pieces)..entries.cut(piece + 1, pieces);
            let mut out = Exponents::zero(sums.len(), self.layout.columns());
            self.add(entries, points, &sums, &mut out, stop)?;
            Ok(out)
        });
        let zero = || Exponents::zero(sums.len(), self.layout.columns());
        parts.try_reduce(zero, |a, b| Ok(a.joined(b)))
    }

    /// Adds the entries of some points that are of some sums.
    fn add(
        &self,
        entries: &Entries<'_>,
        points: Range<usize>,
        sums: &Range<usize>,
        out: &mut Exponents,
        stop: &Stop,
    ) -> Result<()> {
        let mut added = 0;
        // Entries of one point and one group are first added up among themselves.
        let mut totals = vec![0_i128; entries.columns];
        for at in points {
            let (row, column) = self.layout.place(entries.points[at]);
            let row = &self.rows[row * ROW_WORDS..][..ROW_WORDS];
            let (start, end) = match entries.starts {
                None => (at, at + 1),
                Some(starts) => (starts[at] as usize, starts[at + 1] as usize),
            };
            added += 1 + end.saturating_sub(start);
            if added > LOOK {
                go_on(stop)?;
                added = 0;
            }
            let mut entry = start;
            while entry < end {
                let group = group_of(entries, entry);
                totals.fill(0);
                while entry < end && group_of(entries, entry) == group {
                    add_entry(entries, entry, &mut totals);
                    entry += 1;
                }
                for (which, total) in totals.iter().enumerate() {
                    let sum = group.saturating_mul(entries.columns).saturating_add(which);
                    if sums.contains(&sum) {
                        out.add(row, *total, sum - sums.start, column, self.layout.columns());
                    }
                }
            }
        }
        Ok(())
    }

    /// The sums' group elements, big endian, as long as N² each.
    fn powers(&self, exponents: &Exponents, stop: &Stop) -> Result<Vec<Vec<u8>>> {
        let columns = self.layout.columns();
        let lists = exponents.columns.chunks_exact(columns * COLUMN_WORDS);
        let lists: Vec<Vec<Exponent>> = lists.map(list).collect();
        let powers = self.bases.powers(&lists, stop).ok_or(Error::Stopped)?;
        // (1 + N)^w = 1 + w N.
        let plain = exponents.plain.chunks_exact(PART_WORDS[3]).map(|words| {
            let factor = signed(words).mod_floor(&self.n) * &self.n + 1u8;
            factor.magnitude().to_bytes_be()
        });
        let plain: Vec<Vec<u8>> = plain.collect();
        let plain = self.kernel.load_rows(plain.iter().map(Vec::as_slice))?;
        let stored = self.kernel.store(&self.kernel.mul(&powers, &plain));
        let rows = stored.chunks_exact(self.kernel.modulus().byte_len());
        Ok(rows.map(<[u8]>::to_vec).collect())
    }

    /// Several sums to a ciphertext.
    fn pack(&self, sums: &[Vec<u8>], slots: usize, stop: &Stop) -> Result<Vec<u8>> {
        let ciphertexts = sums.len().div_ceil(slots);
        let mut packed = self.kernel.one(ciphertexts);
        let top = slots.min(sums.len());
        for slot in (0..top).rev() {
            // The highest is moved by those below it alone.
            for _ in 0..if slot + 1 < top { SUM_BITS } else { 0 } {
                go_on(stop)?;
                packed = self.kernel.square(&packed);
            }
            let sum = |which: usize| {
                sums.get(which * slots + slot)
                    .map_or(&[1][..], Vec::as_slice)
            };
            let rows: Vec<&[u8]> = (0..ciphertexts).map(sum).collect();
            packed = self
                .kernel
                .mul(&packed, &self.kernel.load_rows(rows.into_iter())?);
        }
        Ok(self.kernel.store(&packed))
    }
}

impl Exponents {
    fn zero(sums: usize, columns: usize) -> Self {
        Self {
            columns: vec![0; sums * columns * COLUMN_WORDS],
            plain: vec![0; sums * PART_WORDS[3]],
        }
    }

    fn joined(mut self, other: Self) -> Self {
        for (sum, more) in self
            .columns
            .chunks_exact_mut(COLUMN_WORDS)
            .zip(other.columns.chunks_exact(COLUMN_WORDS))
        {
            let mut first = 0;
            for words in &PART_WORDS[..3] {
                add_times(
                    &mut sum[first..first + words],
                    &more[first..first + words],
                    1,
                );
                first += words;
            }
        }
        let plain = self.plain.chunks_exact_mut(PART_WORDS[3]);
        for (sum, more) in plain.zip(other.plain.chunks_exact(PART_WORDS[3])) {
            add_times(sum, more, 1);
        }
        self
    }

    /// Adds a row of the share times a value.
    fn add(&mut self, row: &[u64], value: i128, sum: usize, column: usize, columns: usize) {
        let at = (sum * columns + column) * COLUMN_WORDS;
        let (x, rest) = self.columns[at..at + COLUMN_WORDS].split_at_mut(4);
        let (y, t) = rest.split_at_mut(4);
        add_times(x, &row[..4], value);
        add_times(y, &row[4..8], value);
        add_times(t, &row[8..16], value);
        let plain = &mut self.plain[sum * PART_WORDS[3]..][..PART_WORDS[3]];
        add_times(plain, &row[16..], value);
    }
}

fn group_of(entries: &Entries<'_>, entry: usize) -> usize {
    match entries.groups {
        None => 0,
        // A mapped file that changes meanwhile makes the sums wrong, and no more.
        Some(groups) => groups
            .get(entry)
            .map_or(usize::MAX, |group| *group as usize),
    }
}

fn add_entry(entries: &Entries<'_>, entry: usize, totals: &mut [i128]) {
    let Some(values) = entries.values else {
        totals[0] += 1;
        return;
    };
    let values = values.get(entry * entries.columns..).unwrap_or(&[]);
    let pairs = totals.iter_mut().zip(values);
    pairs.for_each(|(total, value)| *total += i128::from(*value));
}

/// The exponents of one sum, in the order of the bases.
fn list(columns: &[u64]) -> Vec<Exponent> {
    let parts = columns.chunks_exact(COLUMN_WORDS);
    let ends = parts
        .clone()
        .flat_map(|c| [extended(&c[..4]), extended(&c[4..8])]);
    ends.chain(parts.map(|c| extended(&c[8..]))).collect()
}

/// The numbers of a share's rows, in words.
fn rows(share: &PaillierShare) -> Vec<u64> {
    let count = share.layout.rows();
    let (bytes, row_bytes, more) = match &share.rows {
        Rows::Key(key) => (uniform_rows(key, count), ROW_BYTES, 0),
        Rows::Parts(parts) => (parts.clone(), LAST_ROW_BYTES, 1),
    };
    let mut out = vec![0; count * ROW_WORDS];
    let rows = out.par_chunks_exact_mut(ROW_WORDS);
    let bytes = bytes.par_chunks_exact(row_bytes);
    rows.zip(bytes).for_each(|(mut out, mut bytes)| {
        for (part, words) in PART_BYTES.into_iter().zip(PART_WORDS) {
            let number;
            (number, bytes) = bytes.split_at(part + more);
            // Uniform parts have no sign.
            let fill = match more == 1 && number[part] >= 128 {
                true => u8::MAX,
                false => 0,
            };
            let (here, rest) = out.split_at_mut(words);
            for (at, word) in here.iter_mut().enumerate() {
                let byte = |b: usize| *number.get(8 * at + b).unwrap_or(&fill);
                *word = u64::from_le_bytes(std::array::from_fn(byte));
            }
            out = rest;
        }
    });
    out
}
