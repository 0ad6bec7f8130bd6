//! Nodes of some levels that a rising list of points has: found from below, computed from above.

use super::domain::{aligned, LINE};
use super::sorted::{pick, Shape};
use louver_primitives::fss::Prg;

/// Elements that the generator may touch behind the requested ones, and those that are left out
/// at the beginning so that nodes fill whole cache lines.
const SLACK: usize = 16;

/// Linked nodes; kept from chunk to chunk for its memory.
pub(super) struct Linked {
    prg: &'static Prg,
    /// The nodes of the level that was found last.
    list: Vec<u64>,
    /// By level: how the nodes one deeper hang on those of it.
    links: Vec<Vec<u8>>,
    /// By level: how many nodes there are; behind the last, of the lowest.
    counts: Vec<usize>,
    first: u64,
    states: [Vec<u128>; 2],
    sums: [Vec<u128>; 3],
}

impl Linked {
    pub(super) fn new(prg: &'static Prg) -> Self {
        Self {
            prg,
            list: Vec::new(),
            links: Vec::new(),
            counts: Vec::new(),
            first: 0,
            states: [const { Vec::new() }; 2],
            sums: [const { Vec::new() }; 3],
        }
    }

    /// Finds the nodes from a shape's depth `linked` up to `whole`, and for each point which of
    /// the lowest ones is its own.
    pub(super) fn plan(&mut self, shape: &Shape, points: &[u64], indices: &mut Vec<usize>) {
        let below = shape.bits - shape.linked as u32;
        self.first = shape.first;
        indices.clear();
        self.list.clear();
        for point in points {
            let node = point.checked_shr(below).unwrap_or(0);
            if self.list.last() != Some(&node) {
                self.list.push(node);
            }
            indices.push(self.list.len() - 1);
        }
        let (mut count, levels) = (self.list.len(), shape.linked - shape.whole);
        self.list.resize(count + SLACK, 0);
        self.links.resize_with(levels, Vec::new);
        self.counts.clear();
        self.counts.resize(levels + 1, count);
        for (links, above) in self.links.iter_mut().zip(&mut self.counts).rev() {
            links.resize(count.div_ceil(4), 0);
            count = self.prg.fold(&mut self.list, count, links);
            *above = count;
        }
    }

    /// The states of the lowest nodes, of those of the range above and the levels between.
    pub(super) fn states(&mut self, nodes: &[u128], levels: &[[u128; 2]]) -> &[u128] {
        self.room();
        let [mut from, mut to] = lined(&mut self.states);
        pick(
            nodes,
            tops(&self.list[..self.counts[0]], self.first),
            &mut from[1..],
        );
        for (depth, level) in levels.iter().enumerate() {
            let out = &mut to[1..=self.counts[depth + 1]];
            self.prg.link(from, &self.links[depth], level, out);
            std::mem::swap(&mut from, &mut to);
        }
        &from[1..]
    }

    /// The sums of a comparison at the lowest nodes, and their states if they have children.
    pub(super) fn sums(
        &mut self,
        sums: &[u128],
        states: &[u128],
        (levels, values): (&[[u128; 2]], &[u128]),
    ) -> (&[u128], &[u128]) {
        self.room();
        let [mut from, mut to] = lined(&mut self.states);
        let [mut total, gains, mut next] = lined(&mut self.sums);
        let highest = &self.list[..self.counts[0]];
        pick(states, tops(highest, self.first), &mut from[1..]);
        pick(sums, tops(highest, self.first), &mut total[1..]);
        for (depth, correction) in values.iter().enumerate() {
            let (above, below) = (self.counts[depth], self.counts[depth + 1]);
            gains[1..=above].copy_from_slice(&total[1..=above]);
            let gaining = &mut gains[1..=above];
            self.prg.add_values(gaining, &from[1..=above], *correction);
            if let Some(level) = levels.get(depth) {
                let out = &mut to[1..=below];
                self.prg.link(from, &self.links[depth], level, out);
                std::mem::swap(&mut from, &mut to);
            }
            link_sums(total, gains, &self.links[depth], &mut next[1..=below]);
            std::mem::swap(&mut total, &mut next);
        }
        (&total[1..], &from[1..])
    }

    /// Makes room for the nodes of any level.
    fn room(&mut self) {
        let most = self.list.len() + 2 * SLACK;
        for room in self.states.iter_mut().chain(&mut self.sums) {
            room.resize(most.max(room.len()), 0);
        }
    }
}

/// Which nodes of the range above are those of the highest level.
fn tops(highest: &[u64], first: u64) -> impl Iterator<Item = usize> + '_ {
    highest
        .iter()
        .map(move |node| node.wrapping_sub(first) as usize)
}

/// The elements of buffers, the second of which begins a cache line.
fn lined<const N: usize>(rooms: &mut [Vec<u128>; N]) -> [&mut [u128]; N] {
    rooms.each_mut().map(|room| &mut aligned(room)[LINE - 1..])
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
