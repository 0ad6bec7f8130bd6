//! Errors of the crate. None of them carries row contents, which may be secret.

use std::fmt;

/// Why a byte string is not usable as a modulus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ModulusError {
    /// The modulus is even; Montgomery arithmetic needs an odd one.
    Even,
    /// The modulus has fewer than 64 bits.
    TooSmall {
        /// Its bit length.
        bits: u64,
    },
    /// The modulus has more than 4,096 bits.
    TooLarge {
        /// Its bit length.
        bits: u64,
    },
}

impl fmt::Display for ModulusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Even => write!(f, "the modulus is even"),
            Self::TooSmall { bits } => write!(f, "the modulus has {bits} bits, fewer than 64"),
            Self::TooLarge { bits } => write!(f, "the modulus has {bits} bits, more than 4096"),
        }
    }
}

impl std::error::Error for ModulusError {}

/// Why bytes could not be read as residues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelError {
    /// The value in `row` (counted from 0) is not below the modulus.
    NotReduced {
        /// Row index.
        row: usize,
    },
    /// A concatenated column is not a whole number of rows.
    Length {
        /// Bytes given.
        got: usize,
        /// Bytes a row takes.
        row_bytes: usize,
    },
    /// The byte string of `row` is longer than a row.
    RowTooLong {
        /// Row index.
        row: usize,
        /// Bytes given.
        got: usize,
        /// Bytes a row may take.
        row_bytes: usize,
    },
}

impl KernelError {
    /// The same of rows that begin at row `first` of what was given.
    pub(crate) fn moved(self, first: usize) -> Self {
        match self {
            Self::NotReduced { row } => Self::NotReduced { row: row + first },
            Self::RowTooLong {
                row,
                got,
                row_bytes,
            } => Self::RowTooLong {
                row: row + first,
                got,
                row_bytes,
            },
            other => other,
        }
    }
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReduced { row } => write!(f, "row {row}: value is not below the modulus"),
            Self::Length { got, row_bytes } => {
                write!(
                    f,
                    "{got} bytes are not a whole number of {row_bytes}-byte rows"
                )
            }
            Self::RowTooLong {
                row,
                got,
                row_bytes,
            } => {
                write!(f, "row {row}: {got} bytes, a row takes {row_bytes}")
            }
        }
    }
}

impl std::error::Error for KernelError {}

/// Why bytes or rows are not a row set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowSetError {
    /// Not the form of a row set, or of another version.
    Malformed,
    /// A row id is negative, too large, or out of order.
    Id,
    /// Too many rows, repeats counted, or a run of none.
    Weight,
}

impl fmt::Display for RowSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "a row set is malformed",
            Self::Id => "a row set's row ids are out of range or out of order",
            Self::Weight => "a row set holds no row, or too many",
        })
    }
}

impl std::error::Error for RowSetError {}
