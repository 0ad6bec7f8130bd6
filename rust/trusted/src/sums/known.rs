//! Row sets that a server returned, against the rows that the client knows.

use super::merged;
use crate::error::{Error, Result};
use louver_primitives::rowset::{self, Run};
use rayon::prelude::*;

/// The number of rows of every set, each counted as often as the set counts it.
///
/// `known` are the runs of row ids `(first, count)` that there are; `None` where that is not known.
/// `most` is how often a row may be counted.
///
/// # Errors
/// [`Error::Verify`] for bytes that are not a row set, a row that is not known, or one that is
/// counted too often; [`Error::Value`] for known runs out of range or twice.
pub fn set_sizes<S: AsRef<[u8]> + Sync>(
    sets: &[S],
    known: Option<&[(i64, i64)]>,
    most: u64,
) -> Result<Vec<u64>> {
    let known = known.map(merged).transpose()?;
    let size = |set: &S| size(set.as_ref(), known.as_deref(), most);
    sets.par_iter().map(size).collect()
}

fn size(set: &[u8], known: Option<&[Run]>, most: u64) -> Result<u64> {
    let (mut total, mut inside) = (0u64, true);
    let read = rowset::read(set, |run| {
        // A row set has at most 2^40 rows.
        total += run.count * run.weight;
        inside &= run.weight <= most && known.is_none_or(|known| holds(known, &run));
    });
    read.map_err(|error| Error::verify(error.to_string()))?;
    if inside {
        Ok(total)
    } else {
        Err(Error::verify(
            "the row set names rows that the table does not have, or one too often",
        ))
    }
}

/// Whether merged, ascending runs hold every id of a run.
fn holds(known: &[Run], run: &Run) -> bool {
    let after = known.partition_point(|known| known.first <= run.first);
    let before = after.checked_sub(1).map(|at| &known[at]);
    before.is_some_and(|known| run.first + run.count <= known.first + known.count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use louver_primitives::rowset::from_ids;
    use proptest::prelude::*;

    #[test]
    fn a_row_that_is_not_there_is_refused() {
        let known = [(20, 5), (10, 5), (15, 2)];
        let sizes = |ids: &[i64], most| {
            let set = from_ids(&mut ids.to_vec()).unwrap();
            set_sizes(&[set], Some(&known), most)
        };
        assert_eq!(sizes(&[10, 14, 15, 16, 24], 1).unwrap(), [5]);
        assert_eq!(sizes(&[], 1).unwrap(), [0]);
        assert_eq!(sizes(&[11, 11, 12], 2).unwrap(), [3]);
        for (ids, most) in [
            (&[9][..], 1),
            (&[25], 1),
            (&[16, 17], 1),
            (&[17, 18, 19], 1),
            (&[24, 25], 1),
            (&[11, 11], 1),
            (&[11, 11, 11], 2),
        ] {
            assert!(matches!(sizes(ids, most), Err(Error::Verify(_))), "{ids:?}");
        }
    }

    proptest! {
        #[test]
        fn as_membership_of_each_id_says(
            runs in prop::collection::btree_map(0i64..30, 1i64..4, 0..10),
            mut ids in prop::collection::vec(0i64..60, 0..80),
        ) {
            // Runs that do not overlap: each begins behind the one before.
            let (mut known, mut end) = (Vec::new(), 0);
            for (gap, count) in runs {
                known.push((end + gap % 3, count));
                end += gap % 3 + count;
            }
            let there = |id: i64| known.iter().any(|&(first, n)| (first..first + n).contains(&id));
            let inside = ids.iter().all(|&id| there(id));
            let set = from_ids(&mut ids).unwrap();
            let outcome = set_sizes(&[set], Some(&known), 1 << 40);
            prop_assert_eq!(outcome.ok(), inside.then(|| vec![ids.len() as u64]));
        }

        #[test]
        fn no_bytes_make_it_panic(set in any::<Vec<u8>>()) {
            let _ = set_sizes(&[set], Some(&[(0, 1 << 40)]), u64::MAX);
        }
    }
}
