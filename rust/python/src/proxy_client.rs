//! One client of the front door: its statements are run by an object of Python's, or without it
//! where that is known to do.

use crate::proxy_reads::Read;
use crate::proxy_values::{columns, failure, fields, rows};
use bytes::Bytes;
use louver_proxy::{
    Canceller, Column, CopyForm, Disclosed, Done, Engine, Fields, Kind, Leak, Looks, Outcome,
    Statement, Values, Way,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::cell::RefCell;
use std::sync::Arc;

/// One client's engine: an object of Python's.
pub(crate) struct Client {
    object: Py<PyAny>,
    canceller: Arc<Cancelling>,
    /// The settings that were told last.
    settings: Vec<(String, String)>,
    status: u8,
    /// Changes with all that a [`Read`] relies on.
    generation: u64,
    listens: bool,
    notices: Vec<Fields>,
    /// What the last statement disclosed, if it was run without Python.
    direct: Option<Disclosed>,
}

struct Cancelling(Py<PyAny>);

impl Canceller for Cancelling {
    fn cancel(&self) {
        Python::attach(|py| {
            let _ = self.0.call_method0(py, "cancel");
        });
    }
}

impl Client {
    /// Over such an object.
    pub(crate) fn new(py: Python<'_>, object: Py<PyAny>) -> Done<Self> {
        let mut client = Self {
            canceller: Arc::new(Cancelling(object.clone_ref(py))),
            object,
            settings: Vec::new(),
            status: b'I',
            generation: 0,
            listens: false,
            notices: Vec::new(),
            direct: None,
        };
        client.call(py, |_| Ok(()))?;
        Ok(client)
    }

    /// Calls a method, and takes over what it changed.
    fn call<'py, T>(
        &mut self,
        py: Python<'py>,
        call: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
    ) -> Done<T> {
        let object = self.object.bind(py).clone();
        let done = call(&object).map_err(|error| failure(py, &error));
        let after = self.after(&object);
        match (done, after) {
            (Ok(done), Ok(())) => Ok(done),
            (Err(failure), _) => Err(failure),
            (Ok(_), Err(error)) => Err(failure(py, &error)),
        }
    }

    fn after(&mut self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let after = object.call_method0("after")?;
        let (status, listens, settings, notices, generation): After<'_> = after.extract()?;
        self.status = status.bytes().next().unwrap_or(b'E');
        self.listens = listens;
        self.generation = generation;
        if let Some(settings) = settings {
            self.settings = settings;
        }
        for notice in notices {
            self.notices.push(fields(&notice, "NOTICE")?);
        }
        Ok(())
    }
}

/// State of the transaction, whether it listens, settings if they have changed, notices, and the
/// generation.
type After<'py> = (
    String,
    bool,
    Option<Vec<(String, String)>>,
    Vec<Bound<'py, PyDict>>,
    u64,
);

/// A prepared statement: Python's object, and how it reads without Python.
pub(crate) struct Handle {
    object: Py<PyAny>,
    looks: Looks,
    read: RefCell<Known>,
}

/// What reads rows in one generation, if it is known; after so many runs that gave none, nothing is
/// looked for any more.
#[derive(Default)]
struct Known {
    generation: u64,
    runs: u32,
    read: Option<Py<Read>>,
}

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

/// A query is planned with its first run, and what opens it is known with its second.
const RUNS: u32 = 3;

impl Client {
    /// The rows of a query that is known; None where Python is to run it.
    fn read(
        &self,
        statement: &Statement<Handle>,
        values: &Values,
        formats: &[i16],
    ) -> Option<Done<(Outcome, Disclosed)>> {
        let known = statement.handle.read.borrow();
        let valid = self.status == b'I' && known.generation == self.generation;
        let read = known.read.as_ref().filter(|_| valid)?;
        read.get().run(values, formats)
    }

    /// After a run of Python's: how the statement is read from now on.
    fn learn(&mut self, statement: &Statement<Handle>) {
        let mut known = statement.handle.read.borrow_mut();
        if known.generation != self.generation {
            *known = Known {
                generation: self.generation,
                ..Known::default()
            };
        }
        if self.status != b'I' || known.read.is_some() || known.runs >= RUNS {
            return;
        }
        known.runs += 1;
        known.read = Python::attach(|py| {
            let handle = statement.handle.object.bind(py);
            let read = self.object.call_method1(py, "read", (handle,)).ok()?;
            read.extract::<Option<Py<Read>>>(py).ok()?
        });
    }
}

impl Engine for Client {
    type Handle = Handle;

    fn settings(&mut self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn split(&mut self, sql: &str) -> Done<Vec<String>> {
        Python::attach(|py| self.call(py, |o| o.call_method1("split", (sql,))?.extract()))
    }

    fn prepare(&mut self, sql: &str, types: &[u32]) -> Done<Statement<Handle>> {
        Python::attach(|py| {
            self.call(py, |object| {
                let prepared = object.call_method1("prepare", (sql, types.to_vec()))?;
                let kind: String = prepared.getattr("kind")?.extract()?;
                Ok(Statement {
                    kind: match kind.as_str() {
                        "empty" => Kind::Empty,
                        "begins" => Kind::Begins,
                        "controls" => Kind::Controls,
                        "copies" => Kind::Copies,
                        "varies" => Kind::Varies,
                        _ => Kind::Other,
                    },
                    parameters: prepared.getattr("parameters")?.extract()?,
                    columns: columns(&prepared.getattr("columns")?)?,
                    deallocates: prepared.getattr("deallocates")?.extract()?,
                    handle: Handle {
                        looks: Looks {
                            kind: prepared.getattr("does")?.extract()?,
                            shape: prepared.getattr("shape")?.extract()?,
                        },
                        object: prepared.unbind(),
                        read: RefCell::default(),
                    },
                })
            })
        })
    }

    fn describe(&mut self, statement: &Statement<Handle>) -> Done<Option<Vec<Column>>> {
        Python::attach(|py| {
            let handle = statement.handle.object.bind(py).clone();
            self.call(py, |object| {
                columns(&object.call_method1("describe", (handle,))?)
            })
        })
    }

    fn cursor(&mut self, name: &str) -> Done<Option<Vec<Column>>> {
        Python::attach(|py| self.call(py, |o| columns(&o.call_method1("cursor", (name,))?)))
    }

    fn run(
        &mut self,
        statement: &Statement<Handle>,
        values: &Values,
        formats: &[i16],
    ) -> Done<Outcome> {
        self.direct = None;
        if let Some(done) = self.read(statement, values, formats) {
            return done.map(|(outcome, disclosed)| {
                self.direct = Some(disclosed);
                outcome
            });
        }
        let done = Python::attach(|py| {
            let given: Vec<Option<Bound<'_, PyBytes>>> = values
                .values
                .iter()
                .map(|value| value.as_ref().map(|bytes| PyBytes::new(py, bytes)))
                .collect();
            let handle = statement.handle.object.bind(py).clone();
            let forms = values.formats.clone();
            self.call(py, |object| {
                let given = (handle, given, forms, formats.to_vec());
                outcome(&object.call_method1("run", given)?)
            })
        });
        if matches!(done, Ok(Outcome::Rows { .. })) {
            self.learn(statement);
        }
        done
    }

    fn copy_in(&mut self, data: &[u8]) -> Done<()> {
        Python::attach(|py| {
            let data = PyBytes::new(py, data);
            self.call(py, |object| {
                object.call_method1("copy_in", (data,)).map(drop)
            })
        })
    }

    fn copy_end(&mut self, reason: Option<&str>) -> Done<String> {
        Python::attach(|py| self.call(py, |o| o.call_method1("copy_end", (reason,))?.extract()))
    }

    fn copy_out(&mut self) -> Done<Option<Bytes>> {
        Python::attach(|py| {
            self.call(py, |object| {
                let piece: Option<Vec<u8>> = object.call_method0("copy_out")?.extract()?;
                Ok(piece.map(Bytes::from))
            })
        })
    }

    fn begin(&mut self) -> Done<()> {
        Python::attach(|py| self.call(py, |object| object.call_method0("begin").map(drop)))
    }

    fn end(&mut self, commit: bool) -> Done<()> {
        Python::attach(|py| self.call(py, |o| o.call_method1("end", (commit,)).map(drop)))
    }

    fn fail(&mut self) {
        let _ = Python::attach(|py| self.call(py, |o| o.call_method0("fail").map(drop)));
    }

    fn status(&mut self) -> u8 {
        self.status
    }

    fn notices(&mut self) -> Vec<Fields> {
        std::mem::take(&mut self.notices)
    }

    fn listens(&self) -> bool {
        self.listens
    }

    fn notifications(&mut self) -> Done<Vec<(u32, String, String)>> {
        Python::attach(|py| self.call(py, |o| o.call_method0("notifications")?.extract()))
    }

    fn looks(&self, statement: &Statement<Handle>) -> Looks {
        statement.handle.looks.clone()
    }

    fn way(&self) -> Way {
        match self.direct {
            Some(_) => Way::Direct,
            None => Way::Planned,
        }
    }

    fn disclosed(&mut self) -> Disclosed {
        if let Some(direct) = &mut self.direct {
            return std::mem::take(direct);
        }
        let given = Python::attach(|py| {
            let given = self.object.call_method0(py, "disclosed").ok()?;
            given.extract::<(Vec<String>, Vec<GivenLeak>)>(py).ok()
        });
        let (opened, leaked) = given.unwrap_or_default();
        Disclosed {
            opened,
            leaked: leaked.into_iter().map(leak).collect(),
        }
    }

    fn canceller(&self) -> Arc<dyn Canceller> {
        Arc::clone(&self.canceller) as Arc<dyn Canceller>
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        Python::attach(|py| {
            let _ = self.object.call_method0(py, "close");
        });
    }
}

/// What `run` gave: `None`, a tag, the begin of a COPY, or rows. A COPY is `("text", "csv" or
/// "binary", columns)`, with quote and escape where it gives data.
fn outcome(given: &Bound<'_, PyAny>) -> PyResult<Outcome> {
    if given.is_none() {
        return Ok(Outcome::Empty);
    }
    if let Ok(tag) = given.extract::<String>() {
        return Ok(Outcome::Done { tag });
    }
    if let Ok((form, columns)) = given.extract::<(String, usize)>() {
        let format = i8::from(form == "binary");
        return Ok(Outcome::CopyIn { format, columns });
    }
    if let Ok((form, columns, quote, escape)) = given.extract::<(String, usize, u8, u8)>() {
        let form = match form.as_str() {
            "binary" => CopyForm::Binary,
            "csv" => CopyForm::Csv { quote, escape },
            _ => CopyForm::Text,
        };
        return Ok(Outcome::CopyOut { form, columns });
    }
    rows(given)
}
