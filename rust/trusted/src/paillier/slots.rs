//! How a row's values are packed into one number.

use crate::error::{Error, Result};
use crate::sdb::NumberType;
use arrow_array::ArrayRef;
use arrow_schema::Field;
use num_bigint::BigUint;
use num_traits::ToPrimitive;

/// Bits of a slot: 96 for the values' sum, 32 for their number.
const SLOT_BITS: u32 = 128;
/// Fewer rows than this may be summed.
const ROW_LIMIT: u64 = 1 << 32;
const VALUE_BITS: u32 = 96;
/// Added to every value, so that none is negative.
const OFFSET: u128 = 1 << 63;

/// What a ciphertext opens to: a slot's total, and how many of its values are not NULL.
pub type Totals = Vec<(i128, u64)>;

/// Slots of a modulus.
pub(super) fn count(modulus_bits: u32) -> usize {
    ((modulus_bits - 2) / SLOT_BITS) as usize
}

/// Rows as numbers, big endian, slot 0 lowest.
///
/// # Errors
/// [`Error::Value`] for columns that hold no whole numbers of 64 bits, or differ in length.
pub(super) fn pack(columns: &[(Field, ArrayRef)], rows: usize, slots: usize) -> Result<Vec<u8>> {
    let (width, slot_bytes) = (slots * 16, SLOT_BITS as usize / 8);
    if columns.is_empty() || columns.len() > slots {
        let text = format!("a packed sum takes one to {slots} columns");
        return Err(Error::value(text));
    }
    let mut out = vec![0; rows * width];
    for (slot, (field, column)) in columns.iter().enumerate() {
        if column.len() != rows {
            return Err(Error::value("the columns differ in length"));
        }
        let (live, numbers) = NumberType::new(field)?.read(column);
        for (row, number) in live.into_iter().zip(numbers) {
            let value = if number.negative {
                OFFSET.checked_sub(number.magnitude)
            } else {
                Some(number.magnitude)
                    .filter(|m| *m < OFFSET)
                    .map(|m| m + OFFSET)
            };
            let text = "a value of over 64 bits cannot be packed";
            let value = value.ok_or_else(|| Error::value(text))?;
            let end = (row + 1) * width - slot * slot_bytes;
            let bytes = (1 << VALUE_BITS | value).to_be_bytes();
            out[end - slot_bytes..end].copy_from_slice(&bytes);
        }
    }
    Ok(out)
}

/// The totals of a number that is the sum of `rows` packed rows; `None` if it is not one.
pub(super) fn unpack(sum: &BigUint, rows: u64, slots: usize) -> Option<Totals> {
    if sum.bits() > slots as u64 * u64::from(SLOT_BITS) || rows >= ROW_LIMIT {
        return None;
    }
    let slot = |slot: usize| {
        let mask = BigUint::from(u128::MAX);
        let slot = ((sum >> (slot * SLOT_BITS as usize)) & mask).to_u128()?;
        let (count, value) = (slot >> VALUE_BITS, slot & ((1 << VALUE_BITS) - 1));
        let most = count * u128::from(u64::MAX);
        let fits = count <= u128::from(rows) && value <= most;
        // Both are below 2^96.
        fits.then(|| (value as i128 - (count * OFFSET) as i128, count as u64))
    };
    (0..slots).map(slot).collect()
}
