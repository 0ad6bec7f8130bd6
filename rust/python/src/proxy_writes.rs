//! INSERT, UPDATE and DELETE of one row that come again at the front door, without the interpreter:
//! a transaction behind the session's token, in one round trip where no row is read, else in two.

use crate::epochs::Epochs;
use crate::keyring::KeyRing;
use crate::postgres::Session;
use crate::postgres_failures::raised;
use crate::proxy_exchanges::{Entering, GivenStep, On, Stop};
use crate::proxy_growth::Growth;
use crate::proxy_passes::cancelled;
use crate::proxy_returning::{outcome, Changed, Job, Printed, Returning};
use crate::proxy_rows::{Chosen, NewRow, Unmade};
use crate::proxy_sequences::SequenceNumbers;
use crate::proxy_shown::Lacking;
use crate::proxy_transactions::Transaction;
use crate::raw::Raw;
use crate::raw_messages::Given;
use crate::raw_values::of_python;
use louver_postgres::{Error, Look, Step};
use louver_proxy::{Disclosed, Done, Outcome, Values};
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
    pub(crate) number: u64,
    pub(crate) session: Py<Session>,
    pub(crate) ring: Py<KeyRing>,
    pub(crate) epochs: Py<Epochs>,
    pub(crate) entering: Entering,
    verb: String,
    pub(crate) sql: String,
    /// What removes the row by its keys, without reading it.
    pub(crate) unread: Option<String>,
    chosen: Option<Py<Chosen>>,
    new_row: Option<Py<NewRow>>,
    pub(crate) growth: Py<Growth>,
    pub(crate) returning: Option<Py<Returning>>,
}

#[pymethods]
impl Write {
    /// What begins its transaction and at last enters the session's token, what does that but for
    /// BEGIN in one statement, a verb, the server's text, and one that removes the row without
    /// reading it, how rows are chosen and new ones are made, of which one must be there, where
    /// rows are counted, and what is given back of a row.
    #[new]
    #[allow(clippy::too_many_arguments)]
    fn new(
        session: Py<Session>,
        ring: Py<KeyRing>,
        epochs: Py<Epochs>,
        opening: Vec<GivenStep>,
        alone: Option<GivenStep>,
        verb: String,
        sql: String,
        unread: Option<String>,
        chosen: Option<Py<Chosen>>,
        new_row: Option<Py<NewRow>>,
        growth: Py<Growth>,
        returning: Option<Py<Returning>>,
    ) -> PyResult<Self> {
        if chosen.is_none() && new_row.is_none() {
            return Err(PyValueError::new_err("a change of nothing"));
        }
        Ok(Self {
            number: WRITES.fetch_add(1, Ordering::Relaxed),
            session,
            ring,
            epochs,
            entering: Entering::new(opening, alone)?,
            verb,
            sql,
            unread,
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

    /// What is given back of a row, before anything is sent of it.
    pub(crate) fn printed(&self, row: &[Raw], job: &Job<'_>) -> Result<Option<Printed>, Stop> {
        let (Some(returning), Some(columns)) = (&self.returning, &job.columns) else {
            return Ok(None);
        };
        let printed = returning.get().printed(row, columns);
        printed.map(Some).ok_or(Stop::Other)
    }
}

pub(crate) fn unmade(why: Unmade) -> Stop {
    match why {
        Unmade::Values => Stop::Other,
        Unmade::Numbers => Stop::Numbers,
    }
}
