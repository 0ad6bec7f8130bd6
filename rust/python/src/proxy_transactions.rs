//! Transactions that run without Python, at READ COMMITTED as the server has it: each statement
//! sees what was committed before it (docs/decisions/0038).

use crate::postgres::Session;
use crate::postgres_values::Given;
use crate::proxy_done::{Done, Fingerprint};
use crate::proxy_exchanges::UNEXPECTED;
use crate::proxy_growth::{Growth, Mark};
use crate::proxy_moments::Clock;
use crate::proxy_sequences::{Block, SequenceNumbers};
use crate::proxy_statements::Handle;
use louver_postgres::{Error, Look, Relay, Reply, Step, Value};
use louver_proxy::{Outcome, Values};
use pyo3::prelude::*;
use std::hash::RandomState;
use std::sync::Arc;

/// What a transaction has done is remembered up to so many statements and bytes.
const MOST_STATEMENTS: usize = 4_096;
const DEADLOCK: &str = "40P01";
const MOST_BYTES: usize = 8 << 20;

/// A statement that begins such transactions, as Python has judged it.
#[pyclass(frozen, module = "louver._rust.proxy")]
pub(crate) struct Begin {
    opening: Arc<Opening>,
    tag: String,
}

/// What begins a transaction on a session.
struct Opening {
    session: Py<Session>,
    steps: Vec<(String, Vec<Value>)>,
    /// What fails unless the catalog has its version.
    guard: (String, Vec<Value>),
    clock: Clock,
}

#[pymethods]
impl Begin {
    /// What the server is sent, what guards the catalog's version, the sessions of the private
    /// server, and what the client learns that it did.
    #[new]
    fn new(
        session: Py<Session>,
        opening: Vec<(String, Vec<Given>)>,
        guard: (String, Vec<Given>),
        clock: Vec<Py<Session>>,
        tag: String,
    ) -> PyResult<Self> {
        let own = |(sql, values)| Ok((sql, Given::values(values)?));
        let steps = opening.into_iter().map(own).collect::<PyResult<_>>()?;
        let guard = (guard.0, Given::values(guard.1)?);
        let opening = Arc::new(Opening {
            session,
            steps,
            guard,
            clock: Clock(clock),
        });
        Ok(Self { opening, tag })
    }
}

impl Begin {
    pub(crate) fn tag(&self) -> String {
        self.tag.clone()
    }
}

/// An open transaction.
pub(crate) struct Transaction {
    begin: Handle,
    opening: Arc<Opening>,
    /// Whether the server knows of it.
    begun: bool,
    /// Whether it holds the session's token: while it does, no one saves a version of the catalog.
    pub(crate) entered: bool,
    /// Whether what was done is to be done again.
    lost: bool,
    deadlocked: bool,
    /// Whether its guard has failed: the catalog has another version.
    stale: bool,
    /// Whether Python takes over from it for what is not known yet, and will be.
    pub(crate) excused: bool,
    /// Whether it can only be undone.
    failed: bool,
    /// The time that its statements read, in microseconds since 2000, once one has.
    moment: Option<i64>,
    /// Whether Python knows that it stands still.
    knows_moment: bool,
    done: Vec<Done>,
    bytes: usize,
    grown: Vec<Grown>,
    /// Where sequences stood before it first drew from them.
    drawn: Vec<(SequenceNumbers, Block)>,
    hashes: RandomState,
}

/// How many rows of a table were added or removed, and marks of values that are new.
struct Grown {
    growth: Growth,
    count: i64,
    marks: Vec<Mark>,
}

impl Transaction {
    /// Of which the server learns with its first statement.
    pub(crate) fn new(handle: &Handle, begin: &Begin) -> Self {
        Self {
            begin: handle.clone(),
            opening: Arc::clone(&begin.opening),
            begun: false,
            entered: false,
            lost: false,
            deadlocked: false,
            stale: false,
            excused: false,
            failed: false,
            moment: None,
            knows_moment: false,
            done: Vec::new(),
            bytes: 0,
            grown: Vec::new(),
            drawn: Vec::new(),
            hashes: RandomState::new(),
        }
    }

    /// The statement that began it, and the first one in it.
    pub(crate) fn begin(&self) -> &Handle {
        &self.begin
    }

    pub(crate) fn first(&self) -> Option<&Handle> {
        self.done.first().map(|done| &done.handle)
    }

    /// Sends statements in one round trip. An error undoes the transaction.
    pub(crate) fn exchange(
        &mut self,
        steps: &[Step<'_>],
        look: Look<'_>,
    ) -> Option<Result<Vec<Reply>, Error>> {
        self.send(steps, |session, steps, begun| {
            if begun {
                session.direct_within(steps, look)
            } else {
                session.direct(steps, look)
            }
        })
    }

    /// The same, but that the rows of the statement with so many `behind` it are relayed in these
    /// formats, without the last columns of theirs that are `hidden`.
    pub(crate) fn relay(
        &mut self,
        steps: &[Step<'_>],
        behind: usize,
        formats: &[i16],
        hidden: usize,
    ) -> Option<Result<Vec<Reply>, Error>> {
        self.send(steps, |session, steps, begun| {
            let at = steps.len().saturating_sub(1 + behind);
            let relay = Relay {
                at,
                formats,
                hidden,
            };
            session.relayed(steps, relay, begun)
        })
    }

    fn send(
        &mut self,
        steps: &[Step<'_>],
        call: impl FnOnce(&Session, &[Step<'_>], bool) -> Option<Result<Vec<Reply>, Error>>,
    ) -> Option<Result<Vec<Reply>, Error>> {
        let session = self.opening.session.get();
        let guard = if self.begun {
            0
        } else {
            self.opening.steps.len()
        };
        let sent = if self.begun {
            call(session, steps, true)
        } else {
            let opening = self.opening.steps.iter().map(|(sql, values)| Step {
                sql,
                values: values.clone(),
            });
            let all: Vec<Step<'_>> = opening.chain(steps.iter().map(same)).collect();
            call(session, &all, false)
        };
        match &sent {
            Some(Ok(_)) => self.begun = true,
            Some(Err(error)) => {
                (self.begun, self.lost) = (true, true);
                if let Error::Server(said) = error {
                    self.deadlocked = said.code == DEADLOCK;
                    self.stale = said.code == UNEXPECTED && said.statement == guard;
                }
                self.undo();
            }
            None => {}
        }
        sent
    }

    /// Whether one more row may be added to a table.
    pub(crate) fn has_room(&self, growth: &Growth) -> bool {
        let known = self.grown.iter().find(|grown| grown.growth.is(growth));
        growth.has_room(known.map_or(0, |grown| grown.count))
    }

    /// It draws numbers of a sequence that stood there.
    pub(crate) fn draws(&mut self, numbers: &SequenceNumbers, mark: Block) {
        if !self.drawn.iter().any(|item| item.0.id() == numbers.id()) {
            self.drawn.push((numbers.clone(), mark));
        }
    }

    /// The sequences that it has drawn from.
    pub(crate) fn drawn(&self) -> &[(SequenceNumbers, Block)] {
        &self.drawn
    }

    /// So many rows more, with such marks, once it is committed.
    pub(crate) fn grow(&mut self, growth: &Growth, count: i64, marks: &[Mark]) {
        if count == 0 && marks.is_empty() {
            return;
        }
        let known = self.grown.iter_mut();
        match known.into_iter().find(|grown| grown.growth.is(growth)) {
            Some(known) => {
                known.count += count;
                known.marks.extend_from_slice(marks);
            }
            None => self.grown.push(Grown {
                growth: growth.clone(),
                count,
                marks: marks.to_vec(),
            }),
        }
    }

    /// `T` of one that may go on, `E` of one that has failed.
    pub(crate) fn status(&self) -> u8 {
        if self.failed {
            b'E'
        } else {
            b'T'
        }
    }

    /// Whether the catalog has its version still, before a text is read anew: a change of others
    /// may be committed at any time, but while the token is held.
    pub(crate) fn look(&mut self) -> bool {
        if self.entered || self.failed {
            return true;
        }
        let opening = Arc::clone(&self.opening);
        let guard = [Step {
            sql: &opening.guard.0,
            values: opening.guard.1.clone(),
        }];
        let sent = if self.begun {
            self.exchange(&guard, &mut || false)
        } else {
            opening.session.get().direct(&guard, &mut || false)
        };
        sent.is_some_and(|sent| sent.is_ok())
    }

    /// Whether the server has ended it for another transaction, which waits for it.
    pub(crate) fn is_deadlocked(&self) -> bool {
        self.deadlocked
    }

    /// Whether it can begin again, under the newest catalog.
    pub(crate) fn is_stale(&self) -> bool {
        self.stale && self.done.is_empty() && !self.failed
    }

    /// Nothing was done in it: it begins as the statement that began it does now.
    pub(crate) fn begin_again(&mut self, begin: &Begin) {
        self.opening = Arc::clone(&begin.opening);
        (self.lost, self.stale) = (false, false);
    }

    /// Whether the server has undone it.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost
    }

    /// An error has ended it.
    pub(crate) fn fail(&mut self) {
        self.undo();
        self.done.clear();
        self.failed = true;
    }

    /// Remembers what a statement gave.
    pub(crate) fn add(
        &mut self,
        handle: &Handle,
        values: &Values,
        formats: &[i16],
        outcome: &Outcome,
    ) {
        let given = values.values.iter().flatten().map(bytes::Bytes::len);
        self.bytes += given.sum::<usize>() + 64;
        let outcome = Fingerprint::of(outcome, &self.hashes);
        self.done.push(Done {
            handle: handle.clone(),
            values: values.clone(),
            formats: formats.to_vec(),
            outcome,
        });
    }

    /// Whether one more statement is remembered.
    pub(crate) fn has_space(&self) -> bool {
        self.done.len() < MOST_STATEMENTS && self.bytes < MOST_BYTES
    }

    /// Whether a statement that is done again gives what it gave.
    pub(crate) fn is_same(&self, done: &Done, again: &Outcome) -> bool {
        done.outcome == Fingerprint::of(again, &self.hashes)
    }

    /// The time at which it stands still from the first call on.
    pub(crate) fn fixed_moment(&mut self) -> Option<i64> {
        if self.moment.is_none() {
            self.moment = self.opening.clock.fix();
        }
        self.moment
    }

    /// Whether Python is to learn that the time stands still, once.
    pub(crate) fn tells_time(&mut self) -> bool {
        self.moment.is_some() && !std::mem::replace(&mut self.knows_moment, true)
    }

    pub(crate) fn has_told_time(&self) -> bool {
        self.moment.is_some() && self.knows_moment
    }

    /// The time goes on, if Python does not know that it stood still.
    pub(crate) fn release_time(&self) {
        if self.moment.is_some() && !self.knows_moment {
            self.opening.clock.release(self.opening.clock.0.len());
        }
    }

    /// What it has done, to be done again.
    pub(crate) fn take_done(&mut self) -> Vec<Done> {
        std::mem::take(&mut self.done)
    }

    /// Undoes it on the server.
    pub(crate) fn undo(&mut self) {
        if std::mem::take(&mut self.begun) {
            let rollback = Step {
                sql: "ROLLBACK",
                values: Vec::new(),
            };
            let session = self.opening.session.get();
            let _ = session.direct_within(&[rollback], &mut || false);
        }
        self.entered = false;
        self.grown.clear();
    }

    /// Commits it, and counts its rows. An error has undone it; a fatal one may have or not.
    pub(crate) fn commit(&mut self) -> Result<bool, Option<Error>> {
        if std::mem::take(&mut self.begun) {
            let commit = Step {
                sql: "COMMIT",
                values: Vec::new(),
            };
            let session = self.opening.session.get();
            let sent = session.direct_within(&[commit], &mut || false);
            let replies = sent.ok_or(None)?.map_err(Some)?;
            if replies.last().is_none_or(|reply| reply.tag != "COMMIT") {
                return Err(None);
            }
        }
        for grown in &self.grown {
            grown.growth.add(grown.count, &grown.marks);
        }
        Ok(!self.grown.is_empty())
    }
}

fn same<'a>(step: &Step<'a>) -> Step<'a> {
    Step {
        sql: step.sql,
        values: step.values.clone(),
    }
}
