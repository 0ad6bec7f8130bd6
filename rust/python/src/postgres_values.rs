//! Python's values as those of a statement for PostgreSQL.

use crate::ffi::PyArray;
use crate::postgres_failures::raised;
use crate::sealed_rows::SealedRow;
use louver_postgres::Value;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple};

/// A value, a text or a binary form with the number of its type, an Arrow column with the number of
/// its items' type: an array of these, or a sealed row: a value for each of its columns.
pub(crate) enum Given {
    One(Value),
    Column(PyArray, u32),
    Row(Py<SealedRow>),
}

impl Given {
    /// The values that all of these stand for, in their order.
    pub(crate) fn values(all: Vec<Self>) -> PyResult<Vec<Value>> {
        let mut values = Vec::with_capacity(all.len());
        for given in all {
            match given {
                Self::One(value) => values.push(value),
                Self::Column(column, item) => {
                    values.push(Value::array(&column.array, item).map_err(raised)?);
                }
                Self::Row(row) => values.extend_from_slice(&row.get().values),
            }
        }
        Ok(values)
    }
}

impl FromPyObject<'_, '_> for Given {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(row) = object.cast::<SealedRow>() {
            return Ok(Self::Row(row.to_owned().unbind()));
        }
        Ok(Self::One(if object.is_none() {
            Value::Null
        } else if object.is_instance_of::<PyBool>() {
            Value::Bool(object.extract()?)
        } else if object.is_instance_of::<PyInt>() {
            Value::Int8(object.extract()?)
        } else if object.is_instance_of::<PyFloat>() {
            Value::Float8(object.extract()?)
        } else if object.is_instance_of::<PyString>() {
            Value::Text(object.extract()?)
        } else if object.is_instance_of::<PyBytes>() {
            Value::Bytes(object.extract()?)
        } else if let Ok(pair) = object.cast::<PyTuple>() {
            let (first, type_) = (pair.get_item(0)?, pair.get_item(1)?.extract()?);
            if first.is_instance_of::<PyString>() {
                return Ok(Self::One(Value::Typed(type_, first.extract()?)));
            }
            if first.is_instance_of::<PyBytes>() {
                return Ok(Self::One(Value::Binary(type_, first.extract()?)));
            }
            return Ok(Self::Column(first.extract()?, type_));
        } else {
            let name = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "a value of Python's {name} is not sent"
            )));
        }))
    }
}
