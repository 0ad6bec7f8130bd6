//! Functions that read the sign of a residue under key `<1, 0>`.

use super::call::Call;
use super::functions::{linear, operands};
use crate::columns::binary;
use crate::error::Result;
use arrow_array::{new_null_array, Array, ArrayRef, Int8Array};
use arrow_schema::DataType;
use louver_primitives::Column;
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
    signs(&call, |rows| call.load_raw(0, rows))
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
    let [x, y] = operands(&call, (1, 3, 5), (2, 4, 6), 1)?;
    signs(&call, |rows| {
        let difference = x.sum(&y, &call, rows)?;
        Ok(call.kernel.mul(&call.load_raw(0, rows)?, &difference))
    })
}

/// The sign of `qx * x + qy * y`, with updates `<0, q>`: a comparison of columns that the server
/// kept under the comparison's own key.
pub fn sdb_compare_kept(
    x: &dyn Array,
    y: &dyn Array,
    kx: &dyn Array,
    ky: &dyn Array,
    n: &dyn Array,
) -> Result<ArrayRef> {
    let Some(call) = Call::new(&[x, y, kx, ky], n)? else {
        return Ok(new_null_array(&DataType::Int8, n.len()));
    };
    let [x, y] = linear(&call)?;
    signs(&call, |rows| x.sum(&y, &call, rows))
}

/// `z + (n-1)/2 mod n`, fixed width: byte order is the order of the signed numbers.
pub fn sdb_order(z: &dyn Array, n: &dyn Array) -> Result<ArrayRef> {
    let Some(call) = Call::new(&[z], n)? else {
        return Ok(new_null_array(&DataType::Binary, n.len()));
    };
    let half = half(&call);
    let bytes = call.residues(|rows| {
        let halves = call.kernel.load_raw(rows.iter().map(|_| half.as_slice()))?;
        Ok(call.kernel.add(&call.load_raw(0, rows)?, &halves))
    })?;
    Ok(binary(call.rows, &call.live, half.len(), bytes))
}

/// The signs of what `f` gives for the live rows.
fn signs(call: &Call<'_>, f: impl Fn(&[usize]) -> Result<Column> + Sync) -> Result<ArrayRef> {
    let half = half(call);
    let signs = call.map(f, |value| {
        if value > half.as_slice() {
            -1
        } else {
            i8::from(value.iter().any(|&b| b != 0))
        }
    })?;
    if signs.len() == call.rows {
        return Ok(Arc::new(Int8Array::from(signs)));
    }
    let mut out = vec![None; call.rows];
    let live = call.live.iter().zip(signs);
    live.for_each(|(&row, sign)| out[row] = Some(sign));
    Ok(Arc::new(Int8Array::from(out)))
}

/// `(n-1)/2` in the width of `n`.
fn half(call: &Call<'_>) -> Vec<u8> {
    let modulus = call.kernel.modulus().to_be_bytes();
    let half = (BigUint::from_bytes_be(&modulus) >> 1u32).to_bytes_be();
    let mut out = vec![0; modulus.len() - half.len()];
    out.extend_from_slice(&half);
    out
}
