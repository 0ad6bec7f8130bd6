//! Bytes for COPY … FROM STDIN of batches that Python gives. Of many, further ones are made while
//! the server reads those before.

use crate::ffi::PyArray;
use crate::postgres_failures::raised;
use arrow_array::cast::AsArray;
use arrow_array::RecordBatch;
use louver_postgres::CopyFormat;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError};
use std::thread::Scope;
use std::time::Duration;

/// So many rows of a batch are sent at once.
const PART_ROWS: usize = 2_048;
/// A thread makes what is behind so many bytes, and so many parts ahead.
const FEW_BYTES: usize = 1 << 19;
const AHEAD: usize = 16;
/// Signals are looked for so often.
const PATIENCE: Duration = Duration::from_millis(50);

type Part = PyResult<Option<Vec<u8>>>;

/// What is sent, part by part.
pub(crate) struct Parts {
    maker: Option<Maker>,
    /// Whether the batches may be asked for by another thread.
    by_thread: bool,
    bytes_given: usize,
    ahead: Option<Receiver<Part>>,
}

impl Parts {
    /// Of an iterable of batches, for columns of these types. What a user gives is asked for by the
    /// caller's thread alone; other ones may be asked for `by_thread`.
    pub(crate) fn new(
        batches: &Bound<'_, PyAny>,
        types: Vec<u32>,
        by_thread: bool,
    ) -> PyResult<Self> {
        let maker = Maker {
            next: next_of(batches)?,
            format: Some(CopyFormat::new(types)),
            slices: Vec::new().into_iter(),
        };
        Ok(Self {
            maker: Some(maker),
            by_thread,
            bytes_given: 0,
            ahead: None,
        })
    }

    /// The next part; the caller does not hold the interpreter's lock.
    pub(crate) fn next<'scope>(&mut self, scope: &'scope Scope<'scope, '_>) -> Part {
        if let Some(ahead) = &self.ahead {
            return next_of_thread(ahead);
        }
        let Some(mut maker) = self.maker.take() else {
            return Ok(None);
        };
        let part = maker.next()?;
        self.bytes_given += part.as_ref().map_or(0, Vec::len);
        if !self.by_thread || self.bytes_given < FEW_BYTES || part.is_none() {
            self.maker = Some(maker);
            return Ok(part);
        }
        let (sender, receiver) = sync_channel(AHEAD);
        self.ahead = Some(receiver);
        scope.spawn(move || loop {
            let part = maker.next();
            let is_last = !matches!(part, Ok(Some(_)));
            // Whoever sends has given up.
            if sender.send(part).is_err() || is_last {
                break;
            }
        });
        Ok(part)
    }
}

/// What the thread has made; a signal that raises comes out. Nothing comes behind a failure, and
/// behind the end.
fn next_of_thread(ahead: &Receiver<Part>) -> Part {
    loop {
        let part = ahead.recv_timeout(PATIENCE);
        Python::attach(|py| py.check_signals())?;
        match part {
            Ok(part) => return part,
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// A function of Python's that gives the next batch, and None behind the last: in any thread under
/// the caller's context variables.
fn next_of(batches: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let py = batches.py();
    let run = py.import("contextvars")?.call_method0("copy_context")?;
    let next = py.import("builtins")?.getattr("next")?;
    let iterator = batches.try_iter()?;
    let partial = py.import("functools")?.getattr("partial")?;
    let given = (run.getattr("run")?, next, iterator, py.None());
    Ok(partial.call1(given)?.unbind())
}

/// Makes the parts.
struct Maker {
    next: Py<PyAny>,
    format: Option<CopyFormat>,
    slices: std::vec::IntoIter<RecordBatch>,
}

impl Maker {
    fn next(&mut self) -> Part {
        let Some(format) = self.format.as_mut() else {
            return Ok(None);
        };
        if let Some(slice) = self.slices.next() {
            return format.batch(&slice).map(Some).map_err(raised);
        }
        let batch = Python::attach(|py| {
            let item = self.next.bind(py).call0()?;
            (!item.is_none())
                .then(|| item.extract::<PyArray>())
                .transpose()
        })?;
        let Some(batch) = batch else {
            return Ok(self.format.take().map(CopyFormat::end));
        };
        let rows = batch.array.as_struct_opt().map(RecordBatch::from);
        let rows = rows.ok_or_else(|| PyTypeError::new_err("a record batch is needed"))?;
        let starts = (0..rows.num_rows().max(1)).step_by(PART_ROWS);
        let slices = starts.map(|start| rows.slice(start, PART_ROWS.min(rows.num_rows() - start)));
        self.slices = slices.collect::<Vec<_>>().into_iter();
        let first = self.slices.next().unwrap_or(rows);
        format.batch(&first).map(Some).map_err(raised)
    }
}
