//! Statements: described, run in pipelines, and prepared once.

use crate::answer::{fields, Description, Field, Relay, Relayed, Reply};
use crate::connection::{unexpected, unsendable, Connection, Look, State};
use crate::error::{Error, Result, ServerError};
use crate::oid::Oid;
use crate::rows::Rows;
use crate::values::Value;
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;
use postgres_protocol::IsNull;
use std::collections::hash_map::RandomState;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

/// So many statements stay prepared; the one that was used longest ago goes.
const MOST_STATEMENTS: usize = 256;
/// All columns in binary form.
pub(crate) const BINARY: [i16; 1] = [1];
/// The plan of a statement is void, or its name is not known (a pooler gave us another session).
const PREPARE_ANEW: [&str; 2] = ["0A000", UNKNOWN_STATEMENT];
const UNKNOWN_STATEMENT: &str = "26000";
/// First words of the tags of statements that change what tables there are.
const DEFINING: [&str; 3] = ["CREATE", "DROP", "ALTER"];

/// One statement of a pipeline.
pub struct Step<'a> {
    /// Its text, with `$1` and so on.
    pub sql: &'a str,
    /// The values of its parameters.
    pub values: Vec<Value>,
}

/// A statement's text, and the types of its values.
type Key = (String, Vec<Oid>);

/// The statements that a session has prepared.
pub(crate) struct Statements {
    prepared: HashMap<Key, Prepared>,
    clock: u64,
    /// Begins their names: behind a pooler that is not noticed, no other client's statement has it.
    prefix: String,
    /// Whether they stay prepared. Where not, each is sent without a name, and all that belongs to
    /// it with it.
    pub(crate) persistent: bool,
    /// Whether the statements before the one that failed last were queries.
    only_read: bool,
    /// Whether what is prepared may be void: tables are others than they were.
    stale: bool,
    /// Whether the open transaction has defined something, which ROLLBACK undoes.
    defines: bool,
}

impl Statements {
    pub(crate) fn new() -> Self {
        let random = RandomState::new().build_hasher().finish();
        Self {
            prepared: HashMap::new(),
            clock: 0,
            prefix: format!("louver_{random:016x}"),
            persistent: false,
            only_read: false,
            stale: false,
            defines: false,
        }
    }
}

struct Prepared {
    name: String,
    columns: Vec<Field>,
    is_known: bool,
    used: u64,
}

impl Connection {
    /// What a statement's parameters and columns are. Nothing is run.
    ///
    /// # Errors
    /// What the server says.
    pub fn describe(&mut self, sql: &str, types: &[Oid], look: Look<'_>) -> Result<Description> {
        self.parse("", sql, types)?;
        frontend::describe(b'S', "", &mut self.socket.output).map_err(unsendable)?;
        self.sync()?;
        let mut description = Description::default();
        self.read_until_ready(look, |_, message| {
            match message {
                Message::ParseComplete | Message::NoData => {}
                Message::ParameterDescription(body) => {
                    description.parameters =
                        body.parameters().collect().map_err(Error::protocol)?;
                }
                Message::RowDescription(body) => description.columns = fields(&body)?,
                _ => return Err(unexpected()),
            }
            Ok(())
        })?;
        Ok(description)
    }

    /// Runs statements in one round trip, without waiting for one before the next is sent. The
    /// first that fails ends it, and none behind it runs. Outside of BEGIN … COMMIT they are one
    /// transaction.
    ///
    /// # Errors
    /// Of the first statement that failed.
    pub fn run(&mut self, steps: &[Step<'_>], look: Look<'_>) -> Result<Vec<Reply>> {
        self.run_all(steps, None, look)
    }

    /// The same, but for the rows of one statement: they are in [`Reply::relayed`] as the server
    /// sent them.
    ///
    /// # Errors
    /// Of the first statement that failed.
    pub fn relay(
        &mut self,
        steps: &[Step<'_>],
        relayed: Relay<'_>,
        look: Look<'_>,
    ) -> Result<Vec<Reply>> {
        self.run_all(steps, Some(relayed), look)
    }

    fn run_all(
        &mut self,
        steps: &[Step<'_>],
        relayed: Option<Relay<'_>>,
        look: Look<'_>,
    ) -> Result<Vec<Reply>> {
        let outside = self.state() == State::Idle;
        match self.run_once(steps, relayed, look) {
            Err(Error::Server(error)) if outside && prepares_anew(&error) => {
                // What was done before it is undone, unless it ended a transaction.
                if self.state() == State::Idle && self.statements.only_read {
                    self.run_once(steps, relayed, look)
                } else {
                    Err(Error::Server(error))
                }
            }
            done => done,
        }
    }

    fn run_once(
        &mut self,
        steps: &[Step<'_>],
        relayed: Option<Relay<'_>>,
        look: Look<'_>,
    ) -> Result<Vec<Reply>> {
        let keys = self.send_all(steps, relayed)?;
        let mut messages = Relayed::default();
        let mut replies: Vec<Reply> = Vec::with_capacity(steps.len());
        let mut described: Option<Vec<Field>> = None;
        let mut rows: Option<Rows> = None;
        let done = self.read_until_ready(look, |connection, message| {
            match message {
                Message::ParseComplete | Message::ParameterDescription(_) => {}
                Message::RowDescription(body) => described = Some(fields(&body)?),
                Message::NoData => described = Some(Vec::new()),
                Message::BindComplete => {
                    rows = Some(connection.bound(keys.get(replies.len()), described.take())?);
                }
                Message::DataRow(body) => {
                    let rows = rows.as_mut().ok_or_else(unexpected)?;
                    match relayed.filter(|relayed| relayed.at == replies.len()) {
                        Some(relayed) => messages.push(&body, rows.fields.len(), relayed)?,
                        None => rows.push(&body)?,
                    }
                }
                Message::CommandComplete(body) => {
                    let tag = body.tag().map_err(Error::protocol)?.to_owned();
                    let rows = rows.take().ok_or_else(unexpected)?;
                    let relayed = std::mem::take(&mut messages);
                    replies.push(Reply { rows, tag, relayed });
                }
                Message::EmptyQueryResponse => {
                    let (rows, tag) = (rows.take().ok_or_else(unexpected)?, String::new());
                    let relayed = Relayed::default();
                    replies.push(Reply { rows, tag, relayed });
                }
                _ => return Err(unexpected()),
            }
            Ok(())
        });
        self.note_definitions(&replies);
        if let Err(error) = done {
            return Err(self.failed(error, &keys, &replies));
        }
        if replies.len() == steps.len() {
            return Ok(replies);
        }
        self.give_up();
        Err(Error::Protocol("fewer answers than statements".to_owned()))
    }

    /// A statement was bound, which may just have been described.
    fn bound(&mut self, key: Option<&Key>, described: Option<Vec<Field>>) -> Result<Rows> {
        let prepared = key.and_then(|key| self.statements.prepared.get_mut(key));
        let prepared = prepared.ok_or_else(unexpected)?;
        if let Some(columns) = described {
            (prepared.columns, prepared.is_known) = (columns, true);
        }
        Ok(Rows::new(prepared.columns.clone()))
    }

    /// After a failure behind these replies: what of these statements is prepared no more.
    fn failed(&mut self, mut error: Error, keys: &[Key], replies: &[Reply]) -> Error {
        if let Error::Server(said) = &mut error {
            said.statement = replies.len();
            let reads = |reply: &Reply| reply.tag.starts_with("SELECT");
            self.statements.only_read = replies.iter().all(reads);
        }
        let all = matches!(&error, Error::Server(said) if prepares_anew(said));
        self.forget(keys, all);
        // Nobody but a pooler takes a statement away.
        self.statements.persistent &=
            !matches!(&error, Error::Server(said) if said.code == UNKNOWN_STATEMENT);
        error
    }

    /// Prepares every statement anew when it is next sent: tables were made anew. The server says
    /// that a plan is void, but within a transaction that error ends it.
    pub fn forget_statements(&mut self) {
        self.statements.stale = true;
    }

    /// What these statements defined, or undid, makes plans void; where none are to stay, all are.
    fn note_definitions(&mut self, replies: &[Reply]) {
        if !self.statements.persistent {
            self.statements.prepared.clear();
        }
        for reply in replies {
            let word = reply.tag.split(' ').next().unwrap_or_default();
            let undone = word == "ROLLBACK" && self.statements.defines;
            let defines = DEFINING.contains(&word);
            self.statements.stale |= undone || defines;
            self.statements.defines |= defines;
        }
        self.statements.defines &= self.state() != State::Idle;
    }

    fn send_all(&mut self, steps: &[Step<'_>], relayed: Option<Relay<'_>>) -> Result<Vec<Key>> {
        if std::mem::take(&mut self.statements.stale) {
            let prepared = std::mem::take(&mut self.statements.prepared);
            let mut names: Vec<String> = prepared.into_values().map(|known| known.name).collect();
            // In an order of which the server learns nothing.
            names.sort_unstable();
            for name in &names {
                frontend::close(b'S', name, &mut self.socket.output).map_err(unsendable)?;
            }
        }
        let numbered = steps.iter().enumerate();
        let keys = numbered.map(|(at, step)| {
            let relayed = relayed.filter(|relayed| relayed.at == at);
            self.send(step, relayed.map_or(&BINARY, |relayed| relayed.formats))
        });
        let keys: Result<Vec<Key>> = keys.collect();
        if keys.is_err() {
            self.socket.output.clear();
            // None of these was sent.
            self.statements.prepared.retain(|_, known| known.is_known);
        } else {
            self.sync()?;
        }
        keys
    }

    /// Writes one statement to the output, prepared before if it was.
    fn send(&mut self, step: &Step<'_>, results: &[i16]) -> Result<Key> {
        let types: Vec<Oid> = step.values.iter().map(Value::oid).collect();
        let key = (step.sql.to_owned(), types);
        self.statements.clock += 1;
        let known = self.statements.prepared.get_mut(&key);
        let name = if let Some(prepared) = known.filter(|_| self.statements.persistent) {
            prepared.used = self.statements.clock;
            prepared.name.clone()
        } else {
            let name = if self.statements.persistent {
                self.make_room()?;
                format!("{}_{}", self.statements.prefix, self.statements.clock)
            } else {
                String::new()
            };
            self.parse(&name, step.sql, &key.1)?;
            frontend::describe(b'S', &name, &mut self.socket.output).map_err(unsendable)?;
            let prepared = Prepared {
                name: name.clone(),
                columns: Vec::new(),
                is_known: false,
                used: self.statements.clock,
            };
            self.statements.prepared.insert(key.clone(), prepared);
            name
        };
        bind("", &name, &step.values, results, &mut self.socket.output)?;
        frontend::execute("", 0, &mut self.socket.output).map_err(unsendable)?;
        Ok(key)
    }

    fn make_room(&mut self) -> Result<()> {
        if self.statements.prepared.len() < MOST_STATEMENTS {
            return Ok(());
        }
        let oldest = self
            .statements
            .prepared
            .iter()
            .min_by_key(|(_, prepared)| prepared.used);
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            self.drop_statement(&key)?;
        }
        Ok(())
    }

    fn drop_statement(&mut self, key: &Key) -> Result<()> {
        if let Some(prepared) = self.statements.prepared.remove(key) {
            frontend::close(b'S', &prepared.name, &mut self.socket.output).map_err(unsendable)?;
        }
        Ok(())
    }

    /// After a failure: what was never bound may or may not be prepared; closing either is right.
    fn forget(&mut self, keys: &[Key], all: bool) {
        for key in keys {
            if all
                || self
                    .statements
                    .prepared
                    .get(key)
                    .is_some_and(|prepared| !prepared.is_known)
            {
                // Its name was sent before, so it can be sent again.
                let _ = self.drop_statement(key);
            }
        }
    }

    pub(crate) fn parse(&mut self, name: &str, sql: &str, types: &[Oid]) -> Result<()> {
        frontend::parse(name, sql, types.iter().copied(), &mut self.socket.output)
            .map_err(unsendable)
    }
}

pub(crate) fn bind(
    portal: &str,
    statement: &str,
    values: &[Value],
    results: &[i16],
    out: &mut BytesMut,
) -> Result<()> {
    let formats = values.iter().map(Value::format);
    frontend::bind(
        portal,
        statement,
        formats,
        values,
        |value, buffer| {
            Ok(if value.write(buffer) {
                IsNull::No
            } else {
                IsNull::Yes
            })
        },
        results.iter().copied(),
        out,
    )
    .map_err(|_| Error::value("more values than PostgreSQL takes, or longer ones"))
}

fn prepares_anew(error: &ServerError) -> bool {
    PREPARE_ANEW.contains(&error.code.as_str())
}
