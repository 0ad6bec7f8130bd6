//! Searchable text (`spec/text.md`): a salted Bloom filter of tokens a row, and trapdoors.

mod pattern;
mod seal;
#[cfg(test)]
mod tests;
mod tokens;

use crate::epochs::Epochs;
use crate::error::Result;
use crate::keyring::KeyRing;
use arrow_array::{Array, ArrayRef};
pub(crate) use seal::{Filters, Trapdoors};

/// The version byte of lists of trapdoors.
const SEARCH_VERSION: u8 = 1;

/// What a query looks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Search<'a> {
    /// A whole word, case-sensitive.
    Word(&'a str),
    /// Text that values begin with.
    Prefix(&'a str),
    /// Text that values end with.
    Suffix(&'a str),
    /// Text that values contain.
    Contains(&'a str),
    /// A pattern of SQL's LIKE, and its escape character.
    Like(&'a str, Option<char>),
}

impl KeyRing {
    /// Filters of texts, one a row; that of NULL looks like that of a short text.
    ///
    /// # Errors
    /// [`crate::Error::Value`] for anything but text, a missing row id, or more than 2 GiB at once;
    /// [`crate::Error::Verify`] for a row of an epoch that is not known.
    pub fn text_seal(
        &self,
        id: (u32, u32, u32),
        epochs: &Epochs,
        values: &dyn Array,
        row_ids: &dyn Array,
    ) -> Result<ArrayRef> {
        seal::seal(self, id, epochs, values, row_ids)
    }

    /// The trapdoors by which a server finds candidates; `None` where a search has no token.
    /// Every value that fits the search is among the candidates.
    pub fn text_tokens(&self, id: (u32, u32, u32), search: Search<'_>) -> Option<Vec<u8>> {
        let tokens = pattern::tokens(search)?;
        let trapdoors = Trapdoors::of_column(self, id);
        let mut sorted: Vec<[u8; 16]> = tokens.iter().map(|t| trapdoors.of(t)).collect();
        // Their order would reveal the position of each token in the pattern.
        sorted.sort_unstable();
        sorted.dedup();
        let mut out = vec![SEARCH_VERSION];
        out.extend_from_slice(sorted.as_flattened());
        Some(out)
    }
}
