//! The interval tree: known answers, all ranges of small trees, random ranges of the large one.

use super::*;
use proptest::prelude::*;
use serde_json::Value;

const METHODS: [Method; 3] = [Method::TopDown, Method::BottomUp, Method::BinarySearch];

fn sorted(nodes: impl IntoIterator<Item = u128>) -> Vec<u128> {
    let mut nodes: Vec<u128> = nodes.into_iter().collect();
    nodes.sort_unstable();
    nodes
}

fn number(value: &Value) -> u128 {
    match value {
        Value::String(text) => text.parse().unwrap(),
        other => other.as_u64().unwrap().into(),
    }
}

fn numbers(value: &Value) -> Vec<u128> {
    value.as_array().unwrap().iter().map(number).collect()
}

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../../spec/vectors/eds_tree.json")).unwrap()
}

#[test]
fn known_ids_and_coverage_sets() {
    let vectors = vectors();
    for (label, id) in vectors["node_ids"].as_object().unwrap() {
        let value = u64::from_str_radix(&format!("0{label}"), 2).unwrap();
        assert_eq!(node_id(label.len() as u32, value), number(id));
    }
    for (value, nodes) in vectors["coverage_height3"].as_object().unwrap() {
        assert_eq!(coverage_set_in(3, value.parse().unwrap()), numbers(nodes));
    }
    for (value, nodes) in vectors["coverage_height64"].as_object().unwrap() {
        let value = value.parse().unwrap();
        assert_eq!(coverage_set(value).to_vec(), numbers(nodes));
        assert_eq!(coverage_set_in(HEIGHT, value), numbers(nodes));
    }
}

#[test]
fn known_covers() {
    let vectors = vectors();
    for (height, name) in [(3, "minimum_cover_height3"), (64, "minimum_cover_height64")] {
        for case in vectors[name].as_array().unwrap() {
            let (low, high) = (number(&case["s"]) as u64, number(&case["t"]) as u64);
            let wanted = numbers(&case["nodes"]);
            assert_eq!(sorted(minimum_cover_in(height, low, high)), wanted);
            for method in METHODS {
                let cover = search_cover(method, height, low, high).nodes;
                assert_eq!(sorted(cover), wanted, "{method:?}");
            }
        }
    }
}

/// In small trees every cover covers its range and nothing else, once, and meets every coverage
/// set of a value in it in one node.
#[test]
fn all_ranges_of_small_trees() {
    for height in 0..7 {
        let top = (1 << height) - 1;
        for low in 0..=top {
            for high in low..=top {
                let nodes = sorted(minimum_cover_in(height, low, high));
                for method in METHODS {
                    let cover = search_cover(method, height, low, high).nodes;
                    assert_eq!(sorted(cover), nodes);
                }
                for value in 0..=top {
                    let path = coverage_set_in(height, value);
                    let met = path.iter().filter(|node| nodes.contains(node)).count();
                    assert_eq!(met, usize::from((low..=high).contains(&value)));
                }
            }
        }
    }
}

#[test]
fn ends_of_the_domain() {
    assert_eq!(minimum_cover(0, u64::MAX), [0]);
    assert_eq!(prefix_cover(u64::MAX).collect::<Vec<_>>(), [0]);
    assert_eq!(suffix_cover(0).collect::<Vec<_>>(), [0]);
    assert_eq!(prefix_cover(0).collect::<Vec<_>>(), [node_id(64, 0)]);
    assert_eq!(suffix_cover(u64::MAX).collect::<Vec<_>>(), [(2 << 64) - 2]);
    assert_eq!(minimum_cover(1, u64::MAX - 1).len(), 126);
    assert!(minimum_cover(1, 0).is_empty());
    for method in METHODS {
        assert!(search_cover(method, HEIGHT, 1, 0).nodes.is_empty());
    }
}

/// Values near the ends of aligned blocks, and any others.
fn value() -> impl Strategy<Value = u64> {
    let near = (any::<u64>(), 0..64_u32, -2..3_i64);
    let near = near.prop_map(|(v, bits, by)| (v >> bits << bits).wrapping_add_signed(by));
    prop_oneof![any::<u64>(), near, 0..9_u64, u64::MAX - 9..=u64::MAX]
}

proptest! {
    #[test]
    fn all_methods_agree(a in value(), b in value(), inside in value()) {
        let (low, high) = (a.min(b), a.max(b));
        let nodes = sorted(minimum_cover(low, high));
        for method in METHODS {
            let cover = search_cover(method, HEIGHT, low, high).nodes;
            prop_assert_eq!(&sorted(cover), &nodes);
        }
        prop_assert_eq!(sorted(prefix_cover(high)), sorted(minimum_cover(0, high)));
        prop_assert_eq!(sorted(suffix_cover(low)), sorted(minimum_cover(low, u64::MAX)));
        prop_assert!(prefix_cover(high).count() <= 64 && suffix_cover(low).count() <= 64);
        for value in [inside, low, high] {
            let met = coverage_set(value).iter().filter(|node| nodes.contains(node)).count();
            prop_assert_eq!(met, usize::from((low..=high).contains(&value)));
        }
    }
}
