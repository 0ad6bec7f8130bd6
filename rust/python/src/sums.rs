//! `louver._rust.sums`: a key ring's masked sums.

use crate::epochs::Epochs;
use crate::errors::trusted;
use crate::ffi::{run, to_python, PyArray};
use crate::keyring::KeyRing;
use louver_trusted::Sums;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Low limbs, high limbs and flags of whole numbers under their masks.
#[pyfunction]
fn sum_seal<'py>(
    py: Python<'py>,
    ring: &KeyRing,
    id: (u32, u32, u32),
    epochs: &Epochs,
    values: PyArray,
    row_ids: PyArray,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let seal = || {
        let ring = &ring.0;
        ring.sum_seal(id, &epochs.0, &values.field, &values.array, &row_ids.array)
    };
    let [low, high, count] = run(py, [&values.array, &row_ids.array], seal).map_err(trusted)?;
    let give = |array| to_python(py, array, None);
    Ok((give(&low)?, give(&high)?, give(&count)?))
}

/// Totals, and numbers of values that are not NULL.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn sum_open(
    py: Python<'_>,
    ring: &KeyRing,
    id: (u32, u32, u32),
    epochs: &Epochs,
    limb_bits: u32,
    low: Vec<i128>,
    high: Option<Vec<i128>>,
    count: Option<Vec<i128>>,
    sets: Vec<Bound<'_, PyBytes>>,
) -> PyResult<(Vec<i128>, Option<Vec<u64>>)> {
    let sets: Vec<&[u8]> = sets.iter().map(|set| set.as_bytes()).collect();
    let sums = Sums {
        limb_bits,
        low: &low,
        high: high.as_deref(),
        count: count.as_deref(),
        sets: &sets,
    };
    py.detach(|| ring.0.sum_open(id, &epochs.0, &sums))
        .map_err(trusted)
}

/// The row set of runs `(first, count)` of row ids.
#[pyfunction]
fn run_set(py: Python<'_>, runs: Vec<(i64, i64)>) -> PyResult<Bound<'_, PyBytes>> {
    let set = louver_trusted::run_set(&runs).map_err(trusted)?;
    Ok(PyBytes::new(py, &set))
}

/// The number of rows of row sets that a server returned, whose rows must be known.
#[pyfunction]
fn set_sizes(
    py: Python<'_>,
    sets: Vec<Bound<'_, PyBytes>>,
    known: Option<Vec<(i64, i64)>>,
    most: u64,
) -> PyResult<Vec<u64>> {
    let sets: Vec<&[u8]> = sets.iter().map(|set| set.as_bytes()).collect();
    let sizes = || louver_trusted::set_sizes(&sets, known.as_deref(), most);
    py.detach(sizes).map_err(trusted)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("NARROW_BITS", louver_trusted::NARROW_BITS)?;
    module.add("WIDE_BITS", louver_trusted::WIDE_BITS)?;
    module.add_function(wrap_pyfunction!(sum_seal, module)?)?;
    module.add_function(wrap_pyfunction!(sum_open, module)?)?;
    module.add_function(wrap_pyfunction!(run_set, module)?)?;
    module.add_function(wrap_pyfunction!(set_sizes, module)?)
}
