//! Tags of rows, so that no server alters an index unseen: BLAKE3 with a key, cut to 16 bytes.

use super::keys::IndexKeys;
use crate::error::{Error, Result};
use ctutils::CtEq;
use louver_primitives::eds::segment::{Header, Segment, ALL_ROWS, HEADER, TAG};
use louver_primitives::eds::spec::Form;
use rayon::prelude::*;
use zeroize::Zeroize;

/// Rows that a task takes.
const TASK: usize = 256;

/// The tags of one segment.
struct Tags {
    /// After key and header, which all rows share.
    hasher: blake3::Hasher,
}

impl Tags {
    fn new<S: Form>(keys: &IndexKeys<S>, header: &Header<S>) -> Self {
        let mut hasher = blake3::Hasher::new_keyed(&keys.tags);
        let header: [u8; HEADER] = header.encode();
        hasher.update(&header);
        Self { hasher }
    }

    fn of(&self, row: u32, bytes: &[u8]) -> [u8; TAG] {
        let mut hasher = self.hasher.clone();
        hasher.update(&row.to_le_bytes());
        hasher.update(bytes);
        let mut tag = [0; TAG];
        tag.copy_from_slice(&hasher.finalize().as_bytes()[..TAG]);
        hasher.zeroize();
        tag
    }
}

impl Drop for Tags {
    fn drop(&mut self) {
        self.hasher.zeroize();
    }
}

/// The tags of all rows of a payload, or the one that stands for them.
pub fn all<S: Form>(keys: &IndexKeys<S>, header: &Header<S>, payload: &[u8]) -> Vec<[u8; TAG]> {
    let tags = Tags::new(keys, header);
    if header.tags() == 1 {
        return vec![tags.of(ALL_ROWS, payload)];
    }
    let rows = payload.par_chunks(header.row_bytes()).enumerate();
    rows.with_min_len(TASK)
        .map(|(row, bytes)| tags.of(row as u32, bytes))
        .collect()
}

/// Checks the rows of these numbers, or all.
///
/// # Errors
/// [`Error::Verify`] for rows that were altered.
pub fn check<S: Form>(
    keys: &IndexKeys<S>,
    segment: &Segment<'_, S>,
    rows: Option<&[u32]>,
) -> Result<()> {
    let tags = Tags::new(keys, &segment.header);
    let altered = || Error::verify("the index of a lake was altered");
    let fits = |row: u32, bytes: &[u8], tag: &[u8; TAG]| {
        let matches = tags.of(row, bytes).ct_eq(tag);
        bool::from(matches).then_some(()).ok_or_else(altered)
    };
    let row_matches = |row: usize| {
        let bytes = segment.row(row).ok_or_else(altered)?;
        fits(row as u32, bytes, &segment.tags()[row])
    };
    if let [tag] = segment.tags() {
        return fits(ALL_ROWS, segment.payload(), tag);
    }
    match rows {
        None => (0..segment.header.rows())
            .into_par_iter()
            .with_min_len(TASK)
            .try_for_each(row_matches),
        Some(rows) => rows.iter().try_for_each(|row| row_matches(*row as usize)),
    }
}
