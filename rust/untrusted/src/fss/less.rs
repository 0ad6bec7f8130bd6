//! Comparisons and intervals.

use super::point::{check, gather};
use super::sink::{Points, Sink, CHUNK};
use crate::{Error, Result};
use louver_primitives::fss::{Comparison, Group, LessShare, Prg};
use std::ops::Range;

/// Gives a share's values at the points of a range to the sink, without bits.
///
/// # Errors
/// A point outside of the share's domain, a range outside of the points, or a share whose values
/// are not modulo 2^128.
pub fn evaluate_less(
    share: &LessShare,
    points: Points<'_>,
    range: Range<usize>,
    sink: &mut dyn Sink,
) -> Result<()> {
    if share.header.group != Group::Wide {
        return Err(Error::new("the share's values are not modulo 2^128"));
    }
    check(share.header.bits, points, &range)?;
    let mut first = range.start;
    while first < range.end {
        let count = (range.end - first).min(CHUNK);
        let chunk = gather(points, first, count);
        let mut sums = vec![0; count];
        for part in &share.parts {
            add(part, share.header.bits, &chunk, &mut sums);
        }
        let sign = u128::from(share.header.party);
        for sum in &mut sums {
            *sum = (*sum ^ sign.wrapping_neg()).wrapping_add(sign);
            *sum = sum.wrapping_add(share.constant[0]);
        }
        sink.take(first, &[], &sums);
        first += count;
    }
    Ok(())
}

fn add(part: &Comparison, bits: u32, points: &[u64], sums: &mut [u128]) {
    let prg = Prg::best();
    let mut states = vec![part.tree.root; points.len()];
    let mut values = vec![0; points.len()];
    for (at, correction) in part.values.iter().enumerate() {
        let shift = bits - 1 - at as u32;
        prg.values(&states, 0, &mut values);
        for (place, sum) in sums.iter_mut().enumerate() {
            let value = values[place].wrapping_add(correction & (states[place] & 1).wrapping_neg());
            *sum = sum.wrapping_add(value & u128::from(!points[place] >> shift & 1).wrapping_neg());
        }
        if let Some(level) = part.tree.levels.get(at..=at) {
            prg.descend(&mut states, points, shift, level);
        }
    }
}
