//! From ciphertexts to plain columns: `v_e * m * prod g^(x_slot * r_slot) mod n`.

use super::items::ItemKeys;
use super::keys::SdbKey;
use super::numbers::{Number, NumberType};
use super::residue::Residues;
use super::rows;
use super::secret::Secret;
use super::space::SdbSpace;
use crate::columns::{Blobs, RowIds};
use crate::epochs::Epochs;
use crate::error::{Error, Result};
use arrow_array::{Array, ArrayRef};
use louver_primitives::{KernelError, Scalar};
use num_bigint::{BigInt, BigUint};
use num_traits::One;
use rayon::prelude::*;
use std::collections::BTreeMap;
use zeroize::Zeroize;

/// Rows of a task: their residues stay in the second-level cache.
const TASK: usize = 512;

impl SdbSpace {
    /// Opens a column as `kind`, checking every number against `low..=high`. A null ciphertext
    /// opens to NULL.
    ///
    /// # Errors
    /// [`Error::Verify`], naming the row, for a number outside the bounds or the type (an altered
    /// or moved ciphertext opens to one with overwhelming probability) and for a ciphertext
    /// without its row ids, or of an epoch that is not known; [`Error::Value`] for unusable
    /// arguments.
    pub fn open(
        &self,
        key: &SdbKey,
        epochs: &Epochs,
        ciphertexts: &dyn Array,
        row_ids: &BTreeMap<u32, ArrayRef>,
        kind: &NumberType,
        (low, high): (&BigInt, &BigInt),
    ) -> Result<ArrayRef> {
        let blobs = Blobs::new(ciphertexts)?;
        let ids = slot_ids(key, row_ids, blobs.len())?;
        let (least, most) = kind.range();
        let low = least.max(Number::saturating(low));
        let high = most.min(Number::saturating(high));
        let live: Vec<usize> = (0..blobs.len())
            .filter(|&row| blobs.get(row).is_some())
            .collect();
        let opening = self.opening(key, epochs, &ids, live.len());
        let residues = Residues::new(&self.modulus());
        let width = self.kernel.modulus().byte_len();
        let tasks = live.par_chunks(TASK).map(|rows| {
            let mut opened = self.open_rows(&opening, &blobs, &ids, rows)?;
            let read = opened.chunks_exact(width).zip(rows).map(|(be, &row)| {
                let number = residues.read(be).filter(|v| (low..=high).contains(v));
                number.ok_or_else(|| {
                    let row = name(&ids, row);
                    let text =
                        "opens to a number that the column cannot hold: it was altered or moved";
                    Error::verify(format!("the ciphertext of {row} {text}"))
                })
            });
            let numbers = read.collect::<Result<Vec<Number>>>();
            opened.zeroize();
            numbers
        });
        // Of several errors that of the first row counts.
        let done: Vec<Result<Vec<Number>>> = tasks.collect();
        let mut numbers = Vec::with_capacity(live.len());
        for part in done {
            numbers.extend(part?);
        }
        kind.write(blobs.len(), &live, &numbers)
    }

    fn opening<'a>(
        &'a self,
        key: &SdbKey,
        epochs: &'a Epochs,
        ids: &'a BTreeMap<u32, RowIds>,
        rows: usize,
    ) -> Opening<'a> {
        let mut factor = Some(&key.m);
        let unit = Secret::natural(BigUint::one());
        let mut slots = Vec::new();
        for (slot, of) in &key.slots {
            let by = factor.take().unwrap_or(&unit);
            let items = ItemKeys::new(self, (of.table, epochs), by, of.offset.expose(), rows);
            slots.push((&ids[slot], items));
        }
        let factor = factor.filter(|m| !m.expose().is_one());
        let factor = factor.map(|m| self.kernel.scalar(&m.bytes()).expect("m is below n"));
        Opening { slots, factor }
    }

    /// The opened residues of some rows, big endian.
    fn open_rows(
        &self,
        opening: &Opening<'_>,
        blobs: &Blobs<'_>,
        ids: &BTreeMap<u32, RowIds>,
        rows: &[usize],
    ) -> Result<Vec<u8>> {
        let values = rows.iter().map(|&row| blobs.get(row).unwrap_or_default());
        // All that a raw column is multiplied with is in Montgomery form, so it stays raw.
        let mut column = self.kernel.load_raw(values).map_err(|e| {
            let at = match e {
                KernelError::NotReduced { row } | KernelError::RowTooLong { row, .. } => row,
                KernelError::Length { .. } => 0,
            };
            let row = name(ids, rows[at]);
            Error::verify(format!(
                "the ciphertext of {row} was altered: it is too large"
            ))
        })?;
        for (ids, items) in &opening.slots {
            let picked = rows::pick(ids, rows).map_err(|row| {
                Error::verify(format!("the ciphertext in row {row} has no row id"))
            })?;
            let product = items.times(self, &picked, &column);
            column.zeroize();
            column = product?;
        }
        if let Some(factor) = &opening.factor {
            column = self.kernel.scale(&column, factor);
        }
        let opened = self.kernel.store_raw(&column);
        column.zeroize();
        Ok(opened)
    }
}

/// A key prepared for many rows.
struct Opening<'a> {
    slots: Vec<(&'a RowIds, ItemKeys<'a>)>,
    /// `m`, where no slot's item keys include it.
    factor: Option<Scalar>,
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.factor.zeroize();
    }
}

/// The row ids of every slot that the key depends on.
fn slot_ids(
    key: &SdbKey,
    row_ids: &BTreeMap<u32, ArrayRef>,
    rows: usize,
) -> Result<BTreeMap<u32, RowIds>> {
    let read = |&slot: &u32| {
        let array = row_ids
            .get(&slot)
            .ok_or_else(|| Error::value(format!("the row ids of slot {slot} are missing")))?;
        if array.len() != rows {
            return Err(Error::value("one row id a ciphertext is needed"));
        }
        Ok((slot, RowIds::new(array)?))
    };
    key.slots.keys().map(read).collect()
}

/// A row as an error names it.
fn name(ids: &BTreeMap<u32, RowIds>, row: usize) -> String {
    let known: Vec<String> = ids
        .values()
        .filter_map(|ids| ids.get(row).map(|id| id.to_string()))
        .collect();
    if known.is_empty() {
        format!("result row {row}")
    } else {
        format!("row id {}", known.join(", "))
    }
}
