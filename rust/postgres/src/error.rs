//! What can go wrong with a server.

use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::ErrorFields;
use std::{fmt, io};

/// Shorthand for this crate's results.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed.
#[derive(Debug)]
pub enum Error {
    /// The server said so; the connection can be used.
    Server(Box<ServerError>),
    /// The connection is lost; whether the last statement was done is not known.
    Lost(io::Error),
    /// The server sent what the protocol does not allow; the connection is closed.
    Protocol(String),
    /// There is no TLS with the server, or it is not who it should be. The text says why.
    Tls(String),
    /// This client does not do what the settings or the server ask for. The text says what.
    Refused(String),
    /// What was to be sent cannot be: a text with a NUL, too many values, rows of another type.
    Value(String),
}

/// The fields of PostgreSQL's ErrorResponse or NoticeResponse. Messages may quote values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerError {
    /// ERROR, FATAL, NOTICE …, not translated.
    pub severity: String,
    /// The SQLSTATE: five letters or digits.
    pub code: String,
    /// What is wrong, in the server's language.
    pub message: String,
    /// More of it, or "".
    pub detail: String,
    /// How to mend it, or "".
    pub hint: String,
    /// The character of the statement's text that is meant, from 1; 0 if none is.
    pub position: u32,
    /// The schema, table, column, type and constraint that are meant, or "".
    pub schema: String,
    /// See `schema`.
    pub table: String,
    /// See `schema`.
    pub column: String,
    /// See `schema`.
    pub datatype: String,
    /// See `schema`.
    pub constraint: String,
    /// Where in a function it was, or "".
    pub context: String,
    /// Of the statements that were sent together, the position of the one that failed, from 0.
    pub statement: usize,
}

const MOST_TEXT: usize = 64 << 10;

impl ServerError {
    pub(crate) fn read(mut fields: ErrorFields<'_>) -> Result<Self> {
        let mut read = Self::default();
        while let Some(field) = fields.next().map_err(Error::protocol)? {
            let bytes = field.value_bytes();
            let text =
                || String::from_utf8_lossy(&bytes[..bytes.len().min(MOST_TEXT)]).into_owned();
            match field.type_() {
                b'V' => read.severity = text(),
                b'S' if read.severity.is_empty() => read.severity = text(),
                b'C' => read.code = text(),
                b'M' => read.message = text(),
                b'D' => read.detail = text(),
                b'H' => read.hint = text(),
                b'P' => read.position = text().parse().unwrap_or(0),
                b's' => read.schema = text(),
                b't' => read.table = text(),
                b'c' => read.column = text(),
                b'd' => read.datatype = text(),
                b'n' => read.constraint = text(),
                b'W' => read.context = text(),
                _ => {}
            }
        }
        Ok(read)
    }
}

impl Error {
    pub(crate) fn protocol(error: impl fmt::Display) -> Self {
        Self::Protocol(error.to_string())
    }

    pub(crate) fn value(text: impl Into<String>) -> Self {
        Self::Value(text.into())
    }

    /// Whether the connection cannot be used after it.
    pub fn is_fatal(&self) -> bool {
        match self {
            Self::Lost(_) | Self::Protocol(_) | Self::Tls(_) => true,
            Self::Server(error) => matches!(error.severity.as_str(), "FATAL" | "PANIC"),
            Self::Refused(_) | Self::Value(_) => false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(error) => write!(f, "{}: {}", error.code, error.message),
            Self::Lost(error) => write!(f, "the connection is lost: {error}"),
            Self::Protocol(text) => write!(f, "the server broke the protocol: {text}"),
            Self::Tls(text) => write!(f, "no TLS with the server: {text}"),
            Self::Refused(text) | Self::Value(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}
