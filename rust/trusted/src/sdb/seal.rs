//! From plain columns to ciphertexts: `v * item_key^-1 mod n` (SDB paper, section 3.1).

use super::items::ItemKeys;
use super::keys::SdbKey;
use super::numbers::{Number, NumberType};
use super::residue::Residues;
use super::rows;
use super::secret::Secret;
use super::space::SdbSpace;
use crate::columns::RowIds;
use crate::epochs::Epochs;
use crate::error::{Error, Result};
use crate::keys::random;
use arrow_array::{Array, ArrayRef, BinaryArray};
use arrow_buffer::{Buffer, MutableBuffer, NullBuffer, OffsetBuffer};
use num_bigint::BigUint;
use num_traits::Zero;
use rayon::prelude::*;
use std::sync::Arc;
use zeroize::Zeroize;

/// Most bits of a number in the helper column R; a planner must leave room for them below n/2.
pub const RANDOM_BITS: u32 = 128;
/// Fewest bits of such a number.
const RANDOM_MIN_BITS: u32 = 64;
/// Rows of a task: their residues stay in the second-level cache.
const TASK: usize = 512;

impl SdbSpace {
    /// Seals a column of whole numbers: `byte_len(n)` big-endian bytes a value; NULL stays null.
    ///
    /// # Errors
    /// [`Error::Value`] for another type, missing row ids, or values not below n/2;
    /// [`Error::Verify`] for a row of an epoch that is not known.
    pub fn seal(
        &self,
        id: (u32, u32, u32),
        epochs: &Epochs,
        kind: &NumberType,
        values: &ArrayRef,
        row_ids: &dyn Array,
    ) -> Result<ArrayRef> {
        let row_ids = RowIds::new(row_ids)?;
        if row_ids.len() != values.len() {
            return Err(Error::value("one row id a value is needed"));
        }
        let (live, mut numbers) = kind.read(values);
        let key = self.column_key(id.0, id.1, id.2, 0);
        let sealed = self.seal_rows(&key, epochs, &row_ids, &live, Some(&numbers));
        numbers.iter_mut().for_each(|n| n.magnitude.zeroize());
        self.binary(values.len(), &live, sealed?)
    }

    /// The helper column S: a table's ones.
    ///
    /// # Errors
    /// [`Error::Value`] for a missing row id, [`Error::Verify`] for an unknown epoch.
    pub fn seal_ones(&self, table: u32, epochs: &Epochs, row_ids: &dyn Array) -> Result<ArrayRef> {
        let row_ids = RowIds::new(row_ids)?;
        let live: Vec<usize> = (0..row_ids.len()).collect();
        let sealed = self.seal_rows(&self.ones_key(table, 0), epochs, &row_ids, &live, None)?;
        self.binary(live.len(), &live, sealed)
    }

    /// The helper column R: positive random numbers of 64 to 128 bits, every length as likely.
    ///
    /// # Errors
    /// [`Error::Value`] for a missing row id, or a modulus too small for such numbers;
    /// [`Error::Verify`] for an unknown epoch.
    pub fn seal_random(
        &self,
        table: u32,
        generation: u32,
        epochs: &Epochs,
        row_ids: &dyn Array,
    ) -> Result<ArrayRef> {
        let row_ids = RowIds::new(row_ids)?;
        let live: Vec<usize> = (0..row_ids.len()).collect();
        let mut bytes = vec![[0u8; 17]; live.len()];
        random(bytes.as_flattened_mut())?;
        let mut numbers: Vec<Number> = bytes.iter().map(draw).collect();
        bytes.zeroize();
        let key = self.random_key(table, generation, 0);
        let sealed = self.seal_rows(&key, epochs, &row_ids, &live, Some(&numbers));
        numbers.iter_mut().for_each(|n| n.magnitude.zeroize());
        self.binary(live.len(), &live, sealed?)
    }

    /// Ciphertexts of the live rows under a key of slot 0; ones where there are no numbers.
    pub(crate) fn seal_rows(
        &self,
        key: &SdbKey,
        epochs: &Epochs,
        row_ids: &RowIds,
        live: &[usize],
        numbers: Option<&[Number]>,
    ) -> Result<Vec<u8>> {
        let slot = &key.slots[&0];
        let offset = -slot.offset.expose();
        let factor = Secret::natural(self.invert(key.m.magnitude()));
        let half = self.n() >> 1u32;
        let fits = |n: &Number| BigUint::from(n.magnitude) <= half;
        // Every number of 128 bits fits a modulus of more than 129.
        if half.bits() <= 128 && !numbers.unwrap_or_default().iter().all(fits) {
            return Err(Error::value("a value is too large for the modulus"));
        }
        let items = ItemKeys::new(self, (slot.table, epochs), &factor, &offset, live.len());
        let residues = Residues::new(&self.modulus());
        let width = self.kernel.modulus().byte_len();
        let mut out = vec![0; live.len() * width];
        let tasks = out.par_chunks_mut(TASK * width).zip(live.par_chunks(TASK));
        let seal = |(i, (out, rows)): (usize, (&mut [u8], &[usize]))| {
            let ids = rows::pick(row_ids, rows)
                .map_err(|_| Error::value("a value without row id cannot be sealed"))?;
            for (at, out) in out.chunks_exact_mut(width).enumerate() {
                let number = numbers.map_or(Number::new(false, 1), |n| n[i * TASK + at]);
                residues.write(number, out);
            }
            let plain = self.kernel.load_raw(out.chunks_exact(width));
            let mut plain = plain.expect("residues lie below n");
            // All that a raw column is multiplied with is in Montgomery form, so it stays raw.
            let sealed = items.times(self, &ids, &plain);
            plain.zeroize();
            self.kernel.store_raw_into(&sealed?, out);
            Ok(())
        };
        tasks.enumerate().try_for_each(seal)?;
        Ok(out)
    }

    /// A binary column with values of one width at the live rows, null elsewhere.
    fn binary(&self, rows: usize, live: &[usize], values: Vec<u8>) -> Result<ArrayRef> {
        let width = self.kernel.modulus().byte_len();
        if i32::try_from(values.len()).is_err() {
            let text = "more than 2 GiB of ciphertext at once: seal fewer rows at a time";
            return Err(Error::value(text));
        }
        let mut valid = vec![false; rows];
        live.iter().for_each(|&row| valid[row] = true);
        let lengths = valid.iter().map(|&v| if v { width } else { 0 });
        let offsets = OffsetBuffer::from_lengths(lengths);
        let nulls = NullBuffer::from(valid);
        let nulls = (nulls.null_count() > 0).then_some(nulls);
        let values = Buffer::from(MutableBuffer::from(values));
        Ok(Arc::new(BinaryArray::new(offsets, values, nulls)))
    }
}

/// A positive number of 64 to 128 bits from 17 random bytes.
fn draw(bytes: &[u8; 17]) -> Number {
    let (length, number) = bytes.split_at(1);
    let spread = RANDOM_BITS - RANDOM_MIN_BITS + 1;
    let bits = RANDOM_MIN_BITS + u32::from(length[0]) % spread;
    let number = u128::from_be_bytes(number.try_into().expect("16 bytes"));
    let number = (number | 1 << 127) >> (128 - bits);
    debug_assert!(!number.is_zero());
    Number::new(false, number)
}
