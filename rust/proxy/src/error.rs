//! What can go wrong with a client.

use std::{fmt, io};

/// Shorthand for this crate's results.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed.
#[derive(Debug)]
pub enum Error {
    /// The connection is lost, or made no progress in time.
    Io(io::Error),
    /// The client sent what the protocol does not allow (08P01), or what is to be sent to it does
    /// not fit the protocol. The bytes that follow cannot be trusted to be messages.
    Protocol(String),
    /// There is no TLS with the client, or none can be offered. The text says why.
    Tls(String),
    /// What the client wants is not done. The message was taken, the connection is in step.
    Refused {
        /// Five letters or digits.
        sqlstate: &'static str,
        /// What is wrong; it may quote the client.
        message: String,
    },
}

impl Error {
    pub(crate) fn protocol(text: impl Into<String>) -> Self {
        Self::Protocol(text.into())
    }

    pub(crate) fn refused(sqlstate: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Refused { sqlstate, message }
    }

    /// The SQLSTATE that the client is given.
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Self::Io(_) => "08006",
            Self::Protocol(_) => "08P01",
            Self::Tls(_) => "08000",
            Self::Refused { sqlstate, .. } => sqlstate,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<rustix::io::Errno> for Error {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Io(error.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "the connection is lost: {error}"),
            Self::Tls(text) => write!(f, "TLS: {text}"),
            Self::Protocol(text) | Self::Refused { message: text, .. } => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}
