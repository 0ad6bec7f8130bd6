//! Tiles of byte strings: plain or by a dictionary, compressed where it pays, in whole units.

use super::form::Checked;
use super::frame::{write_validity, Header, COMPRESSED, DICTIONARY, PLAIN, VALIDITY};
use super::seal::numbers;
use super::TILE_ROWS;
use crate::error::{Error, Result};
use crate::value::{Class, Encoder};
use arrow_array::cast::AsArray;
use arrow_array::types::ByteArrayType;
use arrow_array::{Array, ArrayRef, BinaryViewArray, GenericByteArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::DataType;
use louver_primitives::packed::{pack, packed_bytes};
use std::collections::HashMap;
use std::ops::Range;

/// An array whose values are byte strings, or are written as such.
pub(crate) enum Strings {
    Small(OffsetBuffer<i32>, Buffer),
    Large(OffsetBuffer<i64>, Buffer),
    View(BinaryViewArray),
    /// Values of so many bytes each.
    Fixed(usize, Buffer),
    /// The elements of `spec/rnd.md`, which say themselves whether they are NULL.
    Elements(Encoder),
}

/// Whether values of a type are written as elements.
pub(crate) fn as_elements(form: &Checked) -> bool {
    match form.class {
        Class::Text | Class::Bytes => false,
        Class::Fixed => form.width == Some(0),
        _ => true,
    }
}

impl Strings {
    pub(crate) fn new(values: &ArrayRef, form: &Checked) -> Result<Self> {
        use DataType as T;
        Ok(match values.data_type() {
            _ if as_elements(form) => Self::Elements(Encoder::new(values)?),
            T::Utf8 => small(values.as_string::<i32>()),
            T::Binary => small(values.as_binary::<i32>()),
            T::LargeUtf8 => large(values.as_string::<i64>()),
            T::LargeBinary => large(values.as_binary::<i64>()),
            T::BinaryView => Self::View(values.as_binary_view().clone()),
            T::Utf8View => Self::View(values.as_string_view().clone().to_binary_view()),
            _ => {
                let width = form.width.unwrap_or(1);
                Self::Fixed(width, numbers(values, width)?)
            }
        })
    }

    /// Appends the bytes of a value that is not NULL.
    fn push(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Small(offsets, bytes) => {
                out.extend_from_slice(&bytes[offsets[row] as usize..offsets[row + 1] as usize]);
            }
            Self::Large(offsets, bytes) => {
                out.extend_from_slice(&bytes[offsets[row] as usize..offsets[row + 1] as usize]);
            }
            Self::View(array) => out.extend_from_slice(array.value(row)),
            Self::Fixed(width, bytes) => out.extend_from_slice(&bytes[row * width..][..*width]),
            Self::Elements(encoder) => encoder.element(row, out)?,
        }
        Ok(())
    }

    /// Appends what stands for a NULL.
    fn push_null(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Fixed(width, _) => out.resize(out.len() + width, 0),
            Self::Elements(encoder) => encoder.element(row, out)?,
            _ => {}
        }
        Ok(())
    }
}

fn small<T: ByteArrayType<Offset = i32>>(array: &GenericByteArray<T>) -> Strings {
    Strings::Small(array.offsets().clone(), array.values().clone())
}

fn large<T: ByteArrayType<Offset = i64>>(array: &GenericByteArray<T>) -> Strings {
    Strings::Large(array.offsets().clone(), array.values().clone())
}

/// Writes tiles of some strings.
pub(crate) struct Writer {
    pub(crate) unit: usize,
    pub(crate) limit: usize,
    pub(crate) strings: Strings,
}

/// The values of a tile, one after another.
struct Pieces {
    bytes: Vec<u8>,
    lengths: Vec<u32>,
}

impl Writer {
    /// Appends the plaintext of some rows.
    pub(crate) fn write(
        &self,
        form: &Checked,
        nulls: Option<&NullBuffer>,
        rows: Range<usize>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let elements = matches!(self.strings, Strings::Elements(_));
        let nulls = nulls.filter(|n| !elements && rows.clone().any(|row| n.is_null(row)));
        let pieces = self.pieces(nulls, rows.clone())?;
        let mut header = Header {
            rows: rows.len(),
            layout: PLAIN,
            bits: 0,
        };
        let mut body = Vec::new();
        if nulls.is_some() {
            body.extend_from_slice(&write_validity(nulls, rows.start, rows.len()));
        }
        let fixed = matches!(self.strings, Strings::Fixed(_, _));
        if let Some((bits, dictionary)) = dictionary(&pieces, nulls, rows.start, fixed) {
            (header.layout, header.bits) = (DICTIONARY, bits);
            body.extend_from_slice(&dictionary);
        } else {
            write_strings(&pieces.lengths, &pieces.bytes, fixed, &mut body);
        }
        if nulls.is_some() {
            header.layout |= VALIDITY;
        }
        self.finish(form, header, &body, out)
    }

    fn pieces(&self, nulls: Option<&NullBuffer>, rows: Range<usize>) -> Result<Pieces> {
        let (mut bytes, mut lengths) = (Vec::new(), Vec::with_capacity(rows.len()));
        for row in rows {
            let start = bytes.len();
            if nulls.is_some_and(|n| n.is_null(row)) {
                self.strings.push_null(row, &mut bytes)?;
            } else {
                self.strings.push(row, &mut bytes)?;
            }
            if bytes.len() > self.limit {
                return Err(Error::widen(
                    "the values of a tile are longer than its column's form allows",
                ));
            }
            lengths.push((bytes.len() - start) as u32);
        }
        Ok(Pieces { bytes, lengths })
    }

    /// Header, lengths, body and padding.
    fn finish(
        &self,
        form: &Checked,
        mut header: Header,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let compressed = lz4_flex::block::compress(body);
        let head = header.bytes(form).len() + 8;
        let units = |length: usize| (head + length).div_ceil(self.unit);
        let pays = compressed.len() <= body.len() - body.len() / 8;
        let stored = if pays && units(compressed.len()) < units(body.len()) {
            header.layout |= COMPRESSED;
            compressed.as_slice()
        } else {
            body
        };
        let number = |length: usize| u32::try_from(length).map(u32::to_le_bytes);
        let (Ok(length), Ok(whole)) = (number(stored.len()), number(body.len())) else {
            return Err(Error::value("a tile is too long"));
        };
        let start = out.len();
        out.extend_from_slice(&header.bytes(form));
        out.extend_from_slice(&length);
        out.extend_from_slice(&whole);
        out.extend_from_slice(stored);
        out.resize(start + units(stored.len()) * self.unit, 0);
        Ok(())
    }
}

/// Bytes of each length, which fits the greatest.
pub(crate) fn length_bytes(greatest: u32) -> usize {
    (u32::BITS - greatest.leading_zeros()).div_ceil(8) as usize
}

/// Strings behind each other; those of a type of fixed width have no lengths.
fn write_strings(lengths: &[u32], bytes: &[u8], fixed: bool, out: &mut Vec<u8>) {
    if !fixed {
        let width = length_bytes(lengths.iter().copied().max().unwrap_or(0));
        out.push(width as u8);
        for length in lengths {
            out.extend_from_slice(&length.to_le_bytes()[..width]);
        }
    }
    out.extend_from_slice(bytes);
}

/// Bits of an index, and the strings by a dictionary; `None` if that is not smaller.
fn dictionary(
    pieces: &Pieces,
    nulls: Option<&NullBuffer>,
    start: usize,
    fixed: bool,
) -> Option<(u8, Vec<u8>)> {
    let hasher = ahash::RandomState::with_seeds(1, 2, 3, 4);
    let mut known: HashMap<&[u8], u32, _> = HashMap::with_hasher(hasher);
    let (mut indices, mut entries) = ([0_u32; TILE_ROWS], Vec::new());
    let (mut rest, mut total) = (pieces.bytes.as_slice(), 0);
    for (row, &length) in pieces.lengths.iter().enumerate() {
        let (piece, after) = rest.split_at(length as usize);
        rest = after;
        if nulls.is_some_and(|n| n.is_null(start + row)) {
            continue;
        }
        let next = known.len() as u32;
        indices[row] = *known.entry(piece).or_insert_with(|| {
            entries.push(piece);
            total += piece.len();
            next
        });
        if entries.len() > 1 + pieces.lengths.len() / 2 {
            return None;
        }
    }
    let bits = index_bits(entries.len());
    let lengths: Vec<u32> = entries.iter().map(|entry| entry.len() as u32).collect();
    let mut out = vec![0; packed_bytes(bits)];
    pack(&indices, 0, bits, &mut out);
    out.extend_from_slice(&(entries.len() as u16).to_le_bytes());
    write_strings(&lengths, &entries.concat(), fixed, &mut out);
    let greatest = pieces.lengths.iter().copied().max().unwrap_or(0);
    let plain = if fixed {
        pieces.bytes.len()
    } else {
        1 + pieces.lengths.len() * length_bytes(greatest) + pieces.bytes.len()
    };
    (out.len() < plain).then_some((bits as u8, out))
}

/// Bits of an index into so many entries.
pub(crate) fn index_bits(entries: usize) -> u32 {
    usize::BITS - entries.saturating_sub(1).leading_zeros()
}
