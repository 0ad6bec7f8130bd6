use super::{copied, rows_end, CopyLayout, HEAD};
use crate::copy_columns::CopyColumn;
use crate::copy_rows::CopyRows;
use crate::data_rows::Form;
use crate::oid;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, StringArray};
use proptest::prelude::*;
use std::sync::Arc;

const LAYOUTS: [CopyLayout; 3] = [CopyLayout::Text, CopyLayout::Csv, CopyLayout::Binary];
const COLUMNS: [CopyColumn; 2] = [(oid::INT8, -1), (oid::TEXT, -1)];
const ALL: [CopyColumn; 16] = [
    (oid::BOOL, -1),
    (oid::INT2, -1),
    (oid::INT4, -1),
    (oid::INT8, -1),
    (oid::FLOAT4, -1),
    (oid::FLOAT8, -1),
    (oid::DATE, -1),
    (oid::TIMESTAMP, -1),
    (oid::TIMESTAMPTZ, -1),
    (oid::TEXT, -1),
    (oid::VARCHAR, 8),
    (oid::BPCHAR, 8),
    (oid::NUMERIC, -1),
    (oid::NUMERIC, (6 << 16) + 2 + 4),
    (oid::UUID, -1),
    (oid::BYTEA, -1),
];

/// The data of messages.
fn data_of(messages: &[u8]) -> Vec<u8> {
    let (mut rest, mut out) = (messages, Vec::new());
    while !rest.is_empty() {
        assert_eq!(rest[0], b'd');
        let length = u32::from_be_bytes(rest[1..5].try_into().unwrap()) as usize;
        out.extend_from_slice(&rest[5..=length]);
        rest = &rest[length + 1..];
    }
    out
}

fn written(layout: CopyLayout, numbers: &ArrayRef, texts: &ArrayRef) -> Vec<u8> {
    let form = match layout {
        CopyLayout::Binary => Form::Binary,
        _ => Form::Text,
    };
    let columns = [
        (Arc::clone(numbers), oid::INT8, form),
        (Arc::clone(texts), oid::TEXT, form),
    ];
    let mut rows = CopyRows::new(layout, None);
    let mut out = data_of(&rows.messages(&columns, numbers.len()).unwrap());
    out.extend(data_of(&rows.end().unwrap()));
    out
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        rows in prop::collection::vec(
            (any::<Option<i64>>(), prop::option::of("[a\\\\.N\n\t,\"ä\u{b}]{0,5}")), 0..9),
    ) {
        let numbers: ArrayRef = Arc::new(rows.iter().map(|r| r.0).collect::<Int64Array>());
        let texts: ArrayRef = Arc::new(rows.iter().map(|r| r.1.clone()).collect::<StringArray>());
        for layout in LAYOUTS {
            let data = written(layout, &numbers, &texts);
            let read = copied(&data, layout, &COLUMNS).unwrap();
            prop_assert_eq!(read[0].as_primitive::<Int64Type>(), numbers.as_primitive());
            prop_assert_eq!(read[1].as_string::<i32>(), texts.as_string::<i32>());
        }
    }

    #[test]
    fn no_bytes_panic(
        data in prop::collection::vec(any::<u8>(), 0..60),
        texts in "[-0-9.eE:+ \\\\x\tN\n\",tf]{0,40}",
        column in prop::sample::select(&ALL[..]),
    ) {
        for layout in LAYOUTS {
            for given in [&data[..], texts.as_bytes(), &[HEAD, &data].concat()] {
                let _ = copied(given, layout, &[column]);
                let _ = copied(given, layout, &[column, column]);
            }
        }
        prop_assert!(rows_end(&data).0 <= data.len() + 2);
    }

    #[test]
    fn rows_end_where_they_begin_again(lengths in prop::collection::vec(-1_i32..5, 0..6),
                                       cut in 0_usize..50) {
        let (mut data, mut ends) = (Vec::new(), vec![0]);
        for length in &lengths {
            data.extend_from_slice(&1_i16.to_be_bytes());
            data.extend_from_slice(&length.to_be_bytes());
            data.extend(vec![7; usize::try_from(*length).unwrap_or(0)]);
            ends.push(data.len());
        }
        let part = &data[..cut.min(data.len())];
        let last = ends.iter().rfind(|end| **end <= part.len()).copied();
        prop_assert_eq!(rows_end(part), (last.unwrap_or(0), false));
        data.extend_from_slice(&(-1_i16).to_be_bytes());
        prop_assert_eq!(rows_end(&data), (data.len(), true));
    }
}

#[test]
fn other_spellings_are_left() {
    let read = |data: &str, column| copied(data.as_bytes(), CopyLayout::Text, &[column]).is_some();
    for (type_, modifier, yes, no) in [
        (oid::INT2, -1, "-32768\n7\n", "32768\n"),
        (
            oid::INT8,
            -1,
            "-9223372036854775808\n",
            "9223372036854775808\n",
        ),
        (oid::VARCHAR, 6, "äb\n", "abc\n"),
        (oid::BPCHAR, 6, "a\n", "abc\n"),
        (oid::NUMERIC, (3 << 16) + 1 + 4, "99.9\n", "100\n"),
        (oid::NUMERIC, -1, "0.10\n", "-0.0\n"),
        (
            oid::TIMESTAMPTZ,
            -1,
            "2024-01-02 03:04:05-08\n",
            "2024-01-02 03:04:05\n",
        ),
        (oid::BOOL, -1, "t\n\\N\n", "T\n"),
        (oid::TEXT, -1, "a\\tb\\\nc\n", "\\x41\n"),
        (oid::TEXT, -1, "a", "a\tb\n"),
        (oid::TEXT, -1, "\n", "\\.\n"),
        (oid::BYTEA, -1, "\\\\x00\n", "abc\n"),
        (oid::JSONB, -1, "", "1\n"),
    ] {
        assert!(read(yes, (type_, modifier)) || type_ == oid::JSONB, "{yes}");
        assert!(!read(no, (type_, modifier)), "{no}");
    }
    assert!(!read("a\r\n", (oid::TEXT, -1)) && !read("a\0\n", (oid::TEXT, -1)));
    let csv = |data: &str| copied(data.as_bytes(), CopyLayout::Csv, &[(oid::TEXT, -1)]).is_some();
    assert!(csv("\"a\"\"\n,\"\nb\n") && !csv("a\"b\"\n") && !csv("\"a\"b\n") && !csv("\"a\n"));
}
