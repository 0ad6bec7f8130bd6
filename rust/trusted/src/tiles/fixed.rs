//! Tiles of numbers: a base, and packed numbers above it.

use super::form::Checked;
use super::frame::{
    all_valid, bit, read_validity, write_validity, Damaged, Header, BITMAP, HEADER, PACKED,
    VALIDITY,
};
use super::TILE_ROWS;
use arrow_buffer::{BooleanBuffer, NullBuffer};
use louver_primitives::packed::{pack, packed_bytes, unpack, Lanes, Word};

/// What a packed form says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed {
    pub(crate) base: i128,
    pub(crate) bits: u32,
    pub(crate) nulls: bool,
}

impl Packed {
    /// Bytes of a tile's plaintext.
    pub(crate) fn length(self) -> usize {
        HEADER + if self.nulls { BITMAP } else { 0 } + packed_bytes(self.bits)
    }

    fn layout(self) -> u8 {
        PACKED | if self.nulls { VALIDITY } else { 0 }
    }

    /// Header and validity of some rows; what is left of `out` is for the numbers. `None` if one
    /// is NULL and cannot be.
    fn head<'a>(
        self,
        form: &Checked,
        nulls: Option<&NullBuffer>,
        rows: std::ops::Range<usize>,
        out: &'a mut [u8],
    ) -> Option<&'a mut [u8]> {
        let header = Header {
            rows: rows.len(),
            layout: self.layout(),
            bits: self.bits as u8,
        };
        let (head, out) = out.split_at_mut(HEADER);
        head.copy_from_slice(&header.bytes(form));
        if self.nulls {
            let (bits, out) = out.split_at_mut(BITMAP);
            bits.copy_from_slice(&write_validity(nulls, rows.start, rows.len()));
            return Some(out);
        }
        let null = nulls.is_some_and(|n| rows.into_iter().any(|row| n.is_null(row)));
        (!null).then_some(out)
    }

    /// Writes the plaintext of some rows; `false` if one is outside of the form.
    pub(crate) fn write<T: Word>(
        self,
        form: &Checked,
        values: &[T],
        nulls: Option<&NullBuffer>,
        rows: std::ops::Range<usize>,
        out: &mut [u8],
    ) -> bool {
        let Some(out) = self.head(form, nulls, rows.clone(), out) else {
            return false;
        };
        let base = T::cut(self.base);
        let mut numbers = [base; TILE_ROWS];
        numbers[..rows.len()].copy_from_slice(&values[rows.clone()]);
        if let Some(nulls) = nulls {
            for (number, row) in numbers.iter_mut().zip(rows) {
                if nulls.is_null(row) {
                    *number = base;
                }
            }
        }
        pack(&numbers, base, self.bits, out)
    }

    /// [`Packed::write`] of booleans: a bit each, if there is a bit.
    pub(crate) fn write_bools(
        self,
        form: &Checked,
        values: &BooleanBuffer,
        nulls: Option<&NullBuffer>,
        rows: std::ops::Range<usize>,
        out: &mut [u8],
    ) -> bool {
        let Some(out) = self.head(form, nulls, rows.clone(), out) else {
            return false;
        };
        out.fill(0);
        for (at, row) in rows.enumerate() {
            let value = values.value(row);
            if nulls.is_some_and(|n| n.is_null(row)) {
                continue;
            }
            match out.get_mut(at / 8) {
                Some(byte) => *byte |= u8::from(value) << (at % 8),
                None if value == (self.base == 1) => {}
                None => return false,
            }
        }
        true
    }

    /// Checks all but the numbers: how many rows, their validity, and the packed numbers.
    fn read<'a>(
        self,
        form: &Checked,
        plain: &'a [u8],
        valid: &mut [u8; BITMAP],
    ) -> Result<(usize, &'a [u8]), Damaged> {
        let (header, rest) = Header::read(form, plain)?;
        if plain.len() != self.length()
            || header.layout != self.layout()
            || u32::from(header.bits) != self.bits
        {
            return Err(Damaged);
        }
        if !self.nulls {
            *valid = all_valid(header.rows);
            return Ok((header.rows, rest));
        }
        let (bits, rest) = read_validity(rest, header.rows)?;
        *valid = *bits;
        Ok((header.rows, rest))
    }

    /// Reads a plaintext; numbers behind the last row are undefined. How many rows it has.
    pub(crate) fn open<T: Word>(
        self,
        form: &Checked,
        lanes: Lanes,
        plain: &[u8],
        out: &mut [T; TILE_ROWS],
        valid: &mut [u8; BITMAP],
    ) -> Result<usize, Damaged> {
        let (rows, packed) = self.read(form, plain, valid)?;
        let base = T::cut(self.base);
        unpack(lanes, packed, base, self.bits, out);
        if self.bits == 0 || (rows == TILE_ROWS && !self.nulls) {
            return Ok(rows);
        }
        let mut zero = true;
        for (chunk, byte) in out.chunks(8).zip(valid.iter()) {
            if *byte != 0xff {
                let wrong = |(at, value): (usize, &T)| byte >> at & 1 == 0 && *value != base;
                zero &= !chunk.iter().enumerate().any(wrong);
            }
        }
        if zero {
            Ok(rows)
        } else {
            Err(Damaged)
        }
    }

    /// [`Packed::open`] of booleans.
    pub(crate) fn open_bools(
        self,
        form: &Checked,
        plain: &[u8],
        out: &mut [u8; BITMAP],
        valid: &mut [u8; BITMAP],
    ) -> Result<usize, Damaged> {
        let (rows, packed) = self.read(form, plain, valid)?;
        match packed.first_chunk() {
            Some(bits) => *out = *bits,
            None => *out = [if self.base == 1 { 0xff } else { 0 }; BITMAP],
        }
        let beyond = |row: usize| bit(out, row) && !bit(valid, row);
        if self.bits > 0 && (0..TILE_ROWS).any(beyond) {
            return Err(Damaged);
        }
        Ok(rows)
    }
}
