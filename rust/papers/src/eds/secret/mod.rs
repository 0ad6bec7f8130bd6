//! The secret side: segments and tokens of every form, and filters of single files.

pub mod blocks;
pub mod file;

use super::block_token::{BlockToken, Form};
use super::spec::{Encryption, Layout, Spec};
use super::{Segment, SegmentHeader, TokenHeader};
use crate::Root;
use louver_primitives::eds::segment::SEGMENT_ID;
use louver_primitives::eds::spec::FormatError;
use louver_primitives::eds::token::Token;
use louver_trusted::eds::keys::IndexKeys;
use louver_trusted::eds::{generate, tags, tokens, Ranges};
use louver_trusted::{Error, Result};
use std::fmt;

/// The keys of one index, of any spec.
pub struct Index(pub(super) IndexKeys<Spec>);

impl Index {
    /// The keys of a table's column in a generation.
    pub fn new(root: &Root, address: [u32; 3], spec: Spec) -> Self {
        Self(IndexKeys::new(spec, |name| root.derive(name, address)))
    }

    /// A new segment: the encrypted filters of some files.
    ///
    /// # Errors
    /// [`Error::Value`] for ranges that make no sense; [`Error::System`] without randomness.
    pub fn segment(&self, ranges: &Ranges<'_>) -> Result<Vec<u8>> {
        let mut segment_id = [0; SEGMENT_ID];
        let failed = |error: getrandom::Error| Error::System(error.to_string());
        getrandom::fill(&mut segment_id).map_err(failed)?;
        self.segment_named(ranges, segment_id)
    }

    /// A segment under a name that MUST be fresh.
    ///
    /// # Errors
    /// As [`Index::segment`].
    pub fn segment_named(
        &self,
        ranges: &Ranges<'_>,
        segment_id: [u8; SEGMENT_ID],
    ) -> Result<Vec<u8>> {
        let keys = &self.0;
        let header = SegmentHeader {
            spec: keys.spec,
            index_id: keys.id,
            segment_id,
            files: ranges.check()?,
        };
        match keys.spec.encryption {
            Encryption::XorBit => generate::segment_named(keys, &header, ranges),
            _ => blocks::segment(keys, &header, ranges),
        }
    }

    /// What shows a server one inclusive range of mapped values: equal ranges, equal tokens.
    ///
    /// # Errors
    /// [`Error::Value`] if `low` is above `high`.
    pub fn token(&self, low: u64, high: u64, sides: bool) -> Result<Vec<u8>> {
        match self.0.spec.encryption {
            Encryption::XorBit => tokens::token(&self.0, low, high, sides),
            _ => blocks::token(&self.0, low, high, sides),
        }
    }

    /// The positions that a token opens, ascending.
    ///
    /// # Errors
    /// [`Error::Value`] for bytes that are not a token.
    pub fn opened(&self, token: &[u8]) -> Result<Vec<u32>> {
        let (header, rows) = read(token)?;
        let width = header.spec.kind.block_bits();
        let blocks = rows.iter();
        Ok(match header.spec.encryption.layout() {
            Layout::BitMajor => rows,
            Layout::BlockMajor => blocks
                .flat_map(|block| block * width..(block + 1) * width)
                .collect(),
            Layout::FileMajor => (0..header.spec.bits).collect(),
        })
    }

    /// Checks the tags of all rows that a token reads, or of all.
    ///
    /// # Errors
    /// [`Error::Verify`] for anything else than [`Index::segment`] has made; [`Error::Value`] for
    /// bytes that are not a token.
    pub fn check(&self, segment: &[u8], token: Option<&[u8]>) -> Result<()> {
        let segment = Segment::decode(segment).map_err(|error| Error::Verify(error.0.into()))?;
        let whole = self.0.spec.encryption.layout() == Layout::FileMajor;
        let rows = match token {
            Some(token) if !whole => Some(read(token)?.1),
            _ => None,
        };
        tags::check(&self.0, &segment, rows.as_deref())
    }
}

/// A token of any layout, and which rows of a segment it reads: ascending, each once.
fn read(token: &[u8]) -> Result<(TokenHeader, Vec<u32>)> {
    let value = |error: FormatError| Error::Value(error.0.into());
    let header = TokenHeader::decode(token).map_err(value)?;
    let mut rows: Vec<u32> = match header.spec.encryption.layout() {
        Layout::BitMajor => {
            let token = Token::<Spec>::decode(token).map_err(value)?;
            token.pairs().map(|pair| pair.position).collect()
        }
        _ => {
            let token = BlockToken::decode(token, Form::Segment).map_err(value)?;
            token.units.iter().map(|unit| unit.number).collect()
        }
    };
    rows.sort_unstable();
    rows.dedup();
    Ok((header, rows))
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index({:?}, redacted)", self.0.spec)
    }
}
