//! Which rows a query added, in few bytes.

use super::lists::ranges;
use crate::error::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BinaryArray, LargeBinaryArray};
use arrow_schema::DataType;
use louver_primitives::rowset;
use rayon::prelude::*;
use std::sync::Arc;

/// The row set (`spec/rowset.md`) of every list of row ids; NULL for NULL.
///
/// # Errors
/// Another type, a row id that is NULL or out of range, or too many of them.
pub fn row_set(lists: &dyn Array) -> Result<ArrayRef> {
    let (ranges, ids) = ranges(lists)?;
    if ids.data_type() != &DataType::Int64 {
        let text = format!("row ids are BIGINT, not of Arrow type {}", ids.data_type());
        return Err(Error::new(text));
    }
    let ids = ids.as_primitive::<Int64Type>();
    let encode = |(row, range): (usize, std::ops::Range<usize>)| -> Result<Option<Vec<u8>>> {
        if lists.is_null(row) {
            return Ok(None);
        }
        if ids.null_count() > 0 && range.clone().any(|at| ids.is_null(at)) {
            return Err(Error::new("a row id is NULL"));
        }
        let mut ids = ids.values()[range].to_vec();
        Ok(Some(rowset::from_ids(&mut ids)?))
    };
    let sets = ranges.into_par_iter().enumerate().map(encode);
    let sets = sets.collect::<Result<Vec<_>>>()?;
    let size: usize = sets.iter().flatten().map(Vec::len).sum();
    Ok(if i32::try_from(size).is_ok() {
        Arc::new(BinaryArray::from_iter(sets))
    } else {
        Arc::new(LargeBinaryArray::from_iter(sets))
    })
}
