//! One sealed row, from the values of its columns to those of a statement for PostgreSQL.

use crate::epochs::Epochs;
use crate::errors::trusted;
use crate::ffi::{batch_to_python, PyArray};
use crate::keyring::KeyRing;
use crate::postgres_failures::raised;
use crate::recipe::Recipe;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{Field, Schema};
use louver_postgres::Value;
use louver_trusted::Declared;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// What names an extension type, and that of sixteen bytes which are a UUID.
const EXTENSION: &str = "ARROW:extension:name";
const UUID: &str = "arrow.uuid";

/// All that a server stores of a row. A statement takes it as a value for each of its columns.
#[pyclass(frozen, module = "louver._rust.recipe")]
pub(crate) struct SealedRow {
    batch: RecordBatch,
    pub(crate) values: Vec<Value>,
}

#[pymethods]
impl SealedRow {
    /// The only row of some columns as a recipe seals them under this id, and behind that what is
    /// stored as it is, by the server's names. None where a plain value is of a type that
    /// PostgreSQL has not.
    #[staticmethod]
    #[allow(clippy::needless_pass_by_value)]
    fn of(
        ring: &KeyRing,
        epochs: &Epochs,
        recipe: &Recipe,
        columns: Vec<PyArray>,
        plain: Vec<(String, PyArray)>,
        row_id: i64,
    ) -> PyResult<Option<Self>> {
        let row_ids: ArrayRef = Arc::new(Int64Array::from(vec![row_id]));
        let columns: Vec<Declared> = columns.into_iter().map(|c| (c.field, c.array)).collect();
        let mut arrays = columns.iter().map(|(_, array)| array);
        let plain_arrays = plain.iter().map(|(_, column)| &column.array);
        if !arrays.all(|a| a.len() == 1) || !plain_arrays.clone().all(|a| a.len() == 1) {
            return Err(PyValueError::new_err("columns of one row each"));
        }
        let sealed = recipe.0.seal(&ring.0, &epochs.0, &columns, &row_ids);
        let sealed = sealed.map_err(trusted)?;
        let mut fields: Vec<Field> = sealed
            .schema()
            .fields()
            .iter()
            .map(|f| f.as_ref().clone())
            .collect();
        let mut stored = sealed.columns().to_vec();
        for (name, column) in plain {
            let extension = column.field.metadata().get(EXTENSION);
            if extension.is_some_and(|known| known != UUID) {
                return Ok(None);
            }
            fields.push(column.field.with_name(name).with_nullable(true));
            stored.push(column.array);
        }
        let mut values = Vec::with_capacity(stored.len());
        for column in &stored {
            let Some(value) = Value::of_row(column.as_ref(), 0).map_err(raised)? else {
                return Ok(None);
            };
            values.push(value);
        }
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), stored);
        let batch = batch.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Some(Self { batch, values }))
    }

    /// The number of its columns.
    fn __len__(&self) -> usize {
        self.values.len()
    }

    /// The names of its columns.
    fn names(&self) -> Vec<String> {
        let schema = self.batch.schema();
        schema.fields().iter().map(|f| f.name().clone()).collect()
    }

    /// How many bytes are sent of it.
    fn size(&self) -> usize {
        self.values.iter().map(Value::size).sum()
    }

    /// The row as Arrow has it.
    fn batch<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        batch_to_python(py, self.batch.clone())
    }
}
