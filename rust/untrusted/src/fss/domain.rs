//! All points from zero on: whole subtrees.

use louver_primitives::fss::{Comparison, Prg, Tree};

/// Levels of the subtrees that are computed at once.
const DEPTH: u32 = 12;

/// A subtree at a time; kept from one to the next for its memory.
pub(super) struct Subtrees {
    prg: &'static Prg,
    states: [Vec<u128>; 2],
    sums: [Vec<u128>; 2],
}

/// How many of a tree's levels belong to its subtrees.
pub(super) fn depth(levels: u32) -> u32 {
    levels.min(DEPTH)
}

impl Subtrees {
    pub(super) fn new(prg: &'static Prg) -> Self {
        let room = || vec![0; 1 << DEPTH];
        Self {
            prg,
            states: [room(), room()],
            sums: [room(), room()],
        }
    }

    /// The states of the leaves of a tree's subtree `number`: 2^[`depth`] of them.
    pub(super) fn states(&mut self, tree: &Tree, number: u64) -> &mut [u128] {
        let levels = tree.levels.len();
        let top = levels - depth(levels as u32) as usize;
        let [from, to] = &mut self.states;
        from[0] = tree.root;
        if top > 0 {
            let shift = top as u32 - 1;
            self.prg
                .descend(&mut from[..1], &[number], shift, &tree.levels[..top]);
        }
        for (down, level) in tree.levels[top..].iter().enumerate() {
            self.prg
                .expand(&from[..1 << down], level, &mut to[..2 << down]);
            std::mem::swap(from, to);
        }
        &mut from[..1 << (levels - top)]
    }

    /// The sums of a comparison at the points of subtree `number`: 2^[`depth`] of them.
    pub(super) fn sums(&mut self, part: &Comparison, number: u64) -> &mut [u128] {
        let bits = part.values.len();
        let top = bits - depth(bits as u32) as usize;
        let ([from, to], [sums, next]) = (&mut self.states, &mut self.sums);
        (from[0], sums[0]) = (part.tree.root, 0);
        if top > 0 {
            let walk = (&part.tree.levels[..top], &part.values[..top]);
            let (sums, states) = (&mut sums[..1], &mut from[..1]);
            self.prg
                .descend_sums(sums, states, &[number], top as u32 - 1, walk);
        }
        for (down, correction) in part.values[top..].iter().enumerate() {
            let width = 1 << down;
            for (pair, sum) in next.chunks_exact_mut(2).zip(&sums[..width]) {
                pair.fill(*sum);
            }
            // What goes left gains the value of the node above, what goes right does not.
            self.prg
                .add_values(&mut sums[..width], &from[..width], *correction);
            for (pair, sum) in next.chunks_exact_mut(2).zip(&sums[..width]) {
                pair[0] = *sum;
            }
            std::mem::swap(sums, next);
            if let Some(level) = part.tree.levels.get(top + down) {
                self.prg.expand(&from[..width], level, &mut to[..2 * width]);
                std::mem::swap(from, to);
            }
        }
        &mut sums[..1 << (bits - top)]
    }
}
