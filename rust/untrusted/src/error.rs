//! The crate's one error.

use std::fmt;

/// Shorthand for this crate's results.
pub type Result<T> = std::result::Result<T, Error>;

/// Arguments that make no sense: a wrong type, length or number. The text says which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(pub(crate) String);

impl Error {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl From<louver_primitives::KernelError> for Error {
    fn from(error: louver_primitives::KernelError) -> Self {
        Self(error.to_string())
    }
}

impl From<louver_primitives::RowSetError> for Error {
    fn from(error: louver_primitives::RowSetError) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
