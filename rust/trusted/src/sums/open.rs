//! Masks of whole row sets, taken away from sums.

use super::masks::{number, AllMasks, Blocks, Masks, BATCH};
use super::{Opened, Sums, NARROW_BITS, WIDE_BITS};
use crate::epochs::Epochs;
use crate::error::{Error, Result};
use aes::Block;
use louver_primitives::rowset;
use rayon::prelude::*;
use std::collections::btree_map::{BTreeMap, Entry};

/// Groups a task takes.
const CHUNK: usize = 256;

pub(super) fn open<S: AsRef<[u8]> + Sync>(
    masks: &AllMasks<'_>,
    sums: &Sums<'_, S>,
) -> Result<Opened> {
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
    masks: &'a AllMasks<'a>,
    /// Runs that wait, by the first row id behind their epoch.
    waiting: BTreeMap<i64, Waiting<'a>>,
    added: Added,
}

/// Masks of values and flags of every group.
struct Added {
    flagged: bool,
    totals: Vec<(u128, u128)>,
    values: Blocks,
    flags: Blocks,
}

/// Runs of one epoch.
struct Waiting<'a> {
    masks: &'a Masks,
    /// The last id of a run, and the id before its first.
    points: Vec<i64>,
    /// Group and weight of every run.
    terms: Vec<(usize, u64)>,
}

impl<'a> Adder<'a> {
    fn new(masks: &'a AllMasks<'a>, flagged: bool, groups: usize) -> Self {
        Self {
            masks,
            waiting: BTreeMap::new(),
            added: Added {
                flagged,
                totals: vec![(0, 0); groups],
                values: Blocks::default(),
                flags: Blocks::default(),
            },
        }
    }

    fn run<S: AsRef<[u8]>>(mut self, sets: &[S]) -> Result<Vec<(u128, u128)>> {
        for (group, set) in sets.iter().enumerate() {
            let mut unknown = Ok(());
            let read = rowset::read(set.as_ref(), |run| {
                // Within the limits of a row set, nothing here can overflow.
                let mut first = run.first.cast_signed();
                let end = first + run.count.cast_signed();
                while first < end && unknown.is_ok() {
                    let last = end.min(Epochs::end(first)) - 1;
                    unknown = self.add(first, last, (group, run.weight));
                    first = last + 1;
                }
            });
            read.map_err(|error| Error::verify(error.to_string()))?;
            unknown?;
        }
        for waiting in self.waiting.values_mut() {
            self.added.take_in(waiting);
        }
        Ok(std::mem::take(&mut self.added.totals))
    }

    /// Takes in a run within one epoch.
    fn add(&mut self, first: i64, last: i64, term: (usize, u64)) -> Result<()> {
        let waiting = match self.waiting.entry(Epochs::end(first)) {
            Entry::Occupied(occupied) => occupied.into_mut(),
            Entry::Vacant(vacant) => vacant.insert(Waiting {
                masks: self.masks.of(first)?,
                points: Vec::new(),
                terms: Vec::new(),
            }),
        };
        waiting.points.extend([last, first - 1]);
        waiting.terms.push(term);
        if waiting.points.len() >= BATCH {
            self.added.take_in(waiting);
        }
        Ok(())
    }
}

impl Added {
    fn take_in(&mut self, of: &mut Waiting<'_>) {
        of.masks.values(&of.points, &mut self.values.0);
        for (pair, &(group, weight)) in self.values.0.chunks_exact(2).zip(&of.terms) {
            let total = &mut self.totals[group].0;
            *total = total.wrapping_add(times(pair, weight));
        }
        if self.flagged {
            of.masks.flags(&of.points, &mut self.flags.0);
            for (pair, &(group, weight)) in self.flags.0.chunks_exact(2).zip(&of.terms) {
                let total = &mut self.totals[group].1;
                *total = total.wrapping_add(times(pair, weight));
            }
        }
        of.points.clear();
        of.terms.clear();
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
