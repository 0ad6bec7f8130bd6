//! Rows as a server sends them: a `DataRow` message for each, of Arrow columns.

use crate::arrays::sized;
use crate::error::{Error, Result};
use crate::oid::Oid;
use crate::printed;
use crate::values::{writer, Writer};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

/// How the values of a column are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As PostgreSQL prints them.
    Text,
    /// In binary form.
    Binary,
    /// Texts that are there already.
    Printed,
}

/// The messages of all rows, and where each ends. Rows without columns are so many as `count`.
///
/// # Errors
/// [`Error::Value`] for columns of different lengths, values that do not fit their type, a column
/// without a text, and a row that is longer than a message can be.
pub fn data_rows(columns: &[(ArrayRef, Oid, Form)], count: usize) -> Result<(Vec<u8>, Vec<usize>)> {
    if columns.iter().any(|(column, _, _)| column.len() != count) {
        return Err(Error::value("columns of different lengths"));
    }
    let width = i16::try_from(columns.len())
        .map_err(|_| Error::value("more columns than a message can have"))?;
    let writers = columns.iter().map(|(column, type_, form)| {
        let array: &dyn Array = column.as_ref();
        Ok((column, own(array, *type_, *form)?))
    });
    let writers = writers.collect::<Result<Vec<(&ArrayRef, Writer<'_>)>>>()?;
    let (mut out, mut ends) = (Vec::new(), Vec::with_capacity(count));
    for row in 0..count {
        let start = out.len();
        out.extend_from_slice(b"D\0\0\0\0");
        out.extend_from_slice(&width.to_be_bytes());
        for (column, write) in &writers {
            sized(column, row, write, &mut out)?;
        }
        let length = i32::try_from(out.len() - start - 1)
            .map_err(|_| Error::value("a row is longer than a message can be"))?;
        if let Some(head) = out.get_mut(start + 1..start + 5) {
            head.copy_from_slice(&length.to_be_bytes());
        }
        ends.push(out.len());
    }
    Ok((out, ends))
}

pub(crate) fn own(array: &dyn Array, type_: Oid, form: Form) -> Result<Writer<'_>> {
    match form {
        Form::Binary => writer(array, type_),
        Form::Printed if *array.data_type() == DataType::Utf8 => Ok(printed::plain(array)),
        Form::Text | Form::Printed => {
            printed::printer(array, type_).ok_or_else(|| printed::refused(array, type_))
        }
    }
}
