//! Data of COPY … TO STDOUT as a server sends it: a `CopyData` message for each row, of Arrow
//! columns.

use crate::copied::{CopyLayout, HEAD};
use crate::data_rows::{own, Form};
use crate::error::{Error, Result};
use crate::oid::Oid;
use crate::values::Writer;
use arrow_array::{Array, ArrayRef};

/// What is sent, batch by batch.
#[derive(Debug)]
pub struct CopyRows {
    layout: CopyLayout,
    /// The line with the names, if there is one and it was not sent.
    names: Option<Vec<String>>,
    begun: bool,
}

impl CopyRows {
    /// In a format; `names` go first, if they are given.
    #[must_use]
    pub fn new(layout: CopyLayout, names: Option<Vec<String>>) -> Self {
        Self {
            layout,
            names,
            begun: false,
        }
    }

    /// The messages of so many rows.
    ///
    /// # Errors
    /// As [`crate::data_rows`].
    pub fn messages(&mut self, columns: &[(ArrayRef, Oid, Form)], count: usize) -> Result<Vec<u8>> {
        if columns.iter().any(|(column, _, _)| column.len() != count) {
            return Err(Error::value("columns of different lengths"));
        }
        let writers = columns.iter().map(|(column, type_, form)| {
            let array: &dyn Array = column.as_ref();
            Ok((array, own(array, *type_, *form)?))
        });
        let writers = writers.collect::<Result<Vec<_>>>()?;
        let mut out = Vec::new();
        self.names_line(&mut out)?;
        for row in 0..count {
            let start = begin(&mut out);
            match self.layout {
                CopyLayout::Binary => {
                    self.head(&mut out);
                    tuple(&writers, row, &mut out)?;
                }
                CopyLayout::Text => text(&writers, row, &mut out)?,
                CopyLayout::Csv => csv(&writers, row, &mut out)?,
            }
            end(start, &mut out)?;
        }
        Ok(out)
    }

    /// The messages behind the last rows.
    ///
    /// # Errors
    /// As [`crate::data_rows`].
    pub fn end(mut self) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.names_line(&mut out)?;
        if self.layout == CopyLayout::Binary {
            let start = begin(&mut out);
            self.head(&mut out);
            out.extend_from_slice(&(-1_i16).to_be_bytes());
            end(start, &mut out)?;
        }
        Ok(out)
    }

    fn head(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.begun, true) {
            out.extend_from_slice(HEAD);
        }
    }

    fn names_line(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let Some(names) = self.names.take() else {
            return Ok(());
        };
        let start = begin(out);
        self.line_of(&names, out);
        end(start, out)
    }

    fn line_of(&self, names: &[String], out: &mut Vec<u8>) {
        for (at, name) in names.iter().enumerate() {
            let begun = next_value(at, self.layout, out);
            out.extend_from_slice(name.as_bytes());
            if self.layout == CopyLayout::Csv {
                quote(begun, names.len() == 1, out);
            } else {
                escape(begun, out);
            }
        }
        out.push(b'\n');
    }
}

type Columns<'a> = [(&'a dyn Array, Writer<'a>)];

fn begin(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(b"d\0\0\0\0");
    start
}

fn end(start: usize, out: &mut [u8]) -> Result<()> {
    let length = i32::try_from(out.len() - start - 1)
        .map_err(|_| Error::value("a row is longer than a message can be"))?;
    if let Some(head) = out.get_mut(start + 1..start + 5) {
        head.copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

fn tuple(columns: &Columns<'_>, row: usize, out: &mut Vec<u8>) -> Result<()> {
    let width = i16::try_from(columns.len())
        .map_err(|_| Error::value("more columns than a row can have"))?;
    out.extend_from_slice(&width.to_be_bytes());
    for (column, write) in columns {
        crate::arrays::sized(*column, row, write, out)?;
    }
    Ok(())
}

/// What separates a value from the one before; where it begins.
fn next_value(at: usize, layout: CopyLayout, out: &mut Vec<u8>) -> usize {
    if at > 0 {
        let is_csv = layout == CopyLayout::Csv;
        out.push(if is_csv { b',' } else { b'\t' });
    }
    out.len()
}

fn text(columns: &Columns<'_>, row: usize, out: &mut Vec<u8>) -> Result<()> {
    for (at, (column, write)) in columns.iter().enumerate() {
        let begun = next_value(at, CopyLayout::Text, out);
        if column.is_null(row) {
            out.extend_from_slice(b"\\N");
        } else {
            write(row, out)?;
            escape(begun, out);
        }
    }
    out.push(b'\n');
    Ok(())
}

fn csv(columns: &Columns<'_>, row: usize, out: &mut Vec<u8>) -> Result<()> {
    for (at, (column, write)) in columns.iter().enumerate() {
        let begun = next_value(at, CopyLayout::Csv, out);
        if !column.is_null(row) {
            write(row, out)?;
            quote(begun, columns.len() == 1, out);
        }
    }
    out.push(b'\n');
    Ok(())
}

/// The letter that stands for a byte behind a backslash.
fn letter(byte: u8) -> Option<u8> {
    Some(match byte {
        0x08 => b'b',
        0x0C => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x0B => b'v',
        b'\\' => b'\\',
        _ => return None,
    })
}

fn escape(begun: usize, out: &mut Vec<u8>) {
    let Some(first) = out[begun..].iter().position(|b| letter(*b).is_some()) else {
        return;
    };
    let rest = out.split_off(begun + first);
    for byte in rest {
        match letter(byte) {
            Some(letter) => out.extend_from_slice(&[b'\\', letter]),
            None => out.push(byte),
        }
    }
}

/// Puts a value in quotes where it would be read otherwise without, as NULL or as the end.
fn quote(begun: usize, is_alone: bool, out: &mut Vec<u8>) {
    let value = &out[begun..];
    let needs = value.is_empty()
        || (is_alone && value == b"\\.")
        || value.iter().any(|byte| b",\"\n\r".contains(byte));
    if needs {
        let value = out.split_off(begun);
        out.push(b'"');
        for byte in value {
            if byte == b'"' {
                out.push(b'"');
            }
            out.push(byte);
        }
        out.push(b'"');
    }
}
