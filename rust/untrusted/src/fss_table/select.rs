//! Records that point functions select, with the sums that authenticate them.

use super::check::{answer, inside, length, one_header, parallel, pieces, rising, width, BLOCK};
use super::{xor, ALIGN, STEP};
use crate::error::{go_on, Error, Result};
use crate::fss::{evaluate_point, DotSum, Group, PointShare, Points, Scheme, Sink, CHUNK};
use crate::fss_many::{evaluate_owf, OwfShare};
use crate::Stop;
use rayon::prelude::*;
use std::ops::Range;

/// Shares whose bits are kept at a time; beyond so many, records are read again.
const TOGETHER: usize = 64;
/// Bytes of records that are read before the flag is looked at: some milliseconds' work for so many
/// shares.
const LOOK: usize = 1 << 20;

/// A table of records at points.
pub struct Records<'a> {
    /// The records' points, distinct and rising; if None they follow each other from `first`.
    pub points: Option<&'a [u64]>,
    /// The first record's point where `points` is None.
    pub first: u64,
    /// How many records.
    pub count: usize,
    /// `count * width` bytes.
    pub records: &'a [u8],
    /// Bytes of a record, a multiple of 16.
    pub width: usize,
    /// `count * 16` bytes: each record's tag, little endian.
    pub tags: &'a [u8],
}

impl Records<'_> {
    /// Refuses what does not fit together, or does not fit a domain.
    fn check(&self, bits: u32) -> Result<()> {
        width(self.width)?;
        length("records", self.records.len(), self.count, self.width)?;
        length("tags", self.tags.len(), self.count, BLOCK)?;
        let Some(points) = self.points else {
            let end = self.first.checked_add(self.count as u64);
            let end = end.filter(|&end| usize::try_from(end).is_ok());
            let end = end.ok_or_else(|| Error::new("a point is outside of the shares' domain"))?;
            return inside(end.checked_sub(1), bits);
        };
        length("points", points.len() * 8, self.count, 8)?;
        rising(points)?;
        inside(points.last().copied(), bits)
    }

    /// The points, and from the number of a record to its index among them.
    fn points(&self) -> (Points<'_>, usize) {
        match self.points {
            Some(points) => (Points::Sorted(points), 0),
            None => {
                let first = self.first as usize;
                (Points::All(self.first + self.count as u64), first)
            }
        }
    }
}

/// What a share is: anything that gives a bit and a value in GF(2^128) at each point.
enum Selector {
    Tree(PointShare),
    Owf(OwfShare),
}

impl Selector {
    fn decode(share: &[u8], scheme: Scheme) -> Result<Self> {
        match scheme {
            Scheme::Point => Ok(Self::Tree(PointShare::decode(share)?)),
            Scheme::Owf => Ok(Self::Owf(OwfShare::decode(share)?)),
            _ => Err(Error::new("no share of a point function with tags")),
        }
    }

    fn evaluate(&self, points: Points<'_>, range: Range<usize>, sink: &mut dyn Sink) -> Result<()> {
        match self {
            Self::Tree(share) => evaluate_point(share, points, range, sink),
            Self::Owf(share) => evaluate_owf(share, points, range, sink),
        }
    }
}

fn selectors(shares: &[&[u8]]) -> Result<(u32, Vec<Selector>)> {
    let Some(header) = one_header(shares)? else {
        return Ok((1, Vec::new()));
    };
    if header.group != Group::Tag {
        return Err(Error::new("the shares have no tags to select records by"));
    }
    let read = |share: &&[u8]| Selector::decode(share, header.scheme);
    let read: Result<Vec<Selector>> = shares.iter().map(read).collect();
    Ok((header.bits, read?))
}

/// What the shares select of a table, in one pass over its records: for each share the XOR of the
/// records whose bit is 1, then the sum of value times tag (16 bytes, little endian). Answers of
/// parts of a table are joined by XOR.
///
/// # Errors
/// Shares that are none, or not all of one construction with tags and one domain; points that do
/// not rise or leave the domain; buffers of other lengths than `count` implies.
pub fn select(shares: &[&[u8]], table: &Records<'_>) -> Result<Vec<Vec<u8>>> {
    select_until(shares, table, &Stop::new())
}

/// As [`select`], until it is stopped.
///
/// # Errors
/// As for [`select`]; [`Error::Stopped`].
pub fn select_until(shares: &[&[u8]], table: &Records<'_>, stop: &Stop) -> Result<Vec<Vec<u8>>> {
    let (bits, selectors) = selectors(shares)?;
    if selectors.is_empty() {
        return Ok(Vec::new());
    }
    table.check(bits)?;
    let bytes = answer(&[selectors.len(), table.width + BLOCK])?;
    let ranges = pieces(0..table.count, parallel(bytes), ALIGN);
    let parts = ranges
        .into_par_iter()
        .map(|range| part(&selectors, table, range, stop));
    let whole = parts.try_reduce(
        || Part::new(selectors.len(), table.width),
        |a, b| Ok(a.join(&b)),
    );
    Ok(whole?.answers(table.width))
}

/// What shares select of a part.
struct Part {
    /// A record for each share.
    records: Vec<u8>,
    sums: Vec<DotSum>,
}

impl Part {
    fn new(shares: usize, width: usize) -> Self {
        Self {
            records: vec![0; shares * width],
            sums: vec![DotSum::default(); shares],
        }
    }

    fn join(mut self, other: &Self) -> Self {
        for (byte, more) in self.records.iter_mut().zip(&other.records) {
            *byte ^= more;
        }
        for (sum, more) in self.sums.iter_mut().zip(&other.sums) {
            sum.merge(more);
        }
        self
    }

    fn answers(self, width: usize) -> Vec<Vec<u8>> {
        let records = self.records.chunks_exact(width);
        let each = records.zip(&self.sums).map(|(record, sum)| {
            let mut out = record.to_vec();
            out.extend(sum.reduce().to_le_bytes());
            out
        });
        each.collect()
    }
}

fn part(
    selectors: &[Selector],
    table: &Records<'_>,
    range: Range<usize>,
    stop: &Stop,
) -> Result<Part> {
    let width = table.width;
    let look = (LOOK / width).max(xor::ROWS);
    // Few at a time where so many rows are more bytes than that.
    let together = (TOGETHER * LOOK / (look * width)).clamp(2, TOGETHER);
    let mut merged = Part::new(selectors.len(), width);
    let mut bits = vec![0_u8; TOGETHER.min(selectors.len()) * STEP.min(range.len())];
    for first in range.clone().step_by(STEP) {
        let step = first..range.end.min(first + STEP);
        let rows = step.len();
        let records = &table.records[step.start * width..step.end * width];
        let groups = selectors.chunks(TOGETHER);
        let sums = merged.sums.chunks_mut(TOGETHER);
        let chosen = merged.records.chunks_mut(TOGETHER * width);
        for ((group, sums), chosen) in groups.zip(sums).zip(chosen) {
            for (at, (selector, sum)) in group.iter().zip(sums).enumerate() {
                go_on(stop)?;
                let bits = &mut bits[at * rows..(at + 1) * rows];
                evaluate(selector, table, step.clone(), bits, sum)?;
            }
            for (number, records) in records.chunks(look * width).enumerate() {
                let chosen = chosen.chunks_mut(together * width);
                for (share, sums) in (0..group.len()).step_by(together).zip(chosen) {
                    go_on(stop)?;
                    let mut choice = xor::Choice {
                        bits: &bits[share * rows + number * look..group.len() * rows],
                        stride: rows,
                        sums,
                    };
                    xor::select(records, width, &mut choice);
                }
            }
        }
    }
    Ok(merged)
}

/// A share's bits at a step's records; its values times their tags are added to the sum.
fn evaluate(
    selector: &Selector,
    table: &Records<'_>,
    step: Range<usize>,
    bits: &mut [u8],
    sum: &mut DotSum,
) -> Result<()> {
    let (points, offset) = table.points();
    let (tags, _) = table.tags.as_chunks::<BLOCK>();
    let tags = &tags[step.clone()];
    let begin = step.start + offset;
    let mut numbers = [0_u128; CHUNK];
    let mut sink = |first: usize, selected: &[u8], values: &[u128]| {
        let at = first - begin;
        let rows = at..at + values.len();
        bits[rows.clone()].copy_from_slice(selected);
        for (number, tag) in numbers.iter_mut().zip(&tags[rows]) {
            *number = u128::from_le_bytes(*tag);
        }
        sum.add(values, &numbers[..values.len()]);
    };
    selector.evaluate(points, begin..step.end + offset, &mut sink)
}
