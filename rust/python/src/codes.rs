//! `louver._rust.codes`: a key ring's codes.

use crate::epochs::Epochs;
use crate::errors::trusted;
use crate::ffi::{run, to_python, PyArray};
use crate::keyring::KeyRing;
use louver_trusted::{Interval, Onion};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

type Id = (u32, u32, u32);

/// Equality codes of a column.
#[pyfunction]
fn eq_codes<'py>(
    py: Python<'py>,
    ring: &KeyRing,
    id: Id,
    group: &str,
    domain: &str,
    values: PyArray,
) -> PyResult<Bound<'py, PyAny>> {
    let codes = run(py, [&values.array], || {
        ring.0.eq_codes(id, group, domain, &values.array)
    });
    to_python(py, &codes.map_err(trusted)?, None)
}

/// Equality codes of a group.
#[pyfunction]
fn eq_join_codes<'py>(
    py: Python<'py>,
    ring: &KeyRing,
    group: &str,
    domain: &str,
    values: PyArray,
) -> PyResult<Bound<'py, PyAny>> {
    let codes = run(py, [&values.array], || {
        ring.0.eq_join_codes(group, domain, &values.array)
    });
    to_python(py, &codes.map_err(trusted)?, None)
}

/// Order codes of a column.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn ord_codes<'py>(
    py: Python<'py>,
    ring: &KeyRing,
    id: Id,
    group: &str,
    domain: &str,
    low: i128,
    bits: u32,
    values: PyArray,
) -> PyResult<Bound<'py, PyAny>> {
    let interval = Interval { domain, low, bits };
    let codes = run(py, [&values.array], || {
        ring.0.ord_codes(id, group, interval, &values.array)
    });
    to_python(py, &codes.map_err(trusted)?, None)
}

/// Codes under the pads of their rows.
#[pyfunction]
fn close_codes<'py>(
    py: Python<'py>,
    ring: &KeyRing,
    id: Id,
    epochs: &Epochs,
    onion: &str,
    codes: PyArray,
    row_ids: PyArray,
) -> PyResult<Bound<'py, PyAny>> {
    let onion = named(onion)?;
    let close = || {
        let ring = &ring.0;
        ring.close_codes(id, &epochs.0, onion, &codes.array, &row_ids.array)
    };
    let closed = run(py, [&codes.array, &row_ids.array], close);
    to_python(py, &closed.map_err(trusted)?, None)
}

/// The key of the layer over the codes of a column, of the rows in one row's epoch.
#[pyfunction]
fn layer_key<'py>(
    py: Python<'py>,
    ring: &KeyRing,
    id: Id,
    epochs: &Epochs,
    onion: &str,
    row_id: i64,
) -> PyResult<Bound<'py, PyBytes>> {
    let key = ring.0.layer_key(id, &epochs.0, named(onion)?, row_id);
    Ok(PyBytes::new(py, &key.map_err(trusted)?))
}

/// The key that adjusts a column's equality codes to those of its group.
#[pyfunction]
fn det_key<'py>(py: Python<'py>, ring: &KeyRing, id: Id) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &ring.0.det_key(id))
}

/// Order-revealing values.
#[pyfunction]
fn ore_seal<'py>(
    py: Python<'py>,
    ring: &KeyRing,
    id: Id,
    domain: &str,
    low: i128,
    bits: u32,
    values: PyArray,
) -> PyResult<Bound<'py, PyAny>> {
    let interval = Interval { domain, low, bits };
    let sealed = py.detach(|| ring.0.ore_seal(id, interval, &values.array));
    to_python(py, &sealed.map_err(trusted)?, None)
}

/// The token by which a server compares a column with a value.
#[pyfunction]
fn ore_token<'py>(
    py: Python<'py>,
    ring: &KeyRing,
    id: Id,
    domain: &str,
    low: i128,
    bits: u32,
    value: PyArray,
) -> PyResult<Bound<'py, PyBytes>> {
    let interval = Interval { domain, low, bits };
    let token = ring.0.ore_token(id, interval, &value.array);
    Ok(PyBytes::new(py, &token.map_err(trusted)?))
}

fn named(onion: &str) -> PyResult<Onion> {
    match onion {
        "eq" => Ok(Onion::Eq),
        "ord" => Ok(Onion::Ord),
        _ => Err(PyValueError::new_err("an onion of an unknown name")),
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(eq_codes, module)?)?;
    module.add_function(wrap_pyfunction!(eq_join_codes, module)?)?;
    module.add_function(wrap_pyfunction!(ord_codes, module)?)?;
    module.add_function(wrap_pyfunction!(close_codes, module)?)?;
    module.add_function(wrap_pyfunction!(ore_seal, module)?)?;
    module.add_function(wrap_pyfunction!(ore_token, module)?)?;
    module.add_function(wrap_pyfunction!(layer_key, module)?)?;
    module.add_function(wrap_pyfunction!(det_key, module)?)
}
