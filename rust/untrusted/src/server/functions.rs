//! Functions from residues to residues.

use super::call::Call;
use super::update::{powers, trim, Operand, Update};
use crate::columns::binary;
use crate::error::{Error, Result};
use arrow_array::{new_null_array, Array, ArrayRef};
use arrow_schema::DataType;

/// `a * b mod n` (EE product).
///
/// # Errors
/// Here and in all others: unusable types, lengths, moduli or updates.
pub fn sdb_mul(a: &dyn Array, b: &dyn Array, n: &dyn Array) -> Result<ArrayRef> {
    run(&[a, b], n, |call| {
        let unit = call.kernel.scalar_times_r(&[1], 1)?;
        call.residues(|rows| {
            let product = call
                .kernel
                .mul(&call.load_raw(0, rows)?, &call.load_raw(1, rows)?);
            Ok(call.kernel.scale(&product, &unit))
        })
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
        let operand = Operand::new(call, (0, 1), &update, 0)?;
        call.residues(|rows| operand.apply(call, rows))
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
        let [x, y] = operands(call, (0, 2, 3), (1, 2, 4), 0)?;
        call.residues(|rows| x.sum(&y, call, rows))
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
        let [x, y] = operands(call, (0, 2, 4), (1, 3, 5), 0)?;
        call.residues(|rows| x.sum(&y, call, rows))
    })
}

/// `qx * x + qy * y mod n`, with updates `<0, q>`: columns under one key need no helper.
pub fn sdb_linear(
    x: &dyn Array,
    y: &dyn Array,
    kx: &dyn Array,
    ky: &dyn Array,
    n: &dyn Array,
) -> Result<ArrayRef> {
    run(&[x, y, kx, ky], n, |call| {
        let [x, y] = linear(call)?;
        call.residues(|rows| x.sum(&y, call, rows))
    })
}

/// `r1 + r2 mod n`: the row id of a product of tables in the paper's mode.
pub fn sdb_int_add(r1: &dyn Array, r2: &dyn Array, n: &dyn Array) -> Result<ArrayRef> {
    run(&[r1, r2], n, |call| {
        let add = |rows: &[usize]| {
            let (r1, r2) = (call.load_raw(0, rows)?, call.load_raw(1, rows)?);
            Ok(call.kernel.add(&r1, &r2))
        };
        call.residues(add)
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
        let operand = Operand::new(call, (0, 1), &update, 0)?;
        call.residues(|rows| operand.apply(call, rows))
    })
}

/// `s^p mod n`.
pub fn sdb_power(s: &dyn Array, p: &dyn Array, n: &dyn Array) -> Result<ArrayRef> {
    run(&[s, p], n, |call| {
        let power = trim(call.constant(1, "p")?);
        let raised = powers(&call.kernel, &call.load(0, &call.live)?, &[power]).pop();
        let raised = raised
            .flatten()
            .unwrap_or_else(|| call.kernel.one(call.live.len()));
        Ok(call.kernel.store(&raised))
    })
}

/// Runs `f` on the rows without NULL and gives a binary column.
fn run(
    columns: &[&dyn Array],
    n: &dyn Array,
    f: impl FnOnce(&Call<'_>) -> Result<Vec<u8>>,
) -> Result<ArrayRef> {
    let Some(call) = Call::new(columns, n)? else {
        return Ok(new_null_array(&DataType::Binary, n.len()));
    };
    let bytes = f(&call)?;
    let width = call.kernel.modulus().byte_len();
    Ok(binary(call.rows, &call.live, width, bytes))
}

/// Two operands; each is (value, helper, update).
pub(crate) fn operands<'a>(
    call: &Call<'a>,
    a: (usize, usize, usize),
    b: (usize, usize, usize),
    outside: usize,
) -> Result<[Operand<'a>; 2]> {
    let first = Update::decode(call.constant(a.2, "ka")?)?;
    let second = Update::decode(call.constant(b.2, "kb")?)?;
    Ok([
        Operand::new(call, (a.0, a.1), &first, outside)?,
        Operand::new(call, (b.0, b.1), &second, outside)?,
    ])
}

/// The operands of a linear function: columns 0 and 1 with updates 2 and 3 that need no helper.
pub(crate) fn linear<'a>(call: &Call<'a>) -> Result<[Operand<'a>; 2]> {
    let operand = |column: usize, update: usize, name: &str| {
        let update = Update::decode(call.constant(update, name)?)?;
        if !update.power.is_empty() {
            let text = format!("argument {name} must be an update with power 0");
            return Err(Error::new(text));
        }
        Operand::new(call, (column, column), &update, 0)
    };
    Ok([operand(0, 2, "kx")?, operand(1, 3, "ky")?])
}
