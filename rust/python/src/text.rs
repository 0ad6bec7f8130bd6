//! `louver._rust.text`: a key ring's searchable text.

use crate::epochs::Epochs;
use crate::errors::trusted;
use crate::ffi::{run, to_python, PyArray};
use crate::keyring::KeyRing;
use louver_trusted::Search;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A filter a row.
#[pyfunction]
fn text_seal<'py>(
    py: Python<'py>,
    ring: &KeyRing,
    id: (u32, u32, u32),
    epochs: &Epochs,
    values: PyArray,
    row_ids: PyArray,
) -> PyResult<Bound<'py, PyAny>> {
    let (values, row_ids) = (&values.array, &row_ids.array);
    let seal = || ring.0.text_seal(id, &epochs.0, values, row_ids);
    to_python(
        py,
        &run(py, [values, row_ids], seal).map_err(trusted)?,
        None,
    )
}

/// The trapdoors of a search, or None.
#[pyfunction]
#[pyo3(signature = (ring, id, kind, pattern, escape = None))]
fn text_tokens<'py>(
    py: Python<'py>,
    ring: &KeyRing,
    id: (u32, u32, u32),
    kind: &str,
    pattern: &str,
    escape: Option<char>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let search = match kind {
        "word" => Search::Word(pattern),
        "prefix" => Search::Prefix(pattern),
        "suffix" => Search::Suffix(pattern),
        "contains" => Search::Contains(pattern),
        "like" => Search::Like(pattern, escape),
        _ => return Err(PyValueError::new_err("a search of an unknown kind")),
    };
    let tokens = ring.0.text_tokens(id, search);
    Ok(tokens.map(|tokens| PyBytes::new(py, &tokens)))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(text_seal, module)?)?;
    module.add_function(wrap_pyfunction!(text_tokens, module)?)
}
