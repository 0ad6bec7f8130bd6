//! Comparisons of order-revealing values with a token (`spec/ore.md`).

use crate::columns::Blobs;
use crate::error::{Error, Result};
use arrow_array::{Array, ArrayRef, Int8Array};
use louver_primitives::ore::compare;
use rayon::prelude::*;
use std::sync::Arc;

/// Rows a task takes.
const CHUNK: usize = 1024;

/// −1, 0 or 1: how stored values compare with that of the token; NULL where one is NULL.
///
/// # Errors
/// Other types, lengths that differ, values or tokens that are malformed.
pub fn ore_compare(stored: &dyn Array, token: &dyn Array) -> Result<ArrayRef> {
    let (stored, token) = (Blobs::new(stored)?, Blobs::new(token)?);
    let rows = stored.len();
    if token.len() != rows {
        return Err(Error::new("the columns differ in length"));
    }
    let compare_row = |row: usize| {
        let (Some(stored), Some(token)) = (stored.get(row), token.get(row)) else {
            return Ok(None);
        };
        let order = compare(stored, token);
        let malformed = || Error::new("an order-revealing value or token is malformed");
        order.map(|order| Some(order as i8)).ok_or_else(malformed)
    };
    let rows = (0..rows).into_par_iter().with_min_len(CHUNK);
    let orders = rows.map(compare_row).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Int8Array::from(orders)))
}
