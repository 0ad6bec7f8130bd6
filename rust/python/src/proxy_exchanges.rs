//! The statements of a change as they go to the server: in a transaction of their own, or in one
//! that is open.

use crate::postgres_values::Given;
use crate::proxy_growth::{Growth, Mark};
use crate::proxy_passes::CANCELLED;
use crate::proxy_sequences::{Block, SequenceNumbers};
use crate::proxy_transactions::Transaction;
use crate::proxy_writes::Write;
use louver_postgres::{Error, Look, Reply, Step, Value};
use pyo3::exceptions::PyValueError;
use pyo3::PyResult;

const RACE: &str = "40001";
/// What a guard does whose statement had another outcome: a division by zero.
pub(crate) const UNEXPECTED: &str = "22012";

/// A statement and its values, as Python gives them.
pub(crate) type GivenStep = (String, Vec<Given>);

/// How a change enters the session's token, which fails if that is void.
pub(crate) struct Entering {
    /// BEGIN, and the transaction's limits.
    begin: Vec<(String, Vec<Value>)>,
    token: (String, Vec<Value>),
    /// The limits and the token in one statement, where they can be.
    alone: Option<(String, Vec<Value>)>,
}

impl Entering {
    /// Of what begins a transaction and at last enters the token, and of what does both in one
    /// statement but for BEGIN.
    pub(crate) fn new(opening: Vec<GivenStep>, alone: Option<GivenStep>) -> PyResult<Self> {
        let own = |(sql, values)| Ok((sql, Given::values(values)?));
        let mut begin = opening.into_iter().map(own).collect::<PyResult<Vec<_>>>()?;
        let token = begin.pop().filter(|_| !begin.is_empty());
        Ok(Self {
            begin,
            token: token.ok_or_else(|| PyValueError::new_err("a change without a token"))?,
            alone: alone.map(own).transpose()?,
        })
    }

    /// The token alone, within a transaction.
    pub(crate) fn token(&self) -> Step<'_> {
        step(&self.token)
    }

    /// What goes before a change that is all of its transaction, and whether COMMIT is to follow.
    /// Statements that go out together are one transaction without BEGIN.
    pub(crate) fn whole(&self) -> (Vec<Step<'_>>, bool) {
        match &self.alone {
            Some(alone) => (vec![step(alone)], false),
            None => (self.begun(), true),
        }
    }

    /// What begins a transaction that goes on.
    pub(crate) fn begun(&self) -> Vec<Step<'_>> {
        let rest = match &self.alone {
            Some(alone) => vec![step(alone)],
            None => self.begin[1..]
                .iter()
                .chain([&self.token])
                .map(step)
                .collect(),
        };
        self.begin[..1].iter().map(step).chain(rest).collect()
    }
}

fn step(own: &(String, Vec<Value>)) -> Step<'_> {
    Step {
        sql: &own.0,
        values: own.1.clone(),
    }
}

/// Why an attempt ended early.
pub(crate) enum Stop {
    Other,
    Stale,
    /// No numbers of new rows are left.
    Numbers,
    Race,
    /// The connection was lost while it ended.
    Unsure(Error),
    /// It was cancelled.
    Cancelled(Error),
}

/// Where a change is run: in a transaction of its own, or one that is open.
pub(crate) enum On<'a> {
    Alone,
    Within(&'a mut Transaction),
}

impl On<'_> {
    pub(crate) fn has_room(&self, growth: &Growth) -> bool {
        match self {
            Self::Alone => growth.has_room(0),
            Self::Within(transaction) => transaction.has_room(growth),
        }
    }

    /// Numbers are drawn of a sequence that stood there.
    pub(crate) fn draws(&mut self, numbers: &SequenceNumbers, mark: Block) {
        if let Self::Within(transaction) = self {
            transaction.draws(numbers, mark);
        }
    }

    pub(crate) fn grow(&mut self, growth: &Growth, count: i64, marks: &[Mark]) {
        match self {
            Self::Alone => growth.add(count, marks),
            Self::Within(transaction) => transaction.grow(growth, count, marks),
        }
    }
}

impl Write {
    /// Sends a statement, with what begins its transaction before the first one, and what ends it
    /// behind the last.
    pub(crate) fn exchange(
        &self,
        on: &mut On<'_>,
        step: Step<'_>,
        (begins, ends): (bool, bool),
        look: Look<'_>,
    ) -> Result<Vec<Reply>, Stop> {
        let session = self.session.get();
        // Of the statement that enters the token, where one does; and whether COMMIT is sent.
        let (mut entry, mut commits) = (None, false);
        let sent = match on {
            On::Alone => {
                let mut steps;
                (steps, commits) = match (begins, ends) {
                    (true, true) => self.entering.whole(),
                    (true, false) => (self.entering.begun(), false),
                    (false, ends) => (Vec::new(), ends),
                };
                entry = steps.len().checked_sub(1);
                steps.push(step);
                steps.extend(commits.then_some(COMMIT));
                if begins {
                    session.direct(&steps, look)
                } else {
                    session.direct_within(&steps, look)
                }
            }
            On::Within(transaction) => {
                let token = (!transaction.entered).then(|| self.entering.token());
                let steps: Vec<Step<'_>> = token.into_iter().chain([step]).collect();
                transaction.exchange(&steps, look)
            }
        };
        match sent.ok_or(Stop::Other)? {
            Ok(mut replies) => {
                if let On::Within(transaction) = on {
                    transaction.entered = true;
                }
                // The last reply is that to the step.
                let is_kept = !commits || replies.pop().is_some_and(|reply| reply.tag == "COMMIT");
                is_kept.then_some(replies).ok_or(Stop::Other)
            }
            Err(error) => Err(self.stopped(on, error, entry, (begins, ends))),
        }
    }

    /// Why statements failed, whose transaction is undone.
    fn stopped(
        &self,
        on: &On<'_>,
        error: Error,
        entry: Option<usize>,
        (begins, ends): (bool, bool),
    ) -> Stop {
        let alone = matches!(on, On::Alone);
        if error.is_fatal() {
            return if ends && alone {
                Stop::Unsure(error)
            } else {
                Stop::Other
            };
        }
        if alone {
            self.undo();
        }
        let Error::Server(said) = &error else {
            return Stop::Other;
        };
        let is_token = entry == Some(said.statement);
        match said.code.as_str() {
            RACE => Stop::Race,
            UNEXPECTED if is_token && alone => Stop::Stale,
            UNEXPECTED if !begins => Stop::Race,
            CANCELLED => Stop::Cancelled(error),
            _ => Stop::Other,
        }
    }

    /// A statement has found nothing to change.
    pub(crate) fn let_go(&self, on: &On<'_>) {
        if matches!(on, On::Alone) {
            self.undo();
        }
    }

    /// Ends a transaction that is open.
    fn undo(&self) {
        let rollback = Step {
            sql: "ROLLBACK",
            values: Vec::new(),
        };
        let _ = self.session.get().direct_within(&[rollback], &mut || false);
    }
}

const COMMIT: Step<'static> = Step {
    sql: "COMMIT",
    values: Vec::new(),
};
