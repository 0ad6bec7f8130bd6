//! Which rows an answer has of some tiles.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::Array;
use rayon::prelude::*;

/// Tiles of a task.
const GROUP: usize = 256;

/// Whether ids are those of all rows of tiles, in order: `counts` rows from each of `firsts` on.
/// Both are whole numbers of 64 bits.
pub fn are_all(ids: &dyn Array, firsts: &dyn Array, counts: &[u16]) -> bool {
    let numbers = |array| AsArray::as_primitive_opt::<Int64Type>(array);
    let (Some(ids), Some(firsts)) = (numbers(ids), numbers(firsts)) else {
        return false;
    };
    let total: usize = counts.iter().map(|&count| usize::from(count)).sum();
    let null = ids.null_count() + firsts.null_count() > 0;
    if null || firsts.len() != counts.len() || ids.len() != total {
        return false;
    }
    let (ids, firsts) = (ids.values(), firsts.values());
    let mut groups = Vec::with_capacity(counts.len().div_ceil(GROUP));
    let mut start = 0;
    for (firsts, counts) in firsts.chunks(GROUP).zip(counts.chunks(GROUP)) {
        groups.push((start, firsts, counts));
        start += counts
            .iter()
            .map(|&count| usize::from(count))
            .sum::<usize>();
    }
    groups.into_par_iter().all(|(start, firsts, counts)| {
        let mut rest = &ids[start..];
        firsts.iter().zip(counts).all(|(&first, &count)| {
            let (own, behind) = rest.split_at(usize::from(count));
            rest = behind;
            let wrong = own.iter().zip(0_i64..).fold(0, |wrong, (&id, row)| {
                wrong | (id ^ first.wrapping_add(row))
            });
            wrong == 0
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Int64Array;

    #[test]
    fn rows_of_tiles_are_told_from_others() {
        let firsts = Int64Array::from_iter_values((0..600).map(|tile| 5000 * tile - 7));
        let counts: Vec<u16> = (0..600).map(|tile| tile % 3 * 341).collect();
        let rows = |tile: i64| 0..i64::from(counts[tile as usize]);
        let ids: Vec<i64> = (0..600)
            .flat_map(|tile| rows(tile).map(move |row| 5000 * tile - 7 + row))
            .collect();
        let outcome = |ids: &[i64]| are_all(&Int64Array::from(ids.to_vec()), &firsts, &counts);
        assert!(outcome(&ids));
        for at in (0..ids.len()).step_by(1009) {
            let mut others = ids.clone();
            others[at] += 1;
            assert!(!outcome(&others));
            others.remove(at);
            assert!(!outcome(&others));
        }
        let null = Int64Array::from_iter((0..ids.len()).map(|at| (at > 0).then(|| ids[at])));
        assert!(!are_all(&null, &firsts, &counts));
        assert!(!are_all(&firsts, &firsts, &counts));
        assert!(are_all(
            &Int64Array::from(vec![0; 0]),
            &Int64Array::from(vec![0; 0]),
            &[]
        ));
    }
}
