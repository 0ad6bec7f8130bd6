//! From tiles of byte strings to an Arrow array. Bounded by the bytes given and the form; no bytes
//! make it panic.

use super::form::Checked;
use super::frame::{
    all_valid, bit, read_validity, Damaged, Header, BITMAP, COMPRESSED, DICTIONARY, HEADER, PLAIN,
    VALIDITY,
};
use super::strings::{as_elements, index_bits, length_bytes};
use super::TILE_ROWS;
use crate::error::Result as Opened;
use crate::value::Builder;
use louver_primitives::packed::{packed_bytes, unpack, Lanes};
use zeroize::Zeroize;

/// Bytes of a body besides those of its values, at most: validity, indices, lengths, counts.
const AROUND: usize = BITMAP + packed_bytes(10) + 3 + 4 * TILE_ROWS;
/// Times that an LZ4 block grows, at most.
const GROWTH: usize = 255;

/// Bytes of an entry that is copied in one go.
const SHORT: usize = 16;

/// What is read of some tiles.
pub(crate) struct Reader<'a> {
    form: &'a Checked,
    lanes: Lanes,
    unit: usize,
    limit: usize,
    scratch: Vec<u8>,
    pub(crate) sink: Sink,
}

/// Where values go.
pub(crate) enum Sink {
    /// Bytes, and the length of each value.
    Bytes(Vec<u8>, Vec<u32>),
    /// Values of a width.
    Fixed(Vec<u8>, usize),
    Elements(Box<Builder>),
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.scratch.zeroize();
    }
}

/// Byte strings behind each other: each ends where the next one begins.
struct Pieces<'a> {
    bytes: &'a [u8],
    starts: Vec<u32>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(
        form: &'a Checked,
        lanes: Lanes,
        (unit, limit): (u32, u32),
        rows: usize,
    ) -> Opened<Self> {
        let sink = match form.width {
            _ if as_elements(form) => {
                Sink::Elements(Box::new(Builder::new(&form.data_type, rows)?))
            }
            Some(width) => Sink::Fixed(Vec::new(), width),
            None => Sink::Bytes(Vec::new(), Vec::new()),
        };
        Ok(Self {
            form,
            lanes,
            unit: unit as usize,
            limit: limit as usize,
            scratch: Vec::new(),
            sink,
        })
    }

    /// Reads a plaintext; how many rows it has. What is behind the last one in `valid` is zero.
    pub(crate) fn push(
        &mut self,
        plain: &[u8],
        valid: &mut [u8; BITMAP],
    ) -> Result<usize, Damaged> {
        let (header, rest) = Header::read(self.form, plain)?;
        let (length, rest) = number(rest)?;
        let (whole, rest) = number(rest)?;
        let (stored, padding) = rest.split_at_checked(length).ok_or(Damaged)?;
        if plain.len() != (HEADER + 8 + length).next_multiple_of(self.unit)
            || padding.iter().any(|&b| b != 0)
        {
            return Err(Damaged);
        }
        if header.layout & COMPRESSED == 0 {
            return match whole == length {
                true => self.body(header, stored, valid),
                false => Err(Damaged),
            };
        }
        if whole > self.limit + AROUND || whole / GROWTH > length {
            return Err(Damaged);
        }
        let mut body = std::mem::take(&mut self.scratch);
        body.clear();
        body.resize(whole, 0);
        let done = lz4_flex::block::decompress_into(stored, &mut body);
        let read = match done {
            Ok(bytes) if bytes == whole => self.body(header, &body, valid),
            _ => Err(Damaged),
        };
        self.scratch = body;
        read
    }

    fn body(
        &mut self,
        header: Header,
        mut body: &[u8],
        valid: &mut [u8; BITMAP],
    ) -> Result<usize, Damaged> {
        let rows = header.rows;
        *valid = all_valid(rows);
        if header.layout & VALIDITY != 0 {
            if matches!(self.sink, Sink::Elements(_)) {
                return Err(Damaged);
            }
            let (bits, rest) = read_validity(body, rows)?;
            (*valid, body) = (*bits, rest);
        }
        let width = match self.sink {
            Sink::Fixed(_, width) => Some(width),
            _ => None,
        };
        match header.layout & !(VALIDITY | COMPRESSED) {
            PLAIN if header.bits == 0 => {
                let pieces = Pieces::read(body, rows, width)?;
                if pieces.bytes.len() > self.limit {
                    return Err(Damaged);
                }
                self.plain(&pieces, rows, valid)?;
            }
            DICTIONARY => self.dictionary(u32::from(header.bits), body, rows, valid)?,
            _ => return Err(Damaged),
        }
        Ok(rows)
    }

    fn plain(
        &mut self,
        pieces: &Pieces<'_>,
        rows: usize,
        valid: &[u8; BITMAP],
    ) -> Result<(), Damaged> {
        let filled = |row: usize| pieces.get(row).iter().any(|&b| b != 0);
        let null = |row: usize| !bit(valid, row);
        match &mut self.sink {
            Sink::Bytes(bytes, lengths) => {
                if (0..rows).any(|row| null(row) && !pieces.get(row).is_empty()) {
                    return Err(Damaged);
                }
                bytes.extend_from_slice(pieces.bytes);
                lengths.extend(pieces.starts.windows(2).map(|pair| pair[1] - pair[0]));
            }
            Sink::Fixed(bytes, _) => {
                if (0..rows).any(|row| null(row) && filled(row)) {
                    return Err(Damaged);
                }
                bytes.extend_from_slice(pieces.bytes);
            }
            Sink::Elements(builder) => {
                for row in 0..rows {
                    let pushed = builder.push_element(pieces.get(row));
                    pushed.map_err(|_| Damaged)?;
                }
            }
        }
        Ok(())
    }

    fn dictionary(
        &mut self,
        bits: u32,
        body: &[u8],
        rows: usize,
        valid: &[u8; BITMAP],
    ) -> Result<(), Damaged> {
        if bits > 10 {
            return Err(Damaged);
        }
        let (packed, body) = body.split_at_checked(packed_bytes(bits)).ok_or(Damaged)?;
        let (count, body) = body.split_first_chunk::<2>().ok_or(Damaged)?;
        let count = usize::from(u16::from_le_bytes(*count));
        let width = match self.sink {
            Sink::Fixed(_, width) => Some(width),
            _ => None,
        };
        let entries = Pieces::read(body, count, width)?;
        let mut indices = [0_u32; TILE_ROWS];
        unpack(self.lanes, packed, 0, bits, &mut indices);
        if bits != index_bits(count) || count > TILE_ROWS {
            return Err(Damaged);
        }
        let mut total = 0;
        for (row, &index) in indices.iter().enumerate() {
            if bit(valid, row) {
                if index as usize >= count {
                    return Err(Damaged);
                }
                total += entries.get(index as usize).len();
            } else if index != 0 {
                return Err(Damaged);
            }
        }
        if total > self.limit {
            return Err(Damaged);
        }
        self.spread(&entries, &indices[..rows], valid, total)
    }

    /// Puts the entries of a dictionary out.
    fn spread(
        &mut self,
        entries: &Pieces<'_>,
        indices: &[u32],
        valid: &[u8; BITMAP],
        total: usize,
    ) -> Result<(), Damaged> {
        let rows = indices.iter().enumerate();
        match &mut self.sink {
            Sink::Bytes(bytes, lengths) => match short(entries, indices.len()) {
                Some(short) => {
                    let mut end = bytes.len();
                    bytes.resize(end + total + SHORT, 0);
                    for (row, &index) in rows {
                        let (entry, length) = &short[index as usize];
                        let length = if bit(valid, row) { *length } else { 0 };
                        // All of it, whatever its length: the next one begins where it ends.
                        bytes[end..end + SHORT].copy_from_slice(entry);
                        end += length as usize;
                        lengths.push(length);
                    }
                    bytes.truncate(end);
                }
                None => {
                    bytes.reserve(total);
                    for (row, &index) in rows {
                        let entry: &[u8] = match bit(valid, row) {
                            true => entries.get(index as usize),
                            false => &[],
                        };
                        bytes.extend_from_slice(entry);
                        lengths.push(entry.len() as u32);
                    }
                }
            },
            Sink::Fixed(bytes, width) => {
                bytes.reserve(*width * indices.len());
                for (row, &index) in rows {
                    match bit(valid, row) {
                        true => bytes.extend_from_slice(entries.get(index as usize)),
                        false => bytes.resize(bytes.len() + *width, 0),
                    }
                }
            }
            Sink::Elements(builder) => {
                for &index in indices {
                    let pushed = builder.push_element(entries.get(index as usize));
                    pushed.map_err(|_| Damaged)?;
                }
            }
        }
        Ok(())
    }
}

impl<'a> Pieces<'a> {
    /// As many strings, up to the last byte.
    fn read(body: &'a [u8], count: usize, width: Option<usize>) -> Result<Self, Damaged> {
        let mut starts = Vec::with_capacity(count + 1);
        starts.push(0);
        if let Some(width) = width {
            if body.len() != count * width {
                return Err(Damaged);
            }
            starts.extend((1..=count).map(|row| (row * width) as u32));
            return Ok(Self {
                bytes: body,
                starts,
            });
        }
        let (&size, body) = body.split_first().ok_or(Damaged)?;
        let size = usize::from(size);
        if size > 4 {
            return Err(Damaged);
        }
        let (lengths, bytes) = body.split_at_checked(count * size).ok_or(Damaged)?;
        let (mut end, mut greatest) = (0_u64, 0);
        if size == 0 {
            starts.resize(count + 1, 0);
        }
        for length in lengths.chunks_exact(size.max(1)) {
            let mut bytes = [0; 4];
            bytes[..size].copy_from_slice(length);
            let length = u32::from_le_bytes(bytes);
            greatest = greatest.max(length);
            end += u64::from(length);
            starts.push(end as u32);
        }
        if end != bytes.len() as u64
            || length_bytes(greatest) != size
            || u32::try_from(end).is_err()
        {
            return Err(Damaged);
        }
        Ok(Self { bytes, starts })
    }

    fn get(&self, index: usize) -> &'a [u8] {
        &self.bytes[self.starts[index] as usize..self.starts[index + 1] as usize]
    }
}

/// The entries of a dictionary that pays for it, filled with zeros, if all of them are short. There
/// is always one.
fn short(entries: &Pieces<'_>, rows: usize) -> Option<Vec<([u8; SHORT], u32)>> {
    let count = entries.starts.len() - 1;
    if count > rows / 4 || (0..count).any(|index| entries.get(index).len() > SHORT) {
        return None;
    }
    let filled = |index| {
        let (entry, mut bytes) = (entries.get(index), [0; SHORT]);
        bytes[..entry.len()].copy_from_slice(entry);
        (bytes, entry.len() as u32)
    };
    let mut short: Vec<_> = (0..count).map(filled).collect();
    if short.is_empty() {
        short.push(([0; SHORT], 0));
    }
    Some(short)
}

fn number(bytes: &[u8]) -> Result<(usize, &[u8]), Damaged> {
    let (number, rest) = bytes.split_first_chunk().ok_or(Damaged)?;
    Ok((u32::from_le_bytes(*number) as usize, rest))
}
