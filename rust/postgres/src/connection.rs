//! One session of a server: its start, its state, and the messages that belong to no statement.

use crate::cancel::{Cancel, Target};
use crate::error::{Error, Result, ServerError};
use crate::settings::Settings;
use crate::socket::Socket;
use crate::startup;
use crate::statements::{Statements, Step};
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;
use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

const MOST_NOTICES: usize = 256;
/// How long a server may take to end what was cancelled.
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);

/// Whether a transaction is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// None is.
    Idle,
    /// One is.
    Within,
    /// One is that failed: all but its end is refused.
    Failed,
}

/// A session of a server.
pub struct Connection {
    pub(crate) socket: Socket,
    pub(crate) statements: Statements,
    cancel: Cancel,
    state: State,
    broken: bool,
    /// What the server says of itself: `server_version`, `TimeZone` …
    pub parameters: HashMap<String, String>,
    /// Notices that came since they were last taken; of very many, the newest.
    pub notices: VecDeque<ServerError>,
    /// Notifications: the channel, and what was said.
    pub notifications: VecDeque<(String, String)>,
}

/// Called while a call waits; true ends the statement.
pub type Look<'a> = &'a mut dyn FnMut() -> bool;

impl Connection {
    /// Opens a session.
    ///
    /// # Errors
    /// What the server says, what this client refuses, or that there is no connection.
    pub fn open(settings: Settings) -> Result<Self> {
        let mut socket = Socket::open(&settings)?;
        startup::introduce(&mut socket, &settings)?;
        let mut patience = startup::patience(&settings);
        let cancel = Cancel::new(Target {
            settings,
            process: 0,
            secret: 0,
            runs: false,
        });
        let mut connection = Self {
            socket,
            cancel,
            state: State::Idle,
            broken: false,
            statements: Statements::new(),
            parameters: HashMap::new(),
            notices: VecDeque::new(),
            notifications: VecDeque::new(),
        };
        let mut greeted = None;
        loop {
            match connection.socket.next(&mut patience)? {
                Message::BackendKeyData(body) => {
                    greeted = Some(body.process_id());
                    connection
                        .cancel
                        .set_key(body.process_id(), body.secret_key());
                }
                Message::ReadyForQuery(_) => {
                    connection.statements.persistent = greeted == Some(connection.process()?);
                    return Ok(connection);
                }
                Message::ErrorResponse(body) => {
                    return Err(Error::Server(Box::new(ServerError::read(body.fields())?)));
                }
                other => connection.aside(other)?,
            }
        }
    }

    /// The process that answers. It is another one than the one that greeted us where a pooler
    /// hands our statements to one session after another.
    fn process(&mut self) -> Result<i32> {
        let step = Step {
            sql: "SELECT pg_catalog.pg_backend_pid()",
            values: Vec::new(),
        };
        let replies = self.run(&[step], &mut || false)?;
        let columns = replies
            .into_iter()
            .next()
            .map(|reply| reply.rows.finish().1);
        columns
            .as_deref()
            .and_then(|columns| columns.first()?.as_primitive_opt::<Int32Type>())
            .filter(|numbers| numbers.len() == 1)
            .map(|numbers| numbers.value(0))
            .ok_or_else(unexpected)
    }

    /// Prepares every statement anew from now on. A plan that is kept is an error within a
    /// transaction once its tables have other columns.
    pub fn keep_no_statements(&mut self) {
        self.statements.persistent = false;
    }

    /// Whether statements stay prepared: they do unless a pooler is in between.
    pub fn keeps_statements(&self) -> bool {
        self.statements.persistent
    }

    /// What ends a statement of this session.
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Whether a transaction is open.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether the session is lost, as far as is known without asking the server.
    pub fn is_broken(&self) -> bool {
        self.broken || self.socket.is_closed()
    }

    pub(crate) fn give_up(&mut self) {
        self.broken = true;
    }

    /// Bytes that came and that went.
    pub fn traffic(&self) -> (u64, u64) {
        self.socket.traffic
    }

    /// Says goodbye; whatever a transaction did is undone.
    pub fn close(mut self) {
        frontend::terminate(&mut self.socket.output);
        let _ = self.socket.flush();
    }

    pub(crate) fn sync(&mut self) -> Result<()> {
        frontend::sync(&mut self.socket.output);
        self.start()
    }

    pub(crate) fn start(&mut self) -> Result<()> {
        if self.broken {
            self.socket.output.clear();
            let kind = ErrorKind::NotConnected;
            return Err(Error::Lost(std::io::Error::new(kind, "it was lost before")));
        }
        self.cancel.set_runs(true);
        self.socket.flush().inspect_err(|_| self.broken = true)
    }

    /// Hands on what comes until the server is ready. What the server refuses, and rows that are
    /// too many, leave a session that can be used; anything else ends it.
    pub(crate) fn read_until_ready(
        &mut self,
        look: Look<'_>,
        mut each: impl FnMut(&mut Self, Message) -> Result<()>,
    ) -> Result<()> {
        let mut failed: Option<Error> = None;
        let mut given_up: Option<Instant> = None;
        let cancel = self.cancel.clone();
        let done = loop {
            let mut wait = || match given_up {
                Some(end) if Instant::now() > end => Err(late()),
                None if look() => {
                    given_up = Some(Instant::now() + GIVE_UP_AFTER);
                    cancel.send()
                }
                _ => Ok(()),
            };
            let message = match self.socket.next(&mut wait) {
                Ok(message) => message,
                Err(error) => break Err(error),
            };
            let taken = match message {
                Message::ReadyForQuery(body) => {
                    self.state = match body.status() {
                        b'I' => State::Idle,
                        b'T' => State::Within,
                        b'E' => State::Failed,
                        _ => break Err(unexpected()),
                    };
                    break Ok(());
                }
                Message::ErrorResponse(body) => ServerError::read(body.fields()).map(|said| {
                    failed.get_or_insert(Error::Server(Box::new(said)));
                }),
                Message::NoticeResponse(_)
                | Message::ParameterStatus(_)
                | Message::NotificationResponse(_) => self.aside(message),
                Message::CloseComplete => Ok(()),
                _ if failed.is_some() => Ok(()),
                other => each(self, other),
            };
            match taken {
                Ok(()) => {}
                Err(error @ Error::Value(_)) => drop(failed.get_or_insert(error)),
                Err(error) => break Err(error),
            }
        };
        self.cancel.set_runs(false);
        if let Err(error) = done {
            self.broken = true;
            // What the server said before it went says why.
            return Err(failed.filter(Error::is_fatal).unwrap_or(error));
        }
        failed.map_or(Ok(()), Err)
    }

    /// What a server may say at any time.
    fn aside(&mut self, message: Message) -> Result<()> {
        match message {
            Message::NoticeResponse(body) => {
                if self.notices.len() == MOST_NOTICES {
                    self.notices.pop_front();
                }
                self.notices.push_back(ServerError::read(body.fields())?);
            }
            Message::ParameterStatus(body) => {
                let name = body.name().map_err(Error::protocol)?.to_owned();
                let value = body.value().map_err(Error::protocol)?.to_owned();
                if self.parameters.len() < MOST_NOTICES {
                    self.parameters.insert(name, value);
                }
            }
            Message::NotificationResponse(body) => {
                let channel = body.channel().map_err(Error::protocol)?.to_owned();
                let said = body.message().map_err(Error::protocol)?.to_owned();
                if self.notifications.len() == MOST_NOTICES {
                    self.notifications.pop_front();
                }
                self.notifications.push_back((channel, said));
            }
            _ => return Err(unexpected()),
        }
        Ok(())
    }
}

pub(crate) fn unsendable(error: std::io::Error) -> Error {
    Error::value(format!("this cannot be sent to PostgreSQL: {error}"))
}

fn late() -> Error {
    let text = "it did not end when it was cancelled";
    Error::Lost(std::io::Error::new(ErrorKind::TimedOut, text))
}

pub(crate) fn unexpected() -> Error {
    Error::Protocol("a message where another was due".to_owned())
}
