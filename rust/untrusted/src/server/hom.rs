//! Sums under Paillier's encryption: products of ciphertexts.

use super::call::kernel;
use super::lists::ranges;
use crate::columns::{binary, Blobs};
use crate::error::{Error, Result};
use arrow_array::{new_null_array, Array, ArrayRef};
use arrow_schema::DataType;
use std::ops::Range;

/// The product mod `modulus` (n squared) of every list's ciphertexts, NULLs left out; NULL if
/// there are none.
///
/// # Errors
/// Unusable types, lengths or moduli, or a ciphertext that is not below the modulus.
pub fn hom_sum(lists: &dyn Array, modulus: &dyn Array) -> Result<ArrayRef> {
    let (ranges, values) = ranges(lists)?;
    let moduli = Blobs::new(modulus)?;
    if moduli.len() != lists.len() {
        return Err(Error::new("the columns differ in length"));
    }
    let Some(be) = moduli.constant("modulus")? else {
        return Ok(new_null_array(&DataType::Binary, lists.len()));
    };
    let kernel = kernel(be)?;
    let blobs = Blobs::new(values)?;
    let sum_list = |(row, range): (usize, Range<usize>)| -> Result<Option<Vec<u8>>> {
        if lists.is_null(row) || moduli.get(row).is_none() {
            return Ok(None);
        }
        let values: Vec<&[u8]> = range.filter_map(|at| blobs.get(at)).collect();
        if values.is_empty() {
            return Ok(None);
        }
        Ok(Some(kernel.product(&values)?))
    };
    // Products of long lists are split by the kernel itself.
    let sums = ranges.into_iter().enumerate().map(sum_list);
    let sums = sums.collect::<Result<Vec<_>>>()?;
    let live: Vec<usize> = (0..sums.len()).filter(|&row| sums[row].is_some()).collect();
    let width = kernel.modulus().byte_len();
    let bytes = sums.into_iter().flatten().flatten().collect();
    Ok(binary(lists.len(), &live, width, bytes))
}
