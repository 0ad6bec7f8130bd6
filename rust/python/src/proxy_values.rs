//! What the front door's Python gives: columns, rows and errors.

use crate::ffi::PyArray;
use crate::proxy::internal;
use bytes::BytesMut;
use louver_postgres::{data_rows, Form};
use louver_proxy::{Column, Failure, Fields, Leak, Outcome};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// `(name, table, attribute, type, size, modifier, format)`.
pub(crate) type Described = (String, u32, i16, u32, i16, i32, i16);

/// Columns, level, kind and number.
pub(crate) type GivenLeak = (Vec<String>, String, String, u64);

pub(crate) fn leak((columns, level, kind, count): GivenLeak) -> Leak {
    Leak {
        columns,
        level,
        kind,
        count,
    }
}

/// A list of columns, or None.
pub(crate) fn columns(given: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Column>>> {
    let given: Option<Vec<Described>> = given.extract()?;
    Ok(given.map(|all| all.into_iter().map(described).collect()))
}

pub(crate) fn described(
    (name, table, attribute, type_, size, modifier, format): Described,
) -> Column {
    Column {
        name,
        table,
        attribute,
        type_,
        size,
        modifier,
        format,
    }
}

/// `(tag, columns, [(Arrow array, whether it is printed already)], number of rows)`.
pub(crate) fn rows(given: &Bound<'_, PyAny>) -> PyResult<Outcome> {
    let (tag, shown, arrays, count): (String, Vec<Described>, Vec<(PyArray, bool)>, usize) =
        given.extract()?;
    let columns: Vec<Column> = shown.into_iter().map(described).collect();
    let parts: Vec<_> = columns
        .iter()
        .zip(arrays)
        .map(|(column, (array, printed))| {
            let form = match (column.format, printed) {
                (1, _) => Form::Binary,
                (_, true) => Form::Printed,
                _ => Form::Text,
            };
            (array.array, column.type_, form)
        })
        .collect();
    let encoded = given.py().detach(|| data_rows(&parts, count));
    let (messages, ends) = encoded.map_err(crate::postgres_failures::raised)?;
    Ok(Outcome::Rows {
        tag,
        columns,
        messages: BytesMut::from(bytes::Bytes::from(messages)),
        ends,
    })
}

/// The failure that an exception is; what is none of the front door's is not shown.
pub(crate) fn failure(py: Python<'_>, error: &PyErr) -> Failure {
    let value = error.value(py);
    let Ok(given) = value
        .getattr("fields")
        .and_then(|f| Ok(f.cast_into::<PyDict>()?))
    else {
        let kind = value.get_type().name().map(|name| name.to_string());
        return internal(&kind.unwrap_or_default());
    };
    let ends = value.getattr("ends").and_then(|e| e.extract());
    match fields(&given, "ERROR") {
        Ok(fields) => Failure {
            fields: Box::new(fields),
            ends: ends.unwrap_or(false),
        },
        Err(_) => internal("fields"),
    }
}

/// A dict of a message's fields.
pub(crate) fn fields(given: &Bound<'_, PyDict>, severity: &'static str) -> PyResult<Fields> {
    let text = |name: &str| -> PyResult<Option<String>> {
        given.get_item(name)?.map(|v| v.extract()).transpose()
    };
    let named = [
        (b's', "schema"),
        (b't', "table"),
        (b'c', "column"),
        (b'n', "constraint"),
        (b'W', "context"),
    ];
    let mut more = Vec::new();
    for (letter, name) in named {
        if let Some(value) = text(name)? {
            more.push((letter, value));
        }
    }
    let position: Option<u32> = given
        .get_item("position")?
        .map(|v| v.extract())
        .transpose()?;
    let severity = match text("severity")?.as_deref() {
        Some("WARNING") => "WARNING",
        Some("INFO") => "INFO",
        _ => severity,
    };
    Ok(Fields {
        severity,
        sqlstate: text("sqlstate")?.unwrap_or_else(|| "XX000".to_owned()),
        message: text("message")?.unwrap_or_default(),
        detail: text("detail")?,
        hint: text("hint")?,
        position,
        more,
        code: text("code")?,
    })
}
