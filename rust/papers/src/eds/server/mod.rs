//! The side without keys: sweeps over segments of every form, and single files queried by token.

pub mod blocks;
pub mod clear;
pub mod file;
mod masks;

use super::spec::{Encryption, Layout, Spec};
use super::{Segment, TokenHeader};
use louver_primitives::eds::spec::FormatError;
use louver_untrusted::eds::sweep;
use louver_untrusted::{Error, Result};

/// A prepared token, to be used on many segments.
pub enum Token {
    /// Over encrypted rows of bits: the product's own sweep.
    Rows(sweep::Token<Spec>),
    /// Over rows of bits in the clear.
    Clear(clear::Token),
    /// Over blocks, or whole filters.
    Blocks(Box<blocks::Token>),
}

impl Token {
    /// Makes a token ready.
    ///
    /// # Errors
    /// Bytes that are not a token.
    pub fn new(bytes: &[u8]) -> Result<Self> {
        let header = TokenHeader::decode(bytes).map_err(malformed)?;
        Ok(match header.spec.encryption {
            Encryption::Open => Self::Clear(clear::Token::new(bytes)?),
            Encryption::XorBit => Self::Rows(sweep::Token::new(bytes)?),
            _ => Self::Blocks(Box::new(blocks::Token::new(bytes)?)),
        })
    }

    /// Which files a segment keeps: a bit for each, the first in the lowest bit of the first byte.
    ///
    /// # Errors
    /// Bytes that are not a segment, or a segment of another index.
    pub fn sweep(&self, segment: &[u8]) -> Result<Vec<u8>> {
        let token = match self {
            Self::Rows(token) => return token.sweep(segment),
            Self::Clear(token) => &token.header,
            Self::Blocks(token) => &token.header,
        };
        let read = Segment::decode(segment).map_err(malformed)?;
        let header = read.header;
        if header.index_id != token.index_id || header.spec != token.spec {
            let text = "a token and a segment do not belong to one index";
            return Err(error(text));
        }
        let mut hits = match self {
            Self::Clear(token) => token.sweep(&read),
            Self::Blocks(token) => {
                let words = token.sweep(&read).into_iter();
                words.flat_map(u64::to_le_bytes).collect()
            }
            Self::Rows(token) => token.sweep(segment)?,
        };
        hits.truncate((header.files as usize).div_ceil(8));
        Ok(hits)
    }
}

/// Whether a spec's segments are rows of single bits.
fn of_rows(spec: &Spec) -> bool {
    spec.encryption.layout() == Layout::BitMajor
}

fn malformed(wrong: FormatError) -> Error {
    error(wrong.0)
}

fn error(text: &str) -> Error {
    Error::Value(text.into())
}
