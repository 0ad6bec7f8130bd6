//! `PaillierSpace`: a handle on a Paillier modulus.

use crate::errors::trusted;
use crate::ffi::{to_python, PyArray};
use crate::keyring::KeyRing;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A slot's total and its number of values, for every slot.
type Totals = Vec<(i128, u64)>;

/// One key ring's Paillier modulus. Stays at home, but for `modulus`, which is public.
#[pyclass(frozen, module = "louver._rust")]
pub(crate) struct PaillierSpace(louver_trusted::PaillierSpace);

#[pymethods]
impl PaillierSpace {
    /// The space of a key ring; `hint` (an earlier space's) saves the search for its primes.
    #[new]
    #[pyo3(signature = (ring, hint = None, bits = 2048))]
    fn new(py: Python<'_>, ring: &KeyRing, hint: Option<&[u8]>, bits: u32) -> PyResult<Self> {
        let space = py.detach(|| ring.0.paillier(hint, bits));
        Ok(Self(space.map_err(trusted)?))
    }

    /// A sealed blob that lets the primes be recomputed without a search.
    #[getter]
    fn hint<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.hint())
    }

    /// n squared, big endian; public.
    #[getter]
    fn modulus<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.modulus())
    }

    /// How many columns a ciphertext holds.
    #[getter]
    fn slots(&self) -> usize {
        self.0.slots()
    }

    /// One ciphertext a row.
    fn seal<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<PyArray>,
        rows: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let columns: Vec<_> = columns.into_iter().map(|c| (c.field, c.array)).collect();
        let sealed = py.detach(|| self.0.seal(&columns, rows));
        to_python(py, &sealed.map_err(trusted)?, None)
    }

    /// Total and number of values of every slot, ciphertext by ciphertext.
    fn open(&self, py: Python<'_>, ciphertexts: PyArray, rows: Vec<u64>) -> PyResult<Vec<Totals>> {
        let opened = py.detach(|| self.0.open(&ciphertexts.array, &rows));
        opened.map_err(trusted)
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }

    fn __reduce__(&self) -> PyResult<()> {
        let text = "it cannot be pickled: keys do not leave this process";
        Err(PyTypeError::new_err(text))
    }
}
