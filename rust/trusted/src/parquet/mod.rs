//! Data files of lakes: Parquet modular encryption (AES-256-GCM, footer encrypted, one data key a
//! file), as `spec/lake-files.md` has it.
//!
//! A file is bound to its table and to its file id: the data key is wrapped with both as associated
//! data, and both are part of every module's. So a swapped file and a page that was moved
//! are detected by the first reader that needs them.
//!
//! The crate `parquet` reads nothing that was not authenticated: [`frame`] checks the few bytes
//! that are in plaintext, to the letter, before it sees them.

mod forms;
mod frame;
mod keys;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use keys::{FileKeys, FILE_ID};
pub use read::{OpenFile, SealedFile, Tail};
pub use write::{write, Written};

use crate::error::{Error, Result};
use arrow_schema::Schema;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Rows of a row group: what DuckDB takes as one, too.
pub const ROW_GROUP_ROWS: usize = 122_880;

/// The column id in a name `c<id>`; `None` if it is not one.
fn column_id(name: &str) -> Option<u32> {
    let digits = name.strip_prefix('c')?;
    let id: u32 = digits.parse().ok()?;
    (id.to_string() == digits).then_some(id)
}

/// Column ids in their order.
///
/// # Errors
/// [`Error::Value`] for another name, or one that comes twice.
fn column_ids(schema: &Schema) -> Result<Vec<u32>> {
    let mut ids = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        let id = column_id(field.name())
            .filter(|id| !ids.contains(id))
            .ok_or_else(|| Error::value("columns of a data file are named c<id>, each once"))?;
        ids.push(id);
    }
    Ok(ids)
}

/// Runs what calls the crate `parquet`; a panic of it becomes an error.
///
/// It is a large decoder, and some of its paths panic on types and bytes that it does not expect.
/// Bytes reach it only after authentication, so this is a last resort.
fn guarded<T>(work: impl FnOnce() -> Result<T>, failed: impl FnOnce() -> Error) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(failed()))
}
