//! Readers of the Arrow arrays that carry ciphertexts and row ids.

use crate::error::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt64Type};
use arrow_array::{Array, BinaryArray, BinaryViewArray, LargeBinaryArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

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
            other => Err(Error::value(format!(
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

    /// Bytes of all values, or more.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Small(a) => a.value_data().len(),
            Self::Large(a) => a.value_data().len(),
            Self::View(a) => a.lengths().map(|l| l as usize).sum(),
        }
    }

    pub(crate) fn get(&self, row: usize) -> Option<&'a [u8]> {
        match self {
            Self::Small(a) => a.is_valid(row).then(|| a.value(row)),
            Self::Large(a) => a.is_valid(row).then(|| a.value(row)),
            Self::View(a) => a.is_valid(row).then(|| a.value(row)),
        }
    }
}

/// A column of row ids.
pub(crate) struct RowIds {
    ids: Vec<i64>,
    nulls: Option<NullBuffer>,
}

impl RowIds {
    pub(crate) fn new(array: &dyn Array) -> Result<Self> {
        let ids = match array.data_type() {
            DataType::Int64 => array.as_primitive::<Int64Type>().values().to_vec(),
            DataType::UInt64 => {
                let ids = array.as_primitive::<UInt64Type>().values();
                ids.iter().map(|id| id.cast_signed()).collect()
            }
            DataType::Int32 => {
                let ids = array.as_primitive::<Int32Type>().values();
                ids.iter().map(|&id| i64::from(id)).collect()
            }
            other => {
                let text = format!("row ids are 64-bit integers, not of Arrow type {other}");
                return Err(Error::value(text));
            }
        };
        Ok(Self {
            ids,
            nulls: array.nulls().filter(|n| n.null_count() > 0).cloned(),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn has_nulls(&self) -> bool {
        self.nulls.is_some()
    }

    pub(crate) fn get(&self, row: usize) -> Option<i64> {
        let null = self.nulls.as_ref().is_some_and(|n| n.is_null(row));
        (!null).then(|| self.ids[row])
    }
}
