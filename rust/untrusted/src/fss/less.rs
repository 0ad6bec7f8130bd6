//! Comparisons and intervals.

use super::domain::{depth, Subtrees};
use super::point::{check, negate, parts};
use super::sink::{Points, Sink, CHUNK};
use super::sorted::{Walk, NODES};
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
    evaluate_less_with(Prg::best(), share, points, range, sink)
}

/// [`evaluate_less`] with a generator that the caller names, which is for comparing them.
///
/// # Errors
/// As [`evaluate_less`].
pub fn evaluate_less_with(
    prg: &'static Prg,
    share: &LessShare,
    points: Points<'_>,
    range: Range<usize>,
    sink: &mut dyn Sink,
) -> Result<()> {
    if share.header.group != Group::Wide {
        return Err(Error::new("the share's values are not modulo 2^128"));
    }
    let bits = share.header.bits;
    check(bits, points, &range)?;
    let mut total = vec![0; NODES];
    match points {
        Points::Loose(points) => {
            let mut states = vec![0; CHUNK];
            for (at, points) in points[range.clone()].chunks(CHUNK).enumerate() {
                let total = &mut total[..points.len()];
                total.fill(0);
                for part in &share.parts {
                    let states = &mut states[..points.len()];
                    states.fill(part.tree.root);
                    let walk = (&*part.tree.levels, &*part.values);
                    prg.descend_sums(total, states, points, bits - 1, walk);
                }
                give(share, range.start + CHUNK * at, total, sink);
            }
        }
        Points::Sorted(points) => {
            let mut walk = Walk::new(prg, range.len());
            for (at, points) in points[range.clone()].chunks(NODES).enumerate() {
                let total = &mut total[..points.len()];
                total.fill(0);
                for part in &share.parts {
                    add(total, walk.sums(part, bits, points));
                }
                give(share, range.start + NODES * at, total, sink);
            }
        }
        Points::All(_) => {
            let trees = share.parts.iter().map(|part| (part, Subtrees::new(prg)));
            let mut trees: Vec<(&Comparison, Subtrees)> = trees.collect();
            for (number, part) in parts(&range, depth(bits)) {
                let total = &mut total[..part.len()];
                total.fill(0);
                for (comparison, subtrees) in &mut trees {
                    add(total, &subtrees.sums(comparison, number)[part.clone()]);
                }
                let first = (number << depth(bits)) as usize + part.start;
                give(share, first, total, sink);
            }
        }
    }
    Ok(())
}

/// Adds a comparison's values.
fn add(total: &mut [u128], values: &[u128]) {
    for (sum, value) in total.iter_mut().zip(values) {
        *sum = sum.wrapping_add(*value);
    }
}

fn give(share: &LessShare, first: usize, total: &mut [u128], sink: &mut dyn Sink) {
    negate(total, share.header.party);
    for (at, sums) in total.chunks_mut(CHUNK).enumerate() {
        for sum in &mut *sums {
            *sum = sum.wrapping_add(share.constant[0]);
        }
        sink.take(first + CHUNK * at, &[], sums);
    }
}
