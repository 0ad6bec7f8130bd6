//! One client's messages, from its greeting to its end. What a message asks for is done here;
//! what a statement means is the engine's.
//!
//! As in PostgreSQL (its documentation, "Message Flow"), an error in the extended protocol has all
//! messages ignored up to the next Sync, and statements between two of these are one transaction
//! where the client has begun none.

use crate::engine::{Done, Engine, Failure, Kind, Outcome, Settings, Statement, Values};
use crate::error::Error;
use crate::message::Request;
use crate::observed::{self, Entry, Looks, Observer};
use crate::portals::Portals;
use crate::reply;
use crate::socket::{Client, Ready};
use crate::stop::Stop;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How often a client that listens is told what came.
const LISTEN_EVERY: Duration = Duration::from_millis(200);
/// So many bytes are collected before they are sent.
pub(crate) const SENT_AT_ONCE: usize = 64 << 10;
pub(crate) const SYNC: u8 = b'S';

/// Why what a client wants is not done.
pub(crate) enum Halt {
    /// It is told, and goes on.
    Failed(Failure),
    /// It cannot be told any more.
    Lost(Error),
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused { sqlstate, message } => Self::Failed(Failure::error(sqlstate, message)),
            other => Self::Lost(other),
        }
    }
}

pub(crate) type Step<T> = Result<T, Halt>;

/// One client's session.
pub(crate) struct Session<'a, E: Engine> {
    pub(crate) client: Client,
    pub(crate) engine: E,
    pub(crate) statements: HashMap<String, Rc<Statement<E::Handle>>>,
    pub(crate) portals: Portals<E::Handle>,
    /// Whether the open transaction is one that the client did not ask for.
    implicit: bool,
    /// Whether messages are ignored up to the next Sync.
    skips: bool,
    pub(crate) settings: HashMap<String, String>,
    latest: Option<Settings>,
    pub(crate) most_message_bytes: usize,
    stop: &'a Stop,
    pub(crate) observer: Observer,
    /// A COPY whose data are on their way.
    pub(crate) copying: Option<Entry>,
}

impl<'a, E: Engine> Session<'a, E> {
    pub(crate) fn new(
        client: Client,
        engine: E,
        most_message_bytes: usize,
        stop: &'a Stop,
        observer: Observer,
    ) -> Self {
        Self {
            client,
            engine,
            statements: HashMap::new(),
            portals: Portals::default(),
            implicit: false,
            skips: false,
            settings: HashMap::new(),
            latest: None,
            most_message_bytes,
            stop,
            observer,
            copying: None,
        }
    }

    /// Says that it is ready, and serves the client until it goes, or has to.
    ///
    /// # Errors
    /// [`Error`] of a client that is lost, or speaks something else.
    pub(crate) fn run(&mut self) -> Result<(), Error> {
        self.tell_settings()?;
        self.ready()?;
        loop {
            if !self.wait()? {
                return Ok(());
            }
            let request = match self.client.next(self.most_message_bytes) {
                Ok(Some(request)) => request,
                Ok(None) | Err(Error::Io(_)) => return Ok(()),
                Err(error) => {
                    self.say(&Failure::fatal("08P01", error.to_string()))?;
                    return Err(error);
                }
            };
            if matches!(request, Request::Terminate) {
                return Ok(());
            }
            match self.answer(request) {
                Ok(()) => {}
                Err(Halt::Lost(error)) => return Err(error),
                Err(Halt::Failed(failure)) => {
                    self.say(&failure)?;
                    if failure.ends {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Until a message comes. False where the session is to end.
    fn wait(&mut self) -> Result<bool, Error> {
        loop {
            if self.client.next_tag().is_some() {
                return Ok(true);
            }
            let is_idle = !self.skips && self.engine.status() == b'I' && !self.implicit;
            if is_idle && self.stop.is_set() {
                let why = "terminating connection due to administrator command";
                self.say(&Failure::fatal("57P01", why))?;
                return Ok(false);
            }
            let listens = is_idle && self.engine.listens();
            let other = is_idle.then(|| self.stop.signal());
            match self.client.wait(listens.then_some(LISTEN_EVERY), other)? {
                Ready::Message => return Ok(true),
                Ready::Other => {}
                Ready::Timeout => {
                    self.tell_messages()?;
                    self.client.flush()?;
                }
                Ready::Gone => return Ok(false),
            }
        }
    }

    fn answer(&mut self, request: Request) -> Step<()> {
        match request {
            Request::Sync => self.sync(),
            _ if self.skips => Ok(()),
            Request::Query(sql) => self.query(&sql),
            Request::Flush => Ok(self.client.flush()?),
            // A COPY that failed: what is left of its data.
            Request::CopyData(_) | Request::CopyDone | Request::CopyFail(_) => Ok(()),
            Request::FunctionCall => {
                let failure = Failure::error("0A000", "function calls by number are not supported");
                self.say(&failure)?;
                self.ready()?;
                Ok(())
            }
            Request::Password(_) | Request::Terminate => Err(Halt::Failed(Failure::fatal(
                "08P01",
                "a message that does not belong here",
            ))),
            extended => self.extended(extended).inspect_err(|_| self.skips = true),
        }
    }

    /// Runs a statement; one that is not `alone` is part of a transaction.
    pub(crate) fn outcome(
        &mut self,
        statement: &Statement<E::Handle>,
        values: &Values,
        formats: &[i16],
        alone: bool,
    ) -> Step<Outcome> {
        let entry = self.begins(self.engine.looks(statement))?;
        let done = self.ran(statement, values, formats, alone);
        if matches!(done, Ok(Outcome::CopyIn { .. } | Outcome::CopyOut { .. })) {
            self.copying = Some(entry);
            return done;
        }
        self.ends(&entry, done, observed::rows)
    }

    fn ran(
        &mut self,
        statement: &Statement<E::Handle>,
        values: &Values,
        formats: &[i16],
        alone: bool,
    ) -> Step<Outcome> {
        if let Some(outcome) = self.on_portal(statement)? {
            return Ok(outcome);
        }
        if let Some(name) = &statement.deallocates {
            if self.deallocated(name)? {
                return Ok(Outcome::Done {
                    tag: "DEALLOCATE".to_owned(),
                });
            }
        }
        let others = matches!(statement.kind, Kind::Other | Kind::Copies | Kind::Varies);
        if !alone && others && self.engine.status() == b'I' {
            self.engine.begin()?;
            self.implicit = true;
        }
        let outcome = self.engine.run(statement, values, formats);
        self.implicit &= self.engine.status() != b'I';
        let outcome = outcome?;
        if statement.deallocates.as_deref() == Some("") {
            self.statements.clear();
        }
        // BEGIN makes it one that the client has asked for.
        self.implicit &= statement.kind != Kind::Begins;
        self.tell_settings()?;
        self.tell_notices()?;
        Ok(outcome)
    }

    /// Forgets a statement of the protocol's that DEALLOCATE gives up; whether that is all there is
    /// to do.
    fn deallocated(&mut self, name: &str) -> Step<bool> {
        let is_usable = !name.is_empty() && self.engine.status() != b'E';
        if !is_usable || self.statements.remove(name).is_none() {
            return Ok(false);
        }
        self.engine.close_named(name)?;
        Ok(true)
    }

    /// What is said behind a statement without rows.
    pub(crate) fn finish(&mut self, outcome: Outcome) -> Step<()> {
        let tag = match outcome {
            Outcome::Empty => {
                reply::empty_query(&mut self.client.output);
                return Ok(());
            }
            Outcome::Done { tag } | Outcome::Rows { tag, .. } => tag,
            Outcome::CopyIn { format, columns } => {
                let done = self.copy_in(format, columns);
                self.copied(done)?
            }
            Outcome::CopyOut { form, columns } => {
                let done = self.copy_out(form, columns);
                self.copied(done)?
            }
        };
        self.tell_notices()?;
        reply::command_complete(&mut self.client.output, &tag);
        Ok(())
    }

    fn sync(&mut self) -> Step<()> {
        let good = !self.skips;
        self.skips = false;
        self.end_implicit(good)?;
        Ok(self.ready()?)
    }

    /// Ends the transaction that the client did not ask for, if there is one; where it cannot be
    /// committed, that is said.
    pub(crate) fn end_implicit(&mut self, good: bool) -> Step<()> {
        if !std::mem::take(&mut self.implicit) {
            return Ok(());
        }
        let done: Done<()> = self.engine.end(good);
        let shows = done.is_err() || (self.observer.audit.is_some() && self.engine.shows());
        if shows {
            let looks = Looks {
                kind: if good { "COMMIT" } else { "ROLLBACK" }.to_owned(),
                ..Looks::default()
            };
            let entry = self.begins(looks)?;
            match self.ends(&entry, done.map_err(Halt::from), |()| 0) {
                Ok(()) => {}
                Err(Halt::Failed(failure)) => {
                    self.say(&failure)?;
                    if failure.ends {
                        return Err(failure.into());
                    }
                }
                Err(lost) => return Err(lost),
            }
        }
        self.tell_settings()?;
        self.tell_notices()?;
        Ok(())
    }

    pub(crate) fn ready(&mut self) -> Result<(), Error> {
        let status = self.engine.status();
        if status == b'I' {
            self.portals.clear();
            if self.engine.listens() {
                self.tell_messages()?;
            }
        }
        reply::ready(&mut self.client.output, status);
        if status == b'I' {
            // Before it is sent: a slow reader keeps nobody waiting.
            self.engine.rest();
        }
        self.client.flush()
    }

    pub(crate) fn say(&mut self, failure: &Failure) -> Result<(), Error> {
        if self.engine.status() == b'T' {
            self.engine.fail();
        }
        self.tell_notices()?;
        reply::error(&mut self.client.output, &failure.fields);
        self.client.flush()
    }

    fn tell_notices(&mut self) -> Result<(), Error> {
        for notice in self.engine.notices() {
            reply::notice(&mut self.client.output, &notice);
        }
        Ok(())
    }

    fn tell_settings(&mut self) -> Result<(), Error> {
        let settings = self.engine.settings();
        if self
            .latest
            .as_ref()
            .is_some_and(|latest| Arc::ptr_eq(latest, &settings))
        {
            return Ok(());
        }
        for (name, value) in settings.iter() {
            if self.settings.get(name) != Some(value) {
                reply::parameter_status(&mut self.client.output, name, value);
                self.settings.insert(name.clone(), value.clone());
            }
        }
        self.latest = Some(settings);
        Ok(())
    }

    fn tell_messages(&mut self) -> Result<(), Error> {
        let Ok(messages) = self.engine.notifications() else {
            return Ok(()); // the next statement says why
        };
        for (process, channel, text) in messages {
            reply::notification(&mut self.client.output, process, &channel, &text);
        }
        Ok(())
    }
}
