//! Codes as Arrow arrays.

use crate::error::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, Int64Array};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::DataType;
use std::sync::Arc;

/// Bytes of a wide code.
const WIDE: i32 = 16;

/// The codes of a column; anything where a row is NULL.
pub(super) enum Codes {
    Narrow(Vec<u64>),
    Wide(Vec<u128>),
}

impl Codes {
    /// Codes that were given before; 0 where they are NULL.
    pub(super) fn read(array: &dyn Array) -> Result<Self> {
        let live = |row: usize| array.is_valid(row);
        match array.data_type() {
            DataType::Int64 => {
                let codes = array
                    .as_primitive::<Int64Type>()
                    .values()
                    .iter()
                    .enumerate();
                let codes = codes.map(|(row, c)| if live(row) { c.cast_unsigned() } else { 0 });
                Ok(Self::Narrow(codes.collect()))
            }
            DataType::FixedSizeBinary(WIDE) => {
                let codes = array.as_fixed_size_binary();
                let code = |row: usize| match codes.value(row).first_chunk() {
                    Some(bytes) if live(row) => u128::from_be_bytes(*bytes),
                    _ => 0,
                };
                Ok(Self::Wide((0..array.len()).map(code).collect()))
            }
            other => Err(Error::value(format!("Arrow type {other} is none of codes"))),
        }
    }

    /// # Errors
    /// [`Error::Value`] if a value has code 0, which stands for NULL.
    pub(super) fn checked(self, nulls: Option<&NullBuffer>) -> Result<Self> {
        let live = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
        let zero = match &self {
            Self::Narrow(codes) => (0..codes.len()).any(|row| codes[row] == 0 && live(row)),
            Self::Wide(codes) => (0..codes.len()).any(|row| codes[row] == 0 && live(row)),
        };
        if zero {
            let text = "a value's code is the one that stands for NULL: it cannot be in this \
                        column";
            return Err(Error::value(text));
        }
        Ok(self)
    }

    pub(super) fn into_array(self, nulls: Option<&NullBuffer>) -> Result<ArrayRef> {
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0).cloned();
        let valid = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        Ok(match self {
            Self::Narrow(mut codes) => {
                let rows = codes.iter_mut().enumerate();
                rows.filter(|(row, _)| !valid(*row))
                    .for_each(|(_, c)| *c = 0);
                let codes: Vec<i64> = codes.into_iter().map(u64::cast_signed).collect();
                Arc::new(Int64Array::new(codes.into(), nulls))
            }
            Self::Wide(codes) => {
                let bytes = codes.iter().enumerate();
                let bytes =
                    bytes.map(|(row, c)| if valid(row) { c.to_be_bytes() } else { [0; 16] });
                let bytes: Vec<[u8; 16]> = bytes.collect();
                let bytes = Buffer::from_vec(bytes.into_flattened());
                let array = FixedSizeBinaryArray::try_new(WIDE, bytes, nulls);
                Arc::new(array.map_err(|error| Error::value(error.to_string()))?)
            }
        })
    }
}
