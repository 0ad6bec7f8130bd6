//! The keys of one table of a lake: its face to the rest of the product.

use super::generate::{self, Ranges};
use super::keys::IndexKeys;
use super::{tags, tokens};
use crate::error::{Error, Result};
use crate::keyring::KeyRing;
use crate::keys::Purpose;
use hmac::{Hmac, KeyInit, Mac};
use louver_primitives::eds::segment::Segment;
use louver_primitives::eds::spec::{Form, FormatError, Spec};
use louver_primitives::eds::token::Token;
use sha2::Sha256;
use std::fmt;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The keys of one table of a lake. Holds no secret of its own, but the ring that does.
pub struct LakeKeys {
    ring: Arc<KeyRing>,
    table: u32,
}

impl LakeKeys {
    /// The keys of the table of this number.
    pub fn new(ring: Arc<KeyRing>, table: u32) -> Self {
        Self { ring, table }
    }

    /// The number of the table.
    pub fn table(&self) -> u32 {
        self.table
    }

    /// A key of this table; column and generation are 0 where they do not apply.
    pub(crate) fn derive(&self, name: &str, column: u32, generation: u32) -> Zeroizing<[u8; 32]> {
        self.ring.root().derive(Purpose {
            name,
            table: self.table,
            column,
            generation,
        })
    }

    /// The public name of an index: 16 bytes that show neither table nor column.
    ///
    /// # Errors
    /// [`Error::Value`] for bytes that are not a spec.
    pub fn index_id(&self, column: u32, generation: u32, spec: &[u8]) -> Result<[u8; 16]> {
        Ok(self.index(column, generation, spec)?.id)
    }

    /// A new segment of an index: the encrypted filters of some files.
    ///
    /// # Errors
    /// [`Error::Value`] for no file or more than 32,768, lists that differ in length, an unknown
    /// state, and a range whose ends are in the wrong order; [`Error::System`] without randomness.
    pub fn segment(
        &self,
        column: u32,
        generation: u32,
        spec: &[u8],
        ranges: &Ranges<'_>,
    ) -> Result<Vec<u8>> {
        generate::segment(&self.index(column, generation, spec)?, ranges)
    }

    /// What shows a server one inclusive range of mapped values: equal ranges, equal tokens.
    ///
    /// # Errors
    /// [`Error::Value`] if `low` is above `high`, or for bytes that are not a spec.
    pub fn token(
        &self,
        column: u32,
        generation: u32,
        spec: &[u8],
        (low, high): (u64, u64),
        sides: bool,
    ) -> Result<Vec<u8>> {
        tokens::token(&self.index(column, generation, spec)?, low, high, sides)
    }

    /// The positions that a token opens, ascending.
    ///
    /// # Errors
    /// [`Error::Value`] for bytes that are not a token.
    pub fn opened(&self, token: &[u8]) -> Result<Vec<u32>> {
        Ok(rows(&Token::decode(token).map_err(value)?))
    }

    /// Checks that a segment is this index's, and the tags of all rows that a token reads; without
    /// a token those of all rows.
    ///
    /// # Errors
    /// [`Error::Verify`] for anything else than [`LakeKeys::segment`] has made;
    /// [`Error::Value`] for bytes that are not a token, or another index's.
    pub fn check(
        &self,
        column: u32,
        generation: u32,
        segment: &[u8],
        token: Option<&[u8]>,
    ) -> Result<()> {
        let segment = Segment::<Spec>::decode(segment).map_err(|error| Error::verify(error.0))?;
        let spec = segment.header.spec;
        let keys = self.index_of(column, generation, spec);
        if keys.id != segment.header.index_id {
            let text = "a segment belongs to another table, column or generation";
            return Err(Error::verify(text));
        }
        let Some(token) = token else {
            return tags::check(&keys, &segment, None);
        };
        let token = Token::<Spec>::decode(token).map_err(value)?;
        if token.header.index_id != keys.id || token.header.spec != spec {
            return Err(Error::value("a token is for another index than a segment"));
        }
        tags::check(&keys, &segment, Some(&rows(&token)))
    }

    /// HMAC-SHA256 of context and data under a key of this table and purpose.
    pub fn sign(&self, purpose: &str, context: &[u8], data: &[u8]) -> [u8; 32] {
        self.mac(purpose, context, data)
            .finalize()
            .into_bytes()
            .into()
    }

    /// Checks what [`LakeKeys::sign`] made, in constant time.
    ///
    /// # Errors
    /// [`Error::Verify`].
    pub fn verify(&self, purpose: &str, context: &[u8], data: &[u8], tag: &[u8]) -> Result<()> {
        let mac = self.mac(purpose, context, data);
        let failed = |_| Error::verify(format!("the signature of {purpose} is not ours"));
        mac.verify_slice(tag).map_err(failed)
    }

    fn mac(&self, purpose: &str, context: &[u8], data: &[u8]) -> Hmac<Sha256> {
        let key = self.derive(&format!("lake/sign/{purpose}"), 0, 0);
        let mut mac = Hmac::<Sha256>::new_from_slice(&key[..]).expect("any length is a key");
        mac.update(&(context.len() as u64).to_be_bytes());
        mac.update(context);
        mac.update(data);
        mac
    }

    fn index(&self, column: u32, generation: u32, spec: &[u8]) -> Result<IndexKeys> {
        let spec = Spec::decode(spec).map_err(value)?;
        Ok(self.index_of(column, generation, spec))
    }

    pub(super) fn index_of(&self, column: u32, generation: u32, spec: Spec) -> IndexKeys {
        IndexKeys::new(spec, |name| self.derive(name, column, generation))
    }
}

/// The rows of a segment that a token reads: ascending, each once.
fn rows(token: &Token<'_>) -> Vec<u32> {
    let mut rows: Vec<u32> = token.pairs().map(|pair| pair.position).collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

fn value(error: FormatError) -> Error {
    Error::value(error.0)
}

impl fmt::Debug for LakeKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LakeKeys({}, table {})", self.ring.key_id(), self.table)
    }
}
