//! Segments: the filters of some files of one index (`spec/eds.md`, "Segment").
//!
//! Reading never trusts the bytes: every size is checked against their number and nothing panics.

use super::spec::{FormatError, Layout, Spec, SPEC};

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
/// Bytes of rows up to which one tag stands for all of them.
pub const ONE_TAG: usize = 1 << 20;
/// What stands for a row number in the one tag over all rows.
pub const ALL_ROWS: u32 = u32::MAX;
const MAGIC: &[u8; 4] = b"LVSG";
const VERSION: u8 = 1;

/// What a segment says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The spec of its index.
    pub spec: Spec,
    /// Of which index it is.
    pub index_id: [u8; INDEX_ID],
    /// Its own name; random.
    pub segment_id: [u8; SEGMENT_ID],
    /// How many files it describes.
    pub files: u32,
}

impl Header {
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
            spec: Spec::decode(spec)?,
            index_id: *index_id,
            segment_id: *segment_id,
            files: u32::from_le_bytes(*files),
        };
        let right = magic == MAGIC
            && *version == VERSION
            && (1..=MOST_FILES).contains(&header.files)
            && rest == [header.layout() as u8, 0, 0];
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
            &[self.layout() as u8],
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
    pub fn layout(&self) -> Layout {
        self.spec.encryption.layout()
    }

    /// How many rows it has: of bits, of blocks, or of filters.
    pub fn rows(&self) -> usize {
        let spec = &self.spec;
        match self.layout() {
            Layout::BitMajor => spec.bits as usize,
            Layout::BlockMajor => (spec.bits / spec.kind.block_bits()) as usize,
            Layout::FileMajor => self.files as usize,
        }
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> usize {
        let spec = &self.spec;
        match self.layout() {
            Layout::BitMajor => width(self.files),
            Layout::BlockMajor => (spec.kind.block_bits() / 8 * self.files) as usize,
            Layout::FileMajor => (spec.bits / 8) as usize,
        }
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
pub struct Segment<'a> {
    /// What it says of itself.
    pub header: Header,
    payload: &'a [u8],
    tags: &'a [[u8; TAG]],
}

impl<'a> Segment<'a> {
    /// Reads a segment.
    ///
    /// # Errors
    /// As [`Header::decode`], and for another length than the header says.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let header = Header::decode(bytes)?;
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
    use super::super::spec::{Encryption, Hash};
    use super::*;
    use proptest::prelude::*;

    fn header(kind: u8, encryption: u8, size: u32, files: u32) -> Header {
        Header {
            spec: Spec {
                kind: Kind::from_code(kind).unwrap(),
                hash: Hash::Aes128,
                encryption: Encryption::from_code(encryption).unwrap(),
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
        for kind in 0..5 {
            for encryption in 0..5 {
                let header = header(kind, encryption, 16, MOST_FILES);
                assert_eq!(header.payload(), 65536 / 8 * MOST_FILES as usize);
                assert_eq!(Header::decode(&header.encode()), Ok(header));
            }
        }
    }

    proptest! {
        #[test]
        fn headers_and_hostile_bytes(
            kind in 0..5_u8,
            encryption in 0..5_u8,
            size in 10..12_u32,
            files in 1..100_u32,
            at: prop::sample::Index,
            flip in 1..=255_u8,
            noise: Vec<u8>,
        ) {
            let header = header(kind, encryption, size, files);
            prop_assert_eq!(Header::decode(&header.encode()), Ok(header));
            let mut bytes = header.encode().to_vec();
            bytes.resize(header.total(), 0);
            let segment = Segment::decode(&bytes).unwrap();
            prop_assert_eq!(segment.tags().len(), header.tags());
            prop_assert!(segment.row(header.rows() - 1).is_some());
            prop_assert!(segment.row(header.rows()).is_none());
            prop_assert!(segment.row(usize::MAX).is_none());
            bytes[at.index(HEADER)] ^= flip;
            if let Ok(other) = Segment::decode(&bytes) {
                prop_assert_eq!(other.header.encode(), *bytes.first_chunk::<HEADER>().unwrap());
            }
            bytes.pop();
            prop_assert!(Segment::decode(&bytes).is_err());
            prop_assert!(Segment::decode(&noise).is_err());
        }
    }
}
