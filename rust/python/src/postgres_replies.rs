//! What came of a statement, as Python reads it.

use crate::ffi::to_python;
use crate::postgres::described;
use arrow_array::{Array, ArrayRef};
use louver_postgres::{arrow_field, Field};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// What came of a statement: `(tag, [column], [Arrow array])`, made as they are read.
#[pyclass(frozen, sequence, module = "louver._rust.postgres")]
pub(crate) struct Reply {
    tag: String,
    fields: Vec<Field>,
    pub(crate) columns: Vec<ArrayRef>,
}

impl Reply {
    pub(crate) fn of(reply: louver_postgres::Reply) -> Self {
        let (fields, columns) = reply.rows.finish();
        Self {
            tag: reply.tag,
            fields,
            columns,
        }
    }

    /// The names of its columns.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| field.name.as_str())
    }
}

#[pymethods]
impl Reply {
    fn __len__(&self) -> usize {
        3
    }

    fn __getitem__<'py>(&self, py: Python<'py>, item: usize) -> PyResult<Bound<'py, PyAny>> {
        match item {
            0 => Ok(self.tag.as_str().into_pyobject(py)?.into_any()),
            1 => {
                let columns = self.fields.iter().cloned().map(described);
                Ok(PyList::new(py, columns)?.into_any())
            }
            2 => Ok(PyList::new(py, arrays(py, &self.fields, &self.columns)?)?.into_any()),
            _ => Err(PyIndexError::new_err("a reply has three parts")),
        }
    }

    /// The bytes and the number of its rows.
    fn size(&self) -> (usize, usize) {
        let bytes = self.columns.iter().map(|column| {
            let data = column.to_data();
            data.get_slice_memory_size().unwrap_or(0)
        });
        (bytes.sum(), self.columns.first().map_or(0, |c| c.len()))
    }
}

pub(crate) fn arrays<'py>(
    py: Python<'py>,
    fields: &[Field],
    columns: &[ArrayRef],
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let pairs = fields.iter().zip(columns);
    pairs
        .map(|(field, column)| to_python(py, column.as_ref(), Some(&arrow_field("", field.type_))))
        .collect()
}
