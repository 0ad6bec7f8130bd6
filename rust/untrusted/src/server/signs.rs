//! Functions that read the sign of a residue under key `<1, 0>`.

use super::call::Call;
use super::functions::sum;
use crate::columns::binary;
use crate::error::{Error, Result};
use arrow_array::{new_null_array, Array, ArrayRef, Int8Array};
use arrow_schema::DataType;
use num_bigint::BigUint;
use std::sync::Arc;

/// The sign of `z`: 0, 1 (at most n/2), or -1 (above).
///
/// # Errors
/// Here and below: unusable types, lengths, moduli or updates.
pub fn sdb_compare(z: &dyn Array, n: &dyn Array) -> Result<ArrayRef> {
    let Some(call) = Call::new(&[z], n)? else {
        return Ok(new_null_array(&DataType::Int8, n.len()));
    };
    let modulus = call.kernel.modulus().to_be_bytes();
    let values = call
        .live
        .iter()
        .map(|&row| residue(call.value(0, row), &modulus, row));
    let values = values.collect::<Result<Vec<_>>>()?.concat();
    Ok(signs(&call, &modulus, &values))
}

/// The sign of `r * (qa * a * wa^pa + qb * b * wb^pb)`: a comparison in one call.
#[allow(clippy::too_many_arguments)]
pub fn sdb_compare_sum(
    r: &dyn Array,
    a: &dyn Array,
    b: &dyn Array,
    wa: &dyn Array,
    wb: &dyn Array,
    ka: &dyn Array,
    kb: &dyn Array,
    n: &dyn Array,
) -> Result<ArrayRef> {
    let Some(call) = Call::new(&[r, a, b, wa, wb, ka, kb], n)? else {
        return Ok(new_null_array(&DataType::Int8, n.len()));
    };
    let difference = sum(&call, (1, 3, 5), (2, 4, 6))?;
    let z = call.kernel.mul(&call.load(0)?, &difference);
    let modulus = call.kernel.modulus().to_be_bytes();
    Ok(signs(&call, &modulus, &call.kernel.store(&z)))
}

/// `z + (n-1)/2 mod n`, fixed width: byte order is the order of the signed numbers.
pub fn sdb_order(z: &dyn Array, n: &dyn Array) -> Result<ArrayRef> {
    let Some(call) = Call::new(&[z], n)? else {
        return Ok(new_null_array(&DataType::Binary, n.len()));
    };
    let modulus = call.kernel.modulus().to_be_bytes();
    let half = half(&modulus);
    let width = modulus.len();
    let mut out = Vec::with_capacity(call.live.len() * width);
    for &row in &call.live {
        let mut value = residue(call.value(0, row), &modulus, row)?;
        let carried = add(&mut value, &half);
        if carried || value >= modulus {
            subtract(&mut value, &modulus);
        }
        out.extend_from_slice(&value);
    }
    Ok(binary(call.rows, &call.live, width, out))
}

fn signs(call: &Call<'_>, modulus: &[u8], values: &[u8]) -> ArrayRef {
    let half = half(modulus);
    let mut out = vec![None; call.rows];
    let values = values.chunks_exact(modulus.len());
    for (&row, value) in call.live.iter().zip(values) {
        out[row] = Some(if value.iter().all(|&b| b == 0) {
            0
        } else if value <= half.as_slice() {
            1
        } else {
            -1
        });
    }
    Arc::new(Int8Array::from(out))
}

/// `(n-1)/2` in the width of `n`.
fn half(modulus: &[u8]) -> Vec<u8> {
    let half = (BigUint::from_bytes_be(modulus) >> 1u32).to_bytes_be();
    let mut out = vec![0; modulus.len() - half.len()];
    out.extend_from_slice(&half);
    out
}

/// A residue in the width of the modulus.
fn residue(value: &[u8], modulus: &[u8], row: usize) -> Result<Vec<u8>> {
    let missing = modulus.len().checked_sub(value.len());
    let missing = missing.ok_or_else(|| Error::new(format!("row {row}: value too long")))?;
    let mut out = vec![0; missing];
    out.extend_from_slice(value);
    if out.as_slice() < modulus {
        Ok(out)
    } else {
        let text = format!("row {row}: value is not below the modulus");
        Err(Error::new(text))
    }
}

/// `a += b`; whether it overflowed.
fn add(a: &mut [u8], b: &[u8]) -> bool {
    let mut carry = 0u16;
    for (x, &y) in a.iter_mut().zip(b).rev() {
        let sum = u16::from(*x) + u16::from(y) + carry;
        *x = sum as u8;
        carry = sum >> 8;
    }
    carry != 0
}

/// `a -= b`, whatever is borrowed beyond the top.
fn subtract(a: &mut [u8], b: &[u8]) {
    let mut borrow = 0i16;
    for (x, &y) in a.iter_mut().zip(b).rev() {
        let difference = i16::from(*x) - i16::from(y) - borrow;
        *x = difference as u8;
        borrow = i16::from(difference < 0);
    }
}
