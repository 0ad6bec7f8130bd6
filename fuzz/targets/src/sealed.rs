//! Sealed values, sealed blobs, wrapped keys and sums over row sets, as servers store and send
//! them.

use crate::input::{joined, Input};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, Int64Array, StringArray};
use arrow_schema::DataType;
use louver_primitives::rowset::from_ids;
use louver_trusted::{fuzz, open_deterministic_blob, seal_deterministic_blob};
use louver_trusted::{Epochs, KeyRing, Sums, NARROW_BITS};
use std::sync::{Arc, LazyLock};

const COLUMN: (u32, u32, u32) = (1, 2, 3);
static RING: LazyLock<KeyRing> = LazyLock::new(fuzz::ring);
static EPOCHS: LazyLock<Epochs> =
    LazyLock::new(|| Epochs::new(0, vec![(0, [7; 16])]).expect("one epoch"));

pub(crate) fn run(data: &[u8]) {
    let mut input = Input(data);
    let which = input.byte();
    match which % 6 {
        0 => drop(RING.open_blob("catalog", b"context", input.0)),
        1 => drop(open_deterministic_blob(
            &RING, "catalog", b"context", input.0,
        )),
        2 => column(&mut input, &DataType::Int64),
        3 => column(&mut input, &DataType::Utf8),
        4 => sums(&mut input, None),
        _ => sums(&mut input, Some(5)),
    }
}

fn column(input: &mut Input<'_>, data_type: &DataType) {
    let first = i64::from(input.byte());
    let pieces = input.pieces(8);
    let sealed: ArrayRef = Arc::new(BinaryArray::from_iter_values(&pieces));
    let row_ids: Int64Array = (first..).take(sealed.len()).map(Some).collect();
    if let Ok(opened) = RING.open_column(COLUMN, &EPOCHS, &sealed, &row_ids, data_type) {
        assert_eq!(
            (opened.len(), opened.data_type()),
            (sealed.len(), data_type)
        );
    }
}

fn sums(input: &mut Input<'_>, high: Option<i128>) {
    let low = i128::from(input.number().cast_signed());
    let sets = input.pieces(4);
    let high = high.map(|high| vec![high; sets.len()]);
    let low = vec![low; sets.len()];
    let sums = Sums {
        limb_bits: NARROW_BITS,
        low: &low,
        high: high.as_deref(),
        count: high.is_none().then_some(&low[..]),
        sets: &sets,
    };
    if let Ok((totals, counts)) = RING.sum_open(COLUMN, &EPOCHS, &sums) {
        assert_eq!(totals.len(), sets.len());
        assert_eq!(counts.is_some(), sums.count.is_some());
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let blob = RING.seal_blob("catalog", b"context", b"plain text");
    let fixed = seal_deterministic_blob(&RING, "catalog", b"context", b"plain text");
    let set = from_ids(&mut [1, 2, 3, 9]).expect("small ids");
    let number = [0; 8];
    vec![
        [&[0], &blob.expect("a blob")[..]].concat(),
        [&[1], &fixed.expect("a blob")[..]].concat(),
        values(2, Arc::new(Int64Array::from(vec![7, 8]))),
        values(3, Arc::new(StringArray::from(vec!["Ann Smith", ""]))),
        joined(&[&[4][..], &number].concat(), &[&set, &set]),
        joined(&[&[5][..], &number].concat(), &[&set]),
    ]
}

fn values(which: u8, array: ArrayRef) -> Vec<u8> {
    let row_ids = Int64Array::from_iter_values(4..4 + array.len() as i64);
    let sealed = RING.seal_column(COLUMN, &EPOCHS, &array, &row_ids);
    let sealed = sealed.expect("values");
    let parts: Vec<&[u8]> = sealed.as_binary::<i32>().iter().flatten().collect();
    joined(&[which, 4], &parts)
}
