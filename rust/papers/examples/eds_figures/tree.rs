//! Figures 6.1 to 6.5: node ids, coverage sets, least covers.

use super::{Dice, Run};
use louver_primitives::eds::tree::{
    coverage_set_in, minimum_cover_in, node_id, search_cover, Method,
};
use std::hint::black_box;

const HEIGHTS: [u32; 8] = [8, 16, 24, 32, 40, 48, 56, 64];
const CALLS: usize = 1000;

/// The paper's sum over the bits of a label.
fn bit_by_bit(label_len: u32, value: u64) -> u128 {
    (0..label_len)
        .map(|i| (1_u128 << i) + (u128::from(value >> i & 1) << i))
        .sum()
}

/// From the root down, each id from that of its parent (the paper's Listing 1, corrected).
fn incremental(height: u32, value: u64) -> Vec<u128> {
    let mut nodes = Vec::with_capacity(height as usize + 1);
    let mut node = 0;
    nodes.push(node);
    for bit in (0..height).rev() {
        node = (node << 1) + if value >> bit & 1 == 1 { 2 } else { 1 };
        nodes.push(node);
    }
    nodes
}

fn naive(height: u32, value: u64) -> Vec<u128> {
    (0..=height)
        .map(|level| {
            let value = value.checked_shr(height - level).unwrap_or(0);
            bit_by_bit(level, value)
        })
        .collect()
}

pub(super) fn coverage(run: &Run) {
    for height in HEIGHTS {
        let each = |act: &dyn Fn()| run.time(CALLS, || (0..CALLS).for_each(|_| act()));
        let leaf = || black_box(0_u64);
        let ns = each(&|| _ = black_box(bit_by_bit(height, leaf())));
        run.line("6.1", "bit by bit (paper)", height, ns, "ns");
        let ns = each(&|| _ = black_box(node_id(height, leaf())));
        run.line("6.1", "ours", height, ns, "ns");
        let ns = each(&|| drop(black_box(incremental(height, leaf()))));
        run.line("6.2", "incremental (paper)", height, ns, "ns");
        run.line("6.3", "incremental (paper)", height, ns, "ns");
        let ns = each(&|| drop(black_box(naive(height, leaf()))));
        run.line("6.3", "naive (paper)", height, ns, "ns");
        let ns = each(&|| drop(black_box(coverage_set_in(height, leaf()))));
        run.line("6.2", "ours", height, ns, "ns");
        run.line("6.3", "ours", height, ns, "ns");
    }
}

pub(super) fn covers(run: &Run) {
    let methods = [
        ("top down", Method::TopDown),
        ("bottom up", Method::BottomUp),
        ("binary search", Method::BinarySearch),
    ];
    for height in HEIGHTS {
        let mut dice = Dice(u64::from(height));
        let count = run.pick(300, 10_000);
        let ranges: Vec<(u64, u64)> = (0..count).map(|_| dice.range(height)).collect();
        for (name, method) in methods {
            let mut expanded = 0;
            let ns = run.time(count, || {
                expanded = 0;
                for (low, high) in &ranges {
                    let cover = black_box(search_cover(method, height, *low, *high));
                    expanded += cover.expanded;
                }
            });
            run.line("6.4", name, height, ns, "ns");
            run.line("6.5", name, height, expanded as f64 / count as f64, "nodes");
        }
        let mut nodes = 0;
        let ns = run.time(count, || {
            nodes = 0;
            for (low, high) in &ranges {
                nodes += black_box(minimum_cover_in(height, *low, *high)).len();
            }
        });
        run.line("6.4", "ours", height, ns, "ns");
        run.line(
            "6.5",
            "nodes of the cover",
            height,
            nodes as f64 / count as f64,
            "nodes",
        );
    }
}
