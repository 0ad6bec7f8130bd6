//! Known answers of `spec/vectors/eds.json`, and properties of segments and tokens together with
//! the server's sweep.

use super::generate::segment_named;
use super::*;
use crate::keyring::KeyRing;
use crate::keys::{hex, RootSecret};
use crate::Error;
use louver_primitives::eds::segment::{Header, Segment, HEADER, TAG};
use louver_primitives::eds::spec::{Form, Spec};
use louver_primitives::eds::token::HEADER as TOKEN_HEADER;
use louver_primitives::eds::tree::{coverage_set_in, minimum_cover_in};
use louver_untrusted::eds::sweep;
use proptest::prelude::*;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::sync::Arc;

const VECTORS: &str = include_str!("../../../../spec/vectors/eds.json");

/// A token of the form that the product has.
type Token = sweep::Token;

fn lake(table: u32) -> LakeKeys {
    let root: [u8; 32] = std::array::from_fn(|i| i as u8);
    let ring = KeyRing::from_root(RootSecret::from_bytes(&root).unwrap());
    LakeKeys::new(Arc::new(ring), table)
}

fn spec(kind: u8, bits: u32) -> [u8; 8] {
    let mut spec = [kind, 0, 1, 8, 0, 0, 0, 0];
    spec[4..].copy_from_slice(&bits.to_le_bytes());
    spec
}

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

fn bits(answer: &[u8], files: usize) -> Vec<usize> {
    (0..files)
        .filter(|file| answer[file / 8] >> (file % 8) & 1 == 1)
        .collect()
}

/// Lows, highs and states.
type Files = (Vec<u64>, Vec<u64>, Vec<u8>);

fn ranges(files: &Files) -> Ranges<'_> {
    Ranges {
        lows: &files.0,
        highs: &files.1,
        states: &files.2,
    }
}

#[test]
fn known_answers() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let lake = lake(3);
    let list = vectors["ranges"].as_array().unwrap();
    let lows: Vec<u64> = list.iter().map(|range| number(&range[0])).collect();
    let highs: Vec<u64> = list.iter().map(|range| number(&range[1])).collect();
    let files: Files = (lows, highs, vec![RANGE; list.len()]);
    let mut checked = 0;
    for case in vectors["cases"].as_array().unwrap() {
        let spec = bytes(text(case, "spec"));
        let Ok(known) = Spec::decode(&spec) else {
            continue; // A form of the paper: those are checked in `rust/papers`.
        };
        checked += 1;
        let keys = lake.index_of(7, 2, known);
        assert_eq!(hex(&keys.id), text(case, "index_id"));
        let header = Header {
            spec: known,
            index_id: keys.id,
            segment_id: bytes(text(case, "segment_id")).try_into().unwrap(),
            files: list.len() as u32,
        };
        let segment = segment_named(&keys, &header, &ranges(&files)).unwrap();
        assert_eq!(hex(&segment[..HEADER]), text(case, "header"));
        assert_eq!(
            hex(&segment[HEADER + 12..HEADER + 16]),
            text(case, "row_of_3")
        );
        assert_eq!(hex(&segment[segment.len() - TAG..]), text(case, "tag"));
        assert_eq!(hex(&Sha256::digest(&segment)), text(case, "sha256"));
        for query in case["tokens"].as_array().unwrap() {
            let range = (number(&query["low"]), number(&query["high"]));
            let sides = query["sides"].as_bool().unwrap();
            let token = lake.token(7, 2, &spec, range, sides).unwrap();
            assert_eq!(hex(&token[..132]), text(query, "begin"));
            assert_eq!(hex(&Sha256::digest(&token)), text(query, "sha256"));
            let answer = Token::new(&token).unwrap().sweep(&segment).unwrap();
            let answer = bits(&answer, files.2.len());
            let wanted = query["hits"].as_array().unwrap();
            assert!(wanted
                .iter()
                .all(|hit| answer.contains(&(hit.as_u64().unwrap() as usize))));
            lake.check(7, 2, &segment, Some(&token)).unwrap();
        }
    }
    assert_eq!(checked, 2);
    for signed in vectors["signatures"].as_array().unwrap() {
        let (purpose, context) = (text(signed, "purpose"), bytes(text(signed, "context")));
        let (data, tag) = (bytes(text(signed, "data")), bytes(text(signed, "tag")));
        assert_eq!(lake.sign(purpose, &context, &data)[..], tag);
        lake.verify(purpose, &context, &data, &tag).unwrap();
    }
}

#[test]
fn known_maps() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    for (name, pairs) in vectors["maps"].as_object().unwrap() {
        let pairs = pairs.as_array().unwrap();
        let texts: Vec<&str> = pairs.iter().map(|pair| pair[0].as_str().unwrap()).collect();
        let wanted: Vec<u64> = pairs.iter().map(|pair| number(&pair[1])).collect();
        let values = tests_of_maps::column(name, &texts);
        let (type_, letters) = match name.as_str() {
            "letters" => ("VARCHAR", true),
            other => (other, false),
        };
        let actual = map::values(&values, type_, letters).unwrap();
        assert_eq!(actual.values(), &wanted[..], "{name}");
    }
}

/// DESIGN, section 5: an intersecting file has exactly two true hits, any other exactly one.
#[test]
fn two_hits_on_a_domain_of_five_bits() {
    let ranges = || (0..32_u64).flat_map(|low| (low..32).map(move |high| (low, high)));
    let paths: Vec<Vec<u128>> = (0..32).map(|value| coverage_set_in(5, value)).collect();
    for (low, high) in ranges() {
        let (least, greatest) = (minimum_cover_in(5, 0, high), minimum_cover_in(5, low, 31));
        for (min, max) in ranges() {
            let shared = |cover: &[u128], value: u64| {
                cover
                    .iter()
                    .filter(|node| paths[value as usize].contains(node))
                    .count()
            };
            let hits = shared(&least, min) + shared(&greatest, max);
            let meets = min <= high && max >= low;
            assert_eq!(
                hits,
                if meets { 2 } else { 1 },
                "[{min},{max}] and [{low},{high}]"
            );
        }
    }
}

/// Numbers that like ends and neighbours.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..50_u64,
        (u64::MAX - 50)..=u64::MAX,
        ((1_u64 << 63) - 50)..((1 << 63) + 50),
        (0..64_u32).prop_map(|bit| 1 << bit),
    ]
}

fn ordered(pair: (u64, u64)) -> (u64, u64) {
    (pair.0.min(pair.1), pair.0.max(pair.1))
}

fn files(most: usize) -> impl Strategy<Value = Files> {
    let file = ((value(), value()).prop_map(ordered), 0..3_u8);
    prop::collection::vec(file, 1..most).prop_map(|files| {
        let lows = files.iter().map(|((low, _), _)| *low).collect();
        let highs = files.iter().map(|((_, high), _)| *high).collect();
        (lows, highs, files.iter().map(|(_, state)| *state).collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A false negative would be data loss.
    #[test]
    fn no_file_is_lost(
        kind in prop::sample::select(&[0_u8, 2][..]),
        size in 10..15_u32,
        files in files(150),
        queries in prop::collection::vec((value(), value()).prop_map(ordered), 1..6),
        sides: bool,
    ) {
        let (lake, spec) = (lake(1), spec(kind, 1 << size));
        let segment = lake.segment(2, 3, &spec, &ranges(&files)).unwrap();
        lake.check(2, 3, &segment, None).unwrap();
        for range in queries {
            let token = lake.token(2, 3, &spec, range, sides).unwrap();
            prop_assert_eq!(&token, &lake.token(2, 3, &spec, range, sides).unwrap());
            prop_assert_eq!(token.len(), TOKEN_HEADER + 128 * 8 * 20);
            lake.check(2, 3, &segment, Some(&token)).unwrap();
            let answer = Token::new(&token).unwrap().sweep(&segment).unwrap();
            prop_assert_eq!(answer.len(), files.2.len().div_ceil(8));
            let answer = bits(&answer, files.2.len());
            for file in 0..files.2.len() {
                let meets = match files.2[file] {
                    RANGE => files.0[file] <= range.1 && files.1[file] >= range.0,
                    state => state == ANY_VALUE,
                };
                prop_assert!(!meets || answer.contains(&file), "file {file} is lost");
            }
        }
    }

    #[test]
    fn a_changed_byte_is_seen(at: prop::sample::Index, flip in 1..=255_u8, wide: bool) {
        let (lake, spec) = (lake(1), spec(2, if wide { 16_384 } else { 1024 }));
        let count = if wide { 600 } else { 3 };
        let files: Files = (vec![5; count], vec![9; count], vec![RANGE; count]);
        let mut segment = lake.segment(2, 3, &spec, &ranges(&files)).unwrap();
        let target = at.index(segment.len());
        segment[target] ^= flip;
        let actual = lake.check(2, 3, &segment, None);
        prop_assert!(matches!(actual, Err(Error::Verify(_))), "byte {target}");
        if !wide {
            let token = lake.token(2, 3, &spec, (1, 6), false).unwrap();
            let actual = lake.check(2, 3, &segment, Some(&token));
            prop_assert!(matches!(actual, Err(Error::Verify(_)) | Err(Error::Value(_))));
        }
    }

    #[test]
    fn hostile_bytes_are_refused(noise: Vec<u8>, at: prop::sample::Index, flip in 1..=255_u8) {
        let (lake, spec) = (lake(1), spec(0, 1024));
        let files: Files = (vec![5], vec![9], vec![RANGE]);
        let mut segment = lake.segment(2, 3, &spec, &ranges(&files)).unwrap();
        let mut token = lake.token(2, 3, &spec, (1, 6), false).unwrap();
        prop_assert!(Token::new(&noise).is_err());
        let ready = Token::new(&token).unwrap();
        prop_assert!(ready.sweep(&noise).is_err());
        let (in_token, in_segment) = (at.index(token.len()), at.index(segment.len()));
        token[in_token] ^= flip;
        segment[in_segment] ^= flip;
        let _ = ready.sweep(&segment);
        let _ = Token::new(&token).map(|other| other.sweep(&segment));
        let _ = lake.opened(&token);
        prop_assert!(lake.check(2, 3, &noise, None).is_err());
    }
}

#[test]
fn keystreams_differ() {
    let spec = spec(0, 1024);
    let files: Files = (vec![7; 700], vec![7; 700], vec![NO_VALUE; 700]);
    let plain: Files = (vec![7; 700], vec![7; 700], vec![RANGE; 700]);
    let (first, other) = (lake(1), lake(2));
    let segment_of = |lake: &LakeKeys, column: u32, generation: u32, files: &Files| {
        lake.segment(column, generation, &spec, &ranges(files))
            .unwrap()
    };
    let segments = [
        segment_of(&first, 2, 3, &plain),
        segment_of(&first, 2, 3, &plain),
        segment_of(&first, 2, 4, &plain),
        segment_of(&first, 3, 3, &plain),
        segment_of(&other, 2, 3, &plain),
        segment_of(&first, 2, 3, &files),
    ];
    for (at, bytes) in segments.iter().enumerate() {
        let segment = Segment::<Spec>::decode(bytes).unwrap();
        let ones: u32 = segment.payload().iter().map(|byte| byte.count_ones()).sum();
        let total = segment.payload().len() as f64 * 8.0;
        assert!(
            (f64::from(ones) / total - 0.5).abs() < 0.01,
            "rows look random"
        );
        for two in &segments[at + 1..] {
            let two = Segment::<Spec>::decode(two).unwrap();
            assert_ne!(segment.header.segment_id, two.header.segment_id);
            let pairs = segment.payload().iter().zip(two.payload());
            let apart: u32 = pairs.map(|(a, b)| (a ^ b).count_ones()).sum();
            // Filters of one value are the same: a shared keystream would cancel out.
            assert!((f64::from(apart) / total - 0.5).abs() < 0.01);
        }
    }
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let (lake, spec_of) = (lake(1), |kind| spec(kind, 1024));
    let files: Files = (vec![5], vec![9], vec![RANGE]);
    let segment = lake.segment(2, 3, &spec_of(0), &ranges(&files)).unwrap();
    for (column, generation, kind) in [(1, 3, 0), (2, 4, 0), (2, 3, 2)] {
        let token = lake
            .token(column, generation, &spec_of(kind), (1, 6), false)
            .unwrap();
        assert!(Token::new(&token).unwrap().sweep(&segment).is_err());
        assert!(lake.check(2, 3, &segment, Some(&token)).is_err());
    }
    assert!(matches!(
        lake.check(2, 4, &segment, None),
        Err(Error::Verify(_))
    ));
    assert!(matches!(
        lake.check(1, 3, &segment, None),
        Err(Error::Verify(_))
    ));
    assert!(lake.token(2, 3, &spec_of(0), (6, 1), false).is_err());
    assert!(lake.token(2, 3, &[0; 8], (1, 6), false).is_err());
    for other in [[1, 0, 1], [2, 1, 1], [2, 0, 0], [2, 0, 2], [2, 0, 3]] {
        let mut spec = spec_of(2);
        spec[..3].copy_from_slice(&other);
        let error = lake.token(2, 3, &spec, (1, 6), false).unwrap_err();
        assert!(error.to_string().contains("does not read"), "{other:?}");
    }
    let wrong: [Files; 4] = [
        (vec![], vec![], vec![]),
        (vec![9], vec![5], vec![RANGE]),
        (vec![5], vec![9], vec![3]),
        (vec![5], vec![9, 9], vec![RANGE]),
    ];
    for files in wrong {
        assert!(lake.segment(2, 3, &spec_of(0), &ranges(&files)).is_err());
    }
    let tag = lake.sign("a", b"b", b"c");
    assert!(lake.verify("a", b"bc", b"", &tag).is_err());
    assert!(lake.verify("b", b"b", b"c", &tag).is_err());
    assert!(lake.verify("a", b"b", b"c", &tag[..31]).is_err());
    assert_eq!(format!("{lake:?}"), "LakeKeys(ea393a02ec260660, table 1)");
}
