//! Arrow arrays of what tiles held.

use super::frame::BITMAP;
use super::unstring::{Reader, Sink};
use super::TILE_ROWS;
use crate::error::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::ByteArrayType;
use arrow_array::{make_array, Array, ArrayRef, BooleanArray, GenericByteArray};
use arrow_array::{BinaryViewArray, StringViewArray, UInt64Array};
use arrow_buffer::{
    ArrowNativeType, BooleanBuffer, BooleanBufferBuilder, Buffer, MutableBuffer, NullBuffer,
    OffsetBuffer,
};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use std::sync::Arc;

fn total(rows: &[u16]) -> usize {
    rows.iter().map(|&rows| usize::from(rows)).sum()
}

/// Whether every tile but the last one is full.
fn full(rows: &[u16]) -> bool {
    let but_last = rows.split_last().map_or(&[][..], |(_, rest)| rest);
    but_last.iter().all(|&rows| usize::from(rows) == TILE_ROWS)
}

/// Values of tiles that lie 1,024 rows apart, without gaps.
pub(crate) fn closed_up(mut values: MutableBuffer, rows: &[u16], width: usize) -> Buffer {
    if !full(rows) {
        let mut end = 0;
        for (tile, &rows) in rows.iter().enumerate() {
            let (start, bytes) = (tile * TILE_ROWS * width, usize::from(rows) * width);
            values.copy_within(start..start + bytes, end);
            end += bytes;
        }
    }
    values.truncate(total(rows) * width);
    values.into()
}

/// One bit for each row.
fn bits(tiles: &[[u8; BITMAP]], rows: &[u16]) -> BooleanBuffer {
    if full(rows) {
        let bytes = Buffer::from_slice_ref(tiles.as_flattened());
        return BooleanBuffer::new(bytes, 0, total(rows));
    }
    let mut bits = BooleanBufferBuilder::new(total(rows));
    for (tile, &rows) in tiles.iter().zip(rows) {
        bits.append_packed_range(0..usize::from(rows), tile);
    }
    bits.finish()
}

/// The validity of all rows; `None` if all are valid.
pub(crate) fn nulls(tiles: &[[u8; BITMAP]], rows: &[u16], any: bool) -> Option<NullBuffer> {
    let nulls = any.then(|| NullBuffer::new(bits(tiles, rows)));
    nulls.filter(|nulls| nulls.null_count() > 0)
}

/// An array of values of one width.
pub(crate) fn fixed(
    data_type: &DataType,
    rows: &[u16],
    values: Buffer,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let data = ArrayData::builder(data_type.clone())
        .len(total(rows))
        .add_buffer(values)
        .nulls(nulls)
        .build()
        .map_err(|e| Error::value(e.to_string()))?;
    Ok(make_array(data))
}

pub(crate) fn bools(values: &[[u8; BITMAP]], rows: &[u16], nulls: Option<NullBuffer>) -> ArrayRef {
    Arc::new(BooleanArray::new(bits(values, rows), nulls))
}

/// What a task read.
pub(crate) struct Group {
    sink: Sink,
    valid: Vec<[u8; BITMAP]>,
    rows: Vec<u16>,
}

impl Group {
    pub(crate) fn new(mut reader: Reader<'_>, valid: Vec<[u8; BITMAP]>, rows: Vec<u16>) -> Self {
        let sink = std::mem::replace(&mut reader.sink, Sink::Bytes(Vec::new(), Vec::new()));
        Self { sink, valid, rows }
    }
}

/// All groups as one array, and the rows of each tile.
pub(crate) fn strings(data_type: &DataType, groups: Vec<Group>) -> Result<(ArrayRef, Vec<u16>)> {
    let rows: Vec<u16> = groups.iter().flat_map(|g| g.rows.iter().copied()).collect();
    let valid: Vec<_> = groups
        .iter()
        .flat_map(|g| g.valid.iter().copied())
        .collect();
    let nulls = nulls(&valid, &rows, true);
    let (mut parts, mut lengths, mut elements) = (Vec::new(), Vec::new(), Vec::new());
    for group in groups {
        match group.sink {
            Sink::Bytes(part, own) => {
                parts.push(part);
                lengths.push(own);
            }
            Sink::Fixed(part, _) => parts.push(part),
            Sink::Elements(builder) => elements.push(builder.finish()?),
        }
    }
    if !elements.is_empty() {
        let arrays: Vec<&dyn Array> = elements.iter().map(AsRef::as_ref).collect();
        let all = arrow_select::concat::concat(&arrays);
        return Ok((all.map_err(|e| Error::value(e.to_string()))?, rows));
    }
    let array = match data_type {
        DataType::Utf8 => bytes::<arrow_array::types::Utf8Type>(&parts, &lengths, nulls)?,
        DataType::Binary => bytes::<arrow_array::types::BinaryType>(&parts, &lengths, nulls)?,
        DataType::LargeUtf8 => bytes::<arrow_array::types::LargeUtf8Type>(&parts, &lengths, nulls)?,
        DataType::LargeBinary => {
            bytes::<arrow_array::types::LargeBinaryType>(&parts, &lengths, nulls)?
        }
        DataType::Utf8View => {
            let array = bytes::<arrow_array::types::Utf8Type>(&parts, &lengths, nulls)?;
            Arc::new(StringViewArray::from(array.as_string::<i32>()))
        }
        DataType::BinaryView => {
            let array = bytes::<arrow_array::types::BinaryType>(&parts, &lengths, nulls)?;
            Arc::new(BinaryViewArray::from(array.as_binary::<i32>()))
        }
        _ if rows.is_empty() => arrow_array::new_empty_array(data_type),
        _ => fixed(data_type, &rows, joined(&parts), nulls)?,
    };
    Ok((array, rows))
}

fn joined(parts: &[Vec<u8>]) -> Buffer {
    let mut all = MutableBuffer::new(parts.iter().map(Vec::len).sum());
    parts.iter().for_each(|part| all.extend_from_slice(part));
    all.into()
}

fn bytes<T: ByteArrayType>(
    parts: &[Vec<u8>],
    lengths: &[Vec<u32>],
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let long = || Error::value("more than 2 GiB of values at once: open fewer tiles at a time");
    let all = joined(parts);
    T::Offset::from_usize(all.len()).ok_or_else(long)?;
    let lengths = lengths.iter().flatten().map(|&length| length as usize);
    let offsets = OffsetBuffer::<T::Offset>::from_lengths(lengths);
    let array = GenericByteArray::<T>::try_new(offsets, all, nulls);
    let text = "a tile is not of the column's type";
    Ok(Arc::new(array.map_err(|_| Error::verify(text))?))
}

/// Some rows of an array.
pub(crate) fn taken(values: &ArrayRef, wanted: Vec<u64>) -> Result<ArrayRef> {
    let wanted = UInt64Array::from(wanted);
    let taken = arrow_select::take::take(values.as_ref(), &wanted, None);
    taken.map_err(|e| Error::value(e.to_string()))
}
