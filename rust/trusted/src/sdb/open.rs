//! From ciphertexts to plain columns: `v_e * m * prod g^(x_slot * r_slot) mod n`.

use super::keys::SdbKey;
use super::numbers::{Number, NumberType};
use super::rows;
use super::seal::subtract_from;
use super::secret::Secret;
use super::space::SdbSpace;
use crate::columns::{Blobs, RowIds};
use crate::error::{Error, Result};
use arrow_array::{Array, ArrayRef};
use louver_primitives::Column;
use num_bigint::{BigInt, BigUint};
use num_traits::One;
use rayon::prelude::*;
use std::collections::BTreeMap;
use zeroize::Zeroize;

/// Rows opened at a time, which bounds the memory beside the result.
const CHUNK: usize = 16_384;

impl SdbSpace {
    /// Opens a column as `kind`, checking every number against `low..=high`. A null ciphertext
    /// opens to NULL.
    ///
    /// # Errors
    /// [`Error::Verify`], naming the row, for a number outside the bounds or the type (an altered
    /// or moved ciphertext opens to one with overwhelming probability) and for a ciphertext
    /// without its row ids; [`Error::Value`] for unusable arguments.
    pub fn open(
        &self,
        key: &SdbKey,
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
        let mut numbers = Vec::with_capacity(live.len());
        for rows in live.chunks(CHUNK) {
            let mut opened = self.open_rows(key, &blobs, &ids, rows, live.len())?;
            let width = self.kernel.modulus().byte_len();
            let n = self.modulus();
            let part: Vec<Option<Number>> = opened
                .par_chunks_exact(width)
                .with_min_len(256)
                .map(|be| number(be, &n).filter(|v| (low..=high).contains(v)))
                .collect();
            opened.zeroize();
            if let Some(at) = part.iter().position(Option::is_none) {
                let row = name(&ids, rows[at]);
                let text = "opens to a number that the column cannot hold: it was altered or moved";
                return Err(Error::verify(format!("the ciphertext of {row} {text}")));
            }
            numbers.extend(part.into_iter().flatten());
        }
        kind.write(blobs.len(), &live, &numbers)
    }

    /// The opened residues of some rows, big endian.
    fn open_rows(
        &self,
        key: &SdbKey,
        blobs: &Blobs<'_>,
        ids: &BTreeMap<u32, RowIds>,
        rows: &[usize],
        total: usize,
    ) -> Result<Vec<u8>> {
        let values = rows.iter().map(|&row| blobs.get(row).unwrap_or_default());
        let mut column = self
            .kernel
            .load_rows(values)
            .map_err(|e| Error::verify(format!("a ciphertext was altered: {e}")))?;
        let mut factor = Some(&key.m);
        for (slot, of) in &key.slots {
            let picked = rows::pick(&ids[slot], rows).map_err(|row| {
                Error::verify(format!("the ciphertext in row {row} has no row id"))
            })?;
            let mut exponents = rows::exponents(&self.root, of.table, &picked);
            let one = Secret::natural(BigUint::one());
            let by = factor.take().unwrap_or(&one);
            column = self.times_item_keys(by, of.offset.expose(), &exponents, column, total);
            exponents.zeroize();
        }
        if let Some(m) = factor.filter(|m| !m.expose().is_one()) {
            let scalar = self.kernel.scalar(&m.bytes()).expect("m is below n");
            column = self.kernel.scale(&column, &scalar);
        }
        let opened = self.kernel.store(&column);
        column.zeroize();
        Ok(opened)
    }

    /// `column * factor * (g^(t x_S))^r`, row by row.
    fn times_item_keys(
        &self,
        factor: &Secret,
        offset: &BigInt,
        exponents: &[[u8; 16]],
        column: Column,
        total: usize,
    ) -> Column {
        if let Some(table) = self.table(factor, offset, total) {
            return table.pow_mul(&self.kernel, exponents, &column);
        }
        let base = self.base(offset);
        let items: Vec<Vec<u8>> = exponents
            .iter()
            .map(|r| {
                let power = base
                    .magnitude()
                    .modpow(&BigUint::from_bytes_be(r), self.n());
                self.fixed(&(power * factor.magnitude() % self.n()))
            })
            .collect();
        let items = self.kernel.load_rows(items.iter().map(Vec::as_slice));
        self.kernel.mul(&column, &items.expect("below n"))
    }
}

/// The row ids of every slot that the key depends on.
fn slot_ids(
    key: &SdbKey,
    row_ids: &BTreeMap<u32, ArrayRef>,
    rows: usize,
) -> Result<BTreeMap<u32, RowIds>> {
    let one = |&slot: &u32| {
        let array = row_ids
            .get(&slot)
            .ok_or_else(|| Error::value(format!("the row ids of slot {slot} are missing")))?;
        if array.len() != rows {
            return Err(Error::value("one row id a ciphertext is needed"));
        }
        Ok((slot, RowIds::new(array)?))
    };
    key.slots.keys().map(one).collect()
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

/// The signed number that a residue stands for, if 128 bits hold its magnitude.
fn number(residue: &[u8], n: &[u8]) -> Option<Number> {
    let narrow = |be: &[u8]| {
        let (high, low) = be.split_at(be.len().saturating_sub(16));
        let mut wide = [0; 16];
        wide[16 - low.len()..].copy_from_slice(low);
        high.iter()
            .all(|&b| b == 0)
            .then(|| u128::from_be_bytes(wide))
    };
    // With a modulus of 128 bits both readings may be narrow: the nearer to 0 counts.
    let positive = narrow(residue).map(|m| Number::new(false, m));
    let mut rest = residue.to_vec();
    subtract_from(n, &mut rest);
    let negative = narrow(&rest).map(|m| Number::new(true, m));
    rest.zeroize();
    match (positive, negative) {
        (Some(p), Some(q)) => Some(if p.magnitude <= q.magnitude { p } else { q }),
        (p, q) => p.or(q),
    }
}
