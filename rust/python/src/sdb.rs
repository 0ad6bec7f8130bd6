//! `SdbSpace`, `SdbKey`, `SdbUpdate`: handles on the secret side of the SDB scheme.

use crate::epochs::Epochs;
use crate::errors::trusted;
use crate::ffi::{to_python, PyArray, PyType};
use louver_trusted::sdb::{self, NumberType};
use num_bigint::BigInt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One key ring's modulus and keys. Stays at home, but for `modulus`, which is public.
#[pyclass(frozen, module = "louver._rust")]
pub(crate) struct SdbSpace(Arc<sdb::SdbSpace>);

impl SdbSpace {
    pub(crate) fn new(space: sdb::SdbSpace) -> Self {
        Self(Arc::new(space))
    }
}

/// The key of an expression: `m`, and an integer offset for every table occurrence (slot).
#[pyclass(frozen, module = "louver._rust")]
pub(crate) struct SdbKey(sdb::SdbKey);

/// What the server is sent to move a column to another key.
#[pyclass(frozen, module = "louver._rust")]
pub(crate) struct SdbUpdate(sdb::SdbUpdate);

fn no_pickle() -> PyErr {
    PyTypeError::new_err("it cannot be pickled: keys do not leave this process")
}

#[pymethods]
impl SdbKey {
    /// The table occurrences on which the key depends.
    #[getter]
    fn slots(&self) -> Vec<u32> {
        self.0.slots()
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(no_pickle())
    }
}

#[pymethods]
impl SdbUpdate {
    /// q, big endian, as many bytes as the modulus has.
    #[getter]
    fn factor<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.factor)
    }

    /// Slot to p, big endian; slots that need no power are absent.
    #[getter]
    fn powers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for (slot, power) in &self.0.powers {
            out.set_item(slot, PyBytes::new(py, power))?;
        }
        Ok(out)
    }
}

#[pymethods]
impl SdbSpace {
    /// A sealed blob that lets the primes be recomputed without a search.
    #[getter]
    fn hint<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.hint())
    }

    /// The public modulus, big endian.
    #[getter]
    fn modulus<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.modulus())
    }

    /// Seals a column of whole numbers; null stays null.
    #[allow(clippy::too_many_arguments)]
    fn seal<'py>(
        &self,
        py: Python<'py>,
        table: u32,
        column: u32,
        generation: u32,
        epochs: &Epochs,
        values: PyArray,
        row_ids: PyArray,
    ) -> PyResult<Bound<'py, PyAny>> {
        let kind = NumberType::new(&values.field).map_err(trusted)?;
        let id = (table, column, generation);
        let (values, row_ids) = (&values.array, &row_ids.array);
        let seal = || self.0.seal(id, &epochs.0, &kind, values, row_ids);
        to_python(py, &py.detach(seal).map_err(trusted)?, None)
    }

    /// The helper column S of ones.
    fn seal_ones<'py>(
        &self,
        py: Python<'py>,
        table: u32,
        generation: u32,
        epochs: &Epochs,
        row_ids: PyArray,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = generation;
        let seal = || self.0.seal_ones(table, &epochs.0, &row_ids.array);
        to_python(py, &py.detach(seal).map_err(trusted)?, None)
    }

    /// The helper column R of random positive numbers.
    fn seal_random<'py>(
        &self,
        py: Python<'py>,
        table: u32,
        generation: u32,
        epochs: &Epochs,
        row_ids: PyArray,
    ) -> PyResult<Bound<'py, PyAny>> {
        let seal = || {
            self.0
                .seal_random(table, generation, &epochs.0, &row_ids.array)
        };
        to_python(py, &py.detach(seal).map_err(trusted)?, None)
    }

    fn column_key(&self, table: u32, column: u32, generation: u32, slot: u32) -> SdbKey {
        SdbKey(self.0.column_key(table, column, generation, slot))
    }

    fn ones_key(&self, table: u32, generation: u32, slot: u32) -> SdbKey {
        let _ = generation;
        SdbKey(self.0.ones_key(table, slot))
    }

    fn random_key(&self, table: u32, generation: u32, slot: u32) -> SdbKey {
        SdbKey(self.0.random_key(table, generation, slot))
    }

    fn plain_key(&self) -> SdbKey {
        SdbKey(self.0.plain_key())
    }

    fn multiply(&self, a: &SdbKey, b: &SdbKey) -> PyResult<SdbKey> {
        self.0.multiply(&a.0, &b.0).map(SdbKey).map_err(trusted)
    }

    fn scale(&self, a: &SdbKey, constant: BigInt) -> PyResult<SdbKey> {
        self.0.scale(&a.0, &constant).map(SdbKey).map_err(trusted)
    }

    fn sum_target(&self, keys: Vec<PyRef<'_, SdbKey>>, label: &[u8]) -> PyResult<SdbKey> {
        let keys: Vec<&sdb::SdbKey> = keys.iter().map(|key| &key.0).collect();
        self.0.sum_target(&keys, label).map(SdbKey).map_err(trusted)
    }

    fn common_target(&self, label: &[u8]) -> SdbKey {
        SdbKey(self.0.common_target(label))
    }

    fn compare_target(&self, random: &SdbKey) -> SdbKey {
        SdbKey(self.0.compare_target(&random.0))
    }

    fn update(&self, py: Python<'_>, source: &SdbKey, target: &SdbKey) -> PyResult<SdbUpdate> {
        let update = py.detach(|| self.0.update(&source.0, &target.0));
        update.map(SdbUpdate).map_err(trusted)
    }

    fn literal<'py>(
        &self,
        py: Python<'py>,
        key: &SdbKey,
        value: BigInt,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let sealed = self.0.literal(&key.0, &value).map_err(trusted)?;
        Ok(PyBytes::new(py, &sealed))
    }

    /// Opens a column under `key`; every number must be in [low, high] and in the type.
    #[pyo3(signature = (key, epochs, ciphertexts, row_ids, r#type, low, high))]
    #[allow(clippy::too_many_arguments)]
    fn open<'py>(
        &self,
        py: Python<'py>,
        key: &SdbKey,
        epochs: &Epochs,
        ciphertexts: PyArray,
        row_ids: BTreeMap<u32, PyArray>,
        r#type: PyType,
        low: BigInt,
        high: BigInt,
    ) -> PyResult<Bound<'py, PyAny>> {
        if low > high {
            return Err(PyValueError::new_err("low must not exceed high"));
        }
        let wanted = r#type.0;
        let kind = NumberType::new(&wanted).map_err(trusted)?;
        let rows = row_ids.into_iter().map(|(slot, ids)| (slot, ids.array));
        let rows = rows.collect();
        let (key, array, bounds) = (&key.0, &ciphertexts.array, (&low, &high));
        let open = || self.0.open(key, &epochs.0, array, &rows, &kind, bounds);
        to_python(py, &py.detach(open).map_err(trusted)?, Some(&wanted))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(no_pickle())
    }
}
