//! Ranges of nodes: every node of a depth from one prefix to another, whole subtrees among them.

use louver_primitives::fss::{Comparison, Prg, Tree};

/// Levels of the subtrees that are computed at once: what they hold stays in the nearest cache.
const DEPTH: u32 = 10;
/// Subtrees follow each other: the roots of 2^6 are computed together.
const BESIDE: usize = 6;
/// Nodes before the first that are computed with it, so that whole vectors begin at cache lines.
const BEFORE: usize = 4;
/// A cache line begins within this many elements.
pub(super) const LINE: usize = 4;

/// How many of a tree's levels belong to its subtrees.
pub(super) fn depth(levels: u32) -> u32 {
    levels.min(DEPTH)
}

/// Ranges of nodes; kept from one range to the next for its memory.
pub(super) struct Nodes {
    prg: &'static Prg,
    states: [Vec<u128>; 2],
    sums: [Vec<u128>; 3],
}

/// A comparison's node: its state, and the sum on the way to it.
type Summed = (u128, u128);

impl Nodes {
    /// For ranges of at most `count` nodes.
    pub(super) fn new(prg: &'static Prg, count: usize) -> Self {
        let room = || vec![0; count + 2 * BEFORE + LINE];
        Self {
            prg,
            states: [room(), room()],
            sums: [const { Vec::new() }; 3],
        }
    }

    /// The states of the nodes from prefix `first` to `last`, all levels below a root.
    pub(super) fn states(
        &mut self,
        root: u128,
        levels: &[[u128; 2]],
        first: u64,
        last: u64,
    ) -> &mut [u128] {
        let [mut from, mut to] = self.states.each_mut().map(|room| aligned(room));
        from[0] = root;
        let mut range = Range::new(levels.len(), first, last);
        if range.shared > 0 {
            let shift = levels.len() as u32 - 1;
            let shared = &levels[..range.shared];
            self.prg.descend(&mut from[..1], &[first], shift, shared);
        }
        for (depth, level) in levels.iter().enumerate().skip(range.shared) {
            let parents = range.parents(depth);
            let out = &mut to[..2 * parents.len()];
            self.prg.expand(&from[parents], level, out);
            std::mem::swap(&mut from, &mut to);
        }
        &mut from[range.whole()]
    }

    /// The sums of a comparison at the nodes from prefix `first` to `last`, all levels of `part`
    /// below a node, and their states if they are not the leaves.
    pub(super) fn sums(
        &mut self,
        root: Summed,
        (levels, values): (&[[u128; 2]], &[u128]),
        first: u64,
        last: u64,
    ) -> (&mut [u128], &mut [u128]) {
        let count = self.states[0].len();
        self.sums.iter_mut().for_each(|room| room.resize(count, 0));
        let [mut from, mut to] = self.states.each_mut().map(|room| aligned(room));
        let [mut sums, mut next, gains] = self.sums.each_mut().map(|room| aligned(room));
        (from[0], sums[0]) = root;
        let mut range = Range::new(values.len(), first, last);
        if range.shared > 0 {
            let shared = range.shared;
            let walk = (&levels[..shared.min(levels.len())], &values[..shared]);
            let (sums, states) = (&mut sums[..1], &mut from[..1]);
            let shift = values.len() as u32 - 1;
            self.prg.descend_sums(sums, states, &[first], shift, walk);
        }
        for (depth, correction) in values.iter().enumerate().skip(range.shared) {
            let parents = range.parents(depth);
            let (gains, sums_above) = (&mut gains[..parents.len()], &sums[parents.clone()]);
            gains.copy_from_slice(sums_above);
            let states = &from[parents.clone()];
            self.prg.add_values(gains, states, *correction);
            // What goes left gains the value of the node above, what goes right does not.
            let pairs = next.chunks_exact_mut(2).zip(gains.iter().zip(sums_above));
            for (pair, (gain, sum)) in pairs {
                (pair[0], pair[1]) = (*gain, *sum);
            }
            if let Some(level) = levels.get(depth) {
                self.prg.expand(states, level, &mut to[..2 * parents.len()]);
                std::mem::swap(&mut from, &mut to);
            }
            std::mem::swap(&mut sums, &mut next);
        }
        let whole = range.whole();
        let states = if levels.len() < values.len() {
            0..0
        } else {
            whole.clone()
        };
        (&mut sums[whole], &mut from[states])
    }
}

/// What of a range of nodes is computed on each level.
struct Range {
    levels: usize,
    first: u64,
    last: u64,
    /// Levels on which all have the same node.
    shared: usize,
    /// The number of the first node that was computed.
    base: u64,
}

impl Range {
    fn new(levels: usize, first: u64, last: u64) -> Self {
        let parted = (first ^ last).checked_ilog2().map_or(0, |bit| bit + 1);
        Self {
            levels,
            first,
            last,
            shared: levels - parted as usize,
            base: first.checked_shr(parted).unwrap_or(0),
        }
    }

    /// The indexes of those nodes of a depth that have children in the range.
    fn parents(&mut self, depth: usize) -> std::ops::Range<usize> {
        let below = self.levels - depth - 1;
        let [low, high] = [self.first, self.last].map(|node| (node >> below >> 1) - self.base);
        let low = low as usize / BEFORE * BEFORE;
        self.base = 2 * (self.base + low as u64);
        low..high as usize + 1
    }

    /// The indexes of the range.
    fn whole(&self) -> std::ops::Range<usize> {
        let [low, high] = [self.first, self.last].map(|node| (node - self.base) as usize);
        low..high + 1
    }
}

/// Subtrees one after the other.
pub(super) struct Subtrees {
    nodes: Nodes,
    /// Roots of subtrees that follow each other, and which part of the tree is theirs.
    tops: Vec<Summed>,
    part: Option<u64>,
}

impl Subtrees {
    pub(super) fn new(prg: &'static Prg) -> Self {
        Self {
            nodes: Nodes::new(prg, 1 << DEPTH),
            tops: Vec::new(),
            part: None,
        }
    }

    /// The states of the leaves of a tree's subtree `number`: 2^[`depth`] of them. It is one and
    /// the same tree each time.
    pub(super) fn states(&mut self, tree: &Tree, number: u64) -> &mut [u128] {
        let low = depth(tree.levels.len() as u32) as usize;
        let (above, below) = tree.levels.split_at(tree.levels.len() - low);
        let (part, first, last) = beside(above.len(), number);
        if self.part != Some(part) {
            let states = self.nodes.states(tree.root, above, first, last);
            self.tops = states.iter().map(|state| (*state, 0)).collect();
            self.part = Some(part);
        }
        let (root, _) = self.tops[(number - first) as usize];
        self.nodes.states(root, below, 0, (1 << low) - 1)
    }

    /// The sums of a comparison at the points of subtree `number`: 2^[`depth`] of them. It is one
    /// and the same comparison each time.
    pub(super) fn sums(&mut self, part: &Comparison, number: u64) -> &mut [u128] {
        let low = depth(part.values.len() as u32) as usize;
        let top = part.values.len() - low;
        let (levels, values) = (&part.tree.levels, &part.values);
        let (block, first, last) = beside(top, number);
        if self.part != Some(block) {
            let (root, above) = ((part.tree.root, 0), (&levels[..top], &values[..top]));
            let (sums, states) = self.nodes.sums(root, above, first, last);
            self.tops = states.iter().copied().zip(sums.iter().copied()).collect();
            self.part = Some(block);
        }
        let root = self.tops[(number - first) as usize];
        let below = (&levels[top..], &values[top..]);
        self.nodes.sums(root, below, 0, (1 << low) - 1).0
    }
}

/// Of the subtrees below so many levels those that are begun together with a subtree: which part
/// of all they are, the first and the last.
fn beside(levels: usize, number: u64) -> (u64, u64, u64) {
    let width = levels.min(BESIDE);
    let part = number >> width;
    (part, part << width, (part << width) + (1 << width) - 1)
}

/// The elements of a buffer from the beginning of a cache line on.
pub(super) fn aligned(room: &mut [u128]) -> &mut [u128] {
    let offset = room.as_ptr().align_offset(64).min(LINE);
    &mut room[offset..]
}
