//! From sealed tiles to an Arrow array.

use super::fixed::Packed;
use super::form::{Checked, TileForm};
use super::frame::{Damaged, BITMAP};
use super::unstring::Reader;
use super::{output, TileColumn, TILE_ROWS};
use crate::bound::{parts, Cipher, Kind};
use crate::columns::{Blobs, RowIds};
use crate::error::{Error, Result};
use crate::gcm::{Scratch, Sealed};
use crate::keyring::KeyRing;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{ArrowNativeType, MutableBuffer};
use arrow_schema::DataType;
use louver_primitives::packed::{Lanes, Word};
use rayon::prelude::*;
use std::ops::Range;

/// Bytes that AES runs over together: no more than the first caches hold.
const BATCH: usize = 1 << 15;
/// Tiles of a task.
const GROUP: usize = 64;

/// The rows that are wanted: row `r` of tile `t` is `1024 * t + r`, ascending.
pub type Slots<'a> = &'a [u64];

/// Opens tiles; see [`KeyRing::open_tiles`].
pub(crate) fn open(
    ring: &KeyRing,
    column: &TileColumn<'_>,
    sealed: &dyn Array,
    firsts: &dyn Array,
    data_type: &DataType,
    slots: Option<Slots<'_>>,
    lanes: Lanes,
) -> Result<(ArrayRef, Vec<u16>)> {
    let form = column.form.checked(data_type)?;
    let firsts = RowIds::new(firsts)?;
    let sealed = Blobs::new(sealed)?;
    if firsts.len() != sealed.len() || firsts.has_nulls() {
        return Err(Error::value("the first row id of each tile is needed"));
    }
    let tiles = Tiles {
        cipher: Cipher::new(ring, Kind::Tile, ring.column(column.id), column.epochs),
        sealed,
        firsts,
        form,
        lanes,
    };
    match slots {
        Some(slots) => tiles.some(slots),
        None => tiles.all(0..tiles.sealed.len()),
    }
}

struct Tiles<'a> {
    cipher: Cipher<'a>,
    sealed: Blobs<'a>,
    firsts: RowIds,
    form: Checked,
    lanes: Lanes,
}

impl Tiles<'_> {
    fn first(&self, tile: usize) -> i64 {
        self.firsts.get(tile).unwrap_or(0)
    }

    fn refused(&self, tile: usize) -> Error {
        let text = "was altered, moved, or sealed under another key or in another form";
        Error::verify(format!("the tile of row id {} {text}", self.first(tile)))
    }

    /// Opens some tiles batch by batch and hands each plaintext to `give`, in order.
    fn each(
        &self,
        tiles: Range<usize>,
        mut give: impl FnMut(usize, &[u8]) -> std::result::Result<(), Damaged>,
    ) -> Result<()> {
        let mut scratch = Scratch::default();
        let mut start = tiles.start;
        while start < tiles.end {
            let mut batch: Vec<Sealed<'_>> = Vec::new();
            let (mut error, mut bytes, mut tile) = (None, 0, start);
            while tile < tiles.end && bytes < BATCH {
                let row_id = self.first(tile);
                let stored = self.sealed.get(tile).map(|stored| {
                    let bound = self.cipher.bound(row_id)?;
                    parts(bound, row_id, stored).ok_or_else(|| self.refused(tile))
                });
                match stored.unwrap_or_else(|| Err(self.missing(tile))) {
                    Ok(message) => {
                        bytes += message.body.len();
                        batch.push(message);
                    }
                    // Reported unless a tile before this one turns out to be altered.
                    Err(e) => {
                        error = Some(e);
                        break;
                    }
                }
                tile += 1;
            }
            self.cipher.gcm.open(&batch, &mut scratch, |i, plain| {
                let plain = plain.ok_or(Damaged);
                let given = plain.and_then(|plain| give(start + i, plain));
                given.map_err(|_| self.refused(start + i))
            })?;
            error.map_or(Ok(()), Err)?;
            start = tile;
        }
        Ok(())
    }

    fn missing(&self, tile: usize) -> Error {
        let first = self.first(tile);
        Error::verify(format!("the tile of row id {first} is missing"))
    }

    fn all(&self, tiles: Range<usize>) -> Result<(ArrayRef, Vec<u16>)> {
        match (self.form.form, self.form.width) {
            (TileForm::Packed { base, bits, nulls }, width) => {
                let packed = Packed { base, bits, nulls };
                match width {
                    _ if self.form.data_type == DataType::Boolean => self.bools(packed, tiles),
                    Some(1) => self.numbers::<u8>(packed, tiles),
                    Some(2) => self.numbers::<u16>(packed, tiles),
                    Some(4) => self.numbers::<u32>(packed, tiles),
                    Some(8) => self.numbers::<u64>(packed, tiles),
                    _ => self.numbers::<i128>(packed, tiles),
                }
            }
            (TileForm::Units { unit, limit }, _) => self.strings((unit, limit), tiles),
        }
    }

    /// Straight into the result's buffer, all tiles 1,024 rows apart; shorter ones are closed up.
    fn numbers<T: Word + ArrowNativeType>(
        &self,
        packed: Packed,
        tiles: Range<usize>,
    ) -> Result<(ArrayRef, Vec<u16>)> {
        let count = self.room::<T>(packed, &tiles)?;
        let mut values = MutableBuffer::from_len_zeroed(count * TILE_ROWS * size_of::<T>());
        let mut valid = vec![[0; BITMAP]; count];
        let mut rows = vec![0; count];
        let (chunks, _) = values.typed_data_mut::<T>().as_chunks_mut::<TILE_ROWS>();
        let groups = chunks.par_chunks_mut(GROUP);
        let groups = groups.zip(valid.par_chunks_mut(GROUP));
        let groups = groups.zip(rows.par_chunks_mut(GROUP)).enumerate();
        groups.try_for_each(|(group, ((values, valid), rows))| {
            let first = tiles.start + group * GROUP;
            self.each(first..first + rows.len(), |tile, plain| {
                let at = tile - first;
                let (values, valid) = (&mut values[at], &mut valid[at]);
                rows[at] = packed.open(&self.form, self.lanes, plain, values, valid)? as u16;
                Ok(())
            })
        })?;
        let width = size_of::<T>();
        let values = output::closed_up(values, &rows, width);
        let data_type = &self.form.data_type;
        let nulls = output::nulls(&valid, &rows, packed.nulls);
        Ok((output::fixed(data_type, &rows, values, nulls)?, rows))
    }

    /// How many tiles there are, if their results can be in memory.
    fn room<T>(&self, packed: Packed, tiles: &Range<usize>) -> Result<usize> {
        // A message that is too short would cost memory that its bytes do not.
        for tile in tiles.clone() {
            let length = self.sealed.get(tile).map_or(0, <[u8]>::len);
            if length != packed.length() + super::seal::HEAD + crate::gcm::TAG {
                return Err(match self.sealed.get(tile) {
                    Some(_) => self.refused(tile),
                    None => self.missing(tile),
                });
            }
        }
        let bytes = tiles.len().checked_mul(TILE_ROWS * size_of::<T>());
        let room = bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok());
        match room {
            true => Ok(tiles.len()),
            false => Err(Error::value("open fewer tiles at a time")),
        }
    }

    fn bools(&self, packed: Packed, tiles: Range<usize>) -> Result<(ArrayRef, Vec<u16>)> {
        let count = self.room::<u8>(packed, &tiles)?;
        let (mut values, mut valid) = (vec![[0; BITMAP]; count], vec![[0; BITMAP]; count]);
        let mut rows = vec![0; count];
        let first = tiles.start;
        self.each(tiles, |tile, plain| {
            let at = tile - first;
            rows[at] =
                packed.open_bools(&self.form, plain, &mut values[at], &mut valid[at])? as u16;
            Ok(())
        })?;
        let nulls = output::nulls(&valid, &rows, packed.nulls);
        Ok((output::bools(&values, &rows, nulls), rows))
    }

    fn strings(&self, limits: (u32, u32), tiles: Range<usize>) -> Result<(ArrayRef, Vec<u16>)> {
        let starts: Vec<usize> = tiles.clone().step_by(GROUP).collect();
        let groups = starts.into_par_iter().map(|start| {
            let group = start..tiles.end.min(start + GROUP);
            let mut reader = Reader::new(&self.form, self.lanes, limits, 0)?;
            let mut valid = vec![[0; BITMAP]; group.len()];
            let mut rows = Vec::with_capacity(group.len());
            self.each(group, |tile, plain| {
                rows.push(reader.push(plain, &mut valid[tile - start])? as u16);
                Ok(())
            })?;
            Ok(output::Group::new(reader, valid, rows))
        });
        let groups = groups.collect::<Result<Vec<_>>>()?;
        output::strings(&self.form.data_type, groups)
    }

    /// Only some rows.
    fn some(&self, slots: Slots<'_>) -> Result<(ArrayRef, Vec<u16>)> {
        if !slots.is_sorted_by(|a, b| a < b) {
            return Err(Error::value("slots ascend"));
        }
        let tiles = self.sealed.len();
        let starts: Vec<usize> = (0..tiles.max(1)).step_by(GROUP).collect();
        let groups = starts.into_par_iter().map(|start| {
            let group = start..tiles.min(start + GROUP);
            let slot = |tile: usize| (tile * TILE_ROWS) as u64;
            let low = slots.partition_point(|&s| s < slot(group.start));
            let high = match group.end == tiles {
                true => slots.len(),
                false => slots.partition_point(|&s| s < slot(group.end)),
            };
            let (values, rows) = self.all(group.clone())?;
            let mut ends: Vec<u64> = vec![0];
            ends.extend(rows.iter().scan(0, |end, &rows| {
                *end += u64::from(rows);
                Some(*end)
            }));
            let position = |&slot: &u64| {
                let (tile, row) = (slot as usize / TILE_ROWS, slot % TILE_ROWS as u64);
                let known = tile.checked_sub(group.start).filter(|&at| at < rows.len());
                let known = known.filter(|&at| row < u64::from(rows[at]));
                let at = known.ok_or_else(|| Error::verify(format!("slot {slot} has no row")))?;
                Ok(ends[at] + row)
            };
            let wanted = slots[low..high].iter().map(position);
            let wanted = wanted.collect::<Result<Vec<u64>>>()?;
            output::taken(&values, wanted).map(|values| (values, rows))
        });
        let groups = groups.collect::<Result<Vec<_>>>()?;
        let arrays: Vec<&dyn Array> = groups.iter().map(|(array, _)| array.as_ref()).collect();
        let all = arrow_select::concat::concat(&arrays);
        let rows = groups.iter().flat_map(|(_, rows)| rows.iter().copied());
        let all = all.map_err(|e| Error::value(e.to_string()))?;
        Ok((all, rows.collect()))
    }
}
