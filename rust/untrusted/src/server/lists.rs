//! Functions on lists: sums of groups, and several powers of one helper at once.

use super::call::{kernel, Call};
use super::update::{powers, trim};
use crate::columns::{binary, Blobs};
use crate::error::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::{new_null_array, Array, ArrayRef, ListArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};
use num_bigint::BigUint;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// The sum mod `n` of every list's values, NULLs left out; NULL if there are none.
///
/// # Errors
/// Unusable types, lengths or moduli.
pub fn sdb_sum(lists: &dyn Array, n: &dyn Array) -> Result<ArrayRef> {
    let (ranges, values) = ranges(lists)?;
    let modulus = Blobs::new(n)?;
    if modulus.len() != lists.len() {
        return Err(Error::new("the columns differ in length"));
    }
    let Some(be) = modulus.constant("n")? else {
        return Ok(new_null_array(&DataType::Binary, lists.len()));
    };
    let n = BigUint::from_bytes_be(be);
    let width = kernel(be)?.modulus().byte_len();
    let blobs = Blobs::new(values)?;
    let sum_list = |(row, range): (usize, Range<usize>)| -> Result<Option<Vec<u8>>> {
        if lists.is_null(row) || modulus.get(row).is_none() {
            return Ok(None);
        }
        sum(&blobs, range, width).map(|total| total.map(|t| fixed(&(t % &n), width)))
    };
    let sums = ranges.into_par_iter().enumerate().map(sum_list);
    let sums = sums.collect::<Result<Vec<_>>>()?;
    let live: Vec<usize> = (0..sums.len()).filter(|&row| sums[row].is_some()).collect();
    let bytes = sums.into_iter().flatten().flatten().collect();
    Ok(binary(lists.len(), &live, width, bytes))
}

/// The integer sum of some values; `None` if all are NULL.
fn sum(blobs: &Blobs<'_>, rows: Range<usize>, width: usize) -> Result<Option<BigUint>> {
    let words = width.div_ceil(8);
    // 128-bit sums of 64-bit words cannot overflow before 2^64 rows.
    let mut totals = vec![0u128; words];
    let mut some = false;
    for row in rows {
        let Some(value) = blobs.get(row) else {
            continue;
        };
        if value.len() > width {
            return Err(Error::new(
                "a value to be summed is longer than the modulus",
            ));
        }
        some = true;
        for (total, word) in totals.iter_mut().zip(value.rchunks(8)) {
            let mut wide = [0; 8];
            wide[8 - word.len()..].copy_from_slice(word);
            *total += u128::from(u64::from_be_bytes(wide));
        }
    }
    let total = totals.iter().rev();
    Ok(some.then(|| total.fold(BigUint::ZERO, |sum, &t| (sum << 64u32) + BigUint::from(t))))
}

/// `s` to each power of a list (the same list in every row): a list of as many residues a row.
///
/// # Errors
/// Unusable types, lengths or moduli; lists that differ.
pub fn sdb_powers(s: &dyn Array, exponents: &dyn Array, n: &dyn Array) -> Result<ArrayRef> {
    let item = Arc::new(Field::new("l", DataType::Binary, true));
    let (ranges, values) = ranges(exponents)?;
    if ranges.len() != s.len() {
        return Err(Error::new("the columns differ in length"));
    }
    let whole = Call::new(&[s], n)?;
    let Some(call) = whole.filter(|call| call.live.iter().any(|&row| exponents.is_valid(row)))
    else {
        return Ok(new_null_array(&DataType::List(item), s.len()));
    };
    let wanted = one_list(&call, exponents, &ranges, &Blobs::new(values)?)?;
    let k = &call.kernel;
    let raised = powers(k, &call.load(0, &call.live)?, &wanted);
    let raised = raised
        .into_iter()
        .map(|column| k.store(&column.unwrap_or_else(|| k.one(call.live.len()))));
    let raised: Vec<Vec<u8>> = raised.collect();
    let width = k.modulus().byte_len();
    let mut bytes = Vec::with_capacity(call.live.len() * wanted.len() * width);
    let mut lengths = vec![0; call.rows];
    let mut valid = vec![false; call.rows];
    for (i, &row) in call.live.iter().enumerate() {
        if exponents.is_null(row) {
            continue;
        }
        lengths[row] = wanted.len();
        valid[row] = true;
        for column in &raised {
            bytes.extend_from_slice(&column[i * width..][..width]);
        }
    }
    let count = bytes.len() / width;
    let live: Vec<usize> = (0..count).collect();
    let values = binary(count, &live, width, bytes);
    if values.data_type() != item.data_type() {
        return Err(Error::new("more than 2 GiB of powers at once"));
    }
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::new(
        item,
        offsets,
        values,
        Some(valid.into()),
    )))
}

/// The exponents that every live row contains.
fn one_list<'a>(
    call: &Call<'_>,
    lists: &dyn Array,
    ranges: &[Range<usize>],
    blobs: &Blobs<'a>,
) -> Result<Vec<&'a [u8]>> {
    let read = |row: usize| -> Result<Vec<&'a [u8]>> {
        let values = ranges[row].clone().map(|at| blobs.get(at).map(trim));
        let values: Option<Vec<_>> = values.collect();
        values.ok_or_else(|| Error::new("an exponent is NULL"))
    };
    let mut live = call.live.iter().copied().filter(|&row| lists.is_valid(row));
    let first = live.next().map_or_else(|| Ok(Vec::new()), read)?;
    for row in live {
        if read(row)? != first {
            let text = "the list of exponents must be the same in every row";
            return Err(Error::new(text));
        }
    }
    Ok(first)
}

/// The range of each list's values, and the values.
pub(crate) fn ranges(lists: &dyn Array) -> Result<(Vec<Range<usize>>, &dyn Array)> {
    match lists.data_type() {
        DataType::List(_) => {
            let lists = lists.as_list::<i32>();
            let pairs = lists.offsets().windows(2);
            let ranges = pairs.map(|w| w[0] as usize..w[1] as usize).collect();
            Ok((ranges, lists.values()))
        }
        DataType::LargeList(_) => {
            let lists = lists.as_list::<i64>();
            let pairs = lists.offsets().windows(2);
            let ranges = pairs.map(|w| w[0] as usize..w[1] as usize).collect();
            Ok((ranges, lists.values()))
        }
        other => Err(Error::new(format!(
            "a list is needed, not Arrow type {other}"
        ))),
    }
}

fn fixed(value: &BigUint, width: usize) -> Vec<u8> {
    let bytes = value.to_bytes_be();
    let mut out = vec![0; width - bytes.len()];
    out.extend_from_slice(&bytes);
    out
}
