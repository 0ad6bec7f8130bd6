//! Known answers of `spec/vectors/eds.json` in every form that they have.

use super::secret::Index;
use super::server::Token;
use super::spec::Spec;
use super::Segment;
use crate::Root;
use louver_primitives::eds::segment::{HEADER, TAG};
use louver_primitives::eds::spec::Form;
use louver_trusted::eds::{Ranges, NO_VALUE, RANGE};
use serde_json::Value;
use sha2::{Digest, Sha256};

const VECTORS: &str = include_str!("../../../../spec/vectors/eds.json");

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_str().unwrap().parse().unwrap()
}

fn bytes(text: &str) -> Vec<u8> {
    let digits = (0..text.len()).step_by(2).map(|at| &text[at..at + 2]);
    digits
        .map(|two| u8::from_str_radix(two, 16).unwrap())
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn known_answers() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let root = Root::new(std::array::from_fn(|at| at as u8));
    let list = vectors["ranges"].as_array().unwrap();
    let lows: Vec<u64> = list.iter().map(|range| number(&range[0])).collect();
    let highs: Vec<u64> = list.iter().map(|range| number(&range[1])).collect();
    let ranges = Ranges {
        lows: &lows,
        highs: &highs,
        states: &vec![RANGE; list.len()],
    };
    let cases = vectors["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 6);
    for case in cases {
        let spec = Spec::decode(&bytes(text(case, "spec"))).unwrap();
        let index = Index::new(&root, [3, 7, 2], spec);
        let id = bytes(text(case, "segment_id")).try_into().unwrap();
        let segment = index.segment_named(&ranges, id).unwrap();
        assert_eq!(hex(&segment[..HEADER]), text(case, "header"));
        assert_eq!(hex(&segment[segment.len() - TAG..]), text(case, "tag"));
        assert_eq!(hex(&Sha256::digest(&segment)), text(case, "sha256"));
        for query in case["tokens"].as_array().unwrap() {
            let (low, high) = (number(&query["low"]), number(&query["high"]));
            let sides = query["sides"].as_bool().unwrap();
            let token = index.token(low, high, sides).unwrap();
            assert_eq!(hex(&Sha256::digest(&token)), text(query, "sha256"));
            let hits = Token::new(&token).unwrap().sweep(&segment).unwrap();
            for hit in query["hits"].as_array().unwrap() {
                let file = hit.as_u64().unwrap() as usize;
                assert_eq!(hits[file / 8] >> (file % 8) & 1, 1, "file {file} is lost");
            }
            index.check(&segment, Some(&token)).unwrap();
        }
    }
}

/// Where bits are not hidden, a file without values has about as many set as any other.
#[test]
fn files_without_values_look_like_others() {
    let spec = Spec::decode(&[2, 0, 0, 8, 0, 64, 0, 0]).unwrap();
    let index = Index::new(&Root::new([1; 32]), [1, 2, 3], spec);
    let count = |state: u8| -> u32 {
        let ranges = Ranges {
            lows: &[3; 64],
            highs: &[1 << 40; 64],
            states: &[state; 64],
        };
        let segment = index.segment(&ranges).unwrap();
        let segment = Segment::decode(&segment).unwrap();
        let ones = segment.payload().iter().map(|byte| byte.count_ones());
        ones.sum::<u32>() / 64
    };
    assert!(count(NO_VALUE).abs_diff(count(RANGE)) < 40);
}
