//! Masks of whole row sets, taken away from sums.

use super::masks::{number, Blocks, Masks, BATCH};
use super::{Opened, Sums, NARROW_BITS, WIDE_BITS};
use crate::error::{Error, Result};
use aes::Block;
use louver_primitives::rowset;
use rayon::prelude::*;

/// Groups a task takes.
const CHUNK: usize = 256;

pub(super) fn open<S: AsRef<[u8]> + Sync>(masks: &Masks, sums: &Sums<'_, S>) -> Result<Opened> {
    let bits = sums.limb_bits;
    if bits != NARROW_BITS && bits != WIDE_BITS {
        return Err(Error::value("a limb of a masked sum has 60 or 64 bits"));
    }
    let groups = sums.sets.len();
    let fits = |given: Option<&[i128]>| given.is_none_or(|given| given.len() == groups);
    if !(fits(Some(sums.low)) && fits(sums.high) && fits(sums.count)) {
        return Err(Error::value("one row set a group is needed"));
    }
    let flagged = sums.count.is_some();
    let chunks = sums.sets.par_chunks(CHUNK);
    let masks = chunks.map(|sets| Adder::new(masks, flagged, sets.len()).run(sets));
    let masks = masks.collect::<Result<Vec<_>>>()?;
    let total = |(group, mask): (usize, &(u128, u128))| {
        let low = sums.low[group].cast_unsigned();
        match sums.high {
            Some(high) => {
                let masked = low.wrapping_add(high[group].cast_unsigned() << bits);
                signed(masked.wrapping_sub(mask.0), 2 * bits)
            }
            None => signed(low.wrapping_sub(mask.0), bits),
        }
    };
    let totals = masks.iter().flatten().enumerate().map(total).collect();
    let Some(count) = sums.count else {
        return Ok((totals, None));
    };
    let modulus = 1 << NARROW_BITS;
    let number = |(&sum, mask): (&i128, &(u128, u128))| {
        (sum.cast_unsigned().wrapping_sub(mask.1) % modulus) as u64
    };
    let numbers = count.iter().zip(masks.iter().flatten()).map(number);
    Ok((totals, Some(numbers.collect())))
}

/// The number in `[-2^(bits-1), 2^(bits-1))` that is `wide` modulo `2^bits`.
fn signed(wide: u128, bits: u32) -> i128 {
    let unused = u128::BITS - bits;
    (wide << unused).cast_signed() >> unused
}

/// Adds mask functions up, group by group, a batch of runs at a time.
struct Adder<'a> {
    masks: &'a Masks,
    flagged: bool,
    /// The last id of a run, and the id before its first.
    points: Vec<i64>,
    /// Group and weight of every run.
    terms: Vec<(usize, u64)>,
    values: Blocks,
    flags: Blocks,
    /// Masks of values and flags.
    totals: Vec<(u128, u128)>,
}

impl<'a> Adder<'a> {
    fn new(masks: &'a Masks, flagged: bool, groups: usize) -> Self {
        Self {
            masks,
            flagged,
            points: Vec::with_capacity(BATCH),
            terms: Vec::with_capacity(BATCH / 2),
            values: Blocks::default(),
            flags: Blocks::default(),
            totals: vec![(0, 0); groups],
        }
    }

    fn run<S: AsRef<[u8]>>(mut self, sets: &[S]) -> Result<Vec<(u128, u128)>> {
        for (group, set) in sets.iter().enumerate() {
            let read = rowset::read(set.as_ref(), |run| {
                // Within the limits of a row set, nothing here can overflow.
                let first = run.first.cast_signed();
                self.points.push(first + run.count.cast_signed() - 1);
                self.points.push(first - 1);
                self.terms.push((group, run.weight));
                if self.points.len() >= BATCH {
                    self.flush();
                }
            });
            read.map_err(|error| Error::verify(error.to_string()))?;
        }
        self.flush();
        Ok(std::mem::take(&mut self.totals))
    }

    fn flush(&mut self) {
        self.masks.values(&self.points, &mut self.values.0);
        for (pair, &(group, weight)) in self.values.0.chunks_exact(2).zip(&self.terms) {
            let total = &mut self.totals[group].0;
            *total = total.wrapping_add(times(pair, weight));
        }
        if self.flagged {
            self.masks.flags(&self.points, &mut self.flags.0);
            for (pair, &(group, weight)) in self.flags.0.chunks_exact(2).zip(&self.terms) {
                let total = &mut self.totals[group].1;
                *total = total.wrapping_add(times(pair, weight));
            }
        }
        self.points.clear();
        self.terms.clear();
    }
}

/// The mask of a run.
fn times(pair: &[Block], weight: u64) -> u128 {
    let mask = number(&pair[0]).wrapping_sub(number(&pair[1]));
    match weight {
        1 => mask,
        _ => mask.wrapping_mul(u128::from(weight)),
    }
}
