//! Rows for `COPY … FROM STDIN (FORMAT binary)`.

use crate::arrays::sized;
use crate::copied::HEAD;
use crate::error::{Error, Result};
use crate::oid::Oid;
use crate::values::writer;
use arrow_array::RecordBatch;

/// The binary format of COPY, for columns of these types.
#[derive(Debug)]
pub struct CopyFormat {
    types: Vec<Oid>,
    begun: bool,
    /// The size of the last batch, which the next one will have about.
    before: usize,
}

impl CopyFormat {
    /// Of a table whose columns have these types.
    pub fn new(types: Vec<Oid>) -> Self {
        Self {
            types,
            begun: false,
            before: 0,
        }
    }

    /// The bytes of a batch, behind the head if it is the first.
    ///
    /// # Errors
    /// [`Error::Value`] for columns that do not fit the types, or values that do not.
    pub fn batch(&mut self, rows: &RecordBatch) -> Result<Vec<u8>> {
        let width = i16::try_from(self.types.len())
            .ok()
            .filter(|_| rows.num_columns() == self.types.len())
            .ok_or_else(|| Error::value("rows of another width than the table's"))?;
        let columns = rows.columns().iter().zip(&self.types);
        let columns = columns
            .map(|(column, type_)| Ok((column, writer(column, *type_)?)))
            .collect::<Result<Vec<_>>>()?;
        let mut out = Vec::with_capacity(self.before);
        if !std::mem::replace(&mut self.begun, true) {
            out.extend_from_slice(HEAD);
        }
        for row in 0..rows.num_rows() {
            out.extend_from_slice(&width.to_be_bytes());
            for (column, write) in &columns {
                sized(column, row, write, &mut out)?;
            }
        }
        self.before = out.len();
        Ok(out)
    }

    /// The bytes behind the last batch.
    pub fn end(self) -> Vec<u8> {
        let mut out = if self.begun {
            Vec::new()
        } else {
            HEAD.to_vec()
        };
        out.extend_from_slice(&(-1_i16).to_be_bytes());
        out
    }
}
