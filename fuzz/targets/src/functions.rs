//! The functions of servers, called with any bytes: residues, updates, codes, filters.

use crate::input::{joined, Input};
use arrow_array::builder::{BinaryBuilder, ListBuilder};
use arrow_array::{Array, BinaryArray, FixedSizeBinaryArray, Int64Array, ListArray};
use louver_untrusted::server as s;

/// Rows of a call.
const ROWS: usize = 2;
/// Bytes of a number: what is longer only takes longer.
const MOST: usize = 40;

pub(crate) fn run(data: &[u8]) {
    let mut input = Input(data);
    let which = input.byte();
    let pieces: Vec<&[u8]> = input.pieces(8);
    let short = |at: usize| {
        let piece = pieces.get(at).copied().unwrap_or_default();
        &piece[..piece.len().min(MOST)]
    };
    let column = |at: usize| BinaryArray::from_iter_values([short(at); ROWS]);
    let [n, a, b, c, d, e] = [0, 1, 2, 3, 4, 5].map(column);
    let whole = BinaryArray::from_iter_values([pieces.get(1).copied().unwrap_or_default(); ROWS]);
    let ids = Int64Array::from_iter_values([1, i64::from(which)]);
    let codes = Int64Array::from_iter_values([0, i64::MIN]);
    let wide = FixedSizeBinaryArray::try_from_iter([[7; 16], [0; 16]].iter());
    let wide = wide.expect("of one width");
    let list = lists(&pieces);
    match which % 17 {
        0 => drop(s::sdb_mul(&a, &b, &n)),
        1 => drop(s::sdb_key_update(&a, &b, &c, &n)),
        2 => drop(s::sdb_add(&a, &b, &c, &d, &e, &n)),
        3 => drop(s::sdb_add_kept(&a, &b, &c, &c, &d, &e, &n)),
        4 => drop(s::sdb_linear(&a, &b, &c, &d, &n)),
        5 => drop(s::sdb_int_add(&a, &b, &n)),
        6 => drop(s::sdb_power(&a, &b, &n)),
        7 => drop(s::sdb_compare(&a, &n)),
        8 => drop(s::sdb_order(&a, &n)),
        9 => drop(s::sdb_residue(&a, &n)),
        10 => drop(s::sdb_powers(&a, &list, &n)),
        11 => drop(s::sdb_sum(&list, &n)),
        12 => drop(s::hom_sum(&list, &n)),
        13 => drop(s::ore_compare(&whole, &n)),
        14 => drop(s::text_match(&whole, &ids, &n)),
        15 => {
            drop(s::onion_open(&codes, &ids, &a));
            drop(s::onion_join(&codes, &a));
        }
        _ => {
            drop(s::onion_open_wide(&wide, &ids, &a));
            drop(s::onion_join_wide(&wide, &a));
        }
    }
    assert_eq!(n.len(), ROWS);
}

/// The pieces after the first as a list, the same in every row.
fn lists(pieces: &[&[u8]]) -> ListArray {
    let mut lists = ListBuilder::new(BinaryBuilder::new());
    for _ in 0..ROWS {
        for piece in pieces.iter().skip(2) {
            lists.values().append_value(&piece[..piece.len().min(MOST)]);
        }
        lists.append(true);
    }
    lists.finish()
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let modulus = [0xfb; 32];
    let update = s::encode_update(&[1, 2], &[3]).expect("short numbers");
    let one = s::encode_update(&[1], &[1]).expect("short numbers");
    let key = [&[1][..], &[9; 32]].concat();
    let mut seeds: Vec<Vec<u8>> = (0..13)
        .map(|which| {
            joined(
                &[which],
                &[&modulus, &[7; 32], &[9; 31], &update, &one, &update],
            )
        })
        .collect();
    seeds.push(joined(&[1], &[&modulus, &[7; 32], &[9; 31], &update]));
    seeds.push(joined(&[4], &[&modulus, &[7; 32], &[9; 32], &one, &one]));
    seeds.push(joined(&[9], &[&modulus, b"-12.50"]));
    seeds.push(joined(&[13], &[&[1; 40], &[1; 80]]));
    seeds.push(joined(&[14], &[&[1; 17], &[1; 64]]));
    seeds.push(joined(&[15], &[&[], &key]));
    seeds.push(joined(&[16], &[&[], &key]));
    seeds
}
