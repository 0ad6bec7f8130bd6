//! What runs the statements of a client: this crate knows messages, and nothing of SQL.

use crate::copy_rows::CopyForm;
use crate::observed::{Disclosed, Looks, Way};
use crate::reply::{Column, Fields};
use bytes::{Bytes, BytesMut};
use std::sync::Arc;

/// Why a statement failed, as the client is told.
#[derive(Debug)]
pub struct Failure {
    /// What is sent.
    pub fields: Box<Fields>,
    /// Whether the session cannot go on.
    pub ends: bool,
}

/// Of what may fail.
pub type Done<T> = std::result::Result<T, Failure>;

impl Failure {
    /// An error that ends a statement.
    #[must_use]
    pub fn error(sqlstate: &str, message: impl Into<String>) -> Self {
        Self {
            fields: Box::new(Fields {
                severity: "ERROR",
                sqlstate: sqlstate.to_owned(),
                message: message.into(),
                detail: None,
                hint: None,
                position: None,
                more: Vec::new(),
                code: None,
            }),
            ends: false,
        }
    }

    /// An error that ends a session.
    #[must_use]
    pub fn fatal(sqlstate: &str, message: impl Into<String>) -> Self {
        let mut failure = Self::error(sqlstate, message);
        failure.fields.severity = "FATAL";
        failure.ends = true;
        failure
    }

    /// The same, of a statement with so many characters before it.
    #[must_use]
    pub(crate) fn behind(mut self, characters: u32) -> Self {
        let position = &mut self.fields.position;
        *position = position.map(|at| at.saturating_add(characters));
        self
    }
}

/// What a statement is to the session that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing but comments and blanks.
    Empty,
    /// It begins a transaction.
    Begins,
    /// It ends one, or goes back in it.
    Controls,
    /// It copies data in or out.
    Copies,
    /// It lists rows of a cursor, or runs what was prepared: its columns may be other ones when it
    /// runs.
    Varies,
    /// Any other.
    Other,
}

/// A statement that was prepared.
#[derive(Clone, Debug)]
pub struct Statement<H> {
    /// What the engine knows it by.
    pub handle: H,
    /// See there.
    pub kind: Kind,
    /// The numbers of its parameters' types.
    pub parameters: Vec<u32>,
    /// Its columns in text form; None of one that gives no rows.
    pub columns: Option<Vec<Column>>,
    /// The name of a prepared statement that it gives up; "" of all.
    pub deallocates: Option<String>,
    /// What it does with a cursor.
    pub cursor: Option<CursorUse>,
}

/// What a statement does with a cursor of a name, which may be a portal of the protocol's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorUse {
    /// See there.
    pub verb: CursorVerb,
    /// The cursor's.
    pub name: String,
    /// How many rows FETCH and MOVE go ahead, 0 for all; less where they go another way.
    pub ahead: i64,
}

/// A statement on a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorVerb {
    /// DECLARE.
    Declare,
    /// FETCH.
    Fetch,
    /// MOVE.
    Move,
    /// CLOSE, of one.
    Close,
}

/// The values of a statement's parameters, as the client sent them.
#[derive(Clone, Debug, Default)]
pub struct Values {
    /// None is NULL.
    pub values: Vec<Option<Bytes>>,
    /// 0 is text and 1 is binary; one for each value.
    pub formats: Vec<i16>,
}

/// What a statement gave.
#[derive(Debug)]
pub enum Outcome {
    /// Nothing was there to run.
    Empty,
    /// No rows.
    Done {
        /// What it did, such as `INSERT 0 1`.
        tag: String,
    },
    /// Rows, as messages.
    Rows {
        /// What it did. The number of rows goes behind one that ends with a blank.
        tag: String,
        /// Its columns, in the formats in which the values are.
        columns: Vec<Column>,
        /// A message for each row.
        messages: BytesMut,
        /// Where each message ends.
        ends: Vec<usize>,
    },
    /// Data is to come from the client.
    CopyIn {
        /// 0 is text and 1 is binary.
        format: i8,
        /// How many columns there are.
        columns: usize,
    },
    /// Data is to be read by [`Engine::copy_out`].
    CopyOut {
        /// What it looks like.
        form: CopyForm,
        /// How many columns there are.
        columns: usize,
    },
}

/// Data of a COPY that goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyPiece {
    /// Any bytes of it, which are cut into rows.
    Data(Bytes),
    /// Messages of whole rows.
    Messages(Bytes),
}

/// What stops the statement that a session runs; used by other threads.
pub trait Canceller: Send + Sync {
    /// Stops it, if one runs.
    fn cancel(&self);
}

/// Names and values of settings.
pub type Settings = Arc<Vec<(String, String)>>;

/// Runs the statements of one client, one after the other.
pub trait Engine {
    /// How it knows a prepared statement.
    type Handle: Send;

    /// The settings that clients are told of, as they are now: the same ones until one changes.
    fn settings(&mut self) -> Settings;

    /// The statements of a text, and how many characters precede each of them.
    ///
    /// # Errors
    /// What cannot be cut into statements.
    fn split(&mut self, sql: &str) -> Done<Vec<(String, u32)>>;

    /// Prepares a text of one statement, some of whose parameters have these types; 0 is unknown.
    /// SQL knows it by its name, if it has one.
    ///
    /// # Errors
    /// What cannot be prepared.
    fn prepare(&mut self, sql: &str, types: &[u32], name: &str) -> Done<Statement<Self::Handle>>;

    /// A statement that SQL has prepared under a name; None where there is none.
    ///
    /// # Errors
    /// What cannot be described.
    fn named(&mut self, name: &str) -> Done<Option<Statement<Self::Handle>>>;

    /// A prepared statement of a name is not used any more, if there is one.
    ///
    /// # Errors
    /// Why it failed.
    fn close_named(&mut self, name: &str) -> Done<()>;

    /// The columns that a statement would give now, of one that [varies](Kind::Varies).
    ///
    /// # Errors
    /// What cannot be described.
    fn describe(&mut self, statement: &Statement<Self::Handle>) -> Done<Option<Vec<Column>>>;

    /// The columns of a cursor that a statement has declared; None where there is none.
    ///
    /// # Errors
    /// What cannot be described.
    fn cursor(&mut self, name: &str) -> Done<Option<Vec<Column>>>;

    /// Runs a statement. `formats` are those of the columns: none for text, one for all, or one
    /// for each.
    ///
    /// # Errors
    /// Why it failed.
    fn run(
        &mut self,
        statement: &Statement<Self::Handle>,
        values: &Values,
        formats: &[i16],
    ) -> Done<Outcome>;

    /// Takes data of a COPY in.
    ///
    /// # Errors
    /// Why it failed; the COPY has ended then.
    fn copy_in(&mut self, data: &[u8]) -> Done<()>;

    /// Ends a COPY of data that came in: its tag. With a `reason` nothing is copied, and that is
    /// an error.
    ///
    /// # Errors
    /// Why it failed.
    fn copy_end(&mut self, reason: Option<&str>) -> Done<String>;

    /// The next piece of data that goes out; None behind the last, when [`Engine::copy_end`] gives
    /// the tag.
    ///
    /// # Errors
    /// Why it failed.
    fn copy_out(&mut self) -> Done<Option<CopyPiece>>;

    /// Begins a transaction that the client did not ask for, for several statements.
    ///
    /// # Errors
    /// Why it failed.
    fn begin(&mut self) -> Done<()>;

    /// Ends such a one.
    ///
    /// # Errors
    /// Why it failed; nothing was done then.
    fn end(&mut self, commit: bool) -> Done<()>;

    /// A message was wrong, which ends a transaction as any error does.
    fn fail(&mut self);

    /// `I` outside of a transaction, `T` within one, `E` within one that has failed.
    fn status(&mut self) -> u8;

    /// What was noticed since this was last called.
    fn notices(&mut self) -> Vec<Fields>;

    /// Whether messages of other clients may come at any time.
    fn listens(&self) -> bool;

    /// The messages that came: the number of who sent it, channel and text.
    fn notifications(&mut self) -> Done<Vec<(u32, String, String)>>;

    /// What a statement is, for those who operate the server.
    fn looks(&self, _statement: &Statement<Self::Handle>) -> Looks {
        Looks::default()
    }

    /// How the last statement was run.
    fn way(&self) -> Way {
        Way::default()
    }

    /// Whether there is something that was opened and newly shown.
    fn shows(&mut self) -> bool {
        false
    }

    /// What was opened and newly shown since this was last called.
    fn disclosed(&mut self) -> Disclosed {
        Disclosed::default()
    }

    /// What stops the statement that runs.
    fn canceller(&self) -> Arc<dyn Canceller>;

    /// The client has what it asked for, and is outside of a transaction.
    fn rest(&mut self) {}
}

/// Opens an engine for each client.
pub trait Opener: Send + Sync {
    /// What it opens.
    type Engine: Engine;

    /// An engine for a client that has said who it is.
    ///
    /// # Errors
    /// Why there is none for it.
    fn open(&self, greeting: &crate::startup::Greeting) -> Done<Self::Engine>;
}
