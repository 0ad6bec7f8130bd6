//! The crate's one error.

use louver_primitives::Stop;
use std::fmt;

/// Shorthand for this crate's results.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// Arguments that make no sense: a wrong type, length or number. The text says which.
    Value(String),
    /// A [`Stop`] was set before the work was done.
    Stopped,
}

impl Error {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self::Value(text.into())
    }
}

/// Refuses to go on once it is set.
pub(crate) fn go_on(stop: &Stop) -> Result<()> {
    if stop.is_set() {
        return Err(Error::Stopped);
    }
    Ok(())
}

impl From<louver_primitives::KernelError> for Error {
    fn from(error: louver_primitives::KernelError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<louver_primitives::RowSetError> for Error {
    fn from(error: louver_primitives::RowSetError) -> Self {
        Self::new(error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(text) => f.write_str(text),
            Self::Stopped => f.write_str("it was stopped"),
        }
    }
}

impl std::error::Error for Error {}
