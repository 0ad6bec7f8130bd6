//! Values under their masks.

use super::masks::{number, AllMasks, Blocks, Masks};
use super::{NARROW_BITS, WIDE_BITS};
use crate::columns::RowIds;
use crate::epochs::Epochs;
use crate::error::{Error, Result};
use crate::sdb::NumberType;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, UInt64Array};
use arrow_schema::{DataType, Field};
use louver_primitives::rowset::ROW_LIMIT;
use rayon::prelude::*;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Rows a task takes.
const CHUNK: usize = 4096;
/// Most digits of a DECIMAL of 64 bits.
const NARROW_DIGITS: u8 = 18;

/// A row's low limb, high limb and flag.
type Row = [u64; 3];

pub(super) fn seal(
    masks: &AllMasks<'_>,
    field: &Field,
    values: &ArrayRef,
    row_ids: &dyn Array,
) -> Result<[ArrayRef; 3]> {
    let limb_bits = limb_bits(field)?;
    let row_ids = RowIds::new(row_ids)?;
    if row_ids.len() != values.len() {
        return Err(Error::value("one row id a value is needed"));
    }
    let numbers = Zeroizing::new(wrapped(values)?);
    let points = (0..row_ids.len()).map(|row| {
        let id = row_ids
            .get(row)
            .filter(|id| (0..ROW_LIMIT as i64).contains(id));
        id.ok_or_else(|| Error::value("a value without a usable row id cannot be summed"))
    });
    let points = points.collect::<Result<Vec<i64>>>()?;
    let mut rows = vec![[0; 3]; numbers.len()];
    let chunks = rows.par_chunks_mut(CHUNK).zip(points.par_chunks(CHUNK));
    let seal = |(chunk, (mut out, ids)): (usize, (&mut [Row], &[i64]))| {
        let mut at = chunk * CHUNK;
        for ids in ids.chunk_by(|a, b| Epochs::end(*a) == Epochs::end(*b)) {
            let mask = Chunk::new(masks.of(ids[0])?, ids);
            let (own, rest) = out.split_at_mut(ids.len());
            for (row, out) in own.iter_mut().enumerate() {
                let live = values.is_valid(at);
                *out = mask.row(row, if live { numbers[at] } else { 0 }, live, limb_bits);
                at += 1;
            }
            out = rest;
        }
        Ok(())
    };
    chunks.enumerate().try_for_each(seal)?;
    let column = |which: usize| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(
            rows.iter().map(|row| row[which]),
        ))
    };
    Ok([column(0), column(1), column(2)])
}

/// The mask functions at all ids of a chunk, which is of one epoch, and before them.
struct Chunk {
    values: Blocks,
    flags: Blocks,
    /// The index of each row's own block, and of the one before it.
    blocks: Vec<(usize, usize)>,
}

impl Chunk {
    fn new(masks: &Masks, ids: &[i64]) -> Self {
        let (mut points, mut blocks) = (Vec::with_capacity(ids.len() + 1), Vec::new());
        for &id in ids {
            if points.last() != Some(&(id - 1)) {
                points.push(id - 1);
            }
            blocks.push((points.len(), points.len() - 1));
            points.push(id);
        }
        let (mut values, mut flags) = (Blocks::default(), Blocks::default());
        masks.values(&points, &mut values.0);
        masks.flags(&points, &mut flags.0);
        Self {
            values,
            flags,
            blocks,
        }
    }

    fn row(&self, row: usize, value: u128, live: bool, limb_bits: u32) -> Row {
        let (own, before) = self.blocks[row];
        let mask = |of: &Blocks| number(&of.0[own]).wrapping_sub(number(&of.0[before]));
        let masked = value.wrapping_add(mask(&self.values));
        let flag = u128::from(live).wrapping_add(mask(&self.flags));
        let limb = |wide: u128, bits: u32| wide as u64 & (u64::MAX >> (64 - bits));
        [
            limb(masked, limb_bits),
            limb(masked >> limb_bits, limb_bits),
            limb(flag, NARROW_BITS),
        ]
    }
}

/// Bits of the limbs of a column of this type.
pub(super) fn limb_bits(field: &Field) -> Result<u32> {
    use DataType as T;
    let refused = |what: &str| Err(Error::value(format!("{what} cannot be summed under masks")));
    let metadata = field.metadata().get("ARROW:extension:metadata");
    if metadata.is_some_and(|text| text.contains("\"uhugeint\"")) {
        return refused("values of type UHUGEINT");
    }
    NumberType::new(field)?;
    match field.data_type() {
        T::Decimal32(..) | T::Decimal64(..) => Ok(NARROW_BITS),
        T::Decimal128(digits, _) if *digits <= NARROW_DIGITS => Ok(NARROW_BITS),
        T::Decimal128(..) | T::FixedSizeBinary(16) => Ok(WIDE_BITS),
        other if other.is_integer() => Ok(NARROW_BITS),
        other => refused(&format!("values of Arrow type {other}")),
    }
}

/// Whole numbers modulo 2^128; anything where a row is NULL.
fn wrapped(values: &ArrayRef) -> Result<Vec<u128>> {
    macro_rules! of {
        ($type:ty) => {{
            let values = values.as_primitive::<$type>().values();
            values
                .iter()
                .map(|&v| i128::from(v).cast_unsigned())
                .collect()
        }};
    }
    Ok(match values.data_type() {
        DataType::Int8 => of!(Int8Type),
        DataType::Int16 => of!(Int16Type),
        DataType::Int32 => of!(Int32Type),
        DataType::Int64 => of!(Int64Type),
        DataType::UInt8 => of!(UInt8Type),
        DataType::UInt16 => of!(UInt16Type),
        DataType::UInt32 => of!(UInt32Type),
        DataType::UInt64 => of!(UInt64Type),
        DataType::Decimal32(..) => of!(Decimal32Type),
        DataType::Decimal64(..) => of!(Decimal64Type),
        DataType::Decimal128(..) => of!(Decimal128Type),
        DataType::FixedSizeBinary(16) => {
            let values = values.as_fixed_size_binary();
            let number = |row: usize| values.value(row).try_into().map(u128::from_le_bytes);
            let numbers: std::result::Result<_, _> = (0..values.len()).map(number).collect();
            numbers.map_err(|_| Error::value("a whole number has 16 bytes"))?
        }
        other => {
            let text = format!("values of Arrow type {other} cannot be summed under masks");
            return Err(Error::value(text));
        }
    })
}
