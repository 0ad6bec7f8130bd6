//! `louver._rust.attack`: what a server could learn from its own state.

use crate::ffi::PyArray;
use crate::server::untrusted;
use louver_untrusted::attack;
use num_bigint::{BigInt, BigUint};
use pyo3::prelude::*;

/// A column's values up to one common factor and sign; None where a row is NULL or resists.
#[pyfunction]
fn common_key(py: Python<'_>, column: PyArray, n: &[u8]) -> PyResult<Vec<Option<BigInt>>> {
    py.detach(|| attack::common_key(&column.array, n))
        .map_err(untrusted)
}

/// (a, b) in lowest terms, row by row.
#[pyfunction]
fn coprime(
    py: Python<'_>,
    a: PyArray,
    b: PyArray,
    n: &[u8],
) -> PyResult<Vec<Option<(BigInt, BigInt)>>> {
    py.detach(|| attack::coprime(&a.array, &b.array, n))
        .map_err(untrusted)
}

/// (the constant, the values) from R*u and R*a.
#[pyfunction]
fn linear(
    py: Python<'_>,
    r_u: PyArray,
    r_a: PyArray,
    n: &[u8],
) -> PyResult<(BigUint, Vec<Option<BigInt>>)> {
    let recovered = py
        .detach(|| attack::linear(&r_u.array, &r_a.array, n))
        .map_err(untrusted)?;
    Ok((recovered.constant, recovered.values))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(common_key, module)?)?;
    module.add_function(wrap_pyfunction!(coprime, module)?)?;
    module.add_function(wrap_pyfunction!(linear, module)?)
}
