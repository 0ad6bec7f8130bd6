//! What is written to a client. Each function appends one message.
//!
//! Texts end before their first NUL. What tells about something (errors, notices, settings) is cut
//! where it would be longer than [`MOST_TEXT`]; what is data is never cut: where its message would
//! be longer than the protocol can say, that is [`Error::Protocol`] and nothing is appended.

use crate::error::{Error, Result};
use bytes::{BufMut, BytesMut};

/// The longest text of a message that tells about something, in bytes.
pub const MOST_TEXT: usize = 1 << 20;
/// The most fields of an error besides those with names.
const MOST_FIELDS: usize = 32;

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The number of the table that it is of, or 0.
    pub table: u32,
    /// Its number in that table, or 0.
    pub attribute: i16,
    /// The number of its type.
    pub type_: u32,
    /// The bytes of its values, negative if they vary.
    pub size: i16,
    /// What the type is modified by, or -1.
    pub modifier: i32,
    /// 0 for text, 1 for binary.
    pub format: i16,
}

/// An error or a notice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// ERROR, FATAL, NOTICE …, not translated.
    pub severity: &'static str,
    /// Five letters or digits.
    pub sqlstate: String,
    /// What is wrong.
    pub message: String,
    /// More of it.
    pub detail: Option<String>,
    /// How to mend it.
    pub hint: Option<String>,
    /// The character of the statement's text that is meant, from 1.
    pub position: Option<u32>,
    /// Other fields by their letters: `s` schema, `t` table, `c` column, `d` type, `n`
    /// constraint, `W` context.
    pub more: Vec<(u8, String)>,
    /// The server's own code of an error, which is not sent.
    pub code: Option<String>,
}

/// The client is who it says.
pub fn authentication_ok(out: &mut BytesMut) {
    short(out, b'R', |out| out.put_u32(0));
}

/// The ways to prove a password, best first.
pub fn authentication_sasl(out: &mut BytesMut, mechanisms: &[&str]) {
    short(out, b'R', |out| {
        out.put_u32(10);
        for name in mechanisms.iter().take(MOST_FIELDS) {
            remark(out, name);
        }
        out.put_u8(0);
    });
}

/// A further message of SASL.
///
/// # Errors
/// [`Error::Protocol`] for data that do not fit a message.
pub fn authentication_sasl_continue(out: &mut BytesMut, data: &[u8]) -> Result<()> {
    sasl(out, 11, data)
}

/// The last message of SASL.
///
/// # Errors
/// [`Error::Protocol`] for data that do not fit a message.
pub fn authentication_sasl_final(out: &mut BytesMut, data: &[u8]) -> Result<()> {
    sasl(out, 12, data)
}

/// The value of a setting.
pub fn parameter_status(out: &mut BytesMut, name: &str, value: &str) {
    short(out, b'S', |out| {
        remark(out, name);
        remark(out, value);
    });
}

/// What a request to cancel must state: 4 bytes in version 3.0, up to 256 in 3.2.
///
/// # Errors
/// [`Error::Protocol`] for a secret of other lengths.
pub fn backend_key(out: &mut BytesMut, process: u32, secret: &[u8]) -> Result<()> {
    if !(4..=256).contains(&secret.len()) {
        return Err(Error::protocol("a cancel key has 4 to 256 bytes"));
    }
    short(out, b'K', |out| {
        out.put_u32(process);
        out.put_slice(secret);
    });
    Ok(())
}

/// The newest minor version of 3 that is spoken, and the options that are not known.
pub fn negotiate_version(out: &mut BytesMut, newest_minor: u32, options: &[String]) {
    // A startup packet has at most 10,000 bytes, so there cannot be more.
    let options = &options[..options.len().min(10_000)];
    short(out, b'v', |out| {
        // What is stated is the whole version, as PostgreSQL does; its manual says "minor".
        out.put_u32(3 << 16 | newest_minor);
        out.put_u32(options.len() as u32);
        for option in options {
            cut(out, option, 10_000);
        }
    });
}

/// The next statement can come: `I` outside of a transaction, `T` in one, `E` in one that failed.
pub fn ready(out: &mut BytesMut, status: u8) {
    short(out, b'Z', |out| out.put_u8(status));
}

/// A statement was prepared.
pub fn parse_complete(out: &mut BytesMut) {
    short(out, b'1', |_| ());
}

/// A portal has its values.
pub fn bind_complete(out: &mut BytesMut) {
    short(out, b'2', |_| ());
}

/// A statement or portal is closed.
pub fn close_complete(out: &mut BytesMut) {
    short(out, b'3', |_| ());
}

/// A statement or portal has no columns.
pub fn no_data(out: &mut BytesMut) {
    short(out, b'n', |_| ());
}

/// A text held no statement.
pub fn empty_query(out: &mut BytesMut) {
    short(out, b'I', |_| ());
}

/// A portal may have more rows than were wanted.
pub fn portal_suspended(out: &mut BytesMut) {
    short(out, b's', |_| ());
}

/// The types of a statement's parameters.
///
/// # Errors
/// [`Error::Protocol`] for more than 65,535.
pub fn parameter_description(out: &mut BytesMut, types: &[u32]) -> Result<()> {
    message(out, b't', |out| {
        out.put_u16(count(types.len())?);
        types.iter().for_each(|type_| out.put_u32(*type_));
        Ok(())
    })
}

/// The columns of a result.
///
/// # Errors
/// [`Error::Protocol`] for more than 65,535, or names that do not fit a message.
pub fn row_description(out: &mut BytesMut, columns: &[Column]) -> Result<()> {
    message(out, b'T', |out| {
        out.put_u16(count(columns.len())?);
        for column in columns {
            text(out, &column.name);
            out.put_u32(column.table);
            out.put_i16(column.attribute);
            out.put_u32(column.type_);
            out.put_i16(column.size);
            out.put_i32(column.modifier);
            out.put_i16(column.format);
        }
        Ok(())
    })
}

/// A statement was done: its tag (`INSERT 0 1`).
pub fn command_complete(out: &mut BytesMut, tag: &str) {
    short(out, b'C', |out| remark(out, tag));
}

/// A row: its values in their formats, None for NULL.
///
/// # Errors
/// [`Error::Protocol`] for more than 65,535 values, or ones that do not fit a message.
pub fn data_row(out: &mut BytesMut, values: &[Option<&[u8]>]) -> Result<()> {
    let bytes = values.iter().flatten().map(|value| value.len());
    let bytes = bytes.fold(4 * values.len(), usize::saturating_add);
    // Before anything is copied: a row can be large.
    size(bytes.saturating_add(6))?;
    message(out, b'D', |out| {
        out.put_u16(count(values.len())?);
        for value in values {
            match value {
                Some(value) => {
                    out.put_i32(size(value.len())?);
                    out.put_slice(value);
                }
                None => out.put_i32(-1),
            }
        }
        Ok(())
    })
}

/// COPY FROM STDIN begins; the formats of the whole and of its columns.
///
/// # Errors
/// [`Error::Protocol`] for more than 65,535 columns.
pub fn copy_in(out: &mut BytesMut, format: i8, columns: &[i16]) -> Result<()> {
    copy(out, b'G', format, columns)
}

/// COPY TO STDOUT begins; the formats of the whole and of its columns.
///
/// # Errors
/// [`Error::Protocol`] for more than 65,535 columns.
pub fn copy_out(out: &mut BytesMut, format: i8, columns: &[i16]) -> Result<()> {
    copy(out, b'H', format, columns)
}

/// Bytes of COPY TO STDOUT.
///
/// # Errors
/// [`Error::Protocol`] for bytes that do not fit a message.
pub fn copy_data(out: &mut BytesMut, bytes: &[u8]) -> Result<()> {
    size(bytes.len().saturating_add(4))?;
    message(out, b'd', |out| {
        out.put_slice(bytes);
        Ok(())
    })
}

/// COPY TO STDOUT has sent all.
pub fn copy_done(out: &mut BytesMut) {
    short(out, b'c', |_| ());
}

/// What NOTIFY of a process says.
pub fn notification(out: &mut BytesMut, process: u32, channel: &str, payload: &str) {
    short(out, b'A', |out| {
        out.put_u32(process);
        remark(out, channel);
        remark(out, payload);
    });
}

/// An error.
pub fn error(out: &mut BytesMut, fields: &Fields) {
    report(out, b'E', fields);
}

/// A notice.
pub fn notice(out: &mut BytesMut, fields: &Fields) {
    report(out, b'N', fields);
}

fn report(out: &mut BytesMut, tag: u8, fields: &Fields) {
    let field = |out: &mut BytesMut, letter: u8, value: &str| {
        out.put_u8(letter);
        remark(out, value);
    };
    short(out, tag, |out| {
        field(out, b'S', fields.severity);
        field(out, b'V', fields.severity);
        field(out, b'C', &fields.sqlstate);
        field(out, b'M', &fields.message);
        for (letter, value) in [(b'D', &fields.detail), (b'H', &fields.hint)] {
            if let Some(value) = value {
                field(out, letter, value);
            }
        }
        if let Some(position) = fields.position {
            field(out, b'P', &position.to_string());
        }
        let more = fields.more.iter();
        // Anything but a letter could end the message early.
        for (letter, value) in more
            .filter(|(letter, _)| letter.is_ascii_alphabetic())
            .take(MOST_FIELDS)
        {
            field(out, *letter, value);
        }
        out.put_u8(0);
    });
}

fn sasl(out: &mut BytesMut, step: u32, data: &[u8]) -> Result<()> {
    size(data.len().saturating_add(8))?;
    message(out, b'R', |out| {
        out.put_u32(step);
        out.put_slice(data);
        Ok(())
    })
}

fn copy(out: &mut BytesMut, tag: u8, format: i8, columns: &[i16]) -> Result<()> {
    message(out, tag, |out| {
        out.put_i8(format);
        out.put_u16(count(columns.len())?);
        columns.iter().for_each(|format| out.put_i16(*format));
        Ok(())
    })
}

/// A message whose length its callers bound.
fn short(out: &mut BytesMut, tag: u8, body: impl FnOnce(&mut BytesMut)) {
    let begin = begin(out, tag);
    body(out);
    let length = (out.len() - begin - 1) as u32;
    out[begin + 1..begin + 5].copy_from_slice(&length.to_be_bytes());
}

/// A message, or nothing if it cannot be.
fn message(
    out: &mut BytesMut,
    tag: u8,
    body: impl FnOnce(&mut BytesMut) -> Result<()>,
) -> Result<()> {
    let begin = begin(out, tag);
    let length = body(out).and_then(|()| size(out.len() - begin - 1));
    match length {
        Ok(length) => {
            out[begin + 1..begin + 5].copy_from_slice(&length.to_be_bytes());
            Ok(())
        }
        Err(error) => {
            out.truncate(begin);
            Err(error)
        }
    }
}

fn begin(out: &mut BytesMut, tag: u8) -> usize {
    let begin = out.len();
    out.put_u8(tag);
    out.put_u32(0);
    begin
}

fn size(length: usize) -> Result<i32> {
    i32::try_from(length).map_err(|_| Error::protocol("a message would be longer than 2 GiB"))
}

fn count(count: usize) -> Result<u16> {
    u16::try_from(count).map_err(|_| Error::protocol("a message would have more than 65,535 parts"))
}

/// A text up to its first NUL, and the NUL.
fn text(out: &mut BytesMut, text: &str) {
    cut(out, text, text.len());
}

/// A text that tells about something.
fn remark(out: &mut BytesMut, text: &str) {
    cut(out, text, MOST_TEXT);
}

fn cut(out: &mut BytesMut, text: &str, most: usize) {
    let text = text.split('\0').next().unwrap_or_default();
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    out.put_slice(&text.as_bytes()[..end]);
    out.put_u8(0);
}
