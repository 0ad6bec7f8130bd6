//! Result tables of sampled rows (paper, Appendix A).
//!
//! The paper adds every row into one slot of a table of (value, count), chosen by a hash. Here a
//! slot has the XOR of the records by the lowest bit of their value, the sum of the values, and
//! the sum of value times tag. All shares of a question have one payload alpha, odd and secret.
//! Alpha is odd, so that lowest bits of additive shares are XOR shares of what is selected; unlike
//! the control bits they select nothing where a share's payload is zero. The opened sum is alpha
//! times how many rows met in the slot, and the opened sum of products alpha times the sum of
//! their tags. One row in a slot is its record, checked by its tag; none is zeros; more are
//! distinguished by their number, so that a provider that cheats is not taken for a collision. The
//! slot follows from the row's tag, not from its number: a known record is taken out of all
//! tables, which opens slots where it met another one.

use super::check::{additive_point, answer, length, parallel, pieces, width, BLOCK};
use super::order::{Block, Form, Order, ROWS};
use super::search::Rows;
use super::xor;
use crate::error::{go_on, Error, Result};
use crate::fss::{evaluate_point, PointShare, Points};
use crate::Stop;
use louver_primitives::fss::sample_slot;
use rayon::prelude::*;
use std::ops::Range;

/// Bytes of slots that are written before the flag is looked at.
const LOOK: usize = 4 << 20;

/// Rows with their records.
#[derive(Clone, Copy, Debug)]
pub struct Samples<'a> {
    /// The rows and their codes.
    pub rows: Rows<'a>,
    /// The rows' records, no two of them equal.
    pub records: &'a [u8],
    /// Bytes of a record, a multiple of 16.
    pub width: usize,
    /// Each record's tag, 16 bytes, little endian.
    pub tags: &'a [u8],
    /// Slots of each result table.
    pub slots: usize,
    /// One for each result table.
    pub seeds: &'a [u64],
}

/// A result table for each seed, one after the other; slot by slot the XOR of the records whose
/// values are odd, the sum of the values modulo 2^128 and the sum of value times tag (16 bytes
/// each, little endian). A row's value is the sum over the shares. Share j is over
/// `prefix_bits[j]` bits of the row's number, and the code. Answers of parts are joined by XOR and
/// by addition.
///
/// # Errors
/// As for [`super::search`]; records or tags of another length than the rows need; a width that
/// is not a multiple of 16; no slots, no seeds, or too many.
pub fn sample(shares: &[&[u8]], prefix_bits: &[u32], samples: &Samples<'_>) -> Result<Vec<u8>> {
    sample_until(shares, prefix_bits, samples, &Stop::new())
}

/// As [`sample`], until it is stopped.
///
/// # Errors
/// As for [`sample`]; [`Error::Stopped`].
pub fn sample_until(
    shares: &[&[u8]],
    prefix_bits: &[u32],
    samples: &Samples<'_>,
    stop: &Stop,
) -> Result<Vec<u8>> {
    let rows = &samples.rows;
    rows.check()?;
    width(samples.width)?;
    length(
        "records",
        samples.records.len(),
        rows.codes.len(),
        samples.width,
    )?;
    length("tags", samples.tags.len(), rows.codes.len(), BLOCK)?;
    if shares.len() != prefix_bits.len() {
        return Err(Error::new("each share is over a number of prefix bits"));
    }
    let slot = samples.width + 2 * BLOCK;
    let bytes = answer(&[samples.slots, samples.seeds.len(), slot])?;
    if bytes == 0 {
        return Err(Error::new("a sample has at least one slot and one seed"));
    }
    let levels = levels(shares, prefix_bits, rows)?;
    let many = parallel(bytes).min(rows.codes.len().div_ceil(ROWS)).max(1);
    let ranges = pieces(0..rows.codes.len(), many, ROWS);
    let parts = ranges
        .into_par_iter()
        .map(|range| part(&levels, samples, range, stop));
    let nothing = || Tables::new(samples);
    let whole = parts.try_reduce(nothing, |a, b| Ok(a.join(&b)))?;
    Ok(whole.answer(samples.width))
}

/// Shares over one length of prefix.
struct Level {
    form: Form,
    functions: Vec<PointShare>,
}

fn levels(shares: &[&[u8]], prefix_bits: &[u32], rows: &Rows<'_>) -> Result<Vec<Level>> {
    let mut levels: Vec<Level> = Vec::new();
    for (share, &bits) in shares.iter().zip(prefix_bits) {
        let function = additive_point(share)?;
        let form = rows.form(bits, function.header.bits)?;
        match levels
            .iter_mut()
            .find(|level| level.form.shift == form.shift)
        {
            Some(level) => level.functions.push(function),
            None => levels.push(Level {
                form,
                functions: vec![function],
            }),
        }
    }
    Ok(levels)
}

/// The result tables, or a part's.
struct Tables {
    records: Vec<u8>,
    counts: Vec<u128>,
    products: Vec<u128>,
}

impl Tables {
    fn new(samples: &Samples<'_>) -> Self {
        let slots = samples.slots * samples.seeds.len();
        Self {
            records: vec![0; slots * samples.width],
            counts: vec![0; slots],
            products: vec![0; slots],
        }
    }

    fn join(mut self, other: &Self) -> Self {
        for (byte, more) in self.records.iter_mut().zip(&other.records) {
            *byte ^= more;
        }
        self.counts = super::sum::joined(self.counts, &other.counts);
        self.products = super::sum::joined(self.products, &other.products);
        self
    }

    fn answer(&self, width: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.counts.len() * (width + 2 * BLOCK));
        let sums = self.counts.iter().zip(&self.products);
        for (record, (count, product)) in self.records.chunks_exact(width).zip(sums) {
            out.extend_from_slice(record);
            out.extend(count.to_le_bytes());
            out.extend(product.to_le_bytes());
        }
        out
    }
}

fn part(
    levels: &[Level],
    samples: &Samples<'_>,
    range: Range<usize>,
    stop: &Stop,
) -> Result<Tables> {
    let mut tables = Tables::new(samples);
    for first in range.clone().step_by(ROWS) {
        let block = first..range.end.min(first + ROWS);
        let rows = Block::new(samples.rows.codes, block.clone(), samples.rows.first);
        let mut values = vec![0; block.len()];
        for level in levels {
            let order = rows.order(level.form);
            for function in &level.functions {
                go_on(stop)?;
                add(function, &order, &mut values)?;
            }
        }
        tables.add(samples, block, &values, stop)?;
    }
    Ok(tables)
}

/// Adds what a share is worth at the rows of a block.
fn add(function: &PointShare, order: &Order, sums: &mut [u128]) -> Result<()> {
    let mut sink = |first: usize, _: &[u8], values: &[u128]| {
        for (run, value) in order.starts[first..].windows(2).zip(values) {
            for &row in &order.rows[run[0] as usize..run[1] as usize] {
                let sum = &mut sums[row as usize];
                *sum = sum.wrapping_add(*value);
            }
        }
    };
    let points = Points::Sorted(&order.points);
    evaluate_point(function, points, 0..order.points.len(), &mut sink)
}

impl Tables {
    /// Adds the rows of a block, each to a slot of each table.
    fn add(
        &mut self,
        samples: &Samples<'_>,
        block: Range<usize>,
        values: &[u128],
        stop: &Stop,
    ) -> Result<()> {
        let width = samples.width;
        let look = (LOOK / (width * samples.seeds.len())).max(1);
        let records = &samples.records[block.start * width..block.end * width];
        let (tags, _) = samples.tags[block.start * BLOCK..block.end * BLOCK].as_chunks::<BLOCK>();
        let rows = records.chunks_exact(width).zip(tags);
        for (at, ((record, tag), value)) in rows.zip(values).enumerate() {
            if at % look == 0 {
                go_on(stop)?;
            }
            let tag = u128::from_le_bytes(*tag);
            let odd = [*value as u8 & 1];
            let product = value.wrapping_mul(tag);
            for (table, &seed) in samples.seeds.iter().enumerate() {
                let slot = table * samples.slots + sample_slot(tag, seed, samples.slots);
                self.counts[slot] = self.counts[slot].wrapping_add(*value);
                self.products[slot] = self.products[slot].wrapping_add(product);
                let mut choice = xor::Choice {
                    bits: &odd,
                    stride: 1,
                    sums: &mut self.records[slot * width..(slot + 1) * width],
                };
                xor::select(record, width, &mut choice);
            }
        }
        Ok(())
    }
}
