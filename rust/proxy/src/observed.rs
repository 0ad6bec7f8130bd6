//! What is said of each statement to those who operate the server: a line of the audit file, and
//! numbers.

use crate::audit::Audit;
use crate::engine::{Failure, Outcome};
use crate::json::{moment, Object};
use crate::log::{Level, Log};
use crate::metrics::Metrics;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// The form of the audit's lines.
const VERSION: u64 = 1;
/// No error.
const DONE: &str = "00000";
/// Kinds of statements that do nothing but give rows, or change this session alone.
const READING: [&str; 15] = [
    "",
    "SELECT",
    "SHOW",
    "FETCH",
    "MOVE",
    "SET",
    "RESET",
    "BEGIN",
    "START TRANSACTION",
    "PREPARE",
    "DEALLOCATE",
    "DECLARE CURSOR",
    "CLOSE CURSOR",
    "LISTEN",
    "UNLISTEN",
];

/// What a statement is, without its values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looks {
    /// What it does, such as SELECT or CREATE TABLE; empty where that is not known.
    pub kind: String,
    /// A fingerprint of its text without values; empty where there is none.
    pub shape: String,
}

/// What the server behind was newly shown of columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leak {
    /// The columns, `table.column`.
    pub columns: Vec<String>,
    /// How much of them: a level of the ledger's.
    pub level: String,
    /// Which kind of a fact it is.
    pub kind: String,
    /// How many new facts, or conditions.
    pub count: u64,
}

/// How a statement was run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// By the planner.
    #[default]
    Planned,
    /// By keys, from the values to the rows, without it.
    Direct,
}

/// What a statement did besides its outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disclosed {
    /// Encrypted columns whose values were opened, `table.column`.
    pub opened: Vec<String>,
    /// What it newly leaked.
    pub leaked: Vec<Leak>,
}

impl Disclosed {
    /// Whether it is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.opened.is_empty() && self.leaked.is_empty()
    }

    /// This as well.
    pub fn add(&mut self, other: Self) {
        for name in other.opened {
            if !self.opened.contains(&name) {
                self.opened.push(name);
            }
        }
        self.opened.sort_unstable();
        other.leaked.into_iter().for_each(|leak| self.leak(leak));
    }

    /// What one kind of a fact leaks is one number.
    pub fn leak(&mut self, leak: Leak) {
        let same = |known: &&mut Leak| {
            (&known.columns, &known.level, &known.kind) == (&leak.columns, &leak.level, &leak.kind)
        };
        match self.leaked.iter_mut().find(same) {
            Some(known) => known.count += leak.count,
            None => self.leaked.push(leak),
        }
    }
}

/// Who runs statements.
#[derive(Debug)]
pub(crate) struct Observer {
    pub(crate) audit: Option<Arc<Audit>>,
    pub(crate) log: Option<Arc<Log>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) user: String,
    pub(crate) process: u32,
    pub(crate) address: String,
}

/// A statement that runs.
#[derive(Debug)]
pub(crate) struct Entry {
    number: u64,
    looks: Looks,
    at: SystemTime,
    began: Instant,
}

impl Observer {
    /// A statement is to run.
    ///
    /// # Errors
    /// Where no line can be written; then it does not.
    pub(crate) fn begin(&self, looks: Looks, application: &str) -> Result<Entry, crate::Error> {
        let mut entry = Entry {
            number: 0,
            looks,
            at: SystemTime::now(),
            began: Instant::now(),
        };
        if let Some(audit) = &self.audit {
            audit.require()?;
            entry.number = audit.next();
            if !READING.contains(&entry.looks.kind.as_str()) {
                let line = self.line(&entry, application);
                audit.write(line.text("event", "begins").end())?;
            }
        }
        Ok(entry)
    }

    /// It has run. What `disclosed` gives is looked at for an audit only.
    ///
    /// # Errors
    /// Where no line can be written; then the client must not be told what it gave.
    pub(crate) fn end(
        &self,
        entry: &Entry,
        done: Result<u64, &Failure>,
        way: Way,
        application: &str,
        disclosed: impl FnOnce() -> Disclosed,
    ) -> Result<(), crate::Error> {
        let took = entry.began.elapsed();
        self.metrics.ran(&entry.looks.kind, done.is_ok(), way, took);
        self.log(entry, done.err());
        let Some(audit) = &self.audit else {
            return Ok(());
        };
        let Disclosed { opened, leaked } = disclosed();
        let leaks: Vec<String> = leaked.iter().map(leak).collect();
        let line = self.line(entry, application).text("event", "ends");
        let line = match done {
            Ok(rows) => line.text("state", DONE).number("rows", rows),
            Err(failure) => line
                .text("state", &failure.fields.sqlstate)
                .some("code", failure.fields.code.as_deref()),
        };
        let line = line
            .duration("ms", took)
            .texts("opened", &opened)
            .objects("leaked", &leaks);
        audit.write(line.end())
    }

    fn log(&self, entry: &Entry, failure: Option<&Failure>) {
        let Some(log) = &self.log else {
            return;
        };
        log.upstream(failure.map(|failure| failure.fields.code.as_deref()));
        if let Some(failure) = failure {
            log.say(Level::Info, "failed", |line| {
                line.number("client", self.process.into())
                    .text("kind", &entry.looks.kind)
                    .text("state", &failure.fields.sqlstate)
                    .some("code", failure.fields.code.as_deref())
            });
        }
    }

    fn line(&self, entry: &Entry, application: &str) -> Object {
        Object::new()
            .number("version", VERSION)
            .text("at", &moment(entry.at))
            .number("statement", entry.number)
            .text("user", &self.user)
            .number("client", self.process.into())
            .text("address", &self.address)
            .text("application", application)
            .text("kind", &entry.looks.kind)
            .text("shape", &entry.looks.shape)
    }
}

fn leak(leak: &Leak) -> String {
    Object::new()
        .texts("columns", &leak.columns)
        .text("level", &leak.level)
        .text("kind", &leak.kind)
        .number("count", leak.count)
        .end()
}

/// How many rows a statement gave or changed.
pub(crate) fn rows(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Rows { ends, .. } => ends.len() as u64,
        Outcome::Done { tag } => counted(tag),
        _ => 0,
    }
}

/// The number of rows in a tag.
pub(crate) fn counted(tag: &str) -> u64 {
    let number = tag.rsplit(' ').next().and_then(|word| word.parse().ok());
    number.unwrap_or(0)
}

/// Limits of the classes of times that are counted.
pub(crate) const TIMES: [Duration; 13] = [
    Duration::from_micros(250),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_millis(2500),
    Duration::from_secs(10),
];
