//! Known answers of `spec/vectors/epochs.json`: rows of several epochs together; and rows of one id
//! in two histories.

use crate::codes::Onion;
use crate::epochs::{EpochBits, Epochs};
use crate::keys::{hex, Purpose, RootSecret};
use crate::sdb::rows::RowCiphers;
use crate::sums::{Sums, NARROW_BITS};
use crate::{Error, KeyRing};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::*;
use arrow_schema::{DataType, Field};
use louver_primitives::rowset::from_ids;
use serde_json::Value;
use std::sync::Arc;

const VECTORS: &str = include_str!("../../../spec/vectors/epochs.json");

fn unhex<const N: usize>(text: &str) -> [u8; N] {
    let byte = |at: usize| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap();
    std::array::from_fn(byte)
}

fn root() -> RootSecret {
    RootSecret::from_bytes(&std::array::from_fn::<u8, 32, _>(|i| i as u8)).unwrap()
}

/// The vectors with what all of them need.
struct Known {
    ring: KeyRing,
    id: (u32, u32, u32),
    epochs: Epochs,
    ids: Int64Array,
    numbers: ArrayRef,
    rows: Vec<Value>,
    all: Value,
}

fn known() -> Known {
    let all: Value = serde_json::from_str(VECTORS).unwrap();
    let rows = all["rows"].as_array().unwrap().clone();
    let id = ["table", "column", "generation"].map(|name| all[name].as_u64().unwrap() as u32);
    let bits = all["epochs"]["bits"].as_object().unwrap().iter();
    let bits = bits.map(|(number, bits)| (number.parse().unwrap(), unhex(bits.as_str().unwrap())));
    let below = all["epochs"]["legacy_below"].as_u64().unwrap() as u32;
    let numbers = rows.iter().map(|row| row["number"].as_str());
    let numbers = numbers.map(|number| number.map(|number| number.parse::<i64>().unwrap()));
    Known {
        ring: KeyRing::from_root(root()),
        id: id.into(),
        epochs: Epochs::new(below, bits.collect()).unwrap(),
        ids: rows.iter().map(|row| row["row_id"].as_i64()).collect(),
        numbers: Arc::new(numbers.collect::<Int64Array>()),
        rows,
        all,
    }
}

fn texts<'a>(rows: &'a [Value], name: &str) -> Vec<Option<&'a str>> {
    rows.iter().map(|row| row[name].as_str()).collect()
}

#[test]
fn sealed_values() {
    let known = known();
    let sealed = texts(&known.rows, "sealed").into_iter().map(Option::unwrap);
    let bytes = |text: &str| {
        (0..text.len() / 2)
            .map(|i| unhex::<1>(&text[2 * i..])[0])
            .collect()
    };
    let sealed: Vec<Vec<u8>> = sealed.map(bytes).collect();
    let sealed = BinaryArray::from_iter_values(&sealed);
    let open = |epochs: &Epochs, ids: &Int64Array, sealed: &BinaryArray| {
        let ring = &known.ring;
        ring.open_column(known.id, epochs, sealed, ids, &DataType::Int64)
    };
    let opened = open(&known.epochs, &known.ids, &sealed).unwrap();
    assert_eq!(opened.to_data(), known.numbers.to_data());
    // Of an epoch that is of another history, or unknown, or of an earlier release.
    let other: EpochBits = [3; 16];
    let others = [5, 6, 9].map(|number| (number, other));
    let histories = [
        Epochs::new(2, others.to_vec()).unwrap(),
        Epochs::new(2, vec![]).unwrap(),
        Epochs::legacy(),
    ];
    for row in 2..known.ids.len() {
        let (ids, sealed) = (known.ids.slice(row, 1), sealed.slice(row, 1));
        for epochs in &histories {
            assert!(matches!(open(epochs, &ids, &sealed), Err(Error::Verify(_))));
        }
        assert!(open(&known.epochs, &ids, &sealed).is_ok());
    }
    let ring = &known.ring;
    let fresh = ring.seal_column(known.id, &known.epochs, &known.numbers, &known.ids);
    let fresh = fresh.unwrap();
    assert_eq!(
        fresh.as_binary::<i32>().value(0)[0],
        1,
        "as releases without epochs read it"
    );
    assert_eq!(fresh.as_binary::<i32>().value(2)[0], 2);
    let opened = open(&known.epochs, &known.ids, fresh.as_binary::<i32>()).unwrap();
    assert_eq!(opened.to_data(), known.numbers.to_data());
}

#[test]
fn masked_sums() {
    let known = known();
    let field = Field::new("v", DataType::Int64, true);
    let (ring, epochs) = (&known.ring, &known.epochs);
    let outcome = ring.sum_seal(known.id, epochs, &field, &known.numbers, &known.ids);
    let outcome = outcome.unwrap();
    for (row, vector) in known.rows.iter().enumerate() {
        for (column, wanted) in outcome.iter().zip(vector["masked"].as_array().unwrap()) {
            let limb = column.as_primitive::<UInt64Type>().value(row);
            assert_eq!(limb.to_string(), wanted.as_str().unwrap(), "row {row}");
        }
    }
    let sum = |column: &ArrayRef| {
        let limbs = column.as_primitive::<UInt64Type>().values().iter();
        [limbs.map(|&limb| i128::from(limb)).sum::<i128>()]
    };
    let [low, high, count] = [sum(&outcome[0]), sum(&outcome[1]), sum(&outcome[2])];
    let open = |epochs: &Epochs, ids: &mut [i64]| {
        let sums = Sums {
            limb_bits: NARROW_BITS,
            low: &low,
            high: Some(&high),
            count: Some(&count),
            sets: &[from_ids(ids).unwrap()],
        };
        ring.sum_open(known.id, epochs, &sums)
    };
    let total = known.all["total"].as_str().unwrap().parse().unwrap();
    let live = known.all["not_null"].as_u64().unwrap();
    let ids = known.ids.values().to_vec();
    assert_eq!(
        open(epochs, &mut ids.clone()).unwrap(),
        (vec![total], Some(vec![live]))
    );
    // The last row of epoch 5 and the first of epoch 6 are neighbours: one run of the set.
    assert!(ids.contains(&((6 << 36) - 1)) && ids.contains(&(6 << 36)));
    let unknown = open(epochs, &mut [8 << 36]).unwrap_err();
    assert!(unknown.to_string().contains("does not know"), "{unknown}");
    let legacy = open(&Epochs::legacy(), &mut ids.clone()).unwrap();
    assert_ne!(legacy.0[0], total);
}

#[test]
fn layers_and_filters() {
    let known = known();
    let (ring, epochs) = (&known.ring, &known.epochs);
    let codes = texts(&known.rows, "code").into_iter();
    let codes: Int64Array = codes
        .map(|code| code.map(|c| c.parse::<i64>().unwrap()))
        .collect();
    let closed = ring.close_codes(known.id, epochs, Onion::Eq, &codes, &known.ids);
    let closed = closed.unwrap();
    let words: StringArray = texts(&known.rows, "text").into_iter().collect();
    let filters = ring
        .text_seal(known.id, epochs, &words, &known.ids)
        .unwrap();
    for (row, vector) in known.rows.iter().enumerate() {
        let text = |name: &str| vector[name].as_str().unwrap();
        let code = closed.as_primitive::<Int64Type>().value(row);
        assert_eq!(code.to_string(), text("closed"));
        assert_eq!(hex(filters.as_binary::<i32>().value(row)), text("filter"));
        let row_id = known.ids.value(row);
        let key = ring.layer_key(known.id, epochs, Onion::Eq, row_id).unwrap();
        assert_eq!(hex(&key), text("layer_key"));
    }
    let unknown = Int64Array::from(vec![7 << 36; 1]);
    let single = codes.slice(0, 1);
    let refused = ring.close_codes(known.id, epochs, Onion::Eq, &single, &unknown);
    assert!(matches!(refused, Err(Error::Verify(_))));
    let refused = ring.layer_key(known.id, epochs, Onion::Eq, 7 << 36);
    assert!(matches!(refused, Err(Error::Verify(_))));
    let refused = ring.text_seal(known.id, epochs, &words.slice(0, 1), &unknown);
    assert!(matches!(refused, Err(Error::Verify(_))));
}

#[test]
fn row_exponents() {
    let known = known();
    let root = root().derive(Purpose::whole("sdb"));
    let root = RootSecret::from_bytes(&root[..]).unwrap();
    let ciphers = RowCiphers::new(&root, known.id.0, &known.epochs);
    let exponents = ciphers.exponents(known.ids.values()).unwrap();
    for (exponent, vector) in exponents.iter().zip(&known.rows) {
        assert_eq!(hex(exponent), vector["exponent"].as_str().unwrap());
    }
    assert!(ciphers.exponents(&[7 << 36]).is_err());
}
