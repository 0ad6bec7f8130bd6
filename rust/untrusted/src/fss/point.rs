//! Point functions.

use super::domain::{depth, Subtrees};
use super::sink::{Points, Sink, CHUNK};
use super::sorted::{Walk, NODES};
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
    evaluate_point_with(Prg::best(), share, points, range, sink)
}

/// [`evaluate_point`] with a generator that the caller names, which is for comparing them.
///
/// # Errors
/// As [`evaluate_point`].
pub fn evaluate_point_with(
    prg: &'static Prg,
    share: &PointShare,
    points: Points<'_>,
    range: Range<usize>,
    sink: &mut dyn Sink,
) -> Result<()> {
    if !matches!(share.header.group, Group::Tag | Group::Wide) {
        return Err(Error::new("the share's values are not 128 bits"));
    }
    let bits = share.header.bits;
    check(bits, points, &range)?;
    let mut leaves = Leaves::new(prg, share, sink);
    match points {
        Points::Loose(points) => {
            let mut states = vec![0; CHUNK];
            for (at, points) in points[range.clone()].chunks(CHUNK).enumerate() {
                let states = &mut states[..points.len()];
                states.fill(share.tree.root);
                prg.descend(states, points, bits - 1, &share.tree.levels);
                leaves.give(range.start + CHUNK * at, states);
            }
        }
        Points::Sorted(points) => {
            let mut walk = Walk::new(prg, range.len());
            for (at, points) in points[range.clone()].chunks(NODES).enumerate() {
                let states = walk.states(&share.tree, bits, points);
                leaves.give(range.start + NODES * at, states);
            }
        }
        Points::All(_) => {
            let mut subtrees = Subtrees::new(prg);
            for (number, part) in parts(&range, depth(bits)) {
                let states = subtrees.states(&share.tree, number);
                let first = (number << depth(bits)) as usize + part.start;
                leaves.give(first, &mut states[part]);
            }
        }
    }
    Ok(())
}

/// Makes control bits and values of the states of leaves.
struct Leaves<'a> {
    prg: &'static Prg,
    share: &'a PointShare,
    sink: &'a mut dyn Sink,
    bits: Vec<u8>,
    values: Vec<u128>,
}

impl<'a> Leaves<'a> {
    fn new(prg: &'static Prg, share: &'a PointShare, sink: &'a mut dyn Sink) -> Self {
        Self {
            prg,
            share,
            sink,
            bits: vec![0; CHUNK],
            values: vec![0; CHUNK],
        }
    }

    fn give(&mut self, first: usize, states: &mut [u128]) {
        let last = self.share.last[0];
        for (at, states) in states.chunks_mut(CHUNK).enumerate() {
            let bits = &mut self.bits[..states.len()];
            let values = &mut self.values[..states.len()];
            let first = first + CHUNK * at;
            if self.share.header.group == Group::Tag {
                self.prg.finish(states, last, bits);
                self.sink.take(first, bits, states);
                continue;
            }
            values.fill(0);
            self.prg.add_values(values, states, last);
            negate(values, self.share.header.party);
            for (bit, state) in bits.iter_mut().zip(&*states) {
                *bit = *state as u8 & 1;
            }
            self.sink.take(first, bits, values);
        }
    }
}

/// The second party's values count negatively.
pub(super) fn negate(values: &mut [u128], party: u8) {
    if party == 1 {
        for value in values {
            *value = value.wrapping_neg();
        }
    }
}

/// The subtrees of a depth that a range touches, and which of their leaves are in it.
pub(super) fn parts(range: &Range<usize>, depth: u32) -> impl Iterator<Item = (u64, Range<usize>)> {
    let (start, end) = (range.start, range.end);
    let numbers = start >> depth..if start < end {
        ((end - 1) >> depth) + 1
    } else {
        0
    };
    numbers.map(move |number| {
        let first = number << depth;
        let stop = (end - first).min(1 << depth);
        (number as u64, start.saturating_sub(first)..stop)
    })
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
