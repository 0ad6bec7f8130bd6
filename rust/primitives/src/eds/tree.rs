//! The interval tree over 64-bit values (paper 2.2, 5.1): what a value is covered by, and the
//! least set of nodes that covers a range. An id says which node: 2^L - 1 + w for the node whose
//! label has L bits of value w; ids of 64 levels take 65 bits.

use std::collections::VecDeque;

/// Levels below the root: leaves are 64-bit values.
pub const HEIGHT: u32 = 64;
/// Nodes from the root to a leaf.
pub const PATH: usize = HEIGHT as usize + 1;

/// The id of the node whose label has `label_len` bits (at most 64) of the value given.
pub fn node_id(label_len: u32, value: u64) -> u128 {
    (1 << label_len) - 1 + u128::from(value)
}

/// The nodes from the root to the leaf of a value: P(value) in the paper.
pub fn coverage_set(value: u64) -> [u128; PATH] {
    let leaf = node_id(HEIGHT, value) + 1;
    std::array::from_fn(|level| (leaf >> (HEIGHT as usize - level)) - 1)
}

/// [`coverage_set`] in a tree of any height up to 64.
pub fn coverage_set_in(height: u32, value: u64) -> Vec<u128> {
    let leaf = node_id(height, value) + 1;
    (0..=height).rev().map(|up| (leaf >> up) - 1).collect()
}

/// The least set of nodes that covers exactly the values of an inclusive range: Λ(low, high) in
/// the paper, at most two nodes a level. Empty if `low` is above `high`.
pub fn minimum_cover(low: u64, high: u64) -> Vec<u128> {
    minimum_cover_in(HEIGHT, low, high)
}

/// [`minimum_cover`] in a tree of any height up to 64, whose leaves `low` and `high` are.
///
/// Below the node where the paths to both ends part, the left end leaves a suffix of one subtree
/// and the right end a prefix of the other; both are read off the bits of the ends.
pub fn minimum_cover_in(height: u32, low: u64, high: u64) -> Vec<u128> {
    if low > high {
        return Vec::new();
    }
    let under = u64::BITS - (low ^ high).leading_zeros();
    let inside = below(under);
    if low & inside == 0 && high & inside == inside {
        return vec![node_id(height - under, above(low, under))];
    }
    let half = below(under - 1);
    let (before, after) = (suffix(height, low, half), prefix(height, high, half));
    before.chain(after).collect()
}

/// Λ(0, high): the nodes left of the path to `high + 1`, one for every bit that is set in it.
pub fn prefix_cover(high: u64) -> impl Iterator<Item = u128> {
    prefix(HEIGHT, high, u64::MAX)
}

/// Λ(low, 2^64 - 1): the nodes right of the path to `low - 1`.
pub fn suffix_cover(low: u64) -> impl Iterator<Item = u128> {
    suffix(HEIGHT, low, u64::MAX)
}

/// The nodes of the subtree over the bits of `mask` with no value above `high`.
fn prefix(height: u32, high: u64, mask: u64) -> impl Iterator<Item = u128> {
    let end = u128::from(high) + 1;
    let mut left = u128::from(high & mask) + 1;
    std::iter::from_fn(move || {
        let up = (left != 0).then(|| left.trailing_zeros())?;
        left &= left - 1;
        Some((1 << (height - up)) - 1 + (end >> up) - 1)
    })
}

/// The nodes of the subtree over the bits of `mask` with no value below `low`.
fn suffix(height: u32, low: u64, mask: u64) -> impl Iterator<Item = u128> {
    let mut left = u128::from(!low & mask) + 1;
    let low = u128::from(low);
    std::iter::from_fn(move || {
        let up = (left != 0).then(|| left.trailing_zeros())?;
        left &= left - 1;
        Some((1 << (height - up)) - 1 + low.div_ceil(1 << up))
    })
}

/// The ways to find a least cover that the paper compares (5.1.2). They agree with
/// [`minimum_cover`], which is faster than all three.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// From the root down, level by level, through a queue.
    TopDown,
    /// From the lowest value that is left up, for as long as the parent fits.
    BottomUp,
    /// Like [`Method::BottomUp`], but how far up is found by binary search.
    BinarySearch,
}

/// A cover, and how many nodes' values were compared with the range to find it.
pub struct Searched {
    /// The ids of its nodes, in the order in which they were found.
    pub nodes: Vec<u128>,
    /// Nodes whose coverage was computed and checked.
    pub expanded: usize,
}

/// The least cover of an inclusive range, by a method of the paper.
pub fn search_cover(method: Method, height: u32, low: u64, high: u64) -> Searched {
    if low > high {
        return Searched {
            nodes: Vec::new(),
            expanded: 0,
        };
    }
    match method {
        Method::TopDown => top_down(height, low, high),
        Method::BottomUp => climb(height, low, high, one_by_one),
        Method::BinarySearch => climb(height, low, high, by_halves),
    }
}

/// The values under the node that is `up` levels above its leaves.
fn span(up: u32, value: u64) -> (u64, u64) {
    let first = value.checked_shl(up).unwrap_or(0);
    (first, first | below(up))
}

fn top_down(height: u32, low: u64, high: u64) -> Searched {
    let (mut nodes, mut expanded) = (Vec::new(), 1);
    let mut queue = VecDeque::from([(height, 0)]);
    while let Some((up, value)) = queue.pop_front() {
        let (first, last) = span(up, value);
        if low <= first && last <= high {
            nodes.push(node_id(height - up, value));
            continue;
        }
        for child in [2 * value, 2 * value + 1] {
            let (first, last) = span(up - 1, child);
            expanded += 1;
            if first <= high && low <= last {
                queue.push_back((up - 1, child));
            }
        }
    }
    Searched { nodes, expanded }
}

/// From left to right: the highest node that begins at the lowest value left and fits, by `rise`.
fn climb(
    height: u32,
    low: u64,
    high: u64,
    rise: impl Fn(u32, &mut dyn FnMut(u32) -> bool) -> u32,
) -> Searched {
    let (mut nodes, mut expanded, mut next) = (Vec::new(), 0, low);
    loop {
        let mut fits = |up| {
            expanded += 1;
            let (first, last) = span(up, above(next, up));
            low <= first && next == first && last <= high
        };
        let up = rise(height, &mut fits);
        let value = above(next, up);
        nodes.push(node_id(height - up, value));
        let (_, last) = span(up, value);
        if last == high {
            return Searched { nodes, expanded };
        }
        next = last + 1;
    }
}

fn one_by_one(height: u32, fits: &mut dyn FnMut(u32) -> bool) -> u32 {
    (1..=height).find(|up| !fits(*up)).unwrap_or(height + 1) - 1
}

fn by_halves(height: u32, fits: &mut dyn FnMut(u32) -> bool) -> u32 {
    let (mut low, mut high) = (1, height);
    while low <= high {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            low = middle + 1;
        } else {
            high = middle - 1;
        }
    }
    low - 1
}

/// The lowest bits, as many as said.
fn below(bits: u32) -> u64 {
    u64::MAX.checked_shr(u64::BITS - bits).unwrap_or(0)
}

/// A number without its lowest bits.
fn above(number: u64, bits: u32) -> u64 {
    number.checked_shr(bits).unwrap_or(0)
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
