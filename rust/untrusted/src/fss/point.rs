//! Point functions.

use super::sink::{Points, Sink, CHUNK};
use crate::{Error, Result};
use louver_primitives::fss::{Group, PointShare, Prg};
use std::ops::Range;

/// Gives a share's control bits and values at the points of a range to the sink.
///
/// # Errors
/// A point outside of the share's domain, a range outside of the points, or a share without
/// 128-bit values ([`Group::Words`], [`Group::Bits`]).
pub fn evaluate_point(
    share: &PointShare,
    points: Points<'_>,
    range: Range<usize>,
    sink: &mut dyn Sink,
) -> Result<()> {
    if !matches!(share.header.group, Group::Tag | Group::Wide) {
        return Err(Error::new("the share's values are not 128 bits"));
    }
    check(share.header.bits, points, &range)?;
    let prg = Prg::best();
    let mut first = range.start;
    while first < range.end {
        let count = (range.end - first).min(CHUNK);
        let chunk = gather(points, first, count);
        let mut states = vec![share.tree.root; count];
        prg.descend(
            &mut states,
            &chunk,
            share.header.bits - 1,
            &share.tree.levels,
        );
        let bits: Vec<u8> = states.iter().map(|state| *state as u8 & 1).collect();
        let values = leaves(prg, share, states);
        sink.take(first, &bits, &values);
        first += count;
    }
    Ok(())
}

fn leaves(prg: &Prg, share: &PointShare, mut states: Vec<u128>) -> Vec<u128> {
    let last = share.last[0];
    if share.header.group == Group::Tag {
        for state in &mut states {
            *state = *state & !1 ^ last & (*state & 1).wrapping_neg();
        }
        return states;
    }
    let mut values = vec![0; states.len()];
    prg.values(&states, 0, &mut values);
    let sign = u128::from(share.header.party);
    for (value, state) in values.iter_mut().zip(&states) {
        let share = value.wrapping_add(last & (state & 1).wrapping_neg());
        *value = (share ^ sign.wrapping_neg()).wrapping_add(sign);
    }
    values
}

/// The points of a part of the range.
pub(super) fn gather(points: Points<'_>, first: usize, count: usize) -> Vec<u64> {
    match points {
        Points::Sorted(points) | Points::Loose(points) => points[first..first + count].to_vec(),
        Points::All(_) => (first as u64..(first + count) as u64).collect(),
    }
}

/// Refuses what is outside of the domain or of the points.
pub(super) fn check(bits: u32, points: Points<'_>, range: &Range<usize>) -> Result<()> {
    if range.start > range.end || range.end > points.len() {
        return Err(Error::new("the range is not one of the points"));
    }
    let largest = match points {
        Points::Sorted(points) => points[range.clone()].last().copied(),
        Points::Loose(points) => points[range.clone()].iter().max().copied(),
        Points::All(_) => range.end.checked_sub(1).map(|last| last as u64),
    };
    if largest.unwrap_or(0).checked_shr(bits).unwrap_or(0) != 0 {
        return Err(Error::new("a point is outside of the share's domain"));
    }
    Ok(())
}
