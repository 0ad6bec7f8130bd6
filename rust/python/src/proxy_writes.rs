//! INSERT, UPDATE and DELETE of one row that come again at the front door, without the interpreter:
//! a transaction behind the session's token, in one round trip where no row is read, else in two.

use crate::epochs::Epochs;
use crate::keyring::KeyRing;
use crate::postgres::Session;
use crate::postgres_replies::Reply;
use crate::postgres_values::Given;
use crate::proxy_growth::Growth;
use crate::proxy_rows::{Chosen, NewRow, Unmade};
use louver_postgres::{Error, Step, Value};
use louver_proxy::{Done, Failure, Outcome, Values};
use louver_trusted::Tag;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// So often a change is tried that another client was faster than.
const ATTEMPTS: usize = 8;
const RACE: &str = "40001";
const CANCELLED: &str = "57014";
/// What a guard does whose statement had another outcome: a division by zero.
const UNEXPECTED: &str = "22012";
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

/// Why an attempt ended early.
enum Stop {
    Other,
    Stale,
    Unsure,
    Race,
    Said(Failure),
}

/// One change, as Python has planned it.
#[pyclass(frozen, module = "louver._rust.proxy")]
pub(crate) struct Write {
    number: u64,
    session: Py<Session>,
    ring: Py<KeyRing>,
    epochs: Py<Epochs>,
    /// What begins the transaction; the last statement is guarded by the token.
    opening: Vec<(String, Vec<Value>)>,
    verb: String,
    sql: String,
    chosen: Option<Py<Chosen>>,
    new_row: Option<Py<NewRow>>,
    growth: Py<Growth>,
}

#[pymethods]
impl Write {
    /// What begins its transaction, a verb, the server's text, how rows are chosen and new ones are
    /// made, of which one must be there, and where rows are counted.
    #[new]
    #[allow(clippy::too_many_arguments)]
    fn new(
        session: Py<Session>,
        ring: Py<KeyRing>,
        epochs: Py<Epochs>,
        opening: Vec<(String, Vec<Given>)>,
        verb: String,
        sql: String,
        chosen: Option<Py<Chosen>>,
        new_row: Option<Py<NewRow>>,
        growth: Py<Growth>,
    ) -> PyResult<Self> {
        if chosen.is_none() && new_row.is_none() {
            return Err(PyValueError::new_err("a change of nothing"));
        }
        let own = |(sql, values)| Ok((sql, Given::values(values)?));
        Ok(Self {
            number: WRITES.fetch_add(1, Ordering::Relaxed),
            session,
            ring,
            epochs,
            opening: opening.into_iter().map(own).collect::<PyResult<_>>()?,
            verb,
            sql,
            chosen,
            new_row,
            growth,
        })
    }
}

impl Write {
    /// Runs it with these values. The interpreter's lock is not held.
    pub(crate) fn run(&self, values: &Values) -> Ran {
        for _ in 0..ATTEMPTS {
            let done = match (&self.chosen, &self.new_row) {
                (None, Some(new_row)) => self.insert(new_row.get(), values),
                (Some(chosen), new_row) => {
                    self.change(chosen.get(), new_row.as_ref().map(Py::get), values)
                }
                (None, None) => Err(Stop::Other),
            };
            return match done {
                Ok(count) => {
                    let zero = if self.chosen.is_none() { "0 " } else { "" };
                    let tag = format!("{} {zero}{count}", self.verb);
                    Ran::Done(Ok(Outcome::Done { tag }))
                }
                Err(Stop::Race) => continue,
                Err(Stop::Other) => Ran::Other,
                Err(Stop::Stale) => Ran::Stale,
                Err(Stop::Unsure) => Ran::Unsure,
                Err(Stop::Said(failure)) => Ran::Done(Err(failure)),
            };
        }
        Ran::Other
    }

    fn insert(&self, new_row: &NewRow, values: &Values) -> Result<usize, Stop> {
        if !self.growth.get().has_room() {
            return Err(Stop::Other);
        }
        let sealed = new_row.sealed(self.ring.get(), self.epochs.get(), None, values);
        let row = sealed.map_err(unmade)?;
        let mut steps = self.opening();
        steps.push(Step {
            sql: &self.sql,
            values: row.values,
        });
        steps.push(COMMIT);
        self.exchange(&steps, true, true)?;
        self.growth.get().add(1);
        Ok(1)
    }

    fn change(
        &self,
        chosen: &Chosen,
        new_row: Option<&NewRow>,
        values: &Values,
    ) -> Result<usize, Stop> {
        let ring = self.ring.get();
        let (tags, constants) = chosen.tags(ring, values).ok_or(Stop::Other)?;
        if !chosen.records(self.number, &tags) {
            return Err(Stop::Other);
        }
        let mut steps = self.opening();
        steps.push(Step {
            sql: &chosen.sql,
            values: constants,
        });
        let mut replies = self.exchange(&steps, true, false)?;
        let reply = replies.pop().map(Reply::of);
        let bound = match self.decided(chosen, new_row, reply, &tags, values) {
            Ok(Some(bound)) => bound,
            nothing => {
                self.undo();
                return nothing.map(|_| 0);
            }
        };
        let last = Step {
            sql: &self.sql,
            values: bound,
        };
        self.exchange(&[last, COMMIT], false, true)?;
        if new_row.is_none() {
            self.growth.get().add(-1);
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
        values: &Values,
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
                let sealed = new_row.sealed(ring, epochs, Some(&old), values);
                sealed.map_err(unmade)?.values
            }
            None => Vec::new(),
        };
        // It must be one row still.
        bound.extend([Value::Int8(number), Value::Int8(1)]);
        Ok(Some(bound))
    }

    fn opening(&self) -> Vec<Step<'_>> {
        self.opening
            .iter()
            .map(|(sql, values)| Step {
                sql,
                values: values.clone(),
            })
            .collect()
    }

    /// Sends statements of which the first one `begins` the transaction, or goes on with it; the
    /// last one `ends` it.
    fn exchange(
        &self,
        steps: &[Step<'_>],
        begins: bool,
        ends: bool,
    ) -> Result<Vec<louver_postgres::Reply>, Stop> {
        let session = self.session.get();
        let sent = if begins {
            session.direct(steps)
        } else {
            session.direct_within(steps)
        };
        let error = match sent.ok_or(Stop::Other)? {
            Ok(replies) => return Ok(replies),
            Err(error) => error,
        };
        if error.is_fatal() {
            return Err(if ends { Stop::Unsure } else { Stop::Other });
        }
        self.undo();
        let Error::Server(said) = error else {
            return Err(Stop::Other);
        };
        let is_token = begins && said.statement + 1 == self.opening.len();
        Err(match said.code.as_str() {
            RACE => Stop::Race,
            UNEXPECTED if is_token => Stop::Stale,
            UNEXPECTED if !begins => Stop::Race,
            CANCELLED => Stop::Said(Failure::error(
                CANCELLED,
                "canceling statement due to user request",
            )),
            _ => Stop::Other,
        })
    }

    /// Ends a transaction that is open.
    fn undo(&self) {
        let rollback = Step {
            sql: "ROLLBACK",
            values: Vec::new(),
        };
        let _ = self.session.get().direct_within(&[rollback]);
    }
}

const COMMIT: Step<'static> = Step {
    sql: "COMMIT",
    values: Vec::new(),
};

fn unmade(why: Unmade) -> Stop {
    match why {
        Unmade::Values => Stop::Other,
        Unmade::Numbers => Stop::Stale,
    }
}
