//! The crate's errors. None of them ever carries a key byte or a plaintext value.

use std::fmt;

/// Shorthand for this crate's results.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, for people and for the binding to map onto exceptions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A key file cannot be read, written or trusted.
    KeyFile {
        /// The file, as the user named it.
        path: String,
        /// What is wrong.
        cause: String,
        /// What mends it.
        fix: String,
    },
    /// Something stored was altered, moved or sealed under another key.
    Verify(String),
    /// The caller gave something unusable: a type, a length, a number.
    Value(String),
    /// A value lies outside of the form in which its column's tiles are sealed.
    Widen(String),
    /// The operating system refused (randomness).
    System(String),
}

impl Error {
    pub(crate) fn verify(what: impl Into<String>) -> Self {
        Self::Verify(what.into())
    }

    pub(crate) fn value(what: impl Into<String>) -> Self {
        Self::Value(what.into())
    }

    pub(crate) fn widen(what: impl Into<String>) -> Self {
        Self::Widen(what.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyFile { path, cause, fix } => write!(f, "{path}: {cause}; {fix}"),
            Self::Verify(what) | Self::Value(what) | Self::Widen(what) | Self::System(what) => {
                f.write_str(what)
            }
        }
    }
}

impl std::error::Error for Error {}
