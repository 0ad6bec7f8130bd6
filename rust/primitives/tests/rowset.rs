//! Row sets: `spec/vectors/rowset.json`, round trips, and bytes of anybody.

use louver_primitives::rowset::{from_ids, from_runs, read, Run, ROW_LIMIT, WEIGHT_LIMIT};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;

const VECTORS: &str = include_str!("../../../spec/vectors/rowset.json");

fn weights(bytes: &[u8]) -> BTreeMap<u64, u64> {
    let mut runs = BTreeMap::new();
    read(bytes, |run| {
        assert!(run.count > 0 && run.weight > 0);
        for id in run.first..run.first + run.count {
            *runs.entry(id).or_insert(0) += run.weight;
        }
    })
    .unwrap();
    runs
}

fn counted(ids: &[i64]) -> BTreeMap<u64, u64> {
    let mut wanted = BTreeMap::new();
    for id in ids {
        *wanted.entry(u64::try_from(*id).unwrap()).or_insert(0) += 1;
    }
    wanted
}

fn unhex(text: &Value) -> Vec<u8> {
    let text = text.as_str().unwrap();
    let digits = (0..text.len()).step_by(2).map(|at| &text[at..at + 2]);
    digits
        .map(|two| u8::from_str_radix(two, 16).unwrap())
        .collect()
}

#[test]
fn known_answers() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    for case in vectors["sets"].as_array().unwrap() {
        let ids = case["ids"].as_array().unwrap().iter();
        let mut ids: Vec<i64> = ids.map(|id| id.as_i64().unwrap()).collect();
        let wanted = counted(&ids);
        assert_eq!(from_ids(&mut ids).unwrap(), unhex(&case["bytes"]), "{case}");
        assert_eq!(weights(&unhex(&case["bytes"])), wanted, "{case}");
    }
    for case in vectors["listed"].as_array().unwrap() {
        let ids = case["ids"].as_array().unwrap().iter();
        let ids: Vec<i64> = ids.map(|id| id.as_i64().unwrap()).collect();
        assert_eq!(weights(&unhex(&case["bytes"])), counted(&ids), "{case}");
    }
    for case in vectors["refused"].as_array().unwrap() {
        assert!(read(&unhex(&case["bytes"]), |_| ()).is_err(), "{case}");
    }
}

#[test]
fn dense_and_scattered_sets_are_small() {
    let size = |ids: &mut [i64]| from_ids(ids).unwrap().len();
    assert!(size(&mut (5..1_000_005).collect::<Vec<_>>()) < 12);
    // Every second of a million ids: one bit an id and its neighbour.
    let mut half: Vec<i64> = (0..1_000_000).step_by(2).collect();
    assert!(size(&mut half) < 125_100);
    let mut few: Vec<i64> = (0..1_000).map(|i| i * 1_000).collect();
    assert!(size(&mut few) <= 2_100);
    // A row three times: two planes, still two bits an id.
    let mut thrice: Vec<i64> = (0..300_000).map(|i| i / 3 * 2).collect();
    assert!(size(&mut thrice) < 50_100);
}

#[test]
fn limits() {
    let run = |first, count, weight| Run {
        first,
        count,
        weight,
    };
    assert!(from_ids(&mut [-1]).is_err());
    assert!(from_ids(&mut [i64::MAX]).is_err());
    assert!(from_runs(&[run(ROW_LIMIT - 1, 1, WEIGHT_LIMIT)]).is_ok());
    assert!(from_runs(&[run(ROW_LIMIT - 1, 2, 1)]).is_err());
    assert!(from_runs(&[run(u64::MAX, 2, 1)]).is_err());
    assert!(from_runs(&[run(0, 1, 0)]).is_err());
    assert!(from_runs(&[run(0, 0, 1)]).is_err());
    assert!(from_runs(&[run(0, 2, WEIGHT_LIMIT)]).is_err());
    assert!(from_runs(&[run(0, 2, 1), run(1, 1, 1)]).is_err());
    assert!(from_runs(&[run(9, 2, u64::MAX)]).is_err());
}

proptest! {
    #[test]
    fn sets_survive(
        parts in prop::collection::vec((0i64..3_000_000, 1i64..200, 1usize..5, 1i64..9), 0..40)
    ) {
        let parts = parts.iter();
        let mut ids: Vec<i64> = parts
            .flat_map(|&(first, count, weight, step)| {
                let some = (0..count).map(move |i| first + i * step);
                some.flat_map(move |id| std::iter::repeat_n(id, weight))
            })
            .collect();
        let wanted = counted(&ids);
        let mut listed = vec![1, 3];
        listed.extend(ids.iter().rev().flat_map(|id| id.to_be_bytes()));
        prop_assert_eq!(&weights(&listed), &wanted);
        prop_assert_eq!(weights(&from_ids(&mut ids).unwrap()), wanted);
    }

    #[test]
    fn no_bytes_make_it_panic(
        kind in 0u8..5,
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut whole = vec![1, kind];
        whole.extend_from_slice(&bytes);
        let mut rows = 0u64;
        let _ = read(&whole, |run| rows += run.count * run.weight);
        prop_assert!(rows <= WEIGHT_LIMIT);
        let _ = read(&bytes, |_| ());
    }
}
