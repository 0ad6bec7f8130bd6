//! INSERT, UPDATE and DELETE of one row that come again at the front door, without the interpreter:
//! a transaction behind the session's token, in one round trip where no row is read, else in two.

use crate::epochs::Epochs;
use crate::keyring::KeyRing;
use crate::postgres::Session;
use crate::postgres_failures::raised;
use crate::postgres_replies::Reply;
use crate::postgres_values::Given as Sent;
use crate::proxy_exchanges::{On, Stop};
use crate::proxy_growth::Growth;
use crate::proxy_passes::cancelled;
use crate::proxy_rows::{Chosen, NewRow, Unmade};
use crate::proxy_shown::Lacking;
use crate::proxy_transactions::Transaction;
use crate::raw_messages::Given;
use crate::raw_values::of_python;
use louver_postgres::{Error, Look, Step, Value};
use louver_proxy::{Disclosed, Done, Outcome, Values};
use louver_trusted::Tag;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// So often a change is tried that another client was faster than.
const ATTEMPTS: usize = 8;
static WRITES: AtomicU64 = AtomicU64::new(0);

/// What became of a statement.
pub(crate) enum Ran {
    /// It is done, or the client is to know why not.
    Done(Done<Outcome>),
    /// Nothing was done: Python is to run it.
    Other,
    /// The same, and so it is from now on.
    Stale,
    /// The connection was lost while it ended: it may be done or not.
    Unsure,
}

/// One change, as Python has planned it.
#[pyclass(frozen, module = "louver._rust.proxy")]
pub(crate) struct Write {
    number: u64,
    pub(crate) session: Py<Session>,
    ring: Py<KeyRing>,
    epochs: Py<Epochs>,
    /// What begins the transaction, and what enters the session's token: it fails if that is void.
    pub(crate) opening: Vec<(String, Vec<Value>)>,
    pub(crate) token: (String, Vec<Value>),
    verb: String,
    sql: String,
    chosen: Option<Py<Chosen>>,
    new_row: Option<Py<NewRow>>,
    growth: Py<Growth>,
}

#[pymethods]
impl Write {
    /// What begins its transaction and at last enters the session's token, a verb, the server's
    /// text, how rows are chosen and new ones are made, of which one must be there, and where rows
    /// are counted.
    #[new]
    #[allow(clippy::too_many_arguments)]
    fn new(
        session: Py<Session>,
        ring: Py<KeyRing>,
        epochs: Py<Epochs>,
        opening: Vec<(String, Vec<Sent>)>,
        verb: String,
        sql: String,
        chosen: Option<Py<Chosen>>,
        new_row: Option<Py<NewRow>>,
        growth: Py<Growth>,
    ) -> PyResult<Self> {
        if chosen.is_none() && new_row.is_none() {
            return Err(PyValueError::new_err("a change of nothing"));
        }
        let own = |(sql, values)| Ok((sql, Sent::values(values)?));
        let mut opening = opening.into_iter().map(own).collect::<PyResult<Vec<_>>>()?;
        let token = opening.pop();
        let token = token.ok_or_else(|| PyValueError::new_err("a change without a token"))?;
        Ok(Self {
            number: WRITES.fetch_add(1, Ordering::Relaxed),
            session,
            ring,
            epochs,
            opening,
            token,
            verb,
            sql,
            chosen,
            new_row,
            growth,
        })
    }

    /// The general way has run it with the values of the last `apply`, which did nothing.
    pub(crate) fn recorded(&self) {
        if let Some(chosen) = &self.chosen {
            chosen.get().recorded();
        }
    }

    /// Runs it with these values of Python's: how many rows it changed, or None where the general
    /// way is to be taken; the flag says whether it always is from now on. A signal that raises
    /// ends it. Raises what `Session.run` does where it was cancelled or is not known to be done.
    fn apply(
        &self,
        py: Python<'_>,
        values: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<(Option<usize>, bool)> {
        let values: Option<Vec<_>> = values.iter().map(of_python).collect();
        let Some(values) = values else {
            return Ok((None, false));
        };
        let mut signal = None;
        let done = py.detach(|| {
            self.attempts(&Given::Python(&values), &mut || {
                signal = Python::attach(|py| py.check_signals()).err();
                signal.is_some()
            })
        });
        match (done, signal) {
            (Ok(count), None) => Ok((Some(count), false)),
            (Err(Stop::Unsure(error)), None) | (Err(Stop::Cancelled(error)), None) => {
                Err(raised(error))
            }
            (Err(stop), None) => Ok((None, matches!(stop, Stop::Stale | Stop::Numbers))),
            (_, Some(signal)) => Err(signal),
        }
    }

    /// Whether it has opened rows, and how many new conditions of each reserve it has taken, since
    /// this was last called.
    fn taken(&self) -> (bool, Vec<u64>) {
        let chosen = self.chosen.as_ref();
        chosen.map_or_else(Default::default, |chosen| chosen.get().taken())
    }
}

impl Write {
    /// What it has opened and newly shown since this was last called.
    pub(crate) fn disclosed(&self) -> Disclosed {
        let chosen = self.chosen.as_ref();
        chosen.map_or_else(Disclosed::default, |chosen| chosen.get().disclosed())
    }

    /// What it cannot go on without.
    pub(crate) fn lacking(&self) -> Lacking<'_> {
        let numbers = self
            .new_row
            .as_ref()
            .is_some_and(|row| row.get().lacks_numbers());
        let counted = self.chosen.iter().flat_map(|chosen| chosen.get().all());
        Lacking::of(counted, numbers)
    }

    /// Runs it with these values. The interpreter's lock is not held.
    pub(crate) fn run(&self, values: &Values) -> Ran {
        self.ran(self.attempts(&Given::Message(values), &mut || false))
    }

    /// The same within a transaction, which is undone where it is not done.
    pub(crate) fn run_within(&self, values: &Values, transaction: &mut Transaction) -> Ran {
        self.ran(self.attempt(
            &Given::Message(values),
            &mut On::Within(transaction),
            &mut || false,
        ))
    }

    fn ran(&self, done: Result<usize, Stop>) -> Ran {
        match done {
            Ok(count) => {
                let zero = if self.chosen.is_none() { "0 " } else { "" };
                let tag = format!("{} {zero}{count}", self.verb);
                Ran::Done(Ok(Outcome::Done { tag }))
            }
            Err(Stop::Other | Stop::Race | Stop::Numbers) => Ran::Other,
            Err(Stop::Stale) => Ran::Stale,
            Err(Stop::Unsure(_)) => Ran::Unsure,
            Err(Stop::Cancelled(Error::Server(said))) => Ran::Done(Err(cancelled(&said))),
            Err(Stop::Cancelled(_)) => Ran::Other,
        }
    }

    fn attempts(&self, given: &Given<'_>, look: Look<'_>) -> Result<usize, Stop> {
        for _ in 0..ATTEMPTS {
            let done = self.attempt(given, &mut On::Alone, look);
            if !matches!(done, Err(Stop::Race)) {
                return done;
            }
        }
        Err(Stop::Race)
    }

    fn attempt(&self, given: &Given<'_>, on: &mut On<'_>, look: Look<'_>) -> Result<usize, Stop> {
        match (&self.chosen, &self.new_row) {
            (None, Some(new_row)) => self.insert(new_row.get(), given, on, look),
            (Some(chosen), new_row) => {
                let new_row = new_row.as_ref().map(Py::get);
                self.change(chosen.get(), new_row, given, on, look)
            }
            (None, None) => Err(Stop::Other),
        }
    }

    fn insert(
        &self,
        new_row: &NewRow,
        given: &Given<'_>,
        on: &mut On<'_>,
        look: Look<'_>,
    ) -> Result<usize, Stop> {
        if !on.has_room(self.growth.get()) {
            return Err(Stop::Other);
        }
        let sealed = new_row.sealed(self.ring.get(), self.epochs.get(), None, given);
        let row = sealed.map_err(unmade)?;
        let step = Step {
            sql: &self.sql,
            values: row.values,
        };
        self.exchange(on, step, (true, true), look)?;
        on.grow(self.growth.get(), 1);
        Ok(1)
    }

    fn change(
        &self,
        chosen: &Chosen,
        new_row: Option<&NewRow>,
        given: &Given<'_>,
        on: &mut On<'_>,
        look: Look<'_>,
    ) -> Result<usize, Stop> {
        let ring = self.ring.get();
        if !new_row.is_none_or(|new_row| new_row.takes(given)) {
            return Err(Stop::Other);
        }
        let (tags, constants) = chosen.tags(ring, given).ok_or(Stop::Other)?;
        if !chosen.records(self.number, &tags) {
            return Err(Stop::Other);
        }
        let step = Step {
            sql: &chosen.sql,
            values: constants,
        };
        let mut replies = self.exchange(on, step, (true, false), look)?;
        let reply = replies.pop().map(Reply::of);
        let bound = match self.decided(chosen, new_row, reply, &tags, given) {
            Ok(Some(bound)) => bound,
            nothing => {
                self.let_go(on);
                return nothing.map(|_| 0);
            }
        };
        let last = Step {
            sql: &self.sql,
            values: bound,
        };
        self.exchange(on, last, (false, true), look)?;
        if new_row.is_none() {
            on.grow(self.growth.get(), -1);
        }
        Ok(1)
    }

    /// The values of the statement that changes the row of an answer; None where there is none.
    fn decided(
        &self,
        chosen: &Chosen,
        new_row: Option<&NewRow>,
        reply: Option<Reply>,
        tags: &[Vec<Tag>],
        given: &Given<'_>,
    ) -> Result<Option<Vec<Value>>, Stop> {
        let (ring, epochs) = (self.ring.get(), self.epochs.get());
        let reply = reply.ok_or(Stop::Other)?;
        let row = chosen.row(ring, epochs, &reply, tags).ok_or(Stop::Other)?;
        let Some((number, old)) = row else {
            return Ok(None);
        };
        if !chosen.records_touched() {
            return Err(Stop::Other);
        }
        let mut bound = match new_row {
            Some(new_row) => {
                let sealed = new_row.sealed(ring, epochs, Some(&old), given);
                sealed.map_err(unmade)?.values
            }
            None => Vec::new(),
        };
        // It must be one row still.
        bound.extend([Value::Int8(number), Value::Int8(1)]);
        Ok(Some(bound))
    }
}

fn unmade(why: Unmade) -> Stop {
    match why {
        Unmade::Values => Stop::Other,
        Unmade::Numbers => Stop::Numbers,
    }
}
