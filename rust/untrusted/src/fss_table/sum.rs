//! Sums of columns by group over what additive shares select.

use super::check::{answer, inside, length, one_header, parallel, rising, BLOCK};
use super::{ALIGN, STEP};
use crate::error::{go_on, Error, Result};
use crate::fss::{evaluate_less, evaluate_point, Group, Header, LessShare, PointShare, Points};
use crate::fss::{Scheme, Sink};
use crate::Stop;
use rayon::prelude::*;
use std::ops::Range;

/// Entries that are added before the flag is looked at.
const LOOK: usize = 4 << 10;

/// Entries of points: rows of a group's sums.
pub struct Entries<'a> {
    /// Distinct and rising.
    pub points: &'a [u64],
    /// Entries of point i are `starts[i]..starts[i + 1]`; None: entry i is point i's.
    pub starts: Option<&'a [u32]>,
    /// The group of each entry; None: all are of group 0.
    pub groups: Option<&'a [u32]>,
    /// Entry by entry, `columns` integers each; None: each entry counts one.
    pub values: Option<&'a [i64]>,
    /// Integers of an entry, at least 1.
    pub columns: usize,
    /// How many groups, at least 1.
    pub group_count: usize,
}

impl Entries<'_> {
    pub(crate) fn check(&self, bits: u32) -> Result<()> {
        rising(self.points)?;
        inside(self.points.last().copied(), bits)?;
        let entries = self.count()?;
        if self.columns == 0 || self.group_count == 0 {
            return Err(Error::new("a sum has at least one group and one column"));
        }
        match self.values {
            Some(values) => length("values", values.len(), entries, self.columns)?,
            None if self.columns > 1 => {
                return Err(Error::new("entries are counted in one column"));
            }
            None => {}
        }
        let Some(groups) = self.groups else {
            return Ok(());
        };
        length("groups", groups.len(), entries, 1)?;
        let largest = groups.iter().copied().max().unwrap_or(0);
        if largest as usize >= self.group_count {
            return Err(Error::new("an entry is of a group that there is not"));
        }
        Ok(())
    }

    /// How many entries there are.
    fn count(&self) -> Result<usize> {
        let Some(starts) = self.starts else {
            return Ok(self.points.len());
        };
        let wrong = || Error::new("starts are rising, one more than points, from 0");
        let rising = starts.windows(2).all(|pair| pair[0] <= pair[1]);
        if starts.len() != self.points.len() + 1 || starts.first() != Some(&0) || !rising {
            return Err(wrong());
        }
        starts.last().map(|last| *last as usize).ok_or_else(wrong)
    }

    /// Before which point `share` of `of` equal shares of the work is done.
    pub(crate) fn cut(&self, share: usize, of: usize) -> usize {
        let count = self.points.len();
        let Some(starts) = self.starts else {
            return count * share / of;
        };
        // An entry costs about as much as a point.
        let work = |at: usize| at + starts.get(at).map_or(0, |start| *start as usize);
        let wanted = work(count) / of * share;
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = (low + high) / 2;
            if work(middle) < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// An additive share of a function of points.
enum Function {
    Point(PointShare),
    Less(LessShare),
}

impl Function {
    fn decode(share: &[u8], header: &Header) -> Result<Self> {
        let wide = header.group == Group::Wide;
        match header.scheme {
            Scheme::Point if wide => Ok(Self::Point(PointShare::decode(share)?)),
            Scheme::Less | Scheme::Interval if wide => Ok(Self::Less(LessShare::decode(share)?)),
            _ => Err(Error::new("the shares have no values modulo 2^128 to sum")),
        }
    }

    fn evaluate(&self, points: Points<'_>, range: Range<usize>, sink: &mut dyn Sink) -> Result<()> {
        match self {
            Self::Point(share) => evaluate_point(share, points, range, sink),
            Self::Less(share) => evaluate_less(share, points, range, sink),
        }
    }
}

/// For each share the sums modulo 2^128 of value times integer, group by group and column by
/// column, 16 bytes each, little endian. Answers of parts are joined by addition.
///
/// # Errors
/// Shares that are none, or not all of one construction with additive values and one domain;
/// points that do not rise or leave the domain; entries that do not fit together.
pub fn sum(shares: &[&[u8]], entries: &Entries<'_>) -> Result<Vec<Vec<u8>>> {
    sum_until(shares, entries, &Stop::new())
}

/// As [`sum`], until it is stopped.
///
/// # Errors
/// As for [`sum`]; [`Error::Stopped`].
pub fn sum_until(shares: &[&[u8]], entries: &Entries<'_>, stop: &Stop) -> Result<Vec<Vec<u8>>> {
    let Some(header) = one_header(shares)? else {
        return Ok(Vec::new());
    };
    let read = |share: &&[u8]| Function::decode(share, &header);
    let functions: Vec<Function> = shares.iter().map(read).collect::<Result<_>>()?;
    entries.check(header.bits)?;
    let bytes = answer(&[shares.len(), entries.group_count, entries.columns, BLOCK])?;
    let pieces = parallel(bytes).min(entries.points.len().div_ceil(ALIGN).max(1));
    let parts = (0..pieces).into_par_iter().map(|piece| {
        let range = entries.cut(piece, pieces)..entries.cut(piece + 1, pieces);
        part(&functions, entries, range, stop)
    });
    let nothing = || vec![0; bytes / BLOCK];
    let whole = parts.try_reduce(nothing, |a, b| Ok(joined(a, &b)))?;
    let each = whole.chunks_exact(entries.group_count * entries.columns);
    let bytes = |sums: &[u128]| sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
    Ok(each.map(bytes).collect())
}

/// Sums added to sums.
pub(super) fn joined(mut sums: Vec<u128>, more: &[u128]) -> Vec<u128> {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.wrapping_add(*more);
    }
    sums
}

fn part(
    functions: &[Function],
    entries: &Entries<'_>,
    range: Range<usize>,
    stop: &Stop,
) -> Result<Vec<u128>> {
    let each = entries.group_count * entries.columns;
    let mut sums = vec![0_u128; functions.len() * each];
    let points = Points::Sorted(entries.points);
    for first in range.clone().step_by(STEP) {
        let step = first..range.end.min(first + STEP);
        for (function, sums) in functions.iter().zip(sums.chunks_exact_mut(each)) {
            go_on(stop)?;
            let mut sink = |first: usize, _: &[u8], values: &[u128]| {
                add(entries, first, values, sums, stop);
            };
            function.evaluate(points, step.clone(), &mut sink)?;
        }
    }
    // What was added since the last look may be cut short.
    go_on(stop)?;
    Ok(sums)
}

/// Adds the entries of the points from `first`, times the points' values. Stops early where it is
/// stopped: what is added then is of no use.
fn add(entries: &Entries<'_>, first: usize, values: &[u128], sums: &mut [u128], stop: &Stop) {
    let mut added = 0;
    for (point, &value) in (first..).zip(values) {
        // Offsets and groups were checked; a mapped file that changes meanwhile makes the sums
        // wrong, and no more.
        let (start, end) = match entries.starts {
            None => (point, point + 1),
            Some(starts) => (starts[point] as usize, starts[point + 1] as usize),
        };
        added += end.saturating_sub(start);
        if added > LOOK {
            if stop.is_set() {
                return;
            }
            added = 0;
        }
        for entry in start..end {
            let group = entries.groups.map_or(Some(0), |groups| {
                groups.get(entry).map(|group| *group as usize)
            });
            let columns = entries.columns;
            let at = group.unwrap_or(usize::MAX).saturating_mul(columns);
            let Some(sums) = sums.get_mut(at..at.saturating_add(columns)) else {
                continue;
            };
            let Some(numbers) = entries.values else {
                sums[0] = sums[0].wrapping_add(value);
                continue;
            };
            let numbers = numbers.get(entry * columns..).unwrap_or(&[]);
            for (sum, &number) in sums.iter_mut().zip(numbers) {
                let product = value.wrapping_mul(i128::from(number) as u128);
                *sum = sum.wrapping_add(product);
            }
        }
    }
}
