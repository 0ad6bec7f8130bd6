//! Plaintexts that no writer makes.

use super::seal::{plaintexts, seal_plain};
use super::tests::{epochs, firsts, ring};
use super::{TileColumn, TileForm, TILE_ROWS};
use crate::{Error, Result};
use arrow_array::*;
use std::sync::Arc;

const FIRST: i64 = 5 << 36;

fn open(form: TileForm, values: &ArrayRef, plain: &[u8]) -> Result<ArrayRef> {
    let (ring, epochs) = (ring(1), epochs());
    let column = TileColumn {
        id: (1, 2, 3),
        epochs: &epochs,
        form,
    };
    let sealed = seal_plain(&ring, &column, FIRST, plain).unwrap();
    let sealed = BinaryArray::from_iter_values([sealed]);
    let firsts = firsts(FIRST, TILE_ROWS, 1);
    let opened = ring.open_tiles(&column, &sealed, &firsts, values.data_type(), None);
    opened.map(|(array, _)| array)
}

/// All plaintexts with a changed byte; how many of them open.
fn changed(form: TileForm, values: &ArrayRef) -> usize {
    let plain = plaintexts(form, values, TILE_ROWS).unwrap().swap_remove(0);
    assert_eq!(&open(form, values, &plain).unwrap(), values);
    let open_changed = |at: usize| {
        let mut changed = plain.clone();
        changed[at] ^= 1;
        match open(form, values, &changed) {
            Ok(array) => {
                array.to_data().validate_full().unwrap();
                // A compressed body has several encodings, numbers have one.
                let packed = matches!(form, TileForm::Packed { .. });
                assert!(!packed || &array != values, "byte {at}");
                true
            }
            Err(error) => {
                assert!(matches!(error, Error::Verify(_)), "{error}");
                false
            }
        }
    };
    (0..plain.len()).filter(|&at| open_changed(at)).count()
}

#[test]
fn numbers_have_one_encoding() {
    // The lowest bits of three numbers, which lie in three lanes, and more rows, which are NULL.
    let form = TileForm::of_bounds(0, 7, true).unwrap();
    let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(3), None, Some(5), Some(6)]));
    assert_eq!(changed(form, &values), 5);
    let truths: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]));
    assert_eq!(
        changed(TileForm::of_bounds(0, 1, true).unwrap(), &truths),
        2
    );
}

#[test]
fn changed_strings_are_refused_or_others() {
    let form = TileForm::Units {
        unit: 64,
        limit: 4000,
    };
    let few = (0..100).map(|n| (n % 9 != 1).then_some(["ab", "ç", ""][n % 3]));
    let few: ArrayRef = Arc::new(StringArray::from_iter(few));
    assert!(changed(form, &few) < 500);
    let words = (0..20).map(|n| format!("{n}"));
    let words: ArrayRef = Arc::new(StringArray::from_iter_values(words));
    assert!(changed(form, &words) < 40);
}

#[test]
fn what_claims_much_takes_no_memory() {
    let form = TileForm::Units {
        unit: 1,
        limit: 1 << 20,
    };
    let values: ArrayRef = Arc::new(StringArray::from(vec!["a"; 1000]));
    let plain = plaintexts(form, &values, TILE_ROWS).unwrap().swap_remove(0);
    for claimed in [1 << 20, u32::MAX] {
        let mut bomb = plain.clone();
        bomb[12..16].copy_from_slice(&claimed.to_le_bytes());
        bomb[2] |= 0x20;
        assert!(matches!(open(form, &values, &bomb), Err(Error::Verify(_))));
    }
}
