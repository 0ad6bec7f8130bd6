//! `louver._rust.server`: the functions that a server runs. They know the modulus, no key.

use crate::ffi::{to_python, PyArray};
use arrow_array::Array;
use arrow_schema::{DataType, Field};
use louver_untrusted::server as functions;
use louver_untrusted::Error;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::HashMap;

create_exception!(
    louver._rust.server,
    Stopped,
    pyo3::exceptions::PyException,
    "A Stop was set before the work was done."
);

pub(crate) fn untrusted(error: Error) -> PyErr {
    match error {
        Error::Value(text) => PyValueError::new_err(text),
        Error::Stopped => Stopped::new_err(error.to_string()),
    }
}

/// Sixteen bytes are a UUID to the server.
fn give<'py>(py: Python<'py>, column: &dyn Array) -> PyResult<Bound<'py, PyAny>> {
    let kind = column.data_type();
    if kind != &DataType::FixedSizeBinary(16) {
        return to_python(py, column, None);
    }
    let name = ("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned());
    let metadata: HashMap<String, String> = [name].into();
    let field = Field::new("", kind.clone(), true).with_metadata(metadata);
    to_python(py, column, Some(&field))
}

macro_rules! columns {
    ($($name:ident($($column:ident),+);)+) => {
        $(
            #[pyfunction]
            #[allow(clippy::too_many_arguments)]
            fn $name<'py>(py: Python<'py>, $($column: PyArray),+) -> PyResult<Bound<'py, PyAny>> {
                let out = py.detach(|| functions::$name($(&$column.array),+));
                give(py, &out.map_err(untrusted)?)
            }
        )+

        pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!($name, module)?)?;)+
            crate::eds::register_server(module)?;
            crate::fss_server::register(module)?;
            module.add_function(wrap_pyfunction!(encode_update, module)?)
        }
    };
}

columns! {
    sdb_mul(a, b, n);
    sdb_key_update(a, s, k, n);
    sdb_add(a, b, s, ka, kb, n);
    sdb_add_kept(a, b, wa, wb, ka, kb, n);
    sdb_compare(z, n);
    sdb_compare_sum(r, a, b, wa, wb, ka, kb, n);
    sdb_compare_kept(x, y, kx, ky, n);
    sdb_linear(x, y, kx, ky, n);
    sdb_sum(values, n);
    sdb_int_add(r1, r2, n);
    sdb_cartprod(a, s, p, n);
    sdb_power(s, p, n);
    sdb_powers(s, p, n);
    sdb_order(z, n);
    sdb_residue(text, n);
    row_set(ids);
    onion_open(codes, row_ids, key);
    onion_open_wide(codes, row_ids, key);
    onion_join(codes, key);
    onion_join_wide(codes, key);
    ore_compare(stored, token);
    hom_sum(values, modulus);
    text_match(stored, row_ids, tokens);
}

/// The wire form of an update <p, q>.
#[pyfunction]
fn encode_update<'py>(
    py: Python<'py>,
    power: &[u8],
    factor: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let wire = functions::encode_update(power, factor).map_err(untrusted)?;
    Ok(PyBytes::new(py, &wire))
}
