//! Values other than 128 bits: vectors of words modulo 2^64, and bits without a payload, of which
//! one leaf of the tree holds several points where they are short.

use super::domain::{depth, Subtrees};
use super::point::{check, parts};
use super::sink::{Points, CHUNK};
use crate::{Error, Result};
use louver_primitives::fss::{Group, Header, LessShare, Packed, PointShare, Prg, Tree};
use std::ops::Range;

/// Takes the values of leaves: the first leaf's number, and [`Header::value_blocks`] blocks each.
pub type Leaves<'a> = &'a mut dyn FnMut(usize, &[u128]);

/// Gives a share's values at a range of all leaves, each of which is 2^[`Header::folded`] points:
/// blocks of two words, or of 128 bits.
///
/// # Errors
/// A range outside of the domain, or a share with 128-bit values.
pub fn evaluate_leaves(share: &PointShare, range: Range<usize>, sink: Leaves<'_>) -> Result<()> {
    let header = &share.header;
    packed(header)?;
    let levels = header.bits - header.folded();
    if range.start > range.end || (range.end as u128) > 1 << levels {
        return Err(Error::new("the range is not one of the leaves"));
    }
    let prg = Prg::best();
    let (mut subtrees, mut values) = (Subtrees::new(prg), Vec::new());
    for (number, part) in parts(&range, depth(levels)) {
        let first = (number << depth(levels)) as usize + part.start;
        let states = &subtrees.states(&share.tree, number)[part];
        for (at, states) in states.chunks(CHUNK).enumerate() {
            values.resize(states.len() * header.value_blocks(), 0);
            corrected(prg, header, states, &share.last, &mut values);
            sink(first + CHUNK * at, &values);
        }
    }
    Ok(())
}

/// Gives a share's values at points: [`Header::value_blocks`] blocks each, of which the lowest
/// word or bit is the value where a leaf holds several points.
///
/// # Errors
/// A point outside of the share's domain, or a share with 128-bit values.
pub fn evaluate_packed(share: &PointShare, points: &[u64], sink: Leaves<'_>) -> Result<()> {
    let (header, prg) = (&share.header, Prg::best());
    packed(header)?;
    check(header.bits, Points::Loose(points), &(0..points.len()))?;
    let mut values = Vec::new();
    for (at, points) in points.chunks(CHUNK).enumerate() {
        let mut states = vec![share.tree.root; points.len()];
        if !share.tree.levels.is_empty() {
            prg.descend(&mut states, points, header.bits - 1, &share.tree.levels);
        }
        values.resize(states.len() * header.value_blocks(), 0);
        corrected(prg, header, &states, &share.last, &mut values);
        if header.folded() > 0 {
            let (width, mask) = match header.group {
                Group::Bits => (1, 1),
                _ => (64, u128::from(u64::MAX)),
            };
            for (value, point) in values.iter_mut().zip(points) {
                let slot = point & ((1 << header.folded()) - 1);
                *value = *value >> (width * slot) & mask;
            }
        }
        sink(CHUNK * at, &values);
    }
    Ok(())
}

/// Gives a comparison's values at points, vectors of words: [`Header::value_blocks`] blocks each.
///
/// # Errors
/// A point outside of the share's domain, or a share with 128-bit values.
pub fn evaluate_less_words(share: &LessShare, points: &[u64], sink: Leaves<'_>) -> Result<()> {
    let (header, prg) = (&share.header, Prg::best());
    packed(header)?;
    check(header.bits, Points::Loose(points), &(0..points.len()))?;
    let blocks = header.value_blocks();
    for (at, points) in points.chunks(CHUNK).enumerate() {
        let mut total = vec![0; points.len() * blocks];
        for part in &share.parts {
            let mut walk = Level::new(&part.tree, points.len(), blocks);
            for (down, corrections) in part.values.chunks(blocks).enumerate() {
                let shift = header.bits - 1 - down as u32;
                corrected(prg, header, &walk.states, corrections, &mut walk.gains);
                let gains = walk.gains.chunks(blocks).zip(total.chunks_mut(blocks));
                for ((gains, total), point) in gains.zip(points) {
                    let left = u128::from(!point >> shift & 1).wrapping_neg();
                    for (sum, gain) in total.iter_mut().zip(gains) {
                        *sum = add(*sum, gain & left);
                    }
                }
                let level = part.tree.levels.get(down..=down).unwrap_or(&[]);
                prg.descend(&mut walk.states, points, shift, level);
            }
        }
        for sums in total.chunks_mut(blocks) {
            for (sum, constant) in sums.iter_mut().zip(&share.constant) {
                *sum = add(*sum, *constant);
            }
        }
        sink(CHUNK * at, &total);
    }
    Ok(())
}

/// Where a walk of many points is.
struct Level {
    states: Vec<u128>,
    gains: Vec<u128>,
}

impl Level {
    fn new(tree: &Tree, points: usize, blocks: usize) -> Self {
        Self {
            states: vec![tree.root; points],
            gains: vec![0; points * blocks],
        }
    }
}

fn packed(header: &Header) -> Result<()> {
    match header.group {
        Group::Words | Group::Bits => Ok(()),
        _ => Err(Error::new("the share's values are 128 bits")),
    }
}

/// The states' values with their corrections, in blocks one behind the other for each state: words
/// modulo 2^64, of which the second party's count negatively, or bits.
fn corrected(prg: &Prg, header: &Header, states: &[u128], corrections: &[u128], out: &mut [u128]) {
    let kind = match (header.group, header.party) {
        (Group::Bits, _) => Packed::Bits,
        (_, 1) => Packed::NegativeWords,
        _ => Packed::Words,
    };
    if let [correction] = corrections {
        prg.packed(states, 0, *correction, kind, out);
        return;
    }
    let mut values = vec![0; states.len()];
    for (block, correction) in corrections.iter().enumerate() {
        prg.packed(states, block, *correction, kind, &mut values);
        let slots = out.iter_mut().skip(block).step_by(corrections.len());
        for (slot, value) in slots.zip(&values) {
            *slot = *value;
        }
    }
}

/// The sum of two words each modulo 2^64.
fn add(left: u128, right: u128) -> u128 {
    let high = ((left >> 64) as u64).wrapping_add((right >> 64) as u64);
    u128::from(high) << 64 | u128::from((left as u64).wrapping_add(right as u64))
}
