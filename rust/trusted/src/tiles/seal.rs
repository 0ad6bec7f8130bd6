//! From an Arrow array to sealed tiles.

use super::fixed::Packed;
use super::form::{Checked, TileForm};
use super::strings::{Strings, Writer};
use super::{TileColumn, TILE_ROWS};
use crate::bound::{Cipher, Kind};
use crate::epochs::Epochs;
use crate::error::{Error, Result};
use crate::gcm::{Plain, Scratch, NONCE, TAG};
use crate::keyring::KeyRing;
use crate::keys::random;
use crate::sealed::{join, Chunk};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::DataType;
use louver_primitives::packed::Word;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Bytes before the ciphertext.
pub(crate) const HEAD: usize = 1 + NONCE;
/// Tiles of a task.
const GROUP: usize = 32;

/// Seals all rows; see [`KeyRing::seal_tiles`].
pub(crate) fn seal(
    ring: &KeyRing,
    column: &TileColumn<'_>,
    values: &ArrayRef,
    first: i64,
    rows: usize,
) -> Result<ArrayRef> {
    check_rows(rows)?;
    let last = i64::try_from(values.len().saturating_sub(1));
    let last = last.ok().and_then(|last| first.checked_add(last));
    if !last.is_some_and(|last| Epochs::shared(first, last)) {
        return Err(Error::value("the rows of tiles are of one epoch"));
    }
    let source = Source::new(column.form, values)?;
    let cipher = Cipher::new(ring, Kind::Tile, ring.column(column.id), column.epochs);
    let tiles: Vec<Range<usize>> = tiles_of(values.len(), rows).collect();
    let groups = tiles.par_chunks(GROUP);
    let groups = groups.map(|tiles| seal_group(&cipher, &source, first, tiles));
    join(tiles.len(), &groups.collect::<Result<Vec<_>>>()?)
}

/// A unit that (nearly) all tiles fit; see [`super::tile_unit`].
pub(crate) fn unit(values: &ArrayRef, limit: u32, rows: usize) -> Result<u32> {
    /// A unit is a multiple of this many bytes.
    const STEP: usize = 64;
    check_rows(rows)?;
    let source = Source::new(TileForm::Units { unit: 1, limit }, values)?;
    let tiles: Vec<Range<usize>> = tiles_of(values.len(), rows).collect();
    let length = |tile: &Range<usize>| {
        let mut bytes = Vec::new();
        source.write(tile.clone(), &mut bytes)?;
        Ok(bytes.len())
    };
    let lengths = tiles.par_iter().map(length);
    let mut lengths = lengths.collect::<Result<Vec<usize>>>()?;
    lengths.sort_unstable();
    // One tile of a hundred may be longer: it takes two units.
    let most = lengths.len().saturating_sub(1 + lengths.len() / 100);
    let most = lengths.get(most).copied().unwrap_or(0);
    // A little more, for the next rows of the column are not quite the same.
    let unit = (most + most / 32 + 1).next_multiple_of(STEP);
    u32::try_from(unit).map_err(|_| Error::value("a tile is too long"))
}

/// What tiles hold before they are sealed.
#[cfg(any(test, feature = "fuzz"))]
pub(crate) fn plaintexts(form: TileForm, values: &ArrayRef, rows: usize) -> Result<Vec<Vec<u8>>> {
    let source = Source::new(form, values)?;
    let write = |tile| {
        let mut bytes = Vec::new();
        source.write(tile, &mut bytes).map(|()| bytes)
    };
    tiles_of(values.len(), rows).map(write).collect()
}

/// A tile that holds these bytes, whatever they are.
#[cfg(any(test, feature = "fuzz"))]
pub(crate) fn seal_plain(
    ring: &KeyRing,
    column: &TileColumn<'_>,
    first: i64,
    plain: &[u8],
) -> Result<Vec<u8>> {
    let cipher = Cipher::new(ring, Kind::Tile, ring.column(column.id), column.epochs);
    let bound = cipher.bound(first)?;
    let nonce = [0; NONCE];
    let mut body = plain.to_vec();
    let mut tag = [0; TAG];
    let value = Plain {
        binding: &bound.binding,
        row_id: first,
        nonce,
        body: &mut body,
        tag: &mut tag,
    };
    let sealed = cipher.gcm.seal(&mut [value], &mut Scratch::default());
    assert!(sealed, "a plaintext that is not too long");
    Ok([&[bound.version], &nonce[..], &body, &tag].concat())
}

fn check_rows(rows: usize) -> Result<()> {
    if !(1..=TILE_ROWS).contains(&rows) {
        return Err(Error::value("a tile has 1 to 1,024 rows"));
    }
    Ok(())
}

fn tiles_of(values: usize, rows: usize) -> impl Iterator<Item = Range<usize>> {
    let starts = (0..values).step_by(rows);
    starts.map(move |start| start..values.min(start + rows))
}

/// An array ready to be written in tiles.
struct Source {
    form: Checked,
    nulls: Option<NullBuffer>,
    values: Values,
}

enum Values {
    Bools(Packed, BooleanBuffer),
    /// With the bytes of a number.
    Numbers(Packed, usize, Buffer),
    Strings(Writer),
}

impl Source {
    fn new(form: TileForm, values: &ArrayRef) -> Result<Self> {
        let values = plain(values)?;
        let checked = form.checked(values.data_type())?;
        let nulls = values.logical_nulls().filter(|n| n.null_count() > 0);
        let values = match form {
            TileForm::Packed { base, bits, nulls } => {
                let packed = Packed { base, bits, nulls };
                match (values.data_type(), checked.width) {
                    (DataType::Boolean, _) => {
                        Values::Bools(packed, values.as_boolean().values().clone())
                    }
                    (_, width) => {
                        let width = width.unwrap_or(1);
                        Values::Numbers(packed, width, numbers(&values, width)?)
                    }
                }
            }
            TileForm::Units { unit, limit } => {
                let strings = Strings::new(&values, &checked)?;
                Values::Strings(Writer {
                    unit: unit as usize,
                    limit: limit as usize,
                    strings,
                })
            }
        };
        Ok(Self {
            form: checked,
            nulls,
            values,
        })
    }

    /// Appends the plaintext of some rows.
    fn write(&self, rows: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        let fits = match &self.values {
            Values::Strings(writer) => {
                return writer.write(&self.form, self.nulls.as_ref(), rows, out);
            }
            Values::Bools(packed, values) => {
                out.resize(start + packed.length(), 0);
                let (form, nulls) = (&self.form, self.nulls.as_ref());
                packed.write_bools(form, values, nulls, rows, &mut out[start..])
            }
            Values::Numbers(packed, width, values) => {
                out.resize(start + packed.length(), 0);
                let out = &mut out[start..];
                match width {
                    1 => self.numbers::<u8>(*packed, values, rows, out),
                    2 => self.numbers::<u16>(*packed, values, rows, out),
                    4 => self.numbers::<u32>(*packed, values, rows, out),
                    8 => self.numbers::<u64>(*packed, values, rows, out),
                    _ => self.numbers::<i128>(*packed, values, rows, out),
                }
            }
        };
        if fits {
            return Ok(());
        }
        Err(Error::widen(
            "a value lies outside of the bounds of its column's tiles",
        ))
    }

    fn numbers<T: Word + ArrowNativeType>(
        &self,
        packed: Packed,
        values: &Buffer,
        rows: Range<usize>,
        out: &mut [u8],
    ) -> bool {
        let values = values.typed_data::<T>();
        packed.write(&self.form, values, self.nulls.as_ref(), rows, out)
    }
}

/// A dictionary as its values.
fn plain(values: &ArrayRef) -> Result<ArrayRef> {
    let mut values = Arc::clone(values);
    while let DataType::Dictionary(_, _) = values.data_type() {
        let dictionary = values.as_any_dictionary();
        let taken = arrow_select::take::take(dictionary.values(), dictionary.keys(), None);
        values = taken.map_err(|e| Error::value(e.to_string()))?;
    }
    Ok(values)
}

/// The bytes of an array of numbers, as they lie in memory.
pub(crate) fn numbers(values: &ArrayRef, width: usize) -> Result<Buffer> {
    let mut data = values.to_data();
    data.align_buffers();
    let buffer = data.buffers().first();
    let buffer = buffer.ok_or_else(|| Error::value("an array without values"))?;
    let buffer = buffer.slice_with_length(data.offset() * width, data.len() * width);
    // Byte strings of sixteen bytes need not lie as numbers do.
    let aligned = buffer
        .as_ptr()
        .align_offset(width.next_power_of_two().min(16))
        == 0;
    Ok(if aligned {
        buffer
    } else {
        Buffer::from_slice_ref(buffer.as_slice())
    })
}

fn seal_group(
    cipher: &Cipher<'_>,
    source: &Source,
    first: i64,
    tiles: &[Range<usize>],
) -> Result<Chunk> {
    let mut nonces = vec![[0; NONCE]; tiles.len()];
    random(nonces.as_flattened_mut())?;
    let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(tiles.len()));
    let mut bindings = Vec::with_capacity(tiles.len());
    for (tile, nonce) in tiles.iter().zip(&nonces) {
        let row_id = first + tile.start as i64;
        let bound = cipher.bound(row_id)?;
        bytes.push(bound.version);
        bytes.extend_from_slice(nonce);
        source.write(tile.clone(), &mut bytes)?;
        bytes.extend_from_slice(&[0; TAG]);
        bindings.push((row_id, &bound.binding));
        ends.push(bytes.len());
    }
    let mut rest = bytes.as_mut_slice();
    let (mut values, mut start) = (Vec::with_capacity(tiles.len()), 0);
    for (((row_id, binding), &nonce), end) in bindings.into_iter().zip(&nonces).zip(&ends) {
        let (tile, after) = rest.split_at_mut(end - start);
        (rest, start) = (after, *end);
        let parts = tile[HEAD..].split_last_chunk_mut();
        let (body, tag) = parts.expect("room for a tag");
        values.push(Plain {
            binding,
            row_id,
            nonce,
            body,
            tag,
        });
    }
    if !cipher.gcm.seal(&mut values, &mut Scratch::default()) {
        return Err(Error::value("a tile is too long to seal"));
    }
    Ok((bytes, ends))
}
