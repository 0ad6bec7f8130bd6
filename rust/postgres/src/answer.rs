//! What a server says of a statement, and what came of it.

use crate::error::{Error, Result};
use crate::oid::Oid;
use crate::rows::Rows;
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{DataRowBody, RowDescriptionBody};

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// The table it comes from as it is, or 0.
    pub table: Oid,
    /// Its number in that table, or 0.
    pub attribute: i16,
    /// Its type.
    pub type_: Oid,
    /// The type's modifier, such as a numeric's precision, or −1.
    pub modifier: i32,
}

/// What the server says of a statement without running it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// The types of `$1`, `$2` …, as inferred.
    pub parameters: Vec<Oid>,
    /// The answer's columns; none of a statement that answers none.
    pub columns: Vec<Field>,
}

/// What came of a statement.
pub struct Reply {
    /// Its rows.
    pub rows: Rows,
    /// The command's tag, such as `INSERT 0 1`; "" of an empty statement.
    pub tag: String,
    /// Its rows as messages, where they are relayed.
    pub relayed: Relayed,
}

/// Rows as messages of the server's.
#[derive(Default)]
pub struct Relayed {
    /// All of them.
    pub messages: BytesMut,
    /// Where each ends.
    pub ends: Vec<usize>,
}

/// Which statement's rows are relayed, in which formats, and how many of its first columns.
#[derive(Clone, Copy)]
pub struct Relay<'a> {
    /// The statement's place among those that are sent.
    pub at: usize,
    /// Of all of its columns, of one for all, or none for texts.
    pub formats: &'a [i16],
    /// So many columns at the end are left out.
    pub hidden: usize,
}

impl Relayed {
    /// A row of so many columns, of which the last ones may be hidden.
    pub(crate) fn push(
        &mut self,
        body: &DataRowBody,
        columns: usize,
        relay: Relay<'_>,
    ) -> Result<()> {
        let wrong = || Error::Protocol("a row of another width, or too long".to_owned());
        let shown = columns.checked_sub(relay.hidden).ok_or_else(wrong)?;
        let (mut count, mut end) = (0, 0);
        let mut ranges = body.ranges();
        while let Some(range) = ranges.next().map_err(Error::protocol)? {
            count += 1;
            // A value follows its length, which NULL has alone.
            let size = range.map_or(0, |range| range.len());
            end += if count > shown { 0 } else { 4 + size };
        }
        let values = body.buffer().get(..end).ok_or_else(wrong)?;
        let width = u16::try_from(shown).ok().filter(|_| count == columns);
        let length = i32::try_from(end + 6).map_err(|_| wrong())?;
        self.messages.extend_from_slice(b"D");
        self.messages.extend_from_slice(&length.to_be_bytes());
        self.messages
            .extend_from_slice(&width.ok_or_else(wrong)?.to_be_bytes());
        self.messages.extend_from_slice(values);
        self.ends.push(self.messages.len());
        Ok(())
    }
}

impl Reply {
    /// How many rows the statement touched, by its tag.
    pub fn count(&self) -> u64 {
        self.tag
            .rsplit(' ')
            .next()
            .and_then(|word| word.parse().ok())
            .unwrap_or(0)
    }
}

pub(crate) fn fields(body: &RowDescriptionBody) -> Result<Vec<Field>> {
    body.fields()
        .map(|field| {
            Ok(Field {
                name: field.name().to_owned(),
                table: field.table_oid(),
                attribute: field.column_id(),
                type_: field.type_oid(),
                modifier: field.type_modifier(),
            })
        })
        .collect()
        .map_err(Error::protocol)
}
