//! `KeyRing`: a handle on the keys of one key file.

use crate::eds::LakeKeys;
use crate::epochs::Epochs;
use crate::errors::trusted;
use crate::ffi::{run, run_on, to_python, PyArray, PyType};
use crate::sdb::SdbSpace;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

/// The keys of one key file. Python holds this handle; the secret stays in Rust.
#[pyclass(frozen, module = "louver._rust")]
pub(crate) struct KeyRing(pub(crate) Arc<louver_trusted::KeyRing>);

#[pymethods]
impl KeyRing {
    /// Writes a new key file of mode 0600 and returns its key id.
    #[staticmethod]
    #[pyo3(signature = (path, comment = ""))]
    fn create(path: &str, comment: &str) -> PyResult<String> {
        louver_trusted::KeyRing::create(path, comment).map_err(trusted)
    }

    /// Reads a key file.
    #[staticmethod]
    fn open(path: &str) -> PyResult<Self> {
        let ring = louver_trusted::KeyRing::open(path).map_err(trusted)?;
        Ok(Self(Arc::new(ring)))
    }

    /// The key's public name: 16 hexadecimal digits.
    #[getter]
    fn key_id(&self) -> String {
        self.0.key_id()
    }

    /// Seals bytes for one purpose and context.
    fn seal_blob<'py>(
        &self,
        py: Python<'py>,
        purpose: &str,
        context: &[u8],
        plain: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let sealed = run_on(py, plain.len(), || {
            self.0.seal_blob(purpose, context, plain)
        });
        Ok(PyBytes::new(py, &sealed.map_err(trusted)?))
    }

    /// Opens what `seal_blob` sealed.
    fn open_blob<'py>(
        &self,
        py: Python<'py>,
        purpose: &str,
        context: &[u8],
        sealed: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let plain = run_on(py, sealed.len(), || {
            self.0.open_blob(purpose, context, sealed)
        });
        Ok(PyBytes::new(py, &plain.map_err(trusted)?))
    }

    /// HMAC-SHA256 under a key of its own for this purpose: 32 bytes.
    fn mac<'py>(&self, py: Python<'py>, purpose: &str, data: &[u8]) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.mac(purpose, data))
    }

    /// Seals every value of a column, NULLs included.
    #[allow(clippy::too_many_arguments)]
    fn seal_column<'py>(
        &self,
        py: Python<'py>,
        table: u32,
        column: u32,
        generation: u32,
        epochs: &Epochs,
        values: PyArray,
        row_ids: PyArray,
    ) -> PyResult<Bound<'py, PyAny>> {
        let id = (table, column, generation);
        let seal = || {
            self.0
                .seal_column(id, &epochs.0, &values.array, &row_ids.array)
        };
        let sealed = run(py, [&values.array, &row_ids.array], seal);
        to_python(py, &sealed.map_err(trusted)?, None)
    }

    /// Opens a sealed column as `type`; dictionaries come back as their values.
    #[pyo3(signature = (table, column, generation, epochs, sealed, row_ids, r#type))]
    #[allow(clippy::too_many_arguments)]
    fn open_column<'py>(
        &self,
        py: Python<'py>,
        table: u32,
        column: u32,
        generation: u32,
        epochs: &Epochs,
        sealed: PyArray,
        row_ids: PyArray,
        r#type: PyType,
    ) -> PyResult<Bound<'py, PyAny>> {
        let id = (table, column, generation);
        let wanted = r#type.0;
        let (ring, kind) = (&self.0, wanted.data_type());
        let open = || ring.open_column(id, &epochs.0, &sealed.array, &row_ids.array, kind);
        let opened = run(py, [&sealed.array, &row_ids.array], open).map_err(trusted)?;
        to_python(py, &opened, Some(&wanted))
    }

    /// The SDB key space; `hint` (an earlier space's) saves the search for its primes.
    #[pyo3(signature = (hint = None, bits = 2048))]
    fn sdb(&self, py: Python<'_>, hint: Option<&[u8]>, bits: u32) -> PyResult<SdbSpace> {
        let space = py.detach(|| self.0.sdb(hint, bits)).map_err(trusted)?;
        Ok(SdbSpace::new(space))
    }

    /// The keys of one table of a lake.
    fn lake_table(&self, table_id: u32) -> LakeKeys {
        LakeKeys(louver_trusted::eds::LakeKeys::new(
            Arc::clone(&self.0),
            table_id,
        ))
    }

    fn __repr__(&self) -> String {
        format!("KeyRing({})", self.0.key_id())
    }

    fn __reduce__(&self) -> PyResult<()> {
        let text = "a KeyRing cannot be pickled: keys do not leave this process";
        Err(pyo3::exceptions::PyTypeError::new_err(text))
    }
}
