//! One client of the front door: its statements are run by an object of Python's, or without it
//! where that is known to do.

use crate::proxy_statements::{outcome, statement, Direct, Handle, Known};
use crate::proxy_values::{columns, failure, fields, leak, GivenLeak};
use crate::proxy_writes::Ran;
use louver_proxy::{
    Canceller, Column, CopyPiece, Disclosed, Done, Engine, Failure, Fields, Kind, Looks, Outcome,
    Statement, Values, Way,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
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
    /// Whether rows were changed that Python has not counted.
    wrote: bool,
    pub(crate) notices: Vec<Fields>,
    /// The user and the settings that it has; 0 of none.
    pub(crate) stamp: u64,
    /// Whether Python has done something since a client came in.
    pub(crate) touched: bool,
    /// What was disclosed without Python.
    shown: Disclosed,
    /// Whether what was done last was done without it.
    is_direct: bool,
    /// Data of a COPY that comes in, until it is worth a call.
    pub(crate) copied: Vec<u8>,
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
            wrote: false,
            stamp: 0,
            touched: false,
            shown: Disclosed::default(),
            is_direct: false,
            copied: Vec::new(),
        };
        client.call(py, |_| Ok(()))?;
        Ok(client)
    }

    /// Calls a method, and takes over what it changed.
    pub(crate) fn call<'py, T>(
        &mut self,
        py: Python<'py>,
        call: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
    ) -> Done<T> {
        let object = self.object.bind(py).clone();
        if std::mem::take(&mut self.wrote) {
            object
                .call_method0("count")
                .map_err(|error| failure(py, &error))?;
        }
        (self.touched, self.is_direct) = (true, false);
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

/// A statement is planned with its first run, and what opens its rows is known with its second.
/// Behind so many it is looked for what runs it less and less often.
const RUNS: u32 = 3;

impl Client {
    fn is_valid(&self, known: &Known) -> bool {
        self.status == b'I' && known.generation == self.generation
    }

    /// Whether a statement's way was tried.
    fn is_known(&self, statement: &Statement<Handle>) -> bool {
        let known = statement.handle.known.borrow();
        known.way.is_some() && self.is_valid(&known)
    }

    /// What a statement gave that is known; None where Python is to run it.
    fn known(
        &mut self,
        statement: &Statement<Handle>,
        values: &Values,
        formats: &[i16],
    ) -> Option<Done<Outcome>> {
        let mut known = statement.handle.known.borrow_mut();
        let valid = self.is_valid(&known);
        let ran = match known.way.as_ref().filter(|_| valid)? {
            Direct::Read(read) => {
                let done = read.get().run(values, formats);
                self.shown.add(read.get().disclosed());
                return done;
            }
            Direct::Pass(pass) => return pass.get().run(values, formats),
            Direct::Write(write) => {
                let ran = write.get().run(values);
                self.shown.add(write.get().disclosed());
                ran
            }
        };
        match ran {
            Ran::Done(done) => {
                self.wrote = true;
                Some(done)
            }
            Ran::Other => None,
            Ran::Stale => {
                *known = Known {
                    generation: self.generation,
                    ..Known::default()
                };
                None
            }
            Ran::Unsure => Some(Python::attach(|py| {
                self.call(py, |object| object.call_method0("unsure").map(drop))?;
                Err(Failure::error("08006", "the connection was lost"))
            })),
        }
    }

    /// Python has run a statement that its way left to it: what that shows is recorded.
    fn recorded(statement: &Statement<Handle>) {
        match &statement.handle.known.borrow().way {
            Some(Direct::Read(read)) => read.get().recorded(),
            Some(Direct::Write(write)) => write.get().recorded(),
            Some(Direct::Pass(pass)) => pass.get().looked(),
            None => {}
        }
    }

    /// After a run of Python's: how the statement runs from now on.
    fn learn(&mut self, statement: &Statement<Handle>) {
        let mut known = statement.handle.known.borrow_mut();
        if known.generation != self.generation {
            *known = Known {
                generation: self.generation,
                ..Known::default()
            };
        }
        let fine = self.status == b'I' && statement.kind == Kind::Other;
        if !fine || known.way.is_some() {
            return;
        }
        known.runs += 1;
        if known.runs > RUNS && !known.runs.is_power_of_two() {
            return;
        }
        known.way = Python::attach(|py| {
            let handle = statement.handle.object.bind(py);
            let way = self.object.call_method1(py, "way", (handle,)).ok()?;
            way.extract::<Option<Direct>>(py).ok()?
        });
    }
}

impl Engine for Client {
    type Handle = Handle;

    fn settings(&mut self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn split(&mut self, sql: &str) -> Done<Vec<(String, u32)>> {
        Python::attach(|py| self.call(py, |o| o.call_method1("split", (sql,))?.extract()))
    }

    fn prepare(&mut self, sql: &str, types: &[u32], name: &str) -> Done<Statement<Handle>> {
        Python::attach(|py| {
            self.call(py, |object| {
                statement(object.call_method1("prepare", (sql, types.to_vec(), name))?)
            })
        })
    }

    fn named(&mut self, name: &str) -> Done<Option<Statement<Handle>>> {
        Python::attach(|py| {
            self.call(py, |object| {
                let known: Option<Bound<'_, PyAny>> =
                    object.call_method1("named", (name,))?.extract()?;
                known.map(statement).transpose()
            })
        })
    }

    fn close_named(&mut self, name: &str) -> Done<()> {
        Python::attach(|py| self.call(py, |o| o.call_method1("close_named", (name,)).map(drop)))
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
        let known = self.known(statement, values, formats);
        self.is_direct = known.is_some();
        if let Some(done) = known {
            return done;
        }
        let left = self.is_known(statement);
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
        if matches!(done, Ok(Outcome::Rows { .. } | Outcome::Done { .. })) {
            if left {
                Self::recorded(statement);
            }
            self.learn(statement);
        }
        done
    }

    fn copy_in(&mut self, data: &[u8]) -> Done<()> {
        self.take_copied(data)
    }

    fn copy_end(&mut self, reason: Option<&str>) -> Done<String> {
        self.end_copy(reason)
    }

    fn copy_out(&mut self) -> Done<Option<CopyPiece>> {
        self.copied_piece()
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
        if self.is_direct {
            Way::Direct
        } else {
            Way::Planned
        }
    }

    fn shows(&mut self) -> bool {
        let disclosed = self.disclosed();
        self.shown.add(disclosed);
        !self.shown.is_empty()
    }

    fn disclosed(&mut self) -> Disclosed {
        let mut disclosed = std::mem::take(&mut self.shown);
        if self.is_direct {
            return disclosed;
        }
        let given = Python::attach(|py| {
            let given = self.object.call_method0(py, "disclosed").ok()?;
            given.extract::<(Vec<String>, Vec<GivenLeak>)>(py).ok()
        });
        let (opened, leaked) = given.unwrap_or_default();
        disclosed.add(Disclosed {
            opened,
            leaked: leaked.into_iter().map(leak).collect(),
        });
        disclosed
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
