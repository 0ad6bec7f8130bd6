//! COPY of the front door: data to columns, and columns to messages.

use crate::ffi::{to_python, PyArray};
use crate::postgres_failures::raised;
use crate::proxy_client::Client;
use bytes::Bytes;
use louver_postgres::{CopyColumn, CopyLayout, Form};
use louver_proxy::{CopyPiece, Done};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::sync::{Mutex, PoisonError};

fn layout(name: &str) -> PyResult<CopyLayout> {
    Ok(match name {
        "" => CopyLayout::Text,
        "csv" => CopyLayout::Csv,
        "binary" => CopyLayout::Binary,
        _ => return Err(PyValueError::new_err("unknown format")),
    })
}

/// The columns of data in "" (text), "csv" or "binary" format, of `(type, modifier)`; None where
/// PostgreSQL is to read it.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
fn copied<'py>(
    py: Python<'py>,
    data: PyBackedBytes,
    start: usize,
    format: &str,
    columns: Vec<CopyColumn>,
) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    let layout = layout(format)?;
    let read = py.detach(|| {
        let rows = data.get(start..)?;
        louver_postgres::copied(rows, layout, &columns)
    });
    let arrays = read.map(|arrays| arrays.iter().map(|a| to_python(py, a, None)).collect());
    arrays.transpose()
}

/// Where the last whole row of binary data ends, and whether the end of all follows.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
fn rows_end(data: PyBackedBytes) -> (usize, bool) {
    louver_postgres::rows_end(&data)
}

/// Rows as messages of COPY … TO STDOUT.
#[pyclass(frozen, module = "louver._rust.postgres")]
struct CopyRows(CopyLayout, Mutex<Option<louver_postgres::CopyRows>>);

#[pymethods]
impl CopyRows {
    /// In "" (text), "csv" or "binary" format; `names` are the first line.
    #[new]
    fn new(format: &str, names: Option<Vec<String>>) -> PyResult<Self> {
        let layout = layout(format)?;
        let rows = louver_postgres::CopyRows::new(layout, names);
        Ok(Self(layout, Mutex::new(Some(rows))))
    }

    /// The messages of so many rows: `[(Arrow array, type, whether it is printed already)]`.
    fn messages<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<(PyArray, u32, bool)>,
        count: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let columns = columns.into_iter().map(|(array, type_, printed)| {
            let form = match (self.0, printed) {
                (_, true) => Form::Printed,
                (CopyLayout::Binary, _) => Form::Binary,
                _ => Form::Text,
            };
            (array.array, type_, form)
        });
        let columns: Vec<_> = columns.collect();
        let messages = py.detach(|| {
            let mut rows = self.1.lock().unwrap_or_else(PoisonError::into_inner);
            rows.as_mut().map(|rows| rows.messages(&columns, count))
        });
        let messages = messages.ok_or_else(ended)?.map_err(raised)?;
        Ok(PyBytes::new(py, &messages))
    }

    /// The messages behind the last rows.
    fn end<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut rows = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        let messages = rows.take().ok_or_else(ended)?.end().map_err(raised)?;
        Ok(PyBytes::new(py, &messages))
    }
}

fn ended() -> PyErr {
    PyValueError::new_err("the data has ended")
}

/// Python takes so many bytes of a COPY at once.
const COPIED_BYTES: usize = 1 << 20;

impl Client {
    /// Takes data of a COPY in, which is given to Python when it is worth a call.
    pub(crate) fn take_copied(&mut self, data: &[u8]) -> Done<()> {
        self.copied.extend_from_slice(data);
        if self.copied.len() < COPIED_BYTES {
            return Ok(());
        }
        self.give_copied()
    }

    /// Ends a COPY; with a reason nothing is copied.
    pub(crate) fn end_copy(&mut self, reason: Option<&str>) -> Done<String> {
        if reason.is_some() {
            self.copied.clear();
        } else if !self.copied.is_empty() {
            self.give_copied()?;
        }
        Python::attach(|py| self.call(py, |o| o.call_method1("copy_end", (reason,))?.extract()))
    }

    /// The next piece of data that goes out.
    pub(crate) fn copied_piece(&mut self) -> Done<Option<CopyPiece>> {
        Python::attach(|py| {
            self.call(py, |object| {
                let piece: Option<(PyBackedBytes, bool)> =
                    object.call_method0("copy_out")?.extract()?;
                Ok(piece.map(|(bytes, is_messages)| {
                    let bytes = Bytes::from_owner(bytes);
                    match is_messages {
                        true => CopyPiece::Messages(bytes),
                        false => CopyPiece::Data(bytes),
                    }
                }))
            })
        })
    }

    /// Gives Python the data of a COPY that are held.
    fn give_copied(&mut self) -> Done<()> {
        let data = std::mem::take(&mut self.copied);
        Python::attach(|py| {
            let data = PyBytes::new(py, &data);
            self.call(py, |object| {
                object.call_method1("copy_in", (data,)).map(drop)
            })
        })
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CopyRows>()?;
    module.add_function(wrap_pyfunction!(copied, module)?)?;
    module.add_function(wrap_pyfunction!(rows_end, module)?)
}
