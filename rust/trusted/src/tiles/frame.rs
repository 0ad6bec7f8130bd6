//! What all plaintexts of tiles begin with, and their bits of validity.

use super::form::Checked;
use super::TILE_ROWS;
use arrow_buffer::NullBuffer;

/// Bytes before the values: rows (2), layout, bits, check (4).
pub(crate) const HEADER: usize = 8;
/// Bytes of one bit for each row.
pub(crate) const BITMAP: usize = TILE_ROWS / 8;

/// The bytes are not a tile of this form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

/// How the values lie; [`VALIDITY`] and [`COMPRESSED`] are added to it.
pub(crate) const PACKED: u8 = 1;
pub(crate) const PLAIN: u8 = 2;
pub(crate) const DICTIONARY: u8 = 3;
/// A bit for each row says whether it is not NULL.
pub(crate) const VALIDITY: u8 = 0x10;
/// The body is an LZ4 block.
pub(crate) const COMPRESSED: u8 = 0x20;

/// The header of a tile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) rows: usize,
    pub(crate) layout: u8,
    pub(crate) bits: u8,
}

impl Header {
    pub(crate) fn bytes(self, form: &Checked) -> [u8; HEADER] {
        let [low, high] = (self.rows as u16).to_le_bytes();
        let [a, b, c, d] = form.check;
        [low, high, self.layout, self.bits, a, b, c, d]
    }

    /// The header of a plaintext, and what follows it.
    pub(crate) fn read<'a>(form: &Checked, plain: &'a [u8]) -> Result<(Self, &'a [u8]), Damaged> {
        let (header, rest) = plain.split_first_chunk::<HEADER>().ok_or(Damaged)?;
        let [low, high, layout, bits, check @ ..] = *header;
        let rows = usize::from(u16::from_le_bytes([low, high]));
        if !(1..=TILE_ROWS).contains(&rows) || check != form.check {
            return Err(Damaged);
        }
        Ok((Self { rows, layout, bits }, rest))
    }
}

/// The bits of some rows, those behind the last one zero.
pub(crate) fn write_validity(
    nulls: Option<&NullBuffer>,
    start: usize,
    rows: usize,
) -> [u8; BITMAP] {
    let mut bits = [0; BITMAP];
    match nulls {
        None => set_first(&mut bits, rows),
        Some(nulls) => {
            for row in 0..rows {
                bits[row / 8] |= u8::from(nulls.is_valid(start + row)) << (row % 8);
            }
        }
    }
    bits
}

fn set_first(bits: &mut [u8; BITMAP], rows: usize) {
    bits[..rows / 8].fill(0xff);
    if !rows.is_multiple_of(8) {
        bits[rows / 8] = (1 << (rows % 8)) - 1;
    }
}

/// The bits at the head of a body and what follows them.
///
/// # Errors
/// [`Damaged`] if there are too few bytes, or a bit behind the last row is set.
pub(crate) fn read_validity(body: &[u8], rows: usize) -> Result<(&[u8; BITMAP], &[u8]), Damaged> {
    let (bits, rest) = body.split_first_chunk::<BITMAP>().ok_or(Damaged)?;
    let mut all = [0; BITMAP];
    set_first(&mut all, rows);
    let beyond = bits.iter().zip(all).any(|(bit, all)| bit & !all != 0);
    if beyond {
        return Err(Damaged);
    }
    Ok((bits, rest))
}

/// Whether a row's bit is set.
pub(crate) fn bit(bits: &[u8; BITMAP], row: usize) -> bool {
    bits[row / 8] >> (row % 8) & 1 == 1
}

/// The bits of a tile without NULLs.
pub(crate) fn all_valid(rows: usize) -> [u8; BITMAP] {
    let mut bits = [0; BITMAP];
    set_first(&mut bits, rows);
    bits
}
