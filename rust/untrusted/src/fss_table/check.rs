//! What fits together, and how work is divided.

use crate::error::{Error, Result};
use crate::fss::{Group, Header, PointShare, Scheme, ShareError};
use std::ops::Range;

/// Most bytes of an answer.
pub const LARGEST: usize = 1 << 30;
/// Bytes of answers that the pieces of one evaluation hold together.
const TOGETHER: usize = 256 << 20;
/// Bytes of a tag and of a sum.
pub(super) const BLOCK: usize = 16;

impl From<ShareError> for Error {
    fn from(error: ShareError) -> Self {
        Self::new(error.to_string())
    }
}

/// The one header of all shares, but for the party.
pub(super) fn one_header(shares: &[&[u8]]) -> Result<Option<Header>> {
    let mut common: Option<Header> = None;
    for share in shares {
        let (header, _) = Header::decode(share)?;
        let first = *common.get_or_insert(header);
        let party = header.party;
        if (Header { party, ..first }) != header {
            return Err(Error::new(
                "the shares are not all of one construction and one domain",
            ));
        }
    }
    Ok(common)
}

/// Point functions with additive values.
pub(super) fn additive_point(share: &[u8]) -> Result<PointShare> {
    let (header, _) = Header::decode(share)?;
    if header.scheme != Scheme::Point || header.group != Group::Wide {
        return Err(Error::new(
            "point functions with values modulo 2^128 are needed here",
        ));
    }
    Ok(PointShare::decode(share)?)
}

/// Refuses points that do not rise.
pub(super) fn rising(points: &[u64]) -> Result<()> {
    if points.windows(2).all(|pair| pair[0] < pair[1]) {
        return Ok(());
    }
    Err(Error::new("the points do not rise, or one comes twice"))
}

/// Refuses a largest point outside of the shares' domain.
pub(super) fn inside(largest: Option<u64>, bits: u32) -> Result<()> {
    match largest.unwrap_or(0).checked_shr(bits).unwrap_or(0) {
        0 => Ok(()),
        _ => Err(Error::new("a point is outside of the shares' domain")),
    }
}

/// Refuses a buffer that is not `count` things of `size` bytes.
pub(super) fn length(what: &str, have: usize, count: usize, size: usize) -> Result<()> {
    if count.checked_mul(size) == Some(have) {
        return Ok(());
    }
    Err(Error::new(format!(
        "{what}: {have} bytes where {count} of {size} bytes are needed"
    )))
}

/// Refuses a width that is not a multiple of 16, or none.
pub(super) fn width(width: usize) -> Result<()> {
    if width > 0 && width.is_multiple_of(BLOCK) && width <= LARGEST {
        return Ok(());
    }
    Err(Error::new("a record's width is a multiple of 16 bytes"))
}

/// Refuses an answer of more than [`LARGEST`] bytes; gives the product of the factors.
pub(super) fn answer(factors: &[usize]) -> Result<usize> {
    let product = factors
        .iter()
        .try_fold(1_usize, |product, &factor| product.checked_mul(factor));
    let small = product.filter(|&bytes| bytes <= LARGEST);
    small.ok_or_else(|| Error::new("the answer would be too large"))
}

/// A range in about `pieces` pieces, each but the last of a multiple of `step`.
pub(super) fn pieces(range: Range<usize>, pieces: usize, step: usize) -> Vec<Range<usize>> {
    let each = range.len().div_ceil(pieces.max(1)).next_multiple_of(step);
    let starts = range.clone().step_by(each.max(1));
    starts
        .map(|start| start..range.end.min(start.saturating_add(each)))
        .collect()
}

/// How many pieces keep all cores busy where each holds so many bytes of an answer; fewer where
/// all of them together would hold too many.
pub(super) fn parallel(bytes: usize) -> usize {
    let threads = rayon::current_num_threads();
    if bytes <= 1 << 20 {
        return threads * 4;
    }
    threads.min(TOGETHER / bytes).max(1)
}
