//! Codes as they are stored: under the pads of their rows where their layer is closed.

use super::{Interval, Onion};
use crate::error::{Error, Result};
use crate::keyring::KeyRing;
use crate::keys::random;
use crate::recipe::{Rows, Step};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BinaryArray, FixedSizeBinaryArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::DataType;
use std::sync::Arc;

type Id = (u32, u32, u32);

/// Bytes of the tag of a key.
const TAG: i32 = 16;

/// The equality codes of a column.
pub struct EqStep {
    /// Table, column, generation.
    pub id: Id,
    /// The join group; empty where there is none.
    pub group: String,
    /// The domain of the values.
    pub domain: String,
    /// Whether the codes are those of the group.
    pub joined: bool,
    /// Whether the layer of the rows is there.
    pub closed: bool,
}

impl Step for EqStep {
    fn seal(&self, ring: &KeyRing, rows: &Rows<'_>) -> Result<Vec<ArrayRef>> {
        let (_, values) = rows.column()?;
        let codes = if self.joined {
            ring.eq_join_codes(&self.group, &self.domain, values)?
        } else {
            ring.eq_codes(self.id, &self.group, &self.domain, values)?
        };
        let layer = self.closed.then_some(Onion::Eq);
        Ok(vec![stored(ring, self.id, layer, codes, rows)?])
    }
}

/// The order codes of a column.
pub struct OrdStep {
    /// Table, column, generation.
    pub id: Id,
    /// The join group; empty where there is none.
    pub group: String,
    /// The domain of the values.
    pub domain: String,
    /// The least value.
    pub low: i128,
    /// Of how many bits the interval is.
    pub bits: u32,
    /// Whether the layer of the rows is there.
    pub closed: bool,
}

impl Step for OrdStep {
    fn seal(&self, ring: &KeyRing, rows: &Rows<'_>) -> Result<Vec<ArrayRef>> {
        let (_, values) = rows.column()?;
        let interval = Interval {
            domain: &self.domain,
            low: self.low,
            bits: self.bits,
        };
        let codes = ring.ord_codes(self.id, &self.group, interval, values)?;
        let layer = self.closed.then_some(Onion::Ord);
        Ok(vec![stored(ring, self.id, layer, codes, rows)?])
    }
}

fn stored(
    ring: &KeyRing,
    id: Id,
    layer: Option<Onion>,
    codes: ArrayRef,
    rows: &Rows<'_>,
) -> Result<ArrayRef> {
    match layer {
        Some(onion) => ring.close_codes(id, rows.epochs, onion, &codes, rows.row_ids),
        None => Ok(codes),
    }
}

/// The tags of a key (`spec/key.md`), of one or several columns.
pub struct TagStep {
    /// Of which key.
    pub label: String,
    /// A domain for each of its columns.
    pub domains: Vec<String>,
}

impl Step for TagStep {
    /// A key with a NULL is none: its tag is drawn, and looks like any other.
    fn seal(&self, ring: &KeyRing, rows: &Rows<'_>) -> Result<Vec<ArrayRef>> {
        let columns: Vec<ArrayRef> = rows.columns.iter().map(|c| Arc::clone(&c.1)).collect();
        let tags = ring.key_tags(&self.label, &self.domains, &columns)?;
        let Some(nulls) = tags.nulls().filter(|nulls| nulls.null_count() > 0) else {
            return Ok(vec![tags]);
        };
        let known = tags.as_fixed_size_binary();
        let mut bytes = vec![[0; TAG as usize]; tags.len()];
        random(bytes.as_flattened_mut())?;
        for row in nulls.valid_indices() {
            bytes[row].copy_from_slice(known.value(row));
        }
        Ok(vec![of_bytes(bytes, None)?])
    }
}

impl KeyRing {
    /// The tags of a key, by the values of its columns: 16 bytes; NULL where one of these is.
    ///
    /// # Errors
    /// [`Error::Value`] for values that are none of their domains, and columns of different
    /// lengths.
    pub fn key_tags(
        &self,
        label: &str,
        domains: &[String],
        columns: &[ArrayRef],
    ) -> Result<ArrayRef> {
        let rows = columns.first().map_or(0, Array::len);
        let fit = columns.iter().all(|column| column.len() == rows);
        if columns.is_empty() || columns.len() != domains.len() || !fit {
            return Err(Error::value("a key has a value for each of its columns"));
        }
        let of_values = format!("{label}:value");
        let codes = domains.iter().zip(columns);
        let codes = codes.map(|(domain, column)| self.eq_join_codes(&of_values, domain, column));
        let codes = codes.collect::<Result<Vec<ArrayRef>>>()?;
        let nulls = codes.iter().fold(None, |nulls, part| {
            NullBuffer::union(nulls.as_ref(), part.nulls())
        });
        let width: usize = codes.iter().map(width_of).sum();
        let mut bytes = Vec::with_capacity(rows * width);
        for row in 0..rows {
            codes.iter().for_each(|part| write(part, row, &mut bytes));
        }
        let offsets = OffsetBuffer::from_repeated_length(width, rows);
        let keys = BinaryArray::try_new(offsets, Buffer::from_vec(bytes), nulls);
        let keys = keys.map_err(|error| Error::value(error.to_string()))?;
        self.eq_join_codes(label, "blob", &keys)
    }
}

fn width_of(codes: &ArrayRef) -> usize {
    match codes.data_type() {
        DataType::Int64 => 8,
        _ => TAG as usize,
    }
}

/// Codes as the specification orders their bytes.
fn write(codes: &ArrayRef, row: usize, bytes: &mut Vec<u8>) {
    match codes.data_type() {
        DataType::Int64 => {
            let code = codes.as_primitive::<Int64Type>().value(row);
            bytes.extend_from_slice(&code.to_le_bytes());
        }
        _ => bytes.extend_from_slice(codes.as_fixed_size_binary().value(row)),
    }
}

fn of_bytes(bytes: Vec<[u8; TAG as usize]>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let bytes = Buffer::from_vec(bytes.into_flattened());
    let array = FixedSizeBinaryArray::try_new(TAG, bytes, nulls);
    Ok(Arc::new(
        array.map_err(|error| Error::value(error.to_string()))?,
    ))
}
