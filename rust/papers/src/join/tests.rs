//! The adjustable join against `spec/vectors/join.json`, and its properties.

use super::secret::ColumnKey;
use super::server::adjust;
use super::Wire;
use crate::Root;
use proptest::prelude::*;
use serde_json::Value;

const VECTORS: &str = include_str!("../../../../spec/vectors/join.json");
const COLUMN: [u32; 3] = [3, 7, 2];

fn vectors() -> Value {
    serde_json::from_str(VECTORS).unwrap()
}

fn root() -> Root {
    Root::new(std::array::from_fn(|i| i as u8))
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

/// The image of a value that a vector writes as text.
fn image(domain: &str, value: &str) -> Vec<u8> {
    match domain {
        "int" => value.parse::<i128>().unwrap().to_be_bytes().to_vec(),
        "text" => value.as_bytes().to_vec(),
        _ => panic!("the vectors have no other domain"),
    }
}

fn wires(values: &Value) -> Vec<Option<Vec<u8>>> {
    let wires = list(values).iter();
    wires.map(|value| value.as_str().map(hex)).collect()
}

fn borrowed(values: &[Option<Vec<u8>>]) -> Vec<Option<&[u8]>> {
    values.iter().map(Option::as_deref).collect()
}

fn owned(points: Vec<Option<Wire>>) -> Vec<Option<Vec<u8>>> {
    let points = points.into_iter();
    points.map(|point| point.map(Vec::from)).collect()
}

#[test]
fn known_answers() {
    let (vectors, root) = (vectors(), root());
    let number = |value: &Value| value.as_u64().unwrap() as u32;
    assert_eq!(hex(text(&vectors["root"])), (0..32).collect::<Vec<u8>>());
    assert_eq!(
        ["table", "column", "generation"].map(|name| number(&vectors[name])),
        COLUMN
    );
    let other: Vec<u32> = list(&vectors["other"]).iter().map(number).collect();
    let column = ColumnKey::new(&root, COLUMN);
    let other = ColumnKey::new(&root, other.try_into().unwrap());
    let delta = hex(text(&vectors["delta"]));
    assert_eq!(column.delta_to(&other).to_vec(), delta);
    for case in list(&vectors["cases"]) {
        let domain = text(&case["domain"]);
        let values = list(&case["values"]).iter().map(Value::as_str);
        let images: Vec<_> = values.map(|v| v.map(|v| image(domain, v))).collect();
        for (key, name) in [(&column, "points"), (&other, "other_points")] {
            let points = key.points(&root, domain, &borrowed(&images));
            assert_eq!(owned(points), wires(&case[name]), "{domain} {name}");
        }
        let adjusted = adjust(&borrowed(&wires(&case["points"])), &delta).unwrap();
        assert_eq!(owned(adjusted), wires(&case["other_points"]), "{domain}");
    }
    for case in list(&vectors["refused"]) {
        let (point, delta) = (hex(text(&case["point"])), hex(text(&case["delta"])));
        assert!(adjust(&[Some(&point)], &delta).is_err(), "{}", case["why"]);
    }
}

#[test]
fn domains_share_nothing() {
    let (root, image) = (root(), [Some(&b"1"[..])]);
    let key = ColumnKey::new(&root, COLUMN);
    assert_ne!(
        key.points(&root, "text", &image),
        key.points(&root, "int", &image)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Points are equal where values are; deltas compose, and the reverse delta reverts.
    #[test]
    fn adjusted_points_are_those_of_the_other_column(
        values in prop::collection::vec(prop::option::of(0..4_u8), 0..12),
        columns: [[u32; 3]; 3],
    ) {
        let root = root();
        let images: Vec<_> = values.iter().map(|v| v.map(|v| vec![v])).collect();
        let [a, b, c] = columns.map(|column| ColumnKey::new(&root, column));
        let points = |key: &ColumnKey| owned(key.points(&root, "blob", &borrowed(&images)));
        for (value, point) in values.iter().zip(points(&a)) {
            for (other, other_point) in values.iter().zip(points(&a)) {
                prop_assert_eq!(value == other, point == other_point);
            }
        }
        let step = |points: &[Option<Vec<u8>>], delta: Wire| {
            owned(adjust(&borrowed(points), &delta).unwrap())
        };
        let in_b = step(&points(&a), a.delta_to(&b));
        prop_assert_eq!(&in_b, &points(&b));
        prop_assert_eq!(step(&in_b, b.delta_to(&c)), points(&c));
        prop_assert_eq!(step(&in_b, b.delta_to(&a)), points(&a));
    }

    #[test]
    fn any_bytes(point: Vec<u8>, delta in prop::collection::vec(any::<u8>(), 0..40)) {
        prop_assert!(adjust(&[Some(&point)], &delta).is_err() || delta.len() == point.len());
        prop_assert!(adjust(&[Some(&point)], &[&[1, 5][..], &[0; 31]].concat()).is_err()
            || point.len() == super::WIRE);
    }
}
