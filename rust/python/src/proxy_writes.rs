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
use crate::proxy_returning::{outcome, Changed, Decided, Job, Printed, Returning};
use crate::proxy_rows::{Chosen, NewRow, Unmade};
use crate::proxy_sequences::SequenceNumbers;
use crate::proxy_shown::Lacking;
use crate::proxy_transactions::Transaction;
use crate::raw::Raw;
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
    returning: Option<Py<Returning>>,
}

#[pymethods]
impl Write {
    /// What begins its transaction and at last enters the session's token, a verb, the server's
    /// text, how rows are chosen and new ones are made, of which one must be there, where rows are
    /// counted, and what is given back of a row.
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
        returning: Option<Py<Returning>>,
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
            returning,
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
        let Some(values) = values.filter(|_| self.returning.is_none()) else {
            return Ok((None, false));
        };
        let job = Job {
            given: Given::Python(&values),
            columns: None,
        };
        let mut signal = None;
        let done = py.detach(|| {
            self.attempts(&job, &mut || {
                signal = Python::attach(|py| py.check_signals()).err();
                signal.is_some()
            })
        });
        match (done, signal) {
            (Ok(changed), None) => Ok((Some(changed.count), false)),
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
        let empty = self.sequences().filter(|numbers| numbers.is_empty());
        let sequences = empty.map(SequenceNumbers::id).collect();
        Lacking::of(counted, numbers, sequences)
    }

    /// The sequences that it draws from.
    pub(crate) fn sequences(&self) -> impl Iterator<Item = &SequenceNumbers> {
        let new_row = self.new_row.as_ref().map(Py::get);
        new_row.into_iter().flat_map(NewRow::sequences)
    }

    /// Runs it with these values, and gives columns of its row back in these formats. The
    /// interpreter's lock is not held.
    pub(crate) fn run(&self, values: &Values, formats: &[i16]) -> Ran {
        self.ran(values, formats, |job| self.attempts(job, &mut || false))
    }

    /// The same within a transaction, which is undone where it is not done.
    pub(crate) fn run_within(
        &self,
        values: &Values,
        formats: &[i16],
        transaction: &mut Transaction,
    ) -> Ran {
        self.ran(values, formats, |job| {
            self.attempt(job, &mut On::Within(transaction), &mut || false)
        })
    }

    fn ran(
        &self,
        values: &Values,
        formats: &[i16],
        run: impl FnOnce(&Job<'_>) -> Result<Changed, Stop>,
    ) -> Ran {
        let returning = self.returning.as_ref().map(Py::get);
        let columns = returning.map(|returning| returning.columns(formats));
        if let Some(None) = columns {
            return Ran::Other;
        }
        let job = Job {
            given: Given::Message(values),
            columns: columns.flatten(),
        };
        match run(&job) {
            Ok(changed) => {
                let zero = if self.chosen.is_none() { "0 " } else { "" };
                let tag = format!("{} {zero}", self.verb);
                Ran::Done(Ok(match job.columns {
                    Some(columns) => outcome(tag, columns, changed.row),
                    None => Outcome::Done {
                        tag: format!("{tag}{}", changed.count),
                    },
                }))
            }
            Err(Stop::Other | Stop::Race | Stop::Numbers) => Ran::Other,
            Err(Stop::Stale) => Ran::Stale,
            Err(Stop::Unsure(_)) => Ran::Unsure,
            Err(Stop::Cancelled(Error::Server(said))) => Ran::Done(Err(cancelled(&said))),
            Err(Stop::Cancelled(_)) => Ran::Other,
        }
    }

    fn attempts(&self, job: &Job<'_>, look: Look<'_>) -> Result<Changed, Stop> {
        for _ in 0..ATTEMPTS {
            let done = self.attempt(job, &mut On::Alone, look);
            if !matches!(done, Err(Stop::Race)) {
                return done;
            }
        }
        Err(Stop::Race)
    }

    fn attempt(&self, job: &Job<'_>, on: &mut On<'_>, look: Look<'_>) -> Result<Changed, Stop> {
        match (&self.chosen, &self.new_row) {
            (None, Some(new_row)) => self.insert_drawing(new_row.get(), job, on, look),
            (Some(chosen), new_row) => {
                let new_row = new_row.as_ref().map(Py::get);
                self.change(chosen.get(), new_row, job, on, look)
            }
            (None, None) => Err(Stop::Other),
        }
    }

    /// What is drawn for a row that is not there is drawn again.
    fn insert_drawing(
        &self,
        new_row: &NewRow,
        job: &Job<'_>,
        on: &mut On<'_>,
        look: Look<'_>,
    ) -> Result<Changed, Stop> {
        let marks: Vec<_> = new_row.sequences().map(SequenceNumbers::mark).collect();
        for (numbers, &mark) in new_row.sequences().zip(&marks) {
            on.draws(numbers, mark);
        }
        let done = self.insert(new_row, job, on, look);
        if !matches!(done, Ok(_) | Err(Stop::Unsure(_))) {
            for (numbers, mark) in new_row.sequences().zip(marks) {
                numbers.restore(mark);
            }
        }
        done
    }

    fn insert(
        &self,
        new_row: &NewRow,
        job: &Job<'_>,
        on: &mut On<'_>,
        look: Look<'_>,
    ) -> Result<Changed, Stop> {
        if !on.has_room(self.growth.get()) {
            return Err(Stop::Other);
        }
        let growth = self.growth.get();
        let (row, marks) = new_row.row(None, &job.given, growth).map_err(unmade)?;
        let printed = self.printed(&row, job)?;
        let sealed = new_row.sealed(self.ring.get(), self.epochs.get(), &row);
        let step = Step {
            sql: &self.sql,
            values: sealed.map_err(unmade)?.values,
        };
        self.exchange(on, step, (true, true), look)?;
        on.grow(growth, 1, &marks);
        Ok(Changed {
            count: 1,
            row: printed,
        })
    }

    fn change(
        &self,
        chosen: &Chosen,
        new_row: Option<&NewRow>,
        job: &Job<'_>,
        on: &mut On<'_>,
        look: Look<'_>,
    ) -> Result<Changed, Stop> {
        let ring = self.ring.get();
        if !new_row.is_none_or(|new_row| new_row.takes(&job.given)) {
            return Err(Stop::Other);
        }
        let (tags, constants) = chosen.tags(ring, &job.given).ok_or(Stop::Other)?;
        if !chosen.records(self.number, &tags) {
            return Err(Stop::Other);
        }
        let step = Step {
            sql: &chosen.sql,
            values: constants,
        };
        let mut replies = self.exchange(on, step, (true, false), look)?;
        let reply = replies.pop().map(Reply::of);
        let decided = match self.decided(chosen, new_row, reply, &tags, job) {
            Ok(Some(decided)) => decided,
            nothing => {
                self.let_go(on);
                return nothing.map(|_| Changed::default());
            }
        };
        let last = Step {
            sql: &self.sql,
            values: decided.values,
        };
        self.exchange(on, last, (false, true), look)?;
        let count = if new_row.is_none() { -1 } else { 0 };
        on.grow(self.growth.get(), count, &decided.marks);
        Ok(Changed {
            count: 1,
            row: decided.row,
        })
    }

    /// The values of the statement that changes the row of an answer, and what is given back of it;
    /// None where there is none.
    fn decided(
        &self,
        chosen: &Chosen,
        new_row: Option<&NewRow>,
        reply: Option<Reply>,
        tags: &[Vec<Tag>],
        job: &Job<'_>,
    ) -> Result<Option<Decided>, Stop> {
        let (ring, epochs) = (self.ring.get(), self.epochs.get());
        let reply = reply.ok_or(Stop::Other)?;
        let row = chosen.row(ring, epochs, &reply, tags).ok_or(Stop::Other)?;
        let Some((number, old)) = row else {
            return Ok(None);
        };
        if !chosen.records_touched() {
            return Err(Stop::Other);
        }
        let (mut values, row, marks) = match new_row {
            Some(new_row) => {
                let fresh = new_row.row(Some(&old), &job.given, self.growth.get());
                let (row, marks) = fresh.map_err(unmade)?;
                let printed = self.printed(&row, job)?;
                let sealed = new_row.sealed(ring, epochs, &row);
                (sealed.map_err(unmade)?.values, printed, marks)
            }
            None => (Vec::new(), self.printed(&old, job)?, Vec::new()),
        };
        // It must be one row still.
        values.extend([Value::Int8(number), Value::Int8(1)]);
        Ok(Some(Decided { values, row, marks }))
    }

    /// What is given back of a row, before anything is sent of it.
    fn printed(&self, row: &[Raw], job: &Job<'_>) -> Result<Option<Printed>, Stop> {
        let (Some(returning), Some(columns)) = (&self.returning, &job.columns) else {
            return Ok(None);
        };
        let printed = returning.get().printed(row, columns);
        printed.map(Some).ok_or(Stop::Other)
    }
}

fn unmade(why: Unmade) -> Stop {
    match why {
        Unmade::Values => Stop::Other,
        Unmade::Numbers => Stop::Numbers,
    }
}
