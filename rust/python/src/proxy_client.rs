//! One client of the front door: its statements are run by an object of Python's, or without it
//! where that is known to do.

use crate::proxy_sequences::SequenceNumbers;
use crate::proxy_shapes::Shapes;
use crate::proxy_statements::{statement, Handle};
use crate::proxy_texts::Texts;
use crate::proxy_transactions::Transaction;
use crate::proxy_values::{columns, failure, fields, leak, GivenLeak};
use louver_proxy::{
    Canceller, Column, CopyPiece, Disclosed, Done, Engine, Fields, Kind, Looks, Outcome, Settings,
    Statement, Values, Way,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// One client's engine: an object of Python's.
pub(crate) struct Client {
    pub(crate) object: Py<PyAny>,
    canceller: Arc<Cancelling>,
    /// The settings that were told last.
    settings: Settings,
    pub(crate) status: u8,
    /// Changes with all that a [`Read`] relies on.
    pub(crate) generation: u64,
    pub(crate) listens: bool,
    /// Whether rows were changed that Python has not counted, or there are numbers of sequences
    /// that it must not draw as well.
    pub(crate) wrote: bool,
    pub(crate) notices: Vec<Fields>,
    /// The user and the settings that it has; 0 of none.
    pub(crate) stamp: u64,
    /// Whether Python has done something since a client came in.
    pub(crate) touched: bool,
    /// What was disclosed without Python.
    pub(crate) shown: Disclosed,
    /// Whether what was done last was done without it.
    is_direct: bool,
    /// The open transaction that Python does not know of.
    pub(crate) within: Option<Transaction>,
    /// Statements that Python has run in its open transaction.
    pub(crate) ran: Vec<Handle>,
    /// Sequences that are drawn from without Python.
    pub(crate) drawn: Vec<SequenceNumbers>,
    pub(crate) texts: Texts,
    pub(crate) shapes: Shapes,
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
            settings: Settings::default(),
            status: b'I',
            generation: 0,
            listens: false,
            notices: Vec::new(),
            wrote: false,
            stamp: 0,
            touched: false,
            shown: Disclosed::default(),
            is_direct: false,
            within: None,
            ran: Vec::new(),
            drawn: Vec::new(),
            texts: Texts::default(),
            shapes: Shapes::default(),
            copied: Vec::new(),
        };
        client.call(py, |_| Ok(()))?;
        Ok(client)
    }

    /// Calls a method, and takes over what it changed. Python has the open transaction from then
    /// on.
    pub(crate) fn call<'py, T>(
        &mut self,
        py: Python<'py>,
        call: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
    ) -> Done<T> {
        self.tell_time(py);
        self.hand_over(py)?;
        if std::mem::take(&mut self.wrote) {
            let counted = self.object.bind(py).call_method0("count");
            counted.map_err(|error| failure(py, &error))?;
        }
        self.call_apart(py, call)
    }

    /// Calls a method that leaves the open transaction as it is.
    pub(crate) fn call_apart<'py, T>(
        &mut self,
        py: Python<'py>,
        call: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
    ) -> Done<T> {
        self.tell_time(py);
        let object = self.object.bind(py).clone();
        (self.touched, self.is_direct) = (true, false);
        let done = call(&object).map_err(|error| failure(py, &error));
        let after = self.after(&object);
        match (done, after) {
            (Ok(done), Ok(())) => Ok(done),
            (Err(failure), _) => Err(failure),
            (Ok(_), Err(error)) => Err(failure(py, &error)),
        }
    }

    /// Whether a setting that clients are told of has this value.
    pub(crate) fn has(&self, setting: &str, value: &str) -> bool {
        let mut all = self.settings.iter();
        all.any(|(name, own)| name == setting && own == value)
    }

    fn after(&mut self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let after = object.call_method0("after")?;
        let (status, listens, settings, notices, generation): After<'_> = after.extract()?;
        self.status = status.bytes().next().unwrap_or(b'E');
        self.listens = listens;
        self.generation = generation;
        if let Some(settings) = settings {
            self.settings = Arc::new(settings);
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

impl Engine for Client {
    type Handle = Handle;

    fn settings(&mut self) -> Settings {
        Arc::clone(&self.settings)
    }

    fn split(&mut self, sql: &str) -> Done<Vec<(String, u32)>> {
        if let Some(known) = self.texts.split(sql) {
            return Ok(known);
        }
        if let Some(part) = self.known_part(sql) {
            return Ok(vec![part]);
        }
        let parts: Vec<(String, u32)> = Python::attach(|py| {
            self.call_apart(py, |o| o.call_method1("split", (sql,))?.extract())
        })?;
        self.texts.add_split(sql, &parts);
        Ok(parts)
    }

    fn prepare(&mut self, sql: &str, types: &[u32], name: &str) -> Done<Statement<Handle>> {
        let may_be_cut = name.is_empty() && types.is_empty();
        if let Some(known) = may_be_cut.then(|| self.known_shape(sql)).flatten() {
            return Ok(known);
        }
        let state = self.status();
        let known = self.texts.find(sql, types, self.generation, state);
        let known = known.filter(|_| name.is_empty());
        if let Some(known) = known.as_ref().filter(|known| known.kind != Kind::Other) {
            return Ok(known.clone());
        }
        let is_current = self.within.as_mut().is_none_or(Transaction::look);
        if let Some(known) = known.filter(|_| is_current && self.within.is_some()) {
            return Ok(known);
        }
        let open = self.within.as_ref();
        let is_lost = state == b'E' || open.is_some_and(Transaction::is_lost);
        let given = (sql, types.to_vec(), name, open.is_some() && is_current);
        let prepared = Python::attach(|py| {
            let call =
                |object: &Bound<'_, PyAny>| statement(object.call_method1("prepare", given)?);
            if is_lost {
                self.call(py, call)
            } else {
                self.call_apart(py, call)
            }
        })?;
        let is_open = state == b'T';
        if name.is_empty() {
            self.texts
                .add(sql, types, self.generation, &prepared, is_open);
        }
        if may_be_cut {
            self.learn_shape(sql, &prepared);
        }
        Ok(prepared)
    }

    fn named(&mut self, name: &str) -> Done<Option<Statement<Handle>>> {
        Python::attach(|py| {
            self.call_apart(py, |object| {
                let known: Option<Bound<'_, PyAny>> =
                    object.call_method1("named", (name,))?.extract()?;
                known.map(statement).transpose()
            })
        })
    }

    fn close_named(&mut self, name: &str) -> Done<()> {
        Python::attach(|py| {
            self.call_apart(py, |o| o.call_method1("close_named", (name,)).map(drop))
        })
    }

    fn describe(&mut self, statement: &Statement<Handle>) -> Done<Option<Vec<Column>>> {
        Python::attach(|py| {
            let handle = statement.handle.object().bind(py).clone();
            self.call(py, |object| {
                columns(&object.call_method1("describe", (handle,))?)
            })
        })
    }

    fn cursor(&mut self, name: &str) -> Done<Option<Vec<Column>>> {
        Python::attach(|py| self.call_apart(py, |o| columns(&o.call_method1("cursor", (name,))?)))
    }

    fn run(
        &mut self,
        statement: &Statement<Handle>,
        values: &Values,
        formats: &[i16],
    ) -> Done<Outcome> {
        let literals = statement.handle.literals();
        let values = literals.as_ref().map_or(values, |own| &own.values);
        self.get_ready(statement);
        let mut done = self.run_direct(statement, values, formats);
        if done.is_none() && (self.provided(statement) || self.began_again()) {
            self.renew_way(statement);
            done = self.run_direct(statement, values, formats);
        }
        self.is_direct = done.is_some();
        if let Some(done) = done {
            return done;
        }
        let left = self.is_known(statement);
        let done = self.run_planned(&statement.handle, values, formats);
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
        if let Some(transaction) = &mut self.within {
            transaction.fail();
            return;
        }
        let _ = Python::attach(|py| self.call(py, |o| o.call_method0("fail").map(drop)));
    }

    fn status(&mut self) -> u8 {
        let open = self.within.as_ref();
        open.map_or(self.status, Transaction::status)
    }

    fn notices(&mut self) -> Vec<Fields> {
        std::mem::take(&mut self.notices)
    }

    fn listens(&self) -> bool {
        self.listens
    }

    fn notifications(&mut self) -> Done<Vec<(u32, String, String)>> {
        Python::attach(|py| self.call_apart(py, |o| o.call_method0("notifications")?.extract()))
    }

    fn looks(&self, statement: &Statement<Handle>) -> Looks {
        statement.handle.looks()
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
