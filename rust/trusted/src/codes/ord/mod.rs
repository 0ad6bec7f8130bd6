//! Order codes (`spec/ord.md`): numbers that are ordered as the values are.

mod normal;
mod rank;
#[cfg(test)]
mod tests;
mod tree;

pub use rank::Interval;
pub(crate) use rank::Ranks;

use crate::error::Result;
use crate::keyring::KeyRing;
use crate::keys::{hex, Purpose, RootSecret};
use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, Int64Array};
use arrow_buffer::Buffer;
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::sync::Arc;
pub(crate) use tree::Tree;
use zeroize::Zeroizing;

/// Bits of a domain up to which codes are narrow.
const NARROW_DOMAIN: u32 = 47;
/// Bits of narrow codes, and of wide ones.
const RANGES: [u32; 2] = [63, 127];
/// Different values that a task takes: they share the upper part of the search.
const CHUNK: usize = 2048;

impl KeyRing {
    /// Order codes: `Int64` for an interval of at most 47 bits, else 16 bytes that compare as
    /// bytes; never 0, and NULL for NULL. The columns of a group ("" is none) have one function a
    /// domain and interval.
    ///
    /// # Errors
    /// [`crate::Error::Value`]: another type, or a value outside of the interval.
    pub fn ord_codes(
        &self,
        id: (u32, u32, u32),
        group: &str,
        interval: Interval<'_>,
        values: &dyn Array,
    ) -> Result<ArrayRef> {
        let ranks = Ranks::new(interval, values)?;
        let wide = interval.bits > NARROW_DOMAIN;
        let tree = tree(self, id, group, interval, RANGES[usize::from(wide)]);
        let mut codes = vec![0; ranks.ranks.len()];
        for (row, code) in encrypted(&tree, &ranks) {
            codes[row as usize] = code;
        }
        let nulls = ranks.nulls.clone();
        Ok(if wide {
            let bytes: Vec<[u8; 16]> = codes.into_iter().map(u128::to_be_bytes).collect();
            let bytes = Buffer::from_vec(bytes.into_flattened());
            Arc::new(FixedSizeBinaryArray::new(16, bytes, nulls))
        } else {
            let codes: Vec<i64> = codes.into_iter().map(|code| code as i64).collect();
            Arc::new(Int64Array::new(codes.into(), nulls))
        })
    }
}

/// Every row that is not NULL, and its code.
fn encrypted(tree: &Tree, ranks: &Ranks) -> Vec<(u32, u128)> {
    let rows = (0_u32..).zip(&ranks.ranks);
    let rows = rows.filter(|(row, _)| ranks.live(*row as usize));
    let mut pairs: Vec<(u64, u32)> = rows.map(|(row, rank)| (*rank, row)).collect();
    if pairs.len() <= CHUNK {
        // Other threads would take longer to begin than this takes.
        pairs.sort_unstable();
        return of_task(tree, &pairs).collect();
    }
    pairs.par_sort_unstable();
    let (mut tasks, mut rest) = (Vec::new(), pairs.as_slice());
    while !rest.is_empty() {
        // Equal ranks stay together.
        let last = rest[rest.len().min(CHUNK) - 1].0;
        let (task, after) = rest.split_at(rest.partition_point(|pair| pair.0 <= last));
        tasks.push(task);
        rest = after;
    }
    let done = tasks
        .into_par_iter()
        .flat_map_iter(|task| of_task(tree, task));
    done.collect()
}

/// The rows of one task, in the order of their ranks, and their codes.
fn of_task<'a>(tree: &Tree, task: &'a [(u64, u32)]) -> impl Iterator<Item = (u32, u128)> + 'a {
    let mut plain: Vec<u64> = task.iter().map(|pair| pair.0).collect();
    plain.dedup();
    let codes = tree.encrypt(&plain);
    let mut at = 0;
    task.iter().map(move |&(rank, row)| {
        at += usize::from(plain[at] != rank);
        (row, codes[at])
    })
}

/// What a [`Tree`] is of: the column or the group, and the domain, the interval's begin, its bits
/// and those of its codes.
pub(crate) type Function = ((u32, u32, u32), String, String, i128, u32, u32);

/// The function of a column or group, domain and interval.
fn tree(
    ring: &KeyRing,
    id: (u32, u32, u32),
    group: &str,
    interval: Interval<'_>,
    range_bits: u32,
) -> Arc<Tree> {
    let Interval { domain, low, bits } = interval;
    let id = if group.is_empty() { id } else { (0, 0, 0) };
    let function = (id, group.into(), domain.into(), low, bits, range_bits);
    ring.ciphers().orders.get(function, || {
        let key = key(ring.root(), id, group, interval);
        Tree::new(&key, bits, range_bits)
    })
}

fn key(
    root: &RootSecret,
    (table, column, generation): (u32, u32, u32),
    group: &str,
    Interval { domain, low, bits }: Interval<'_>,
) -> Zeroizing<[u8; 32]> {
    let own = format!("ord/{domain}/{low}/{bits}");
    if group.is_empty() {
        return root.derive(Purpose {
            name: &own,
            table,
            column,
            generation,
        });
    }
    let label = hex(&Sha256::digest(group.as_bytes()));
    root.derive(Purpose::whole(&format!("{own}/{label}")))
}
