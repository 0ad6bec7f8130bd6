//! Intervals shared among any number of providers (`spec/fss-many.md`): classes of
//! `louver._rust.fss`, functions of `louver._rust.server`.

use crate::errors::trusted;
use crate::fss_server::{flag, slice, Buffer, Stop};
use crate::server::untrusted;
use louver_trusted::fss_many;
use louver_untrusted::fss_many as providers;
use louver_untrusted::fss_table::Entries;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::sync::{Arc, Mutex, PoisonError};

/// A modulus with its factors, generated anew in about a second. Serves any number of questions.
#[pyclass(frozen, module = "louver._rust.fss")]
struct PaillierModulus(Arc<fss_many::PaillierModulus>);

#[pymethods]
impl PaillierModulus {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        let output = py.detach(fss_many::PaillierModulus::new);
        Ok(Self(Arc::new(output.map_err(trusted)?)))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }

    fn __reduce__(&self) -> PyResult<()> {
        let text = "it cannot be pickled: keys do not leave this process";
        Err(PyTypeError::new_err(text))
    }
}

/// An interval, both ends included: what of its records is added. None, None adds nothing.
#[pyclass(frozen, module = "louver._rust.fss")]
struct PaillierSum(fss_many::PaillierSum);

#[pymethods]
impl PaillierSum {
    /// Without a modulus, one of this process's own, made when it is first needed.
    #[new]
    #[pyo3(signature = (bits, low, high, parties, modulus = None))]
    fn new(
        py: Python<'_>,
        bits: u32,
        low: Option<u64>,
        high: Option<u64>,
        parties: u8,
        modulus: Option<&PaillierModulus>,
    ) -> PyResult<Self> {
        let interval = match (low, high) {
            (None, None) => None,
            (Some(low), Some(high)) => Some((low, high)),
            _ => return Err(PyValueError::new_err("both ends are given, or none")),
        };
        let given = modulus.map(|modulus| modulus.0.clone());
        let output = py.detach(|| {
            let modulus = given.map_or_else(own, Ok)?;
            fss_many::PaillierSum::new(&modulus, bits, interval, parties)
        });
        Ok(Self(output.map_err(trusted)?))
    }

    /// One share for each provider; the last one's is longer.
    fn shares<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let shares = self.0.shares().iter();
        shares.map(|share| PyBytes::new(py, share)).collect()
    }

    /// The joined sums; VerifyError where a provider lied.
    fn open(&self, py: Python<'_>, replies: Vec<PyBackedBytes>) -> PyResult<Vec<i128>> {
        let replies: Vec<&[u8]> = replies.iter().map(AsRef::as_ref).collect();
        py.detach(|| self.0.open(&replies)).map_err(trusted)
    }

    fn __repr__(&self) -> &'static str {
        "PaillierSum(redacted)"
    }
}

/// The modulus of this process.
fn own() -> louver_trusted::Result<Arc<fss_many::PaillierModulus>> {
    static OWN: Mutex<Option<Arc<fss_many::PaillierModulus>>> = Mutex::new(None);
    // A poisoned lock only means that another thread died before there was one.
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(own) = own.as_ref() {
        return Ok(own.clone());
    }
    Ok(own
        .insert(Arc::new(fss_many::PaillierModulus::new()?))
        .clone())
}

/// The reply to one share: sums of columns by group over what the share selects.
#[pyfunction]
#[pyo3(signature = (share, points, starts, groups, values, columns, group_count, stop = None))]
#[allow(clippy::too_many_arguments)]
fn paillier_sum<'py>(
    py: Python<'py>,
    share: PyBackedBytes,
    points: Buffer<u64>,
    starts: Option<Buffer<u32>>,
    groups: Option<Buffer<u32>>,
    values: Option<Buffer<i64>>,
    columns: usize,
    group_count: usize,
    stop: Option<&Stop>,
) -> PyResult<Bound<'py, PyBytes>> {
    let entries = Entries {
        points: points.slice(),
        starts: slice(starts.as_ref()),
        groups: slice(groups.as_ref()),
        values: slice(values.as_ref()),
        columns,
        group_count,
    };
    let stop = flag(stop);
    let output = py.detach(|| providers::paillier_sum_until(&share, &entries, &stop));
    Ok(PyBytes::new(py, &output.map_err(untrusted)?))
}

/// The reply over a table from those over its parts, all to one share.
#[pyfunction]
fn paillier_join<'py>(
    py: Python<'py>,
    share: PyBackedBytes,
    replies: Vec<PyBackedBytes>,
) -> PyResult<Bound<'py, PyBytes>> {
    let replies: Vec<&[u8]> = replies.iter().map(AsRef::as_ref).collect();
    let output = py.detach(|| providers::paillier_join(&share, &replies));
    Ok(PyBytes::new(py, &output.map_err(untrusted)?))
}

/// Into `louver._rust.fss`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PaillierModulus>()?;
    module.add_class::<PaillierSum>()
}

/// Into `louver._rust.server`.
pub(crate) fn register_server(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(paillier_sum, module)?)?;
    module.add_function(wrap_pyfunction!(paillier_join, module)?)
}
