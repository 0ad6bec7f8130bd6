//! Single values between Arrow and Python in the form in which Arrow stores them: days,
//! microseconds and unscaled numbers are whole numbers, UUIDs bytes.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use arrow_array::{
    new_null_array, Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array,
    FixedSizeBinaryArray, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array,
    StringArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, TimeUnit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyNone, PyString};
use std::sync::Arc;

/// A value as a column of one row; None where it is not of this type.
pub(crate) fn array(data_type: &DataType, value: &Bound<'_, PyAny>) -> Option<ArrayRef> {
    if value.is_none() {
        return Some(new_null_array(data_type, 1));
    }
    Some(match data_type {
        DataType::Boolean => {
            let value = value.cast_exact::<PyBool>().ok()?.is_true();
            Arc::new(BooleanArray::from(vec![value]))
        }
        DataType::Int16 => Arc::new(Int16Array::from(vec![whole::<i16>(value)?])),
        DataType::Int32 => Arc::new(Int32Array::from(vec![whole::<i32>(value)?])),
        DataType::Int64 => Arc::new(Int64Array::from(vec![whole::<i64>(value)?])),
        DataType::Date32 => Arc::new(Date32Array::from(vec![whole::<i32>(value)?])),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let column = TimestampMicrosecondArray::from(vec![whole::<i64>(value)?]);
            Arc::new(column.with_timezone_opt(zone.clone()))
        }
        DataType::Decimal128(precision, scale) => {
            let column = Decimal128Array::from(vec![whole::<i128>(value)?]);
            Arc::new(column.with_precision_and_scale(*precision, *scale).ok()?)
        }
        DataType::Float32 => {
            let value = value.cast_exact::<PyFloat>().ok()?.value();
            let narrow = value as f32;
            (f64::from(narrow).to_bits() == value.to_bits()).then_some(())?;
            Arc::new(Float32Array::from(vec![narrow]))
        }
        DataType::Float64 => {
            let value = value.cast_exact::<PyFloat>().ok()?.value();
            Arc::new(Float64Array::from(vec![value]))
        }
        DataType::Utf8 => {
            let value = value.cast_exact::<PyString>().ok()?;
            Arc::new(StringArray::from(vec![value.extract::<String>().ok()?]))
        }
        DataType::Binary => {
            let value = value.cast_exact::<PyBytes>().ok()?;
            Arc::new(BinaryArray::from(vec![value.as_bytes()]))
        }
        DataType::FixedSizeBinary(16) => {
            let value = value.cast_exact::<PyBytes>().ok()?.as_bytes();
            (value.len() == 16).then_some(())?;
            Arc::new(FixedSizeBinaryArray::try_from_iter([value].into_iter()).ok()?)
        }
        _ => return None,
    })
}

fn whole<'py, T: for<'a> FromPyObject<'a, 'py>>(value: &Bound<'py, PyAny>) -> Option<T> {
    value.cast_exact::<PyInt>().ok()?;
    value.extract::<T>().ok()
}

/// The value of one row; None of a type whose values are not taken so.
pub(crate) fn value<'py>(
    py: Python<'py>,
    column: &ArrayRef,
    row: usize,
) -> Option<Bound<'py, PyAny>> {
    if column.is_null(row) {
        return Some(PyNone::get(py).to_owned().into_any());
    }
    let number = |number: i64| number.into_pyobject(py).ok().map(Bound::into_any);
    let float = |number: f64| number.into_pyobject(py).ok().map(Bound::into_any);
    match column.data_type() {
        DataType::Boolean => {
            let value = PyBool::new(py, column.as_boolean().value(row));
            Some(value.to_owned().into_any())
        }
        DataType::Int16 => number(column.as_primitive::<Int16Type>().value(row).into()),
        DataType::Int32 => number(column.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => number(column.as_primitive::<Int64Type>().value(row)),
        DataType::Date32 => number(column.as_primitive::<Date32Type>().value(row).into()),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            number(column.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        DataType::Decimal128(..) => {
            let number = column.as_primitive::<Decimal128Type>().value(row);
            number.into_pyobject(py).ok().map(Bound::into_any)
        }
        DataType::Float32 => float(column.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => float(column.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => Some(PyString::new(py, column.as_string::<i32>().value(row)).into_any()),
        DataType::Binary => Some(PyBytes::new(py, column.as_binary::<i32>().value(row)).into_any()),
        DataType::FixedSizeBinary(16) => {
            Some(PyBytes::new(py, column.as_fixed_size_binary().value(row)).into_any())
        }
        _ => None,
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
