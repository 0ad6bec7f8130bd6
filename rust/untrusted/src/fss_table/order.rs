//! Rows of a block in the order of their points, for every length of prefix.
//!
//! A row's point is the first bits of its number, then its code. Rows are sorted by code once;
//! for a prefix they are dealt out to runs of equal prefixes, which are runs of the rows too.
//! Equal points are evaluated once.

use std::ops::Range;

/// Rows of a block.
pub(super) const ROWS: usize = 64 << 10;

/// How a row's number and code make a point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub(super) code_bits: u32,
    /// Bits of the number that are not a part of the prefix.
    pub(super) shift: u32,
}

impl Form {
    fn prefix(self, row: u64) -> u64 {
        row.checked_shr(self.shift).unwrap_or(0)
    }

    fn point(self, row: u64, code: u64) -> u64 {
        let prefix = self.prefix(row);
        prefix.checked_shl(self.code_bits).unwrap_or(0) | code
    }
}

/// A block of rows, sorted by code.
pub(super) struct Block {
    first: u64,
    sorted: Vec<(u64, u32)>,
}

/// The distinct points of a block, and which rows have them.
pub(super) struct Order {
    /// Rising.
    pub(super) points: Vec<u64>,
    /// Row numbers within the block, point by point.
    pub(super) rows: Vec<u32>,
    /// The rows of point i are `rows[starts[i]..starts[i + 1]]`.
    pub(super) starts: Vec<u32>,
}

impl Block {
    /// The rows of a range of at most [`ROWS`] codes; the first code's number is `first`.
    pub(super) fn new(codes: &[u64], range: Range<usize>, first: u64) -> Self {
        let codes = &codes[range.clone()];
        let mut sorted: Vec<(u64, u32)> = codes.iter().copied().zip(0_u32..).collect();
        sorted.sort_unstable();
        let first = first + range.start as u64;
        Self { first, sorted }
    }

    /// The block's rows in the order of their points.
    pub(super) fn order(&self, form: Form) -> Order {
        let count = self.sorted.len();
        let base = form.prefix(self.first);
        let run = |row: u32| (form.prefix(self.first + u64::from(row)) - base) as usize;
        let runs = count.checked_sub(1).map_or(0, |last| run(last as u32) + 1);
        // Where the next row of each run goes: runs of prefixes are runs of rows.
        let start = |at: usize| match at {
            0 => 0,
            _ => ((base + at as u64) << form.shift) - self.first,
        };
        let mut next: Vec<u32> = (0..runs).map(|at| start(at) as u32).collect();
        let mut dealt = vec![(0_u64, 0_u32); count];
        for &(code, row) in &self.sorted {
            let slot = &mut next[run(row)];
            let point = form.point(self.first + u64::from(row), code);
            dealt[*slot as usize] = (point, row);
            *slot += 1;
        }
        Order::of(&dealt)
    }
}

impl Order {
    fn of(dealt: &[(u64, u32)]) -> Self {
        let mut points: Vec<u64> = Vec::with_capacity(dealt.len());
        let mut starts: Vec<u32> = Vec::with_capacity(dealt.len() + 1);
        for (&(point, _), at) in dealt.iter().zip(0_u32..) {
            if points.last() != Some(&point) {
                points.push(point);
                starts.push(at);
            }
        }
        starts.push(dealt.len() as u32);
        let rows = dealt.iter().map(|(_, row)| *row).collect();
        Self {
            points,
            rows,
            starts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_row_is_at_its_point(
            codes in prop::collection::vec(0_u64..16, 0..200),
            first in 0_u64..1000,
            shift in 0_u32..12,
            skip in 0_usize..5,
        ) {
            let skip = skip.min(codes.len());
            let form = Form { code_bits: 4, shift };
            let block = Block::new(&codes, skip..codes.len(), first);
            let order = block.order(form);
            prop_assert!(order.points.windows(2).all(|pair| pair[0] < pair[1]));
            let mut seen = vec![false; codes.len() - skip];
            for (at, point) in order.points.iter().enumerate() {
                let rows = order.starts[at] as usize..order.starts[at + 1] as usize;
                prop_assert!(!rows.is_empty());
                for &row in &order.rows[rows] {
                    let index = row as usize + skip;
                    let number = first + index as u64;
                    prop_assert_eq!(*point, number >> shift << 4 | codes[index]);
                    seen[row as usize] = true;
                }
            }
            prop_assert!(seen.iter().all(|&seen| seen));
        }
    }
}
