//! Known answers of `spec/vectors/text.json`; every value that fits a search has its tokens.

use super::pattern;
use super::tokens::{each, encoded};
use super::Search;
use crate::keys::RootSecret;
use crate::{Epochs, KeyRing};
use arrow_array::cast::AsArray;
use arrow_array::*;
use louver_untrusted::server::text_match;
use proptest::prelude::*;
use serde_json::Value;
use std::collections::HashSet;

const VECTORS: &str = include_str!("../../../../spec/vectors/text.json");
const ID: (u32, u32, u32) = (4, 9, 1);

fn ring() -> KeyRing {
    let root: [u8; 32] = std::array::from_fn(|i| i as u8);
    KeyRing::from_root(RootSecret::from_bytes(&root).unwrap())
}

fn hex(bytes: &[u8]) -> String {
    crate::keys::hex(bytes)
}

#[test]
fn known_answers() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let rows = vectors["rows"].as_array().unwrap();
    let texts: StringArray = rows.iter().map(|row| row["value"].as_str()).collect();
    let ids = Int64Array::from_iter_values(rows.iter().map(|r| r["row_id"].as_i64().unwrap()));
    let sealed = ring()
        .text_seal(ID, &Epochs::legacy(), &texts, &ids)
        .unwrap();
    for (row, filter) in rows.iter().zip(sealed.as_binary::<i32>().iter()) {
        assert_eq!(hex(filter.unwrap()), row["filter"].as_str().unwrap());
    }
    for case in vectors["searches"].as_array().unwrap() {
        let pattern = case["pattern"].as_str().unwrap();
        let escape = case["escape"].as_str().and_then(|e| e.chars().next());
        let search = match case["kind"].as_str().unwrap() {
            "word" => Search::Word(pattern),
            "prefix" => Search::Prefix(pattern),
            "suffix" => Search::Suffix(pattern),
            "contains" => Search::Contains(pattern),
            _ => Search::Like(pattern, escape),
        };
        let actual = ring().text_tokens(ID, search).map(|tokens| hex(&tokens));
        assert_eq!(actual.as_deref(), case["tokens"].as_str(), "{case}");
    }
}

#[test]
fn nonsense_is_refused() {
    let (texts, ids) = (StringArray::from(vec!["a"]), Int64Array::from(vec![1]));
    assert!(ring().text_seal(ID, &Epochs::legacy(), &ids, &ids).is_err());
    assert!(ring()
        .text_seal(ID, &Epochs::legacy(), &texts, &texts)
        .is_err());
    assert!(ring()
        .text_seal(ID, &Epochs::legacy(), &texts, &ids.slice(0, 0))
        .is_err());
    assert!(ring()
        .text_seal(ID, &Epochs::legacy(), &texts, &Int64Array::from(vec![None]))
        .is_err());
}

#[test]
fn a_value_with_too_many_tokens_fits_every_search() {
    let long: String = (0..80_000).map(|n| format!("{n:x} ")).collect();
    let ids = Int64Array::from(vec![3]);
    let sealed = ring()
        .text_seal(ID, &Epochs::legacy(), &StringArray::from(vec![long]), &ids)
        .unwrap();
    assert_eq!(sealed.as_binary::<i32>().value(0).len(), 1);
    let tokens = ring().text_tokens(ID, Search::Word("zebra")).unwrap();
    let tokens = BinaryArray::from_iter_values([tokens]);
    let actual = text_match(&sealed, &ids, &tokens).unwrap();
    assert!(actual.as_boolean().value(0));
}

fn all(value: &str) -> HashSet<Vec<u8>> {
    let (mut actual, mut offsets, mut token) = (HashSet::new(), Vec::new(), Vec::new());
    each(value, &mut offsets, |kind, part| {
        encoded(kind, part, &mut token);
        actual.insert(token.clone());
    });
    actual
}

fn holds(value: &str, search: Search<'_>) -> bool {
    let has = all(value);
    pattern::tokens(search).is_none_or(|tokens| tokens.iter().all(|token| has.contains(token)))
}

proptest! {
    /// A value made to fit a pattern, from the pattern.
    #[test]
    fn what_fits_has_the_tokens(
        pieces in prop::collection::vec(("[ab%_\\\\é🙂 ]{0,20}", "[%_]", "[ab é]{0,5}"), 0..5),
        last in "[ab%_\\\\é ]{0,20}",
    ) {
        let (mut pattern, mut value) = (String::new(), String::new());
        let escaped = |text: &str| {
            let text = text.replace('\\', "\\\\");
            text.replace('%', "\\%").replace('_', "\\_")
        };
        for (piece, wildcard, filler) in &pieces {
            pattern += &escaped(piece);
            pattern += wildcard;
            value += piece;
            value += if wildcard == "%" { filler } else { "x" };
        }
        pattern += &escaped(&last);
        value += &last;
        prop_assert!(holds(&value, Search::Like(&pattern, Some('\\'))), "{pattern} {value}");
    }

    #[test]
    fn pieces_have_their_tokens(value in "[ab é🙂]{0,40}", a in 0usize..41, b in 0usize..41) {
        let chars: Vec<char> = value.chars().collect();
        let (a, b) = (a.min(b).min(chars.len()), a.max(b).min(chars.len()));
        let part = |range: &[char]| range.iter().collect::<String>();
        prop_assert!(holds(&value, Search::Contains(&part(&chars[a..b]))));
        prop_assert!(holds(&value, Search::Prefix(&part(&chars[..b]))));
        prop_assert!(holds(&value, Search::Suffix(&part(&chars[a..]))));
        for word in value.split(' ').filter(|word| !word.is_empty()) {
            prop_assert!(holds(&value, Search::Word(word)));
        }
    }

    #[test]
    fn no_bytes_make_it_panic(
        filter in any::<Vec<u8>>(),
        tokens in any::<Vec<u8>>(),
        id in any::<i64>(),
    ) {
        let mut versioned = vec![1];
        versioned.extend_from_slice(&tokens);
        let filters = BinaryArray::from_iter_values([&filter[..], &[1], &[1; 45]]);
        let ids = Int64Array::from(vec![id; 3]);
        for wire in [&tokens, &versioned] {
            let tokens = BinaryArray::from_iter_values([wire; 3]);
            let _ = text_match(&filters, &ids, &tokens);
        }
    }
}
