//! Points in rising order: what is above several of them is computed once.
//!
//! Where points are close to each other, the tree above them is whole, and all nodes from the
//! first to the last one's are computed: nothing is to be linked. Below, where about every point
//! has a node of its own, each is walked by itself. Where points are in clusters there are levels
//! between of which neither holds; there nodes are found and linked. The points alone decide.

use super::domain::{aligned, Nodes, LINE};
use super::linked::Linked;
use louver_primitives::fss::{Comparison, Prg, Tree};

/// Points that are walked together: their nodes stay in the near caches.
pub(super) const NODES: usize = 2048;
/// One in so many points is sampled for the gap to its neighbour; the step avoids regular gaps.
const SAMPLED: usize = 13;
/// With so few nodes all are computed, since the sample may miss them.
const FEW: usize = 64;
/// What a level costs: a point by itself, a linked node, one of a whole range.
const ALONE: usize = 4;
const LINKED: usize = 7;
const WHOLE: usize = 3;

/// The nodes above a chunk of points; kept from chunk to chunk for its memory.
pub(super) struct Walk {
    prg: &'static Prg,
    nodes: Nodes,
    linked: Linked,
    /// By point: which of the lowest linked nodes is its own.
    indices: Vec<usize>,
    states: Vec<u128>,
    sums: Vec<u128>,
}

impl Walk {
    /// For chunks of at most so many points, or [`NODES`] if that is less.
    pub(super) fn new(prg: &'static Prg, points: usize) -> Self {
        let points = points.min(NODES);
        Self {
            prg,
            nodes: Nodes::new(prg, FEW.max(points * ALONE / WHOLE + 1)),
            linked: Linked::new(prg),
            indices: Vec::new(),
            states: vec![0; points + LINE],
            sums: Vec::new(),
        }
    }

    /// The states of the leaves of a chunk of points of `bits` bits.
    pub(super) fn states(&mut self, tree: &Tree, bits: u32, points: &[u64]) -> &mut [u128] {
        let shape = Shape::of(bits, points);
        let (whole, linked, first) = (shape.whole, shape.linked, shape.first);
        let above = &tree.levels[..whole];
        let nodes = self.nodes.states(tree.root, above, first, shape.last);
        let leaves = &mut aligned(&mut self.states)[..points.len()];
        if linked == whole {
            pick(nodes, shape.places(points), leaves);
        } else {
            self.linked.plan(&shape, points, &mut self.indices);
            let nodes = self.linked.states(nodes, &tree.levels[whole..linked]);
            pick(nodes, self.indices.iter().copied(), leaves);
        }
        if linked < tree.levels.len() {
            let shift = bits - 1 - linked as u32;
            let below = &tree.levels[linked..];
            self.prg.descend(leaves, points, shift, below);
        }
        leaves
    }

    /// The sums of a comparison at a chunk of points of `bits` bits.
    pub(super) fn sums(&mut self, part: &Comparison, bits: u32, points: &[u64]) -> &mut [u128] {
        let shape = Shape::of(bits, points);
        let (whole, linked, first) = (shape.whole, shape.linked, shape.first);
        let (levels, values) = (&part.tree.levels, &part.values);
        let above = (&levels[..whole.min(levels.len())], &values[..whole]);
        let root = (part.tree.root, 0);
        let (sums, states) = self.nodes.sums(root, above, first, shape.last);
        self.sums.resize(self.states.len(), 0);
        let leaves = &mut aligned(&mut self.states)[..points.len()];
        let total = &mut aligned(&mut self.sums)[..points.len()];
        if linked == whole {
            pick(states, shape.places(points), leaves);
            pick(sums, shape.places(points), total);
        } else {
            self.linked.plan(&shape, points, &mut self.indices);
            let between = (
                &levels[whole..linked.min(levels.len())],
                &values[whole..linked],
            );
            let (sums, states) = self.linked.sums(sums, states, between);
            pick(states, self.indices.iter().copied(), leaves);
            pick(sums, self.indices.iter().copied(), total);
        }
        if linked < values.len() {
            let shift = bits - 1 - linked as u32;
            let below = (&levels[linked..], &values[linked..]);
            self.prg.descend_sums(total, leaves, points, shift, below);
        }
        total
    }
}

/// How the nodes above some points are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) bits: u32,
    /// Down to this depth all nodes from the first point's to the last one's are computed,
    pub(super) whole: usize,
    /// from there to this depth those that points have, below each point by itself.
    pub(super) linked: usize,
    /// The first and the last node of the depth `whole`.
    pub(super) first: u64,
    last: u64,
}

impl Shape {
    /// At least one point.
    pub(super) fn of(bits: u32, points: &[u64]) -> Self {
        let most = u64::MAX >> (64 - bits);
        let [first, last] = [points[0], points[points.len() - 1]].map(|point| point & most);
        // A mapped file that changes meanwhile makes the values wrong, and no more.
        let last = last.max(first);
        let shared = |apart: u64| (bits - (64 - (apart & most).leading_zeros())) as usize;
        // How many of the sampled neighbours have one node on each depth, and no deeper.
        let (mut parted, mut samples) = ([0_usize; 65], 0);
        for pair in points.windows(2).step_by(SAMPLED) {
            parted[shared(pair[0] ^ pair[1])] += 1;
            samples += 1;
        }
        // Of the first node of a depth, and of all neighbours that are not together on it.
        let mut apart = 0;
        let (mut whole, mut linked) = (None, 0);
        for (depth, parted) in parted.iter().enumerate().take(bits as usize + 1) {
            let nodes = 1 + apart * (points.len() - 1) / samples.max(1);
            let below = bits - depth as u32;
            let width = (last.checked_shr(below).unwrap_or(0))
                .abs_diff(first.checked_shr(below).unwrap_or(0));
            let width = usize::try_from(width)
                .unwrap_or(usize::MAX)
                .saturating_add(1);
            let others = (ALONE * points.len()).min(LINKED * nodes);
            let fits = width <= FEW || width.saturating_mul(WHOLE) <= others;
            if whole.is_none_or(|before| before + 1 == depth) && fits {
                whole = Some(depth);
            }
            if LINKED * nodes < ALONE * points.len() {
                linked = depth;
            }
            apart += parted;
        }
        let whole = whole.unwrap_or(0);
        let [first, last] = [first, last].map(|node| node.checked_shr(bits - whole as u32));
        Self {
            bits,
            whole,
            linked: linked.max(whole),
            first: first.unwrap_or(0),
            last: last.unwrap_or(0),
        }
    }

    /// Where the points' nodes of depth `whole` are in their range.
    fn places(self, points: &[u64]) -> impl Iterator<Item = usize> + '_ {
        let below = self.bits - self.whole as u32;
        let node = move |point: &u64| point.checked_shr(below).unwrap_or(0);
        points
            .iter()
            .map(move |point| node(point).wrapping_sub(self.first) as usize)
    }
}

/// Copies of nodes. Points that changed after they were looked at may have none: what was there
/// remains.
pub(super) fn pick(nodes: &[u128], indices: impl Iterator<Item = usize>, out: &mut [u128]) {
    for (out, index) in out.iter_mut().zip(indices) {
        if let Some(node) = nodes.get(index) {
            *out = *node;
        }
    }
}
