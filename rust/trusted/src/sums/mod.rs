//! Masked sums (`spec/sum.md`): integers under one-time masks that telescope over row ids.

mod known;
mod masks;
mod open;
mod seal;
#[cfg(test)]
mod tests;

use crate::epochs::Epochs;
use crate::error::{Error, Result};
use crate::keyring::KeyRing;
use arrow_array::{Array, ArrayRef};
use arrow_schema::Field;
pub use known::set_sizes;
use louver_primitives::rowset::{self, Run};
use masks::AllMasks;
pub(crate) use masks::Masks;

/// Bits of a limb of values of at most 64 bits: DuckDB adds such columns without a carry that a
/// processor would have to guess.
pub const NARROW_BITS: u32 = 60;
/// Bits of a limb of wider values.
pub const WIDE_BITS: u32 = 64;

/// What a server summed: limbs and flags, group by group, and the rows of each group.
pub struct Sums<'a, S> {
    /// Bits of a limb: [`NARROW_BITS`] or [`WIDE_BITS`], as the column was sealed.
    pub limb_bits: u32,
    /// Sums of the low limbs, not reduced.
    pub low: &'a [i128],
    /// Sums of the high limbs; without them totals are modulo `2^limb_bits`.
    pub high: Option<&'a [i128]>,
    /// Sums of the flags.
    pub count: Option<&'a [i128]>,
    /// The row set of every group.
    pub sets: &'a [S],
}

/// Totals, and how many values are not NULL where flags were given.
pub type Opened = (Vec<i128>, Option<Vec<u64>>);

impl KeyRing {
    /// Masks whole numbers and whether they are NULL (which counts as 0): low limbs, high limbs,
    /// flags. A row id must never be used twice under one `id` and the same bits of its epoch.
    ///
    /// # Errors
    /// [`Error::Value`] for a type that cannot be summed, or a row id that is missing, negative
    /// or too large; [`Error::Verify`] for a row of an epoch that is not known.
    pub fn sum_seal(
        &self,
        id: (u32, u32, u32),
        epochs: &Epochs,
        field: &Field,
        values: &ArrayRef,
        row_ids: &dyn Array,
    ) -> Result<[ArrayRef; 3]> {
        let masks = AllMasks::new(self, id, epochs);
        seal::seal(&masks, field, values, row_ids)
    }

    /// Takes the masks of the rows that were added away.
    ///
    /// # Errors
    /// [`Error::Value`] for lists that differ in length or unknown limbs, [`Error::Verify`] for
    /// row sets that are none, or hold rows of an epoch that is not known.
    pub fn sum_open<S: AsRef<[u8]> + Sync>(
        &self,
        id: (u32, u32, u32),
        epochs: &Epochs,
        sums: &Sums<'_, S>,
    ) -> Result<Opened> {
        open::open(&AllMasks::new(self, id, epochs), sums)
    }
}

/// The row set of runs of row ids, `(first, count)`, in any order but without overlap.
///
/// # Errors
/// [`Error::Value`] for ids out of range or twice.
pub fn run_set(runs: &[(i64, i64)]) -> Result<Vec<u8>> {
    rowset::from_runs(&merged(runs)?).map_err(|error| Error::value(error.to_string()))
}

/// Runs `(first, count)` in ascending order; those that touch are one.
fn merged(runs: &[(i64, i64)]) -> Result<Vec<Run>> {
    let bad = || Error::value("a run of row ids is out of range");
    let run = |&(first, count): &(i64, i64)| -> Result<Run> {
        Ok(Run {
            first: u64::try_from(first).map_err(|_| bad())?,
            count: u64::try_from(count).map_err(|_| bad())?,
            weight: 1,
        })
    };
    let mut sorted = runs.iter().map(run).collect::<Result<Vec<_>>>()?;
    sorted.retain(|run| run.count > 0);
    sorted.sort_unstable_by_key(|run| run.first);
    let mut merged: Vec<Run> = Vec::with_capacity(sorted.len());
    for run in sorted {
        match merged.last_mut() {
            Some(last) if last.first.checked_add(last.count) == Some(run.first) => {
                last.count = last.count.checked_add(run.count).ok_or_else(bad)?;
            }
            _ => merged.push(run),
        }
    }
    Ok(merged)
}
