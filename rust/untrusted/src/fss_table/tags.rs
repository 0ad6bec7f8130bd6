//! Tags of a table's records.

use super::check::{answer, width, BLOCK};
use crate::error::{Error, Result};
use crate::fss::record_tag;
use rayon::prelude::*;

/// The tag of each record at a level, 16 bytes, little endian, one after the other.
///
/// # Errors
/// A width that is not a multiple of 16, or records whose length is not a multiple of it.
pub fn record_tags(level: u32, records: &[u8], bytes: usize) -> Result<Vec<u8>> {
    width(bytes)?;
    if !records.len().is_multiple_of(bytes) {
        return Err(Error::new("the records are no whole number of their width"));
    }
    let mut tags = vec![0; answer(&[records.len() / bytes, BLOCK])?];
    let pairs = tags
        .par_chunks_exact_mut(BLOCK)
        .zip(records.par_chunks_exact(bytes));
    pairs.with_min_len(256).for_each(|(tag, record)| {
        tag.copy_from_slice(&record_tag(level, record).to_le_bytes());
    });
    Ok(tags)
}
