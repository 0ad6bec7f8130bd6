//! Sealed columns: AES-256-GCM value by value (`spec/rnd.md`).
//!
//! Stored as: version, 12-byte random nonce, ciphertext, 16-byte tag. The associated data names
//! version, table, column, generation, key id, the bits of the row's epoch and row id, so that no
//! value can be moved, nor taken over from another history of the database.

use crate::bound::{parts, Cipher, ColumnId, Kind};
use crate::columns::{Blobs, RowIds};
use crate::epochs::Epochs;
use crate::error::{Error, Result};
use crate::gcm::{Plain, Scratch, Sealed, BATCH, NONCE, TAG};
use crate::keyring::KeyRing;
use crate::keys::random;
use crate::value::{class_of, plain_type, width_of, Builder, Encoder};
use arrow_array::{make_array, Array, ArrayRef};
use arrow_buffer::{Buffer, MutableBuffer, NullBuffer, OffsetBuffer};
use arrow_data::transform::MutableArrayData;
use arrow_data::ArrayData;
use arrow_schema::DataType;
use rayon::prelude::*;
use std::sync::Arc;

/// Bytes before the ciphertext.
const HEAD: usize = 1 + NONCE;
/// Rows a task takes.
const CHUNK: usize = 4096;

fn refused(row_id: i64) -> Error {
    let text = "was altered, moved, or sealed under another key";
    Error::verify(format!("the value of row id {row_id} {text}"))
}

/// Seals all rows; see [`crate::KeyRing::seal_column`].
pub(crate) fn seal(
    ring: &KeyRing,
    id: ColumnId,
    epochs: &Epochs,
    values: &ArrayRef,
    row_ids: &dyn Array,
) -> Result<ArrayRef> {
    plain_type(values.data_type())?;
    let row_ids = RowIds::new(row_ids)?;
    if row_ids.len() != values.len() {
        return Err(Error::value("one row id a value is needed"));
    }
    if row_ids.has_nulls() {
        return Err(Error::value("a value without row id cannot be sealed"));
    }
    let encoder = Encoder::new(values)?;
    let cipher = Cipher::new(ring, Kind::Value, id, epochs);
    let starts: Vec<usize> = (0..values.len()).step_by(CHUNK).collect();
    let chunks = starts.into_par_iter().map(|start| {
        let rows = start..values.len().min(start + CHUNK);
        seal_chunk(&cipher, &encoder, &row_ids, rows)
    });
    let chunks = chunks.collect::<Result<Vec<_>>>()?;
    join(values.len(), &chunks)
}

/// Sealed values, or tiles, and where each ends.
pub(crate) type Chunk = (Vec<u8>, Vec<usize>);

fn seal_chunk(
    cipher: &Cipher<'_>,
    encoder: &Encoder,
    row_ids: &RowIds,
    rows: std::ops::Range<usize>,
) -> Result<Chunk> {
    let mut nonces = vec![[0; NONCE]; rows.len()];
    random(nonces.as_flattened_mut())?;
    let mut bytes = Vec::with_capacity(rows.len() * 48);
    let mut ends = Vec::with_capacity(rows.len());
    let mut scratch = Scratch::default();
    for nonces in nonces.chunks(BATCH) {
        let first = rows.start + ends.len();
        let (start, mut lengths) = (bytes.len(), Vec::with_capacity(nonces.len()));
        let mut bindings = Vec::with_capacity(nonces.len());
        for (row, nonce) in (first..).zip(nonces) {
            let start = bytes.len();
            let row_id = row_ids.get(row).unwrap_or(0);
            let bound = cipher.bound(row_id)?;
            bindings.push((row_id, &bound.binding));
            bytes.push(bound.version);
            bytes.extend_from_slice(nonce);
            encoder.write(row, &mut bytes)?;
            bytes.extend_from_slice(&[0; TAG]);
            lengths.push(bytes.len() - start);
            ends.push(bytes.len());
        }
        let mut rest = &mut bytes[start..];
        let mut values = Vec::with_capacity(nonces.len());
        for (((row_id, binding), &nonce), length) in bindings.into_iter().zip(nonces).zip(lengths) {
            let (value, after) = rest.split_at_mut(length);
            rest = after;
            let (body, tag) = value[HEAD..]
                .split_last_chunk_mut()
                .expect("room for a tag");
            values.push(Plain {
                binding,
                row_id,
                nonce,
                body,
                tag,
            });
        }
        if !cipher.gcm.seal(&mut values, &mut scratch) {
            return Err(Error::value("a value is too long to seal"));
        }
    }
    Ok((bytes, ends))
}

/// One array of the messages of all chunks.
pub(crate) fn join(rows: usize, chunks: &[Chunk]) -> Result<ArrayRef> {
    let total: usize = chunks.iter().map(|(bytes, _)| bytes.len()).sum();
    if i32::try_from(total).is_err() {
        let text = "more than 2 GiB of ciphertext at once: seal fewer rows at a time";
        return Err(Error::value(text));
    }
    let mut bytes = MutableBuffer::new(total);
    let mut offsets = Vec::with_capacity(rows + 1);
    offsets.push(0);
    for (chunk, ends) in chunks {
        let base = bytes.len();
        bytes.extend_from_slice(chunk);
        offsets.extend(ends.iter().map(|end| (base + end) as i32));
    }
    let offsets = OffsetBuffer::new(offsets.into());
    let array = arrow_array::BinaryArray::new(offsets, Buffer::from(bytes), None);
    Ok(Arc::new(array))
}

/// Opens all rows; see [`crate::KeyRing::open_column`].
pub(crate) fn open(
    ring: &KeyRing,
    id: ColumnId,
    epochs: &Epochs,
    sealed: &dyn Array,
    row_ids: &dyn Array,
    data_type: &DataType,
) -> Result<ArrayRef> {
    let data_type = plain_type(data_type)?;
    let row_ids = RowIds::new(row_ids)?;
    let sealed = Blobs::new(sealed)?;
    if row_ids.len() != sealed.len() {
        return Err(Error::value("one row id a value is needed"));
    }
    let task = Opening {
        cipher: Cipher::new(ring, Kind::Value, id, epochs),
        sealed,
        row_ids,
        data_type,
    };
    match width_of(&task.data_type) {
        Some(width) if width > 0 && task.data_type != DataType::Boolean => task.fixed(width),
        _ => task.any(),
    }
}

struct Opening<'a> {
    cipher: Cipher<'a>,
    sealed: Blobs<'a>,
    row_ids: RowIds,
    data_type: DataType,
}

impl Opening<'_> {
    /// A row's parts; `None` for a row that an outer join produced.
    fn row(&self, row: usize) -> Result<Option<Sealed<'_>>> {
        match (self.sealed.get(row), self.row_ids.get(row)) {
            (Some(sealed), Some(row_id)) => {
                let parts = parts(self.cipher.bound(row_id)?, row_id, sealed);
                parts.map(Some).ok_or_else(|| refused(row_id))
            }
            (None, None) => Ok(None),
            (None, Some(row_id)) => {
                let text = "is missing: sealed columns hold no NULL";
                Err(Error::verify(format!(
                    "the value of row id {row_id} {text}"
                )))
            }
            (Some(_), None) => Err(Error::verify("a sealed value without its row id")),
        }
    }

    /// Opens some rows batch by batch and hands each encoding to `give`, in order; `None` for a
    /// row that an outer join produced.
    fn each(
        &self,
        rows: std::ops::Range<usize>,
        mut give: impl FnMut(usize, Option<&[u8]>) -> Result<()>,
    ) -> Result<()> {
        let mut scratch = Scratch::default();
        for start in rows.clone().step_by(BATCH) {
            let batch = start..rows.end.min(start + BATCH);
            let mut end = batch.end;
            let (mut values, mut indices) = (
                Vec::with_capacity(batch.len()),
                Vec::with_capacity(batch.len()),
            );
            let mut error = None;
            for row in batch {
                match self.row(row) {
                    Ok(Some(value)) => {
                        indices.push(row);
                        values.push(value);
                    }
                    Ok(None) => {}
                    Err(e) => {
                        // Reported unless a row before this one turns out to be altered.
                        (error, end) = (Some(e), row);
                        break;
                    }
                }
            }
            let mut next = start;
            self.cipher.gcm.open(&values, &mut scratch, |i, plain| {
                (next..indices[i]).try_for_each(|row| give(row, None))?;
                next = indices[i] + 1;
                let plain = plain.ok_or_else(|| refused(values[i].row_id))?;
                give(indices[i], Some(plain))
            })?;
            (next..end).try_for_each(|row| give(row, None))?;
            error.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    fn wrong_type(&self, row: usize) -> Error {
        let row_id = self.row_ids.get(row).unwrap_or(0);
        let name = &self.data_type;
        Error::verify(format!(
            "the value of row id {row_id} was not sealed as {name}"
        ))
    }

    /// Types of one width: straight into the result's buffer.
    fn fixed(&self, width: usize) -> Result<ArrayRef> {
        let rows = self.sealed.len();
        let flag = class_of(&self.data_type)?.flag(false);
        let mut bytes = MutableBuffer::from_len_zeroed(rows * width);
        let mut valid = vec![true; rows];
        let chunks = bytes
            .as_slice_mut()
            .par_chunks_mut(width * CHUNK)
            .zip(valid.par_chunks_mut(CHUNK));
        let open = |(i, (bytes, valid)): (usize, (&mut [u8], &mut [bool]))| {
            let first = i * CHUNK;
            self.each(first..first + valid.len(), |row, encoding| {
                let at = row - first;
                let Some(encoding) = encoding else {
                    valid[at] = false;
                    return Ok(());
                };
                match encoding.split_first() {
                    Some((&f, body)) if f & !1 == flag && body.len() == width => {
                        bytes[at * width..][..width].copy_from_slice(body);
                        valid[at] = f & 1 == 0;
                        Ok(())
                    }
                    _ => Err(self.wrong_type(row)),
                }
            })
        };
        chunks.enumerate().try_for_each(open)?;
        let nulls = NullBuffer::from(valid);
        let data = ArrayData::builder(self.data_type.clone())
            .len(rows)
            .add_buffer(bytes.into())
            .nulls((nulls.null_count() > 0).then_some(nulls))
            .build()
            .map_err(|e| Error::value(e.to_string()))?;
        Ok(make_array(data))
    }

    /// Every other type: chunks, joined at the end.
    fn any(&self) -> Result<ArrayRef> {
        let rows = self.sealed.len();
        if self.sealed.bytes() > i32::MAX as usize {
            let text = "more than 2 GiB of ciphertext at once: open fewer rows at a time";
            return Err(Error::value(text));
        }
        let starts: Vec<usize> = (0..rows.max(1)).step_by(CHUNK).collect();
        let chunks = starts.into_par_iter().map(|start| {
            let rows = start..rows.min(start + CHUNK);
            let mut builder = Builder::new(&self.data_type, rows.len())?;
            self.each(rows, |row, encoding| match encoding {
                Some(encoding) => {
                    let pushed = builder.push(encoding);
                    pushed.map_err(|_| self.wrong_type(row))
                }
                None => {
                    builder.push_null();
                    Ok(())
                }
            })?;
            builder.finish().map(|array| array.to_data())
        });
        let chunks = chunks.collect::<Result<Vec<ArrayData>>>()?;
        if let [only] = chunks.as_slice() {
            return Ok(make_array(only.clone()));
        }
        let mut all = MutableArrayData::new(chunks.iter().collect(), false, rows);
        for (i, chunk) in chunks.iter().enumerate() {
            all.try_extend(i, 0, chunk.len())
                .map_err(|e| Error::value(e.to_string()))?;
        }
        Ok(make_array(all.freeze()))
    }
}
