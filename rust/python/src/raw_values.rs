//! Raw values (`raw`) and those of Python.

use crate::raw::Raw;
use arrow_array::ArrayRef;
use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyNone, PyString};

/// A value as a column of one row; None where it is not of this type.
pub(crate) fn array(data_type: &DataType, value: &Bound<'_, PyAny>) -> Option<ArrayRef> {
    of_python(value)?.array(data_type)
}

/// A value of one of Python's own types, and of no class that is made of one.
pub(crate) fn of_python(value: &Bound<'_, PyAny>) -> Option<Raw> {
    if value.is_none() {
        return Some(Raw::Null);
    }
    if let Ok(value) = value.cast_exact::<PyBool>() {
        return Some(Raw::Truth(value.is_true()));
    }
    if let Ok(value) = value.cast_exact::<PyInt>() {
        return value.extract().ok().map(Raw::Whole);
    }
    if let Ok(value) = value.cast_exact::<PyString>() {
        return value.extract().ok().map(Raw::Text);
    }
    if let Ok(value) = value.cast_exact::<PyBytes>() {
        return Some(Raw::Bytes(value.as_bytes().to_owned()));
    }
    let value = value.cast_exact::<PyFloat>().ok()?;
    Some(Raw::Double(value.value()))
}

/// The value of one row; None of a type whose values are not taken so.
pub(crate) fn value<'py>(
    py: Python<'py>,
    column: &ArrayRef,
    row: usize,
) -> Option<Bound<'py, PyAny>> {
    match Raw::of(column, row)? {
        Raw::Null => Some(PyNone::get(py).to_owned().into_any()),
        Raw::Truth(value) => Some(PyBool::new(py, value).to_owned().into_any()),
        Raw::Whole(value) => match i64::try_from(value) {
            Ok(value) => value.into_pyobject(py).ok().map(Bound::into_any),
            Err(_) => value.into_pyobject(py).ok().map(Bound::into_any),
        },
        Raw::Double(value) => value.into_pyobject(py).ok().map(Bound::into_any),
        Raw::Text(value) => Some(PyString::new(py, &value).into_any()),
        Raw::Bytes(value) => Some(PyBytes::new(py, &value).into_any()),
    }
}

/// Whether the raw values of a type are those that Python has.
pub(crate) fn is_as_in_python(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Boolean
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Float32
            | DataType::Float64
            | DataType::Utf8
            | DataType::Binary
    )
}
