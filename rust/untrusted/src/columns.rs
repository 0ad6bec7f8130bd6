//! Readers and writers of Arrow columns of byte strings.

use crate::error::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, BinaryViewArray, LargeBinaryArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::DataType;
use std::sync::Arc;

/// A column of byte strings in any of Arrow's layouts.
pub(crate) enum Blobs<'a> {
    Small(&'a BinaryArray),
    Large(&'a LargeBinaryArray),
    View(&'a BinaryViewArray),
}

impl<'a> Blobs<'a> {
    pub(crate) fn new(array: &'a dyn Array) -> Result<Self> {
        match array.data_type() {
            DataType::Binary => Ok(Self::Small(array.as_binary())),
            DataType::LargeBinary => Ok(Self::Large(array.as_binary())),
            DataType::BinaryView => Ok(Self::View(array.as_binary_view())),
            other => Err(Error::new(format!(
                "ciphertexts are binary, not of Arrow type {other}"
            ))),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Small(a) => a.len(),
            Self::Large(a) => a.len(),
            Self::View(a) => a.len(),
        }
    }

    pub(crate) fn has_nulls(&self) -> bool {
        match self {
            Self::Small(a) => a.null_count() > 0,
            Self::Large(a) => a.null_count() > 0,
            Self::View(a) => a.null_count() > 0,
        }
    }

    pub(crate) fn get(&self, row: usize) -> Option<&'a [u8]> {
        match self {
            Self::Small(a) => a.is_valid(row).then(|| a.value(row)),
            Self::Large(a) => a.is_valid(row).then(|| a.value(row)),
            Self::View(a) => a.is_valid(row).then(|| a.value(row)),
        }
    }

    /// The value that all rows except nulls share; `None` if all are null.
    pub(crate) fn constant(&self, name: &str) -> Result<Option<&'a [u8]>> {
        let mut values = (0..self.len()).filter_map(|row| self.get(row));
        let Some(first) = values.next() else {
            return Ok(None);
        };
        if values.all(|value| value == first) {
            Ok(Some(first))
        } else {
            let text = format!("argument {name} must be the same in every row");
            Err(Error::new(text))
        }
    }
}

/// A binary column of `rows` rows: values of one width at the rows `live`, null elsewhere.
pub(crate) fn binary(rows: usize, live: &[usize], width: usize, bytes: Vec<u8>) -> ArrayRef {
    let mut valid = vec![false; rows];
    live.iter().for_each(|&row| valid[row] = true);
    let lengths = valid.iter().map(|&v| if v { width } else { 0 });
    let nulls = NullBuffer::from(valid.clone());
    let nulls = (nulls.null_count() > 0).then_some(nulls);
    let bytes = Buffer::from_vec(bytes);
    if i32::try_from(bytes.len()).is_err() {
        let offsets = OffsetBuffer::<i64>::from_lengths(lengths);
        return Arc::new(LargeBinaryArray::new(offsets, bytes, nulls));
    }
    let offsets = OffsetBuffer::<i32>::from_lengths(lengths);
    Arc::new(BinaryArray::new(offsets, bytes, nulls))
}
