//! Tiles of numbers: what is sealed comes back, and nothing else does.

use super::{open, tile_unit, TileColumn, TileForm, TILE_ROWS};
use crate::keys::RootSecret;
use crate::{Epochs, Error, KeyRing, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};
use louver_primitives::packed::Lanes;
use proptest::prelude::*;
use std::sync::Arc;

const EPOCH: i64 = 5 << 36;

pub(super) fn ring(seed: u8) -> KeyRing {
    KeyRing::from_root(RootSecret::from_bytes(&[seed; 32]).unwrap())
}

pub(super) fn epochs() -> Epochs {
    Epochs::new(1, vec![(5, [9; 16])]).unwrap()
}

pub(super) fn firsts(first: i64, rows: usize, tiles: usize) -> Int64Array {
    Int64Array::from_iter_values((0..tiles).map(|tile| first + (tile * rows) as i64))
}

/// Seals and opens by every kind of instructions.
pub(super) fn there_and_back(form: TileForm, values: &ArrayRef, rows: usize) -> Result<ArrayRef> {
    let (ring, epochs) = (ring(1), epochs());
    let id = (1, 2, 3);
    let column = TileColumn {
        id,
        epochs: &epochs,
        form,
    };
    let sealed = ring.seal_tiles(&column, values, EPOCH, rows)?;
    let ids = firsts(EPOCH, rows, sealed.len());
    let mut arrays = Vec::new();
    for lanes in Lanes::all() {
        let data_type = values.data_type();
        let opened = open::open(&ring, &column, &sealed, &ids, data_type, None, lanes);
        let (array, counts) = opened.unwrap();
        array.to_data().validate_full().unwrap();
        let expected: Vec<u16> = (0..values.len())
            .step_by(rows)
            .map(|start| (values.len() - start).min(rows) as u16)
            .collect();
        assert_eq!(counts, expected);
        arrays.push(array);
    }
    assert!(arrays.iter().all(|array| array == &arrays[0]));
    Ok(arrays.swap_remove(0))
}

fn holds(form: TileForm, values: &ArrayRef) {
    for rows in [TILE_ROWS, 1000, 7] {
        let part = values.slice(3, values.len().min(rows * 70) - 3);
        let array = there_and_back(form, &part, rows).unwrap();
        assert_eq!(&array, &part, "{rows} rows in a tile");
    }
}

fn nulls(rows: usize) -> Option<NullBuffer> {
    Some((0..rows).map(|row| row % 5 != 2).collect())
}

/// Numbers of a type, with NULLs and without.
fn numbers<T: ArrowPrimitiveType>(
    data_type: DataType,
    base: i128,
    bits: u32,
    number: impl Fn(u64) -> T::Native,
) {
    let rows = 5000_usize;
    let draw = |row: usize| number((row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let values: Vec<T::Native> = (0..rows).map(draw).collect();
    for nulls in [None, nulls(rows)] {
        let form = TileForm::Packed {
            base,
            bits,
            nulls: nulls.is_some(),
        };
        let array = PrimitiveArray::<T>::new(values.clone().into(), nulls);
        let array: ArrayRef = Arc::new(array.with_data_type(data_type.clone()));
        holds(form, &array);
    }
}

#[test]
fn numbers_come_back() {
    use DataType as T;
    numbers::<Int64Type>(T::Int64, -7, 20, |n| (n >> 44) as i64 - 7);
    numbers::<Int64Type>(T::Int64, i64::MIN.into(), 64, |n| n as i64);
    numbers::<UInt64Type>(T::UInt64, 1 << 63, 33, |n| (1 << 63) + (n >> 31));
    numbers::<Int32Type>(T::Int32, -9, 32, |n| n as i32);
    numbers::<Int16Type>(T::Int16, -100, 3, |n| (n >> 61) as i16 - 100);
    numbers::<Int8Type>(T::Int8, -128, 8, |n| n as i8);
    numbers::<UInt8Type>(T::UInt8, 250, 2, |n| 250 + (n >> 62) as u8);
    numbers::<Date32Type>(T::Date32, 8000, 12, |n| 8000 + (n >> 52) as i32);
    numbers::<Time64MicrosecondType>(T::Time64(TimeUnit::Microsecond), 0, 37, |n| {
        (n >> 27) as i64
    });
    let zone = T::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    numbers::<TimestampMicrosecondType>(zone, -1, 64, |n| n as i64);
    numbers::<Float64Type>(T::Float64, 0, 64, |n| f64::from_bits(n >> 2));
    numbers::<Float32Type>(T::Float32, 0, 32, |n| n as f32);
    numbers::<Decimal128Type>(T::Decimal128(15, 2), -3, 41, |n| i128::from(n >> 23) - 3);
    let wide = |n: u64| i128::from(n as i64) * i128::from(n >> 2);
    numbers::<Decimal128Type>(T::Decimal128(38, 0), i128::MIN, 128, wide);
    let high = |n: u64| i128::from(n) << 7;
    numbers::<Decimal128Type>(T::Decimal128(38, 0), 0, 71, high);
    numbers::<Int64Type>(T::Int64, 42, 0, |_| 42);
}

#[test]
fn booleans_and_uuids_come_back() {
    let rows = 5000;
    let values: Vec<bool> = (0..rows).map(|row| row % 3 == 1).collect();
    for nulls in [None, nulls(rows)] {
        let form = |base, bits| TileForm::Packed {
            base,
            bits,
            nulls: nulls.is_some(),
        };
        let array: ArrayRef = Arc::new(BooleanArray::new(values.clone().into(), nulls.clone()));
        holds(form(0, 1), &array);
        let all = |value: bool| BooleanArray::new(vec![value; rows].into(), nulls.clone());
        holds(form(0, 0), &(Arc::new(all(false)) as ArrayRef));
        holds(form(1, 0), &(Arc::new(all(true)) as ArrayRef));
        let bytes: Vec<u8> = (0..rows * 16).map(|at| (at * 31 % 251) as u8).collect();
        let uuids = FixedSizeBinaryArray::new(16, bytes.into(), nulls.clone());
        holds(form(0, 128), &(Arc::new(uuids) as ArrayRef));
    }
}

#[test]
fn nothing_outside_of_the_form_is_sealed() {
    let seal = |form, values: ArrayRef| there_and_back(form, &values, TILE_ROWS).unwrap_err();
    let form = TileForm::of_bounds(-2, 5, false).unwrap();
    assert_eq!(
        form,
        TileForm::Packed {
            base: -2,
            bits: 3,
            nulls: false
        }
    );
    assert!(TileForm::of_bounds(1, 0, false).is_err());
    for values in [vec![Some(6_i64)], vec![Some(-3)], vec![None]] {
        let error = seal(form, Arc::new(Int64Array::from(values)));
        assert!(matches!(error, Error::Widen(_)), "{error:?}");
    }
    let truth: ArrayRef = Arc::new(BooleanArray::from(vec![true]));
    let error = seal(TileForm::of_bounds(0, 0, false).unwrap(), truth.clone());
    assert!(matches!(error, Error::Widen(_)));
    for (base, bits) in [(0, 2), (1, 1), (-1, 1), (2, 0)] {
        let form = TileForm::Packed {
            base,
            bits,
            nulls: false,
        };
        assert!(matches!(seal(form, truth.clone()), Error::Value(_)));
    }
    let small: ArrayRef = Arc::new(Int8Array::from(vec![1]));
    for (base, bits) in [(0, 9), (256, 0), (-129, 3)] {
        let form = TileForm::Packed {
            base,
            bits,
            nulls: false,
        };
        assert!(matches!(seal(form, small.clone()), Error::Value(_)));
    }
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    assert!(matches!(seal(form, text), Error::Value(_)));
}

#[test]
fn rows_are_of_one_epoch_that_is_known() {
    let (ring, epochs) = (ring(1), epochs());
    let column = TileColumn {
        id: (1, 2, 3),
        epochs: &epochs,
        form: TileForm::of_bounds(0, 9, false).unwrap(),
    };
    let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let seal = |first, rows| ring.seal_tiles(&column, &values, first, rows);
    assert!(seal((6 << 36) - 2, 1).is_ok());
    for (first, rows) in [((6 << 36) - 1, 1), (i64::MAX, 1), (EPOCH, 0), (EPOCH, 1025)] {
        assert!(matches!(seal(first, rows), Err(Error::Value(_))));
    }
    assert!(matches!(seal(4 << 36, 1), Err(Error::Verify(_))));
    // Of an epoch without bits.
    let sealed = seal(70, 2).unwrap();
    let ids = firsts(70, 2, 1);
    let opened = ring.open_tiles(&column, &sealed, &ids, &DataType::Int64, None);
    assert_eq!(&opened.unwrap().0, &values);
}

/// Three tiles of four rows, and what opens them.
struct Three {
    ring: KeyRing,
    epochs: Epochs,
    form: TileForm,
    sealed: ArrayRef,
    values: ArrayRef,
}

impl Three {
    fn new(form: TileForm, values: ArrayRef) -> Self {
        let (ring, epochs) = (ring(1), epochs());
        let column = TileColumn {
            id: (1, 2, 3),
            epochs: &epochs,
            form,
        };
        let sealed = ring.seal_tiles(&column, &values, EPOCH, 4).unwrap();
        assert_eq!(sealed.len(), 3);
        Self {
            ring,
            epochs,
            form,
            sealed,
            values,
        }
    }

    fn open(&self, id: (u32, u32, u32), sealed: &dyn Array, ids: &[i64]) -> Result<ArrayRef> {
        let column = TileColumn {
            id,
            epochs: &self.epochs,
            form: self.form,
        };
        let ids = Int64Array::from(ids.to_vec());
        let data_type = self.values.data_type();
        let opened = self.ring.open_tiles(&column, sealed, &ids, data_type, None);
        opened.map(|(array, _)| array)
    }

    /// That tiles were changed is noticed, and the error names the first one.
    fn refuses_changes(&self) {
        let (id, all) = ((1, 2, 3), [EPOCH, EPOCH + 4, EPOCH + 8]);
        assert_eq!(&self.open(id, &self.sealed, &all).unwrap(), &self.values);
        let tiles: Vec<&[u8]> = self.sealed.as_binary::<i32>().iter().flatten().collect();
        let refused = |result: Result<ArrayRef>, first: i64| {
            let error = result.unwrap_err();
            let text = format!("the tile of row id {first} ");
            assert!(
                matches!(&error, Error::Verify(what) if what.contains(&text)),
                "{error}"
            );
        };
        refused(
            self.open(id, &self.sealed, &[all[1], all[0], all[2]]),
            all[1],
        );
        refused(
            self.open(id, &self.sealed, &[all[0], all[1] + 1, all[2]]),
            all[1] + 1,
        );
        for other in [(0, 2, 3), (1, 0, 3), (1, 2, 0)] {
            refused(self.open(other, &self.sealed, &all), EPOCH);
        }
        let missing = BinaryArray::from_iter([Some(tiles[0]), None, Some(tiles[2])]);
        refused(self.open(id, &missing, &all), all[1]);
        let step = tiles[1].len() / 40 + 1;
        for at in (0..tiles[1].len()).step_by(step) {
            let mut altered = tiles[1].to_vec();
            altered[at] ^= 4;
            for tile in [
                &altered[..],
                &tiles[1][..at],
                &[&tiles[1][..at], tiles[1]].concat(),
            ] {
                if tile != tiles[1] {
                    let sealed = BinaryArray::from_iter_values([tiles[0], tile, tiles[2]]);
                    refused(self.open(id, &sealed, &all), all[1]);
                }
            }
        }
    }
}

#[test]
fn a_moved_or_altered_tile_raises() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..11));
    Three::new(TileForm::of_bounds(0, 15, true).unwrap(), numbers.clone()).refuses_changes();
    Three::new(TileForm::of_bounds(0, 1 << 40, false).unwrap(), numbers).refuses_changes();
    let truths: ArrayRef = Arc::new(BooleanArray::from(vec![true; 11]));
    Three::new(TileForm::of_bounds(0, 1, false).unwrap(), truths).refuses_changes();
    let texts = (0..11).map(|n| format!("text {n}"));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
    let form = TileForm::Units {
        unit: tile_unit(&texts, 1000, 4).unwrap(),
        limit: 1000,
    };
    Three::new(form, texts).refuses_changes();
}

#[test]
fn a_tile_of_another_form_raises() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..11));
    let mut three = Three::new(TileForm::of_bounds(0, 15, false).unwrap(), numbers);
    let all = [EPOCH, EPOCH + 4, EPOCH + 8];
    for form in [
        TileForm::of_bounds(1, 16, false).unwrap(),
        TileForm::of_bounds(0, 15, true).unwrap(),
        TileForm::of_bounds(0, 31, false).unwrap(),
        TileForm::Units { unit: 8, limit: 99 },
    ] {
        three.form = form;
        let opened = three.open((1, 2, 3), &three.sealed, &all);
        assert!(matches!(opened, Err(Error::Verify(_))));
    }
    three.form = TileForm::of_bounds(0, 15, false).unwrap();
    three.values = Arc::new(Int32Array::from(vec![0]));
    assert!(three.open((1, 2, 3), &three.sealed, &all).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn slots_choose_rows(
        rows in 1_usize..=TILE_ROWS,
        total in 1_usize..9000,
        chosen in proptest::collection::btree_set(0_usize..9000, 0..50),
        text in any::<bool>(),
    ) {
        let (ring, epochs) = (ring(1), epochs());
        let total = total.min(rows * 200);
        let (values, form): (ArrayRef, TileForm) = if text {
            let texts = (0..total).map(|n| (n % 7 != 1).then(|| format!("{n}")));
            let form = TileForm::Units { unit: 256, limit: 1 << 20 };
            (Arc::new(StringArray::from_iter(texts)), form)
        } else {
            let numbers = Int64Array::from_iter_values(0..total as i64);
            (Arc::new(numbers), TileForm::of_bounds(0, 9000, false).unwrap())
        };
        let column = TileColumn { id: (1, 2, 3), epochs: &epochs, form };
        let sealed = ring.seal_tiles(&column, &values, EPOCH, rows).unwrap();
        let ids = firsts(EPOCH, rows, sealed.len());
        let chosen = chosen.into_iter().filter(|&n| n < total);
        let chosen: Vec<u64> = chosen.map(|n| n as u64).collect();
        let slot = |&row: &u64| row / rows as u64 * TILE_ROWS as u64 + row % rows as u64;
        let slots: Vec<u64> = chosen.iter().map(slot).collect();
        let open = |slots: &[u64]| {
            ring.open_tiles(&column, &sealed, &ids, values.data_type(), Some(slots))
        };
        let (array, counts) = open(&slots).unwrap();
        let expected = arrow_select::take::take(&values, &UInt64Array::from(chosen), None);
        prop_assert_eq!(&array, &expected.unwrap());
        prop_assert_eq!(counts.len(), sealed.len());
        for wrong in [vec![(sealed.len() * TILE_ROWS) as u64], vec![3, 3]] {
            prop_assert!(open(&wrong).is_err());
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in any::<Vec<u8>>()) {
        let epochs = epochs();
        let column = TileColumn {
            id: (1, 1, 1),
            epochs: &epochs,
            form: TileForm::of_bounds(0, 3, true).unwrap(),
        };
        let sealed = BinaryArray::from_iter_values([&bytes]);
        let ids = firsts(EPOCH, 1, 1);
        let opened = ring(1).open_tiles(&column, &sealed, &ids, &DataType::Int64, None);
        prop_assert!(matches!(opened, Err(Error::Verify(_))));
    }
}
