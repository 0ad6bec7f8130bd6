//! Known answers of `spec/vectors/{eq,ord,onion,ore}.json`, and properties of codes.

use super::*;
use crate::keys::RootSecret;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::*;
use louver_primitives::ore::compare;
use louver_primitives::prp::Prp64;
use proptest::prelude::*;
use serde_json::Value;
use std::sync::Arc;

const EQ: &str = include_str!("../../../../spec/vectors/eq.json");
const ORD: &str = include_str!("../../../../spec/vectors/ord.json");
const ONION: &str = include_str!("../../../../spec/vectors/onion.json");
const ORE: &str = include_str!("../../../../spec/vectors/ore.json");
const ID: (u32, u32, u32) = (3, 7, 2);

fn ring() -> KeyRing {
    let root: [u8; 32] = std::array::from_fn(|i| i as u8);
    KeyRing::from_root(RootSecret::from_bytes(&root).unwrap())
}

fn read(vectors: &str) -> Value {
    serde_json::from_str(vectors).unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn hex(text: &str) -> Vec<u8> {
    let digits = (0..text.len()).step_by(2).map(|at| &text[at..at + 2]);
    digits
        .map(|two| u8::from_str_radix(two, 16).unwrap())
        .collect()
}

/// Values of a domain from their texts.
fn values(domain: &str, texts: &[Value]) -> ArrayRef {
    let texts = texts.iter().map(Value::as_str);
    match domain {
        "int" => Arc::new(
            texts
                .map(|v| v.map(|v| v.parse().unwrap()))
                .collect::<Int64Array>(),
        ),
        "double" => Arc::new(
            texts
                .map(|v| v.map(|v| v.parse().unwrap()))
                .collect::<Float64Array>(),
        ),
        "text" => Arc::new(texts.collect::<StringArray>()),
        _ => {
            let bytes = texts.map(|v| v.map(|v| v.parse::<i128>().unwrap().to_le_bytes()));
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes, 16).unwrap())
        }
    }
}

/// Codes as the vectors write them: a signed number, or 16 bytes in hexadecimal.
fn shown(codes: &ArrayRef) -> Vec<Value> {
    let row = |row: usize| match codes.as_primitive_opt::<Int64Type>() {
        _ if codes.is_null(row) => Value::Null,
        Some(codes) => codes.value(row).to_string().into(),
        None => crate::keys::hex(codes.as_fixed_size_binary().value(row)).into(),
    };
    (0..codes.len()).map(row).collect()
}

#[test]
fn equality() {
    let vectors = read(EQ);
    assert_eq!(ring().det_key(ID).to_vec(), hex(text(&vectors["det_key"])));
    for case in list(&vectors["cases"]) {
        let (domain, group) = (text(&case["domain"]), text(&case["group"]));
        let plain = values(domain, list(&case["values"]));
        let codes = ring().eq_codes(ID, group, domain, &plain).unwrap();
        assert_eq!(shown(&codes), list(&case["codes"]), "{domain} {group}");
        if !group.is_empty() {
            let codes = ring().eq_join_codes(group, domain, &plain).unwrap();
            assert_eq!(shown(&codes), list(&case["join_codes"]), "{domain}");
        }
    }
}

#[test]
fn order() {
    for case in list(&read(ORD)["cases"]) {
        let interval = interval(case);
        let plain = values(interval.domain, list(&case["values"]));
        let codes = ring().ord_codes(ID, text(&case["group"]), interval, &plain);
        assert_eq!(shown(&codes.unwrap()), list(&case["codes"]), "{interval:?}");
    }
}

fn interval(case: &Value) -> Interval<'_> {
    Interval {
        domain: text(&case["domain"]),
        low: text(&case["low"]).parse().unwrap(),
        bits: case["bits"].as_u64().unwrap() as u32,
    }
}

#[test]
fn layers() {
    for case in list(&read(ONION)["cases"]) {
        let onion = match text(&case["onion"]) {
            "eq" => Onion::Eq,
            _ => Onion::Ord,
        };
        assert_eq!(
            ring()
                .layer_key(ID, &Epochs::legacy(), onion, 0)
                .unwrap()
                .to_vec(),
            hex(text(&case["key"]))
        );
        let rows = values("int", list(&case["row_ids"]));
        let codes: ArrayRef = if case["width"] == 8 {
            values("int", list(&case["codes"]))
        } else {
            let codes = list(&case["codes"])
                .iter()
                .map(|code| code.as_str().map(hex));
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(codes, 16).unwrap())
        };
        let closed = ring()
            .close_codes(ID, &Epochs::legacy(), onion, &codes, &rows)
            .unwrap();
        assert_eq!(shown(&closed), list(&case["closed"]));
    }
}

#[test]
fn order_revealing() {
    for case in list(&read(ORE)["cases"]) {
        let interval = interval(case);
        let orders = list(&case["order"]);
        for (column, token) in list(&case["tokens"]).iter().enumerate() {
            let value = values(interval.domain, &[token["value"].clone()]);
            let computed = ring().ore_token(ID, interval, &value).unwrap();
            assert_eq!(computed, hex(text(&token["token"])));
            for (stored, order) in list(&case["stored"]).iter().zip(orders) {
                let outcome = compare(&hex(text(&stored["stored"])), &computed).unwrap();
                assert_eq!(i64::from(outcome as i8), order[column].as_i64().unwrap());
            }
        }
    }
}

#[test]
fn values_outside_a_domain_are_refused() {
    let text = StringArray::from(vec!["a"]);
    let number = Int64Array::from(vec![1]);
    let scaled = Decimal128Array::from(vec![1_i128 << 70]);
    let scaled = scaled.with_precision_and_scale(30, 2).unwrap();
    let cases: [(&str, &dyn Array); 7] = [
        ("int", &text),
        ("text", &number),
        ("uint64", &number),
        ("double", &number),
        ("dec2", &scaled),
        ("dec3", &scaled),
        ("decimal", &number),
    ];
    for (domain, values) in cases {
        let outcome = ring().eq_codes(ID, "", domain, values);
        assert!(matches!(outcome, Err(Error::Value(_))), "{domain}");
    }
    assert!(ring().eq_codes(ID, "", "bigdec2", &scaled).is_ok());
    assert!(ring().eq_join_codes("", "int", &number).is_err());
    let missing = Int64Array::from(vec![None::<i64>]);
    let closed = |codes: &dyn Array, rows: &dyn Array| {
        ring()
            .close_codes(ID, &Epochs::legacy(), Onion::Eq, codes, rows)
            .is_err()
    };
    assert!(closed(&number, &missing) && closed(&text, &number));
    assert!(closed(&number, &Int64Array::from(vec![1, 2])));
}

/// A code that would stand for NULL is refused, and never stored.
#[test]
fn code_zero_is_refused() {
    let keys = keys::eq(&ring(), ID);
    let mut zero = [0];
    keys.inner.narrow.decrypt(&mut zero);
    let value = Int64Array::from(vec![Some(zero[0].cast_signed()), None]);
    let outcome = ring().eq_codes(ID, "", "int", &value);
    assert!(matches!(outcome, Err(Error::Value(text)) if text.contains("NULL")));
    let mut zero = [0];
    keys::eq_group(&ring(), "g", Domain::Int)
        .narrow
        .decrypt(&mut zero);
    let value = Int64Array::from(vec![zero[0].cast_signed()]);
    assert!(ring().eq_codes(ID, "g", "int", &value).is_err());
    assert!(ring().eq_join_codes("g", "int", &value).is_err());
}

/// The column's own permutation, too, has a group's code that it would make 0.
#[test]
fn code_zero_of_the_outer_layer_is_refused() {
    let det = keys::det(ring().root(), ID);
    let mut zero = [0];
    Prp64::new(&det).decrypt(&mut zero);
    keys::eq_group(&ring(), "g", Domain::Int)
        .narrow
        .decrypt(&mut zero);
    let value = Int64Array::from(vec![zero[0].cast_signed()]);
    assert!(ring().eq_join_codes("g", "int", &value).is_ok());
    assert!(ring().eq_codes(ID, "g", "int", &value).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn equal_codes_of_equal_values_only(
        numbers in prop::collection::vec(-50..50_i64, 1..60),
        strings in prop::collection::vec("[a-c]{0,2}|[a-b]{15,17}", 1..60),
    ) {
        let array = Int64Array::from(numbers.clone());
        let codes = ring().eq_codes(ID, "g", "int", &array).unwrap();
        let codes = codes.as_primitive::<Int64Type>();
        for (i, a) in numbers.iter().enumerate() {
            for (j, b) in numbers.iter().enumerate() {
                prop_assert_eq!(a == b, codes.value(i) == codes.value(j));
            }
        }
        let array = StringArray::from(strings.clone());
        let codes = ring().eq_codes(ID, "", "text", &array).unwrap();
        let codes = codes.as_fixed_size_binary();
        for (i, a) in strings.iter().enumerate() {
            for (j, b) in strings.iter().enumerate() {
                prop_assert_eq!(a == b, codes.value(i) == codes.value(j));
            }
        }
    }

    /// While a layer is closed, NULL is a code like others.
    #[test]
    fn closed_codes_open_again(
        codes in prop::collection::vec(any::<Option<i64>>(), 0..50),
        first in 0..1_i64 << 60,
    ) {
        let rows = Int64Array::from_iter_values((first..).take(codes.len()));
        let array = Int64Array::from(codes.clone());
        let closed = ring().close_codes(ID, &Epochs::legacy(), Onion::Ord, &array, &rows).unwrap();
        prop_assert_eq!(closed.null_count(), 0);
        let layer = Layer::new(&ring().layer_key(ID, &Epochs::legacy(), Onion::Ord, 0).unwrap());
        let closed = closed.as_primitive::<Int64Type>();
        for (row, code) in codes.iter().enumerate() {
            let opened = layer.narrow(rows.value(row), closed.value(row).cast_unsigned());
            prop_assert_eq!(opened.cast_signed(), code.unwrap_or(0));
        }
    }
}
