//! The known answers of `spec/vectors/fss.json`, which a Python implementation computed.

use super::{
    dot, evaluate_less_with, evaluate_point_with, record_tag, Backend, LessShare, PointShare,
    Points, Prg,
};
use serde_json::Value;

fn vectors() -> Value {
    let text = include_str!("../../../../spec/vectors/fss.json");
    serde_json::from_str(text).unwrap()
}

fn text<'a>(case: &'a Value, name: &str) -> &'a str {
    case[name].as_str().unwrap()
}

fn list<'a>(case: &'a Value, name: &str) -> &'a [Value] {
    case[name].as_array().unwrap()
}

fn number(hex: &str) -> u128 {
    u128::from_str_radix(hex, 16).unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(byte).collect()
}

#[test]
fn shares_are_worth_what_the_vectors_say() {
    let vectors = vectors();
    for case in list(&vectors, "cases") {
        let share = bytes(text(case, "share"));
        let points = list(case, "points").iter();
        let points: Vec<u64> = points
            .map(|x| x.as_str().unwrap().parse().unwrap())
            .collect();
        let hex = list(case, "values").iter();
        let wanted: Vec<u128> = hex.map(|hex| number(hex.as_str().unwrap())).collect();
        let bits = list(case, "bits").iter();
        let ones: Vec<u8> = bits.map(|bit| bit.as_u64().unwrap() as u8).collect();
        for prg in [Backend::Portable, Backend::Wide]
            .into_iter()
            .filter_map(Prg::with)
        {
            for points in [Points::Loose(&points), Points::Sorted(&points)] {
                let mut sink = |_: usize, bits: &[u8], values: &[u128]| {
                    assert_eq!(values, wanted);
                    assert!(bits.is_empty() || bits == ones);
                };
                let range = 0..points.len();
                if let Ok(share) = PointShare::decode(&share) {
                    evaluate_point_with(prg, &share, points, range, &mut sink).unwrap();
                } else {
                    let share = LessShare::decode(&share).unwrap();
                    evaluate_less_with(prg, &share, points, range, &mut sink).unwrap();
                }
            }
        }
    }
}

#[test]
fn tags_and_products_are_those_of_the_vectors() {
    let vectors = vectors();
    for case in list(&vectors, "tags") {
        let level = case["level"].as_u64().unwrap() as u32;
        let tag = record_tag(level, &bytes(text(case, "record")));
        assert_eq!(tag, number(text(case, "tag")));
    }
    for case in list(&vectors, "products") {
        let [a, b, product] = ["a", "b", "product"].map(|name| number(text(case, name)));
        assert_eq!(dot(a, b), product);
    }
}
