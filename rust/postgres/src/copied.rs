//! Data of COPY … FROM STDIN as Arrow columns, where each value of it is one that PostgreSQL takes
//! as it is and prints so; None of any other data, which PostgreSQL reads or refuses.

use crate::copy_columns::{CopyColumn, Reading};
use arrow_array::ArrayRef;

/// A format, with its default characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyLayout {
    /// Lines of values between tabs; `\N` is NULL.
    Text,
    /// Lines of values between commas, some in quotes; nothing is NULL.
    Csv,
    /// A head, values with their lengths, and −1.
    Binary,
}

/// Head of the binary format without flags and extension.
pub(crate) const HEAD: &[u8] = b"PGCOPY\n\xFF\r\n\0\0\0\0\0\0\0\0\0";
const END: &[u8] = b"\xFF\xFF";

/// The columns of data, all rows of which are whole.
#[must_use]
pub fn copied(data: &[u8], layout: CopyLayout, columns: &[CopyColumn]) -> Option<Vec<ArrayRef>> {
    let mut reading = columns
        .iter()
        .map(|column| Reading::of(*column))
        .collect::<Option<Vec<_>>>()?;
    (!reading.is_empty()).then_some(())?;
    if layout == CopyLayout::Binary {
        binary(data, &mut reading)?;
    } else {
        // Other ends of lines PostgreSQL knows by the first of them.
        (!data.contains(&b'\r') && !data.contains(&0)).then_some(())?;
        let mut rest = std::str::from_utf8(data).ok()?;
        let mut scratch = String::new();
        while !rest.is_empty() {
            // The end of all data, or a value that begins so.
            (!rest.starts_with("\\.")).then_some(())?;
            rest = if layout == CopyLayout::Text {
                line(rest, &mut reading, &mut scratch)?
            } else {
                csv_line(rest, &mut reading, &mut scratch)?
            };
        }
    }
    Some(reading.iter_mut().map(Reading::finish).collect())
}

/// Reads a line; what is behind it.
fn line<'a>(text: &'a str, columns: &mut [Reading], scratch: &mut String) -> Option<&'a str> {
    let (mut rest, last) = (text, columns.len() - 1);
    for (at, column) in columns.iter_mut().enumerate() {
        let (end, is_escaped) = value_end(rest.as_bytes());
        let (value, behind) = rest.split_at_checked(end)?;
        if value == "\\N" {
            column.null();
        } else if is_escaped {
            unescaped(value, scratch)?;
            column.text(scratch)?;
        } else {
            column.text(value)?;
        }
        rest = behind_value(behind, '\t', at == last)?;
    }
    Some(rest)
}

/// What follows a value: a delimiter, or at the end of a line a line feed or nothing.
fn behind_value(text: &str, delimiter: char, is_last: bool) -> Option<&str> {
    match (text.is_empty(), is_last) {
        (true, true) => Some(text),
        (false, true) => text.strip_prefix('\n'),
        (_, false) => text.strip_prefix(delimiter),
    }
}

/// Where a value ends, and whether there is a backslash in it.
fn value_end(bytes: &[u8]) -> (usize, bool) {
    let (mut at, mut is_escaped) = (0, false);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\t' | b'\n' => break,
            b'\\' => {
                is_escaped = true;
                at += 2;
            }
            _ => at += 1,
        }
    }
    (at, is_escaped)
}

/// A value without its escapes; None of a character by its number.
fn unescaped(value: &str, out: &mut String) -> Option<()> {
    out.clear();
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        out.push(match characters.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'x' | '0'..='7' | '.' => return None,
            other => other,
        });
    }
    Some(())
}

fn csv_line<'a>(text: &'a str, columns: &mut [Reading], scratch: &mut String) -> Option<&'a str> {
    let (mut rest, last) = (text, columns.len() - 1);
    for (at, column) in columns.iter_mut().enumerate() {
        let behind = if let Some(inner) = rest.strip_prefix('"') {
            let (doubled, end) = quote_end(inner.as_bytes())?;
            let (value, behind) = (inner.get(..end)?, inner.get(end + 1..)?);
            if doubled {
                scratch.clear();
                scratch.push_str(&value.replace("\"\"", "\""));
                column.text(scratch)?;
            } else {
                column.text(value)?;
            }
            behind
        } else {
            let end = rest.bytes().position(|byte| b",\n\"".contains(&byte));
            let (value, behind) = rest.split_at(end.unwrap_or(rest.len()));
            if value.is_empty() {
                column.null();
            } else {
                column.text(value)?;
            }
            behind
        };
        rest = behind_value(behind, ',', at == last)?;
    }
    Some(rest)
}

/// Where the quote is that ends a value, and whether others are doubled before it.
fn quote_end(bytes: &[u8]) -> Option<(bool, usize)> {
    let (mut at, mut doubled) = (0, false);
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == b'"')?;
        if bytes.get(at + 1) != Some(&b'"') {
            return Some((doubled, at));
        }
        doubled = true;
        at += 2;
    }
}

fn binary(data: &[u8], columns: &mut [Reading]) -> Option<()> {
    let mut rest = data.strip_prefix(HEAD)?;
    while rest != END {
        let width = i16::from_be_bytes(*rest.first_chunk::<2>()?);
        (usize::try_from(width).ok()? == columns.len()).then_some(())?;
        rest = &rest[2..];
        for column in &mut *columns {
            let length = i32::from_be_bytes(*rest.first_chunk::<4>()?);
            rest = &rest[4..];
            if length == -1 {
                column.null();
                continue;
            }
            let (value, behind) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            column.binary(value)?;
            rest = behind;
        }
    }
    Some(())
}

/// Where the last whole row ends of binary rows behind a head, and whether −1 follows, which is
/// part of it then.
#[must_use]
pub fn rows_end(rows: &[u8]) -> (usize, bool) {
    let mut end = 0;
    loop {
        let Some(width) = rows.get(end..).and_then(|rest| rest.first_chunk::<2>()) else {
            return (end, false);
        };
        let width = i16::from_be_bytes(*width);
        if width < 0 {
            return (end + 2, true);
        }
        let mut at = end + 2;
        for _ in 0..width {
            let Some(length) = rows.get(at..).and_then(|rest| rest.first_chunk::<4>()) else {
                return (end, false);
            };
            let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
            at = at.saturating_add(4).saturating_add(length);
        }
        if at > rows.len() {
            return (end, false);
        }
        end = at;
    }
}

#[cfg(test)]
#[path = "tests_of_copied.rs"]
mod tests;
