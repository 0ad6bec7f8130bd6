//! Layers of codes that the client has opened (`spec/onion.md`).

use crate::columns::Blobs;
use crate::error::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, Int64Array};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::DataType;
use louver_primitives::onion::{Layer, LAYER_KEY};
use louver_primitives::prp::{Prp128, Prp64, KEY};
use rayon::prelude::*;
use std::sync::Arc;

/// Rows a task takes.
const CHUNK: usize = 8192;
/// Bytes of a wide code.
const WIDE: i32 = 16;
/// The first byte of a key that adjusts codes to those of a group.
const VERSION: u8 = 1;

/// Codes without the pads of their rows, each under the key of its row's epoch; NULL where the code
/// is 0, and where an argument is NULL.
///
/// # Errors
/// Other types, lengths that differ, a malformed key.
pub fn onion_open(codes: &dyn Array, row_ids: &dyn Array, key: &dyn Array) -> Result<ArrayRef> {
    let (codes, ids) = (bigints(codes, "codes")?, bigints(row_ids, "row ids")?);
    let layers = Layers::new(codes.len(), ids, key)?;
    let opened = each(codes.len(), |row| {
        let code = codes.value(row).cast_unsigned();
        let open = |layer: &Layer| layer.narrow(ids.value(row), code).cast_signed();
        layers.get(row).map_or(0, open)
    });
    let live = live(&[codes, ids, key], |row| opened[row] != 0);
    Ok(Arc::new(Int64Array::new(opened.into(), live)))
}

/// The same of wide codes, which are UUIDs to the server.
///
/// # Errors
/// As [`onion_open`].
pub fn onion_open_wide(
    codes: &dyn Array,
    row_ids: &dyn Array,
    key: &dyn Array,
) -> Result<ArrayRef> {
    let (read, ids) = (uuids(codes)?, bigints(row_ids, "row ids")?);
    let layers = Layers::new(codes.len(), ids, key)?;
    let opened = each(codes.len(), |row| {
        let open = |layer: &Layer| layer.wide(ids.value(row), number(read, row));
        layers.get(row).map_or(0, open)
    });
    let live = live(&[codes, ids, key], |row| opened[row] != 0);
    wide(&opened, live)
}

/// The codes of a group from those of a column.
///
/// # Errors
/// As [`onion_open`].
pub fn onion_join(codes: &dyn Array, key: &dyn Array) -> Result<ArrayRef> {
    let read = bigints(codes, "codes")?;
    let Some(key) = constant_key(codes.len(), key)? else {
        return Ok(Arc::new(Int64Array::new_null(codes.len())));
    };
    let prp = Prp64::new(key);
    let mut adjusted = each(codes.len(), |row| read.value(row).cast_unsigned());
    let chunks = adjusted.par_chunks_mut(CHUNK);
    chunks.for_each(|chunk| prp.decrypt(chunk));
    let adjusted: Vec<i64> = adjusted.into_iter().map(u64::cast_signed).collect();
    let live = live(&[codes], |_| true);
    Ok(Arc::new(Int64Array::new(adjusted.into(), live)))
}

/// The same of wide codes.
///
/// # Errors
/// As [`onion_open`].
pub fn onion_join_wide(codes: &dyn Array, key: &dyn Array) -> Result<ArrayRef> {
    let read = uuids(codes)?;
    let Some(key) = constant_key(codes.len(), key)? else {
        return wide(&[], Some(NullBuffer::new_null(codes.len())));
    };
    let prp = Prp128::new(key);
    let mut adjusted = each(codes.len(), |row| number(read, row));
    let chunks = adjusted.par_chunks_mut(CHUNK);
    chunks.for_each(|chunk| prp.decrypt(chunk));
    wide(&adjusted, live(&[codes], |_| true))
}

fn bigints<'a>(array: &'a dyn Array, what: &str) -> Result<&'a Int64Array> {
    match array.data_type() {
        DataType::Int64 => Ok(array.as_primitive::<Int64Type>()),
        other => Err(Error::new(format!(
            "{what} are BIGINT, not of Arrow type {other}"
        ))),
    }
}

fn uuids(array: &dyn Array) -> Result<&FixedSizeBinaryArray> {
    match array.data_type() {
        DataType::FixedSizeBinary(WIDE) => Ok(array.as_fixed_size_binary()),
        other => Err(Error::new(format!(
            "wide codes are UUID, not of Arrow type {other}"
        ))),
    }
}

fn number(codes: &FixedSizeBinaryArray, row: usize) -> u128 {
    let bytes = codes.value(row).first_chunk();
    bytes.map_or(0, |bytes| u128::from_be_bytes(*bytes))
}

/// The layers of rows: of neighbours mostly one.
struct Layers {
    /// The first row of each, ascending; `None` where the key is NULL.
    runs: Vec<(usize, Option<Layer>)>,
}

impl Layers {
    fn new(rows: usize, row_ids: &Int64Array, key: &dyn Array) -> Result<Self> {
        let keys = Blobs::new(key)?;
        if row_ids.len() != rows || keys.len() != rows {
            return Err(Error::new("the columns differ in length"));
        }
        let mut runs: Vec<(usize, Option<Layer>)> = Vec::new();
        let mut last = None;
        for row in 0..rows {
            let key = keys.get(row);
            if last == Some(key) {
                continue;
            }
            let bytes = key.map(<&[u8; LAYER_KEY]>::try_from).transpose();
            let bytes = bytes.map_err(|_| Error::new("a layer's key has 32 bytes"))?;
            runs.push((row, bytes.map(Layer::new)));
            last = Some(key);
        }
        Ok(Self { runs })
    }

    fn get(&self, row: usize) -> Option<&Layer> {
        let behind = self.runs.partition_point(|(first, _)| *first <= row);
        self.runs[behind - 1].1.as_ref()
    }
}

fn constant_key(rows: usize, key: &dyn Array) -> Result<Option<&[u8; KEY]>> {
    match constant(rows, key)? {
        None => Ok(None),
        Some([VERSION, key @ ..]) => {
            let key = key.try_into().ok();
            key.map(Some)
                .ok_or_else(|| Error::new("the key of a group's codes is malformed"))
        }
        Some(_) => Err(Error::new("the key of a group's codes is malformed")),
    }
}

fn constant(rows: usize, key: &dyn Array) -> Result<Option<&[u8]>> {
    let key = Blobs::new(key)?;
    if key.len() != rows {
        return Err(Error::new("the columns differ in length"));
    }
    key.constant("key")
}

fn each<T: Send>(rows: usize, f: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    let rows = (0..rows).into_par_iter().with_min_len(CHUNK);
    rows.map(f).collect()
}

/// Rows in which nothing is NULL and `more` holds; `None` for all of them.
fn live(columns: &[&dyn Array], more: impl Fn(usize) -> bool) -> Option<NullBuffer> {
    let rows = columns[0].len();
    let full = |row: usize| columns.iter().all(|column| column.is_valid(row)) && more(row);
    let nulls = NullBuffer::from_iter((0..rows).map(full));
    (nulls.null_count() > 0).then_some(nulls)
}

fn wide(codes: &[u128], nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let rows = nulls.as_ref().map_or(codes.len(), NullBuffer::len);
    let mut bytes: Vec<[u8; 16]> = codes.iter().map(|code| code.to_be_bytes()).collect();
    bytes.resize(rows, [0; 16]);
    let bytes = Buffer::from_vec(bytes.into_flattened());
    let array = FixedSizeBinaryArray::try_new(WIDE, bytes, nulls);
    Ok(Arc::new(array.map_err(|e| Error::new(e.to_string()))?))
}
