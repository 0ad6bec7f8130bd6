//! `louver._rust.sdb_math`: the scheme's identities on numbers that the caller has already. For
//! known-answer tests; nothing here reaches a key ring.

use louver_trusted::sdb::math;
use num_bigint::{BigInt, BigUint};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

fn no_inverse() -> PyErr {
    PyValueError::new_err("a number has no inverse")
}

/// m * g^(r*x mod phi) mod n.
#[pyfunction]
fn item_key(m: BigUint, x: BigUint, r: BigUint, g: BigUint, phi: BigUint, n: BigUint) -> BigUint {
    math::item_key(&m, &x, &r, &g, &phi, &n)
}

/// value * item_key^-1 mod n.
#[pyfunction]
fn seal(value: BigInt, item_key: BigUint, n: BigUint) -> PyResult<BigUint> {
    math::seal(&value, &item_key, &n).ok_or_else(no_inverse)
}

/// ciphertext * item_key mod n, as a signed number.
#[pyfunction]
fn open(ciphertext: BigUint, item_key: BigUint, n: BigUint) -> BigInt {
    math::open(&ciphertext, &item_key, &n)
}

/// (p, q) of the paper, keys as (m, x): p is reduced modulo phi and must never be sent.
#[pyfunction]
fn paper_update(
    source: (BigUint, BigUint),
    target: (BigUint, BigUint),
    ones: (BigUint, BigUint),
    phi: BigUint,
    n: BigUint,
) -> PyResult<(BigUint, BigUint)> {
    let pair = |k| -> (BigUint, BigUint) { k };
    let (source, target, ones) = (pair(source), pair(target), pair(ones));
    math::paper_update(
        (&source.0, &source.1),
        (&target.0, &target.1),
        (&ones.0, &ones.1),
        &phi,
        &n,
    )
    .ok_or_else(no_inverse)
}

/// (p, q) of an update by integer offsets, keys as (m, t): p is the plain difference.
#[pyfunction]
fn update(
    source: (BigUint, BigInt),
    target: (BigUint, BigInt),
    ones_m: BigUint,
    n: BigUint,
) -> PyResult<(BigUint, BigUint)> {
    let p = math::power(&source.1, &target.1)
        .ok_or_else(|| PyValueError::new_err("the power would be negative"))?;
    let q = math::factor(&source.0, &target.0, &[(ones_m, p.clone())], &n);
    Ok((p, q.ok_or_else(no_inverse)?))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(item_key, module)?)?;
    module.add_function(wrap_pyfunction!(seal, module)?)?;
    module.add_function(wrap_pyfunction!(open, module)?)?;
    module.add_function(wrap_pyfunction!(paper_update, module)?)?;
    module.add_function(wrap_pyfunction!(update, module)?)
}
