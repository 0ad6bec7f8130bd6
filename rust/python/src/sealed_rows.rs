//! One sealed row, from the values of its columns to those of a statement for PostgreSQL.

use crate::epochs::Epochs;
use crate::errors::trusted;
use crate::ffi::{batch_to_python, PyArray, PyType};
use crate::keyring::KeyRing;
use crate::postgres_failures::raised;
use crate::raw::Raw;
use crate::raw_values;
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
#[pyclass(frozen, module = "louver._rust.postgres")]
pub(crate) struct SealedRow {
    batch: RecordBatch,
    pub(crate) values: Vec<Value>,
}

impl SealedRow {
    fn made(
        ring: &KeyRing,
        epochs: &Epochs,
        recipe: &louver_trusted::Recipe,
        columns: &[Declared],
        plain: Vec<(Field, ArrayRef)>,
        row_id: i64,
    ) -> PyResult<Option<Self>> {
        let row_ids: ArrayRef = Arc::new(Int64Array::from(vec![row_id]));
        let mut all = columns.iter().chain(&plain);
        if !all.all(|(_, array)| array.len() == 1) {
            return Err(PyValueError::new_err("columns of one row each"));
        }
        let sealed = recipe.seal(&ring.0, &epochs.0, columns, &row_ids);
        let sealed = sealed.map_err(trusted)?;
        let schema = sealed.schema();
        let mut fields: Vec<Field> = schema.fields().iter().map(|f| f.as_ref().clone()).collect();
        let mut stored = sealed.columns().to_vec();
        for (field, array) in plain {
            let extension = field.metadata().get(EXTENSION);
            if extension.is_some_and(|known| known != UUID) {
                return Ok(None);
            }
            fields.push(field.with_nullable(true));
            stored.push(array);
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
}

/// The only row of some columns as a recipe seals them under this id, and behind that what is
/// stored as it is, by the server's names. None where a plain value is of a type that PostgreSQL
/// has not.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn seal_row(
    ring: &KeyRing,
    epochs: &Epochs,
    recipe: &Recipe,
    columns: Vec<PyArray>,
    plain: Vec<(String, PyArray)>,
    row_id: i64,
) -> PyResult<Option<SealedRow>> {
    let columns: Vec<Declared> = columns.into_iter().map(|c| (c.field, c.array)).collect();
    let named = |(name, column): (String, PyArray)| (column.field.with_name(name), column.array);
    let plain = plain.into_iter().map(named).collect();
    SealedRow::made(ring, epochs, &recipe.0, &columns, plain, row_id)
}

/// How the rows of a table are sealed from raw values: days, microseconds and unscaled numbers are
/// whole numbers, UUIDs bytes.
#[pyclass(frozen, module = "louver._rust.recipe")]
pub(crate) struct RowForm {
    recipe: Py<Recipe>,
    reads: Vec<Field>,
    plain: Vec<Field>,
}

#[pymethods]
impl RowForm {
    /// A recipe with the types of the columns that it reads; names at the server and types of those
    /// that are stored as they are.
    #[new]
    fn new(recipe: Py<Recipe>, reads: Vec<PyType>, plain: Vec<(String, PyType)>) -> Self {
        let bare = |kind: PyType| Field::new("", kind.0.data_type().clone(), true);
        let named = |(name, kind): (String, PyType)| kind.0.with_name(name);
        Self {
            recipe,
            reads: reads.into_iter().map(bare).collect(),
            plain: plain.into_iter().map(named).collect(),
        }
    }

    /// A row of these values under this id; None where one is not of its column's type.
    #[allow(clippy::needless_pass_by_value)]
    fn seal(
        &self,
        ring: &KeyRing,
        epochs: &Epochs,
        reads: Vec<Bound<'_, PyAny>>,
        plain: Vec<Bound<'_, PyAny>>,
        row_id: i64,
    ) -> PyResult<Option<SealedRow>> {
        let pairs = (
            columns_of(&self.reads, &reads)?,
            columns_of(&self.plain, &plain)?,
        );
        let (Some(columns), Some(plain)) = pairs else {
            return Ok(None);
        };
        SealedRow::made(ring, epochs, &self.recipe.get().0, &columns, plain, row_id)
    }
}

impl RowForm {
    /// Whether its columns are as many as these, and of types that PostgreSQL has.
    pub(crate) fn fits(&self, places: &(Vec<usize>, Vec<usize>)) -> bool {
        let known = |field: &Field| {
            let extension = field.metadata().get(EXTENSION);
            extension.is_none_or(|known| known == UUID)
        };
        (self.reads.len(), self.plain.len()) == (places.0.len(), places.1.len())
            && self.plain.iter().all(known)
    }

    /// A row of these values under this id; None where one is not of its column's type.
    pub(crate) fn sealed(
        &self,
        ring: &KeyRing,
        epochs: &Epochs,
        reads: &[&Raw],
        plain: &[&Raw],
        row_id: i64,
    ) -> Option<SealedRow> {
        let column = |(field, value): (&Field, &&Raw)| {
            Some((field.clone(), value.array(field.data_type())?))
        };
        let of = |fields: &[Field], values: &[&Raw]| -> Option<Vec<Declared>> {
            (fields.len() == values.len()).then_some(())?;
            fields.iter().zip(values).map(column).collect()
        };
        let (columns, plain) = (of(&self.reads, reads)?, of(&self.plain, plain)?);
        SealedRow::made(ring, epochs, &self.recipe.get().0, &columns, plain, row_id).ok()?
    }
}

/// Raw values as columns of one row each.
fn columns_of(
    fields: &[Field],
    values: &[Bound<'_, PyAny>],
) -> PyResult<Option<Vec<(Field, ArrayRef)>>> {
    if fields.len() != values.len() {
        return Err(PyValueError::new_err("a value for each column"));
    }
    let pairs = fields.iter().zip(values);
    let columns = pairs.map(|(field, value)| {
        let column = raw_values::array(field.data_type(), value)?;
        Some((field.clone(), column))
    });
    Ok(columns.collect())
}

#[pymethods]
impl SealedRow {
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
