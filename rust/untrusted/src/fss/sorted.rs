//! Points in rising order: every node above them is computed once.

use louver_primitives::fss::{Comparison, Prg, Tree};

/// Points that are walked together. Their topmost nodes, which all of them share, cost each chunk
/// as many steps as there are levels, so that a chunk is not to be small.
pub(super) const NODES: usize = 4096;
/// Places that the generator may touch behind what it is asked for, and those that are left out
/// at the beginning so that nodes lie in whole cache lines.
const SLACK: usize = 16;

/// The nodes above a chunk of points; kept from chunk to chunk for its memory.
pub(super) struct Walk {
    prg: &'static Prg,
    list: Vec<u64>,
    /// By depth: how the nodes one deeper hang on those of this depth.
    links: Vec<Vec<u8>>,
    /// By depth: how many nodes there are.
    counts: Vec<usize>,
    states: [Vec<u128>; 2],
    sums: [Vec<u128>; 3],
}

impl Walk {
    pub(super) fn new(prg: &'static Prg) -> Self {
        let room = || vec![0; NODES + SLACK];
        Self {
            prg,
            list: vec![0; NODES + SLACK],
            links: Vec::new(),
            counts: Vec::new(),
            states: [room(), room()],
            sums: [room(), room(), room()],
        }
    }

    /// The states of the points' leaves. At most [`NODES`] points of `bits` bits.
    pub(super) fn states(&mut self, tree: &Tree, bits: u32, points: &[u64]) -> &mut [u128] {
        let alone = self.plan(bits, points);
        let [mut from, mut to] = self.states.each_mut().map(|buffer| aligned(buffer));
        from[1] = tree.root;
        for depth in 0..alone {
            let out = &mut to[1..=self.counts[depth + 1]];
            self.prg
                .link(from, &self.links[depth], &tree.levels[depth], out);
            std::mem::swap(&mut from, &mut to);
        }
        let leaves = &mut from[1..=points.len()];
        if alone < tree.levels.len() {
            let shift = bits - 1 - alone as u32;
            self.prg
                .descend(leaves, points, shift, &tree.levels[alone..]);
        }
        leaves
    }

    /// The sums of a comparison at the points. At most [`NODES`] points of `bits` bits.
    pub(super) fn sums(&mut self, part: &Comparison, bits: u32, points: &[u64]) -> &mut [u128] {
        let alone = self.plan(bits, points);
        let [mut from, mut to] = self.states.each_mut().map(|buffer| aligned(buffer));
        let [mut sums, gains, mut next] = self.sums.each_mut().map(|buffer| aligned(buffer));
        (from[1], sums[1]) = (part.tree.root, 0);
        for depth in 0..alone {
            let (above, below) = (self.counts[depth], self.counts[depth + 1]);
            gains[1..=above].copy_from_slice(&sums[1..=above]);
            let states = &from[1..=above];
            self.prg
                .add_values(&mut gains[1..=above], states, part.values[depth]);
            if let Some(level) = part.tree.levels.get(depth) {
                let out = &mut to[1..=below];
                self.prg.link(from, &self.links[depth], level, out);
                std::mem::swap(&mut from, &mut to);
            }
            link_sums(sums, gains, &self.links[depth], &mut next[1..=below]);
            std::mem::swap(&mut sums, &mut next);
        }
        let total = &mut sums[1..=points.len()];
        if alone < bits as usize {
            let states = &mut from[1..=points.len()];
            let walk = (&part.tree.levels[alone..], &part.values[alone..]);
            let shift = bits - 1 - alone as u32;
            self.prg.descend_sums(total, states, points, shift, walk);
        }
        total
    }

    /// Finds the nodes. Gives the depth from which on every point has a node of its own.
    fn plan(&mut self, bits: u32, points: &[u64]) -> usize {
        // Two points part below the bits that they share; one alone shares none.
        let closest = self.prg.closest(points);
        let shared = (closest.leading_zeros() + bits).saturating_sub(64);
        let alone = match points.len() {
            1 => 0,
            _ => (shared + 1).min(bits),
        };
        let depth = alone as usize;
        self.links
            .resize_with(depth.max(self.links.len()), || vec![0; NODES / 4]);
        self.counts.clear();
        self.counts.resize(depth + 1, points.len());
        for (node, point) in self.list.iter_mut().zip(points) {
            *node = point.checked_shr(bits - alone).unwrap_or(0);
        }
        for depth in (0..depth).rev() {
            let count = self.counts[depth + 1];
            let links = &mut self.links[depth];
            links.resize(count.div_ceil(4), 0);
            self.counts[depth] = self.prg.fold(&mut self.list, count, links);
        }
        depth
    }
}

/// Left children take the gains of their parents, right ones the sums as they are.
fn link_sums(sums: &[u128], gains: &[u128], links: &[u8], out: &mut [u128]) {
    let mut parent = 0;
    for (at, out) in out.iter_mut().enumerate() {
        let four = links[at / 4] >> (at % 4);
        parent += usize::from(four & 1);
        let either = [gains[parent], sums[parent]];
        *out = either[usize::from(four >> 4 & 1)];
    }
}

/// The places of a buffer, the second of which begins a cache line.
fn aligned(buffer: &mut [u128]) -> &mut [u128] {
    let offset = buffer[1..].as_ptr().align_offset(64).min(SLACK / 2);
    &mut buffer[offset..]
}
