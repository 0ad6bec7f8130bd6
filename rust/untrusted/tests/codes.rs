//! What a server does with codes, against `spec/vectors/{eq,onion,ore}.json`, NULLs and
//! malformed input.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, Int8Type};
use arrow_array::*;
use louver_untrusted::server::*;
use proptest::prelude::*;
use serde_json::Value;
use std::sync::Arc;

const EQ: &str = include_str!("../../../spec/vectors/eq.json");
const ONION: &str = include_str!("../../../spec/vectors/onion.json");
const ORE: &str = include_str!("../../../spec/vectors/ore.json");

fn read(vectors: &str) -> Value {
    serde_json::from_str(vectors).unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn hex(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    let digits = (0..text.len()).step_by(2).map(|at| &text[at..at + 2]);
    digits
        .map(|two| u8::from_str_radix(two, 16).unwrap())
        .collect()
}

fn bigints(values: &Value) -> Int64Array {
    let numbers = list(values).iter().map(Value::as_str);
    numbers
        .map(|n| n.map(|n| n.parse::<i64>().unwrap()))
        .collect()
}

fn uuids(values: &Value) -> ArrayRef {
    let codes = list(values)
        .iter()
        .map(|code| code.as_str().map(|_| hex(code)));
    Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(codes, 16).unwrap())
}

fn codes(values: &Value, wide: bool) -> ArrayRef {
    if wide {
        uuids(values)
    } else {
        Arc::new(bigints(values))
    }
}

fn blobs(values: &[&[u8]]) -> BinaryArray {
    BinaryArray::from_iter_values(values)
}

#[test]
fn layers_open() {
    for case in list(&read(ONION)["cases"]) {
        let wide = case["width"] == 16;
        let (closed, rows) = (codes(&case["closed"], wide), bigints(&case["row_ids"]));
        let key = hex(&case["key"]);
        let keys = blobs(&vec![key.as_slice(); rows.len()]);
        let open = if wide { onion_open_wide } else { onion_open };
        let opened = open(&closed, &rows, &keys).unwrap();
        assert_eq!(&opened, &codes(&case["codes"], wide));
        let none = BinaryArray::new_null(rows.len());
        assert_eq!(
            open(&closed, &rows, &none).unwrap().null_count(),
            rows.len()
        );
        let short = blobs(&vec![&key[1..]; rows.len()]);
        assert!(open(&closed, &rows, &short).is_err());
        assert!(open(&closed, &rows.slice(0, 1), &keys).is_err());
        assert!(open(&keys, &rows, &keys).is_err());
    }
}

#[test]
fn codes_of_a_group() {
    let vectors = read(EQ);
    let key = hex(&vectors["det_key"]);
    for case in list(&vectors["cases"]) {
        if case["join_codes"].is_null() {
            continue;
        }
        let wide = matches!(case["domain"].as_str(), Some("text" | "int128"));
        let own = codes(&case["codes"], wide);
        let keys = blobs(&vec![key.as_slice(); own.len()]);
        let adjust = if wide { onion_join_wide } else { onion_join };
        let adjusted = adjust(&own, &keys).unwrap();
        assert_eq!(&adjusted, &codes(&case["join_codes"], wide));
        let none = BinaryArray::new_null(own.len());
        assert_eq!(adjust(&own, &none).unwrap().null_count(), own.len());
        for bad in [&key[1..], &[2; 17][..], b""] {
            assert!(adjust(&own, &blobs(&vec![bad; own.len()])).is_err());
        }
    }
}

#[test]
fn comparisons() {
    let vectors = read(ORE);
    for case in list(&vectors["cases"]) {
        let stored: Vec<Vec<u8>> = list(&case["stored"])
            .iter()
            .map(|v| hex(&v["stored"]))
            .collect();
        let stored = BinaryArray::from_iter_values(&stored);
        for (column, token) in list(&case["tokens"]).iter().enumerate() {
            let token = hex(&token["token"]);
            let tokens = blobs(&vec![token.as_slice(); stored.len()]);
            let actual = ore_compare(&stored, &tokens).unwrap();
            let orders = list(&case["order"])
                .iter()
                .map(|row| row[column].as_i64().unwrap());
            let actual = actual.as_primitive::<Int8Type>().values().iter();
            assert!(actual.map(|order| i64::from(*order)).eq(orders));
        }
        let none = BinaryArray::new_null(stored.len());
        assert_eq!(
            ore_compare(&stored, &none).unwrap().null_count(),
            stored.len()
        );
    }
    for case in list(&vectors["refused"]) {
        let (stored, token) = (hex(&case["stored"]), hex(&case["token"]));
        assert!(
            ore_compare(&blobs(&[&stored]), &blobs(&[&token])).is_err(),
            "{}",
            case["why"]
        );
    }
}

proptest! {
    #[test]
    fn any_bytes(
        blob: Vec<u8>,
        key in prop::collection::vec(any::<u8>(), 0..40),
        code: i64,
        row: i64,
    ) {
        let (stored, keys) = (blobs(&[&blob]), blobs(&[&key]));
        let (codes, rows) = (Int64Array::from(vec![code]), Int64Array::from(vec![row]));
        let _ = ore_compare(&stored, &keys);
        let _ = onion_join(&codes, &keys);
        prop_assert_eq!(onion_open(&codes, &rows, &keys).is_ok(), key.len() == 32);
        if let Ok(once) = onion_open(&codes, &rows, &keys) {
            // A pad taken off twice is put on again, but for NULL.
            let twice = onion_open(&once, &rows, &keys).unwrap();
            let twice = twice.as_primitive::<Int64Type>();
            prop_assert!(once.is_null(0) || twice.is_null(0) || twice.value(0) == code);
        }
    }
}
