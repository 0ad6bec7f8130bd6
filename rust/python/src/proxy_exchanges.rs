//! The statements of a change as they go to the server: in a transaction of their own, or in one
//! that is open.

use crate::proxy_growth::{Growth, Mark};
use crate::proxy_passes::CANCELLED;
use crate::proxy_sequences::{Block, SequenceNumbers};
use crate::proxy_transactions::Transaction;
use crate::proxy_writes::Write;
use louver_postgres::{Error, Look, Reply, Step};

const RACE: &str = "40001";
/// What a guard does whose statement had another outcome: a division by zero.
pub(crate) const UNEXPECTED: &str = "22012";

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
        let token = || Step {
            sql: &self.token.0,
            values: self.token.1.clone(),
        };
        let session = self.session.get();
        let mut steps = Vec::new();
        let sent = match on {
            On::Alone => {
                if begins {
                    steps.extend(self.opening.iter().map(|(sql, values)| Step {
                        sql,
                        values: values.clone(),
                    }));
                    steps.push(token());
                }
                steps.push(step);
                steps.extend(ends.then_some(COMMIT));
                if begins {
                    session.direct(&steps, look)
                } else {
                    session.direct_within(&steps, look)
                }
            }
            On::Within(transaction) => {
                steps.extend((!transaction.entered).then(token));
                steps.push(step);
                transaction.exchange(&steps, look)
            }
        };
        match sent.ok_or(Stop::Other)? {
            Ok(replies) => {
                if let On::Within(transaction) = on {
                    transaction.entered = true;
                }
                Ok(replies)
            }
            Err(error) => Err(self.stopped(on, error, (begins, ends))),
        }
    }

    /// Why statements failed, whose transaction is undone.
    fn stopped(&self, on: &On<'_>, error: Error, (begins, ends): (bool, bool)) -> Stop {
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
        let is_token = begins && said.statement == self.opening.len();
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
