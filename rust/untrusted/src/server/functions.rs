//! Functions from residues to residues.

use super::call::Call;
use super::update::{powers, trim, Update};
use crate::columns::binary;
use crate::error::Result;
use arrow_array::{new_null_array, Array, ArrayRef};
use arrow_schema::DataType;
use louver_primitives::Column;

/// `a * b mod n` (EE product).
///
/// # Errors
/// Here and in all others: unusable types, lengths, moduli or updates.
pub fn sdb_mul(a: &dyn Array, b: &dyn Array, n: &dyn Array) -> Result<ArrayRef> {
    run(&[a, b], n, |call| {
        Ok(call.kernel.mul(&call.load(0)?, &call.load(1)?))
    })
}

/// `q * a * s^p mod n` with `k` the wire form of `<p, q>`.
pub fn sdb_key_update(
    a: &dyn Array,
    s: &dyn Array,
    k: &dyn Array,
    n: &dyn Array,
) -> Result<ArrayRef> {
    run(&[a, s, k], n, |call| {
        let update = Update::decode(call.constant(2, "k")?)?;
        moved(call, (0, 1), &update)
    })
}

/// `qa * a * s^pa + qb * b * s^pb mod n`: both operands share one helper and its squarings.
pub fn sdb_add(
    a: &dyn Array,
    b: &dyn Array,
    s: &dyn Array,
    ka: &dyn Array,
    kb: &dyn Array,
    n: &dyn Array,
) -> Result<ArrayRef> {
    run(&[a, b, s, ka, kb], n, |call| {
        sum(call, (0, 2, 3), (1, 2, 4))
    })
}

/// `qa * a * wa^pa + qb * b * wb^pb mod n`: with kept powers (`p = 1`) products only.
#[allow(clippy::too_many_arguments)]
pub fn sdb_add_kept(
    a: &dyn Array,
    b: &dyn Array,
    wa: &dyn Array,
    wb: &dyn Array,
    ka: &dyn Array,
    kb: &dyn Array,
    n: &dyn Array,
) -> Result<ArrayRef> {
    run(&[a, b, wa, wb, ka, kb], n, |call| {
        sum(call, (0, 2, 4), (1, 3, 5))
    })
}

/// `r1 + r2 mod n`: the row id of a product of tables in the paper's mode.
pub fn sdb_int_add(r1: &dyn Array, r2: &dyn Array, n: &dyn Array) -> Result<ArrayRef> {
    run(&[r1, r2], n, |call| {
        Ok(call.kernel.add(&call.load(0)?, &call.load(1)?))
    })
}

/// `a * s^p mod n`: lifts a column into a product of tables (Rule 12).
pub fn sdb_cartprod(
    a: &dyn Array,
    s: &dyn Array,
    p: &dyn Array,
    n: &dyn Array,
) -> Result<ArrayRef> {
    run(&[a, s, p], n, |call| {
        let update = Update {
            power: trim(call.constant(2, "p")?),
            factor: &[1],
        };
        moved(call, (0, 1), &update)
    })
}

/// `s^p mod n`.
pub fn sdb_power(s: &dyn Array, p: &dyn Array, n: &dyn Array) -> Result<ArrayRef> {
    run(&[s, p], n, |call| {
        let power = trim(call.constant(1, "p")?);
        let raised = powers(&call.kernel, &call.load(0)?, &[power]).pop();
        Ok(raised
            .flatten()
            .unwrap_or_else(|| call.kernel.one(call.live.len())))
    })
}

/// Runs `f` on the rows without NULL and gives a binary column.
fn run(
    columns: &[&dyn Array],
    n: &dyn Array,
    f: impl FnOnce(&Call<'_>) -> Result<Column>,
) -> Result<ArrayRef> {
    let Some(call) = Call::new(columns, n)? else {
        return Ok(new_null_array(&DataType::Binary, n.len()));
    };
    let bytes = call.kernel.store(&f(&call)?);
    let width = call.kernel.modulus().byte_len();
    Ok(binary(call.rows, &call.live, width, bytes))
}

/// Column `a` after an update with helper column `s`.
fn moved(call: &Call<'_>, (a, s): (usize, usize), update: &Update<'_>) -> Result<Column> {
    let a = call.load(a)?;
    if update.skips_helper() {
        return update.apply(&call.kernel, a, None);
    }
    let raised = powers(&call.kernel, &call.load(s)?, &[update.power]).pop();
    update.apply(&call.kernel, a, raised.flatten().as_ref())
}

/// The sum of two updated columns; each is (value, helper, update).
pub(crate) fn sum(
    call: &Call<'_>,
    a: (usize, usize, usize),
    b: (usize, usize, usize),
) -> Result<Column> {
    let k = &call.kernel;
    let first = Update::decode(call.constant(a.2, "ka")?)?;
    let second = Update::decode(call.constant(b.2, "kb")?)?;
    let shared = !first.skips_helper() && !second.skips_helper();
    if shared && (a.1 == b.1 || call.same(a.1, b.1)) {
        let helper = call.load(a.1)?;
        let raised = powers(k, &helper, &[first.power, second.power]);
        let x = first.apply(k, call.load(a.0)?, raised[0].as_ref())?;
        let y = second.apply(k, call.load(b.0)?, raised[1].as_ref())?;
        return Ok(k.add(&x, &y));
    }
    let x = moved(call, (a.0, a.1), &first)?;
    let y = moved(call, (b.0, b.1), &second)?;
    Ok(k.add(&x, &y))
}
