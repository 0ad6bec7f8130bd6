//! Segments: the filters of some files of one index (`spec/eds.md`, "Segment").
//!
//! Reading never trusts the bytes: every size is checked against their number and nothing panics.

use super::spec::{Form, FormatError, Spec, SPEC};

/// Most files of a segment.
pub const MOST_FILES: u32 = 32_768;
/// Bytes of an index id.
pub const INDEX_ID: usize = 16;
/// Bytes of a segment id.
pub const SEGMENT_ID: usize = 12;
/// Bytes before the first row.
pub const HEADER: usize = 48;
/// Bytes of a tag.
pub const TAG: usize = 16;
/// Up to this many bytes of rows, one tag covers all of them.
pub const ONE_TAG: usize = 1 << 20;
/// The row number in the one tag over all rows.
pub const ALL_ROWS: u32 = u32::MAX;
const MAGIC: &[u8; 4] = b"LVSG";
const VERSION: u8 = 1;

/// How the bits of a segment are laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Its code in a header.
    pub code: u8,
    /// How many rows there are.
    pub rows: usize,
    /// Bytes of a row.
    pub row_bytes: usize,
}

impl Shape {
    /// A row for every position of a filter, with a bit for every file.
    pub fn of_bits(bits: u32, files: u32) -> Self {
        Self {
            code: 0,
            rows: bits as usize,
            row_bytes: width(files),
        }
    }
}

/// What a segment says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header<S = Spec> {
    /// The spec of its index.
    pub spec: S,
    /// Of which index it is.
    pub index_id: [u8; INDEX_ID],
    /// Its own name; random.
    pub segment_id: [u8; SEGMENT_ID],
    /// How many files it describes.
    pub files: u32,
}

impl<S: Form> Header<S> {
    /// Reads the first [`HEADER`] bytes of a segment.
    ///
    /// # Errors
    /// [`FormatError`] for fewer bytes, another magic or version, a bad spec, no file or too many,
    /// and a layout that is not that of the spec.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let bad = FormatError("a segment of an index is malformed");
        let bytes: &[u8; HEADER] = bytes.first_chunk().ok_or(bad)?;
        let (magic, rest) = bytes.split_at(MAGIC.len());
        let ([version], rest) = rest.split_first_chunk().ok_or(bad)?;
        let (spec, rest) = rest.split_at(SPEC);
        let (index_id, rest) = rest.split_first_chunk().ok_or(bad)?;
        let (segment_id, rest) = rest.split_first_chunk().ok_or(bad)?;
        let (files, rest) = rest.split_first_chunk().ok_or(bad)?;
        let header = Self {
            spec: S::decode(spec)?,
            index_id: *index_id,
            segment_id: *segment_id,
            files: u32::from_le_bytes(*files),
        };
        let right = magic == MAGIC
            && *version == VERSION
            && (1..=MOST_FILES).contains(&header.files)
            && rest == [header.shape().code, 0, 0];
        right.then_some(header).ok_or(bad)
    }

    /// Its bytes.
    pub fn encode(&self) -> [u8; HEADER] {
        let parts: [&[u8]; 7] = [
            MAGIC,
            &[VERSION],
            &self.spec.encode(),
            &self.index_id,
            &self.segment_id,
            &self.files.to_le_bytes(),
            &[self.shape().code],
        ];
        let mut out = [0; HEADER];
        let mut at = 0;
        for part in parts {
            out[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        out
    }

    /// How its bits are laid out.
    fn shape(&self) -> Shape {
        self.spec.shape(self.files)
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.shape().rows
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> usize {
        self.shape().row_bytes
    }

    /// Bytes of all rows.
    pub fn payload(&self) -> usize {
        self.rows() * self.row_bytes()
    }

    /// How many tags follow the rows.
    pub fn tags(&self) -> usize {
        if self.payload() <= ONE_TAG {
            1
        } else {
            self.rows()
        }
    }

    /// Bytes of the whole segment.
    pub fn total(&self) -> usize {
        HEADER + self.payload() + TAG * self.tags()
    }
}

/// Bytes of a row of one bit a file: 1, 2, 4, or a multiple of 8.
pub fn width(files: u32) -> usize {
    match files {
        0..=8 => 1,
        9..=16 => 2,
        17..=32 => 4,
        _ => files.div_ceil(64) as usize * 8,
    }
}

/// A segment of the right length, in place.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a, S = Spec> {
    /// What it says of itself.
    pub header: Header<S>,
    payload: &'a [u8],
    tags: &'a [[u8; TAG]],
}

impl<'a, S: Form> Segment<'a, S> {
    /// Reads a segment.
    ///
    /// # Errors
    /// As [`Header::decode`], and for another length than the header says.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let header = Header::<S>::decode(bytes)?;
        if bytes.len() != header.total() {
            return Err(FormatError("a segment of an index was cut or has grown"));
        }
        let (payload, tags) = bytes[HEADER..].split_at(header.payload());
        let (tags, _) = tags.as_chunks();
        Ok(Self {
            header,
            payload,
            tags,
        })
    }

    /// A row; `None` past the last.
    pub fn row(&self, row: usize) -> Option<&'a [u8]> {
        let bytes = self.header.row_bytes();
        let start = row.checked_mul(bytes)?;
        self.payload.get(start..start.checked_add(bytes)?)
    }

    /// All rows.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The tags: one for all rows, or one for each.
    pub fn tags(&self) -> &'a [[u8; TAG]] {
        self.tags
    }
}

#[cfg(test)]
mod tests {
    use super::super::kind::Kind;
    use super::*;
    use proptest::prelude::*;

    fn header(kind: Kind, size: u32, files: u32) -> Header {
        Header {
            spec: Spec {
                kind,
                k: 8,
                bits: 1 << size,
            },
            index_id: [7; INDEX_ID],
            segment_id: [9; SEGMENT_ID],
            files,
        }
    }

    #[test]
    fn widths() {
        let wanted = [
            (1, 1),
            (8, 1),
            (9, 2),
            (17, 4),
            (32, 4),
            (33, 8),
            (65, 16),
            (32768, 4096),
        ];
        for (files, bytes) in wanted {
            assert_eq!(width(files), bytes, "{files} files");
        }
    }

    /// Sizes of the largest segments do not overflow, and no header speaks of more than 4 GiB.
    #[test]
    fn the_largest_segments() {
        for kind in Kind::ALL {
            let header = header(kind, 16, MOST_FILES);
            assert_eq!(header.payload(), 65536 / 8 * MOST_FILES as usize);
            assert_eq!(Header::decode(&header.encode()), Ok(header));
        }
    }

    proptest! {
        #[test]
        fn headers_and_hostile_bytes(
            kind in prop::sample::select(&Kind::ALL[..]),
            size in 10..12_u32,
            files in 1..100_u32,
            at: prop::sample::Index,
            flip in 1..=255_u8,
            noise: Vec<u8>,
        ) {
            let header = header(kind, size, files);
            prop_assert_eq!(Header::decode(&header.encode()), Ok(header));
            let mut bytes = header.encode().to_vec();
            bytes.resize(header.total(), 0);
            let segment = Segment::<Spec>::decode(&bytes).unwrap();
            prop_assert_eq!(segment.tags().len(), header.tags());
            prop_assert!(segment.row(header.rows() - 1).is_some());
            prop_assert!(segment.row(header.rows()).is_none());
            prop_assert!(segment.row(usize::MAX).is_none());
            bytes[at.index(HEADER)] ^= flip;
            if let Ok(other) = Segment::<Spec>::decode(&bytes) {
                prop_assert_eq!(other.header.encode(), *bytes.first_chunk::<HEADER>().unwrap());
            }
            bytes.pop();
            prop_assert!(Segment::<Spec>::decode(&bytes).is_err());
            prop_assert!(Segment::<Spec>::decode(&noise).is_err());
        }
    }
}
