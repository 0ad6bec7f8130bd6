//! Key files, blobs and sealed columns, with their known answers.

use crate::keys::{hex, RootSecret};
use crate::{keyfile, open_deterministic_blob, seal_deterministic_blob};
use crate::{Epochs, Error, KeyRing};
use arrow_array::*;
use arrow_schema::DataType;
use proptest::prelude::*;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

const KEYFILE: &str = include_str!("../../../spec/vectors/keyfile.json");
const SEALED: &str = include_str!("../../../spec/vectors/rnd.json");

fn ring(seed: u8) -> KeyRing {
    KeyRing::from_root(RootSecret::from_bytes(&[seed; 32]).unwrap())
}

fn unhex(text: &Value) -> Vec<u8> {
    let digits = text.as_str().unwrap().as_bytes();
    let pair = |d: &[u8]| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

/// A folder of its own for one test.
fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("louver-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir(&path).unwrap();
    path
}

#[test]
fn key_files_as_specified() {
    let vectors: Value = serde_json::from_str(KEYFILE).unwrap();
    for vector in vectors["good"].as_array().unwrap() {
        let root = keyfile::parse(vector["text"].as_str().unwrap()).unwrap();
        assert_eq!(root.expose().as_slice(), unhex(&vector["root"]));
        assert_eq!(hex(&root.key_id()), vector["key_id"].as_str().unwrap());
        let mac = KeyRing::from_root(root).mac("test", b"data");
        assert_eq!(hex(&mac), vector["mac_of_data_for_test"].as_str().unwrap());
    }
    for vector in vectors["bad"].as_array().unwrap() {
        assert!(
            keyfile::parse(vector["text"].as_str().unwrap()).is_err(),
            "{vector}"
        );
    }
}

#[test]
fn a_key_file_is_created_once_and_read_back() {
    let folder = folder("create");
    let path = folder.join("my.louverkey");
    let path = path.to_str().unwrap();
    let id = KeyRing::create(path, "for\ntests").unwrap();
    let mode = std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let ring = KeyRing::open(path).unwrap();
    assert_eq!(ring.key_id(), id);
    assert_eq!(format!("{ring:?}"), format!("KeyRing({id})"));
    assert!(matches!(
        KeyRing::create(path, ""),
        Err(Error::KeyFile { .. })
    ));

    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let error = KeyRing::open(path).unwrap_err().to_string();
    assert!(
        error.contains("0640") && error.contains("chmod 600"),
        "{error}"
    );
    let missing = KeyRing::open("/nowhere/at/all").unwrap_err().to_string();
    assert!(missing.contains("louver key new"), "{missing}");
    let directory = KeyRing::open(folder.to_str().unwrap()).unwrap_err();
    assert!(
        directory.to_string().contains("regular file"),
        "{directory}"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn blobs() {
    let ring = ring(1);
    let sealed = ring.seal_blob("catalog", b"db", b"text").unwrap();
    assert_eq!(ring.open_blob("catalog", b"db", &sealed).unwrap(), b"text");
    assert_ne!(sealed, ring.seal_blob("catalog", b"db", b"text").unwrap());
    let refused = |r: crate::Result<Vec<u8>>| assert!(matches!(r, Err(Error::Verify(_))));
    refused(ring.open_blob("ledger", b"db", &sealed));
    refused(ring.open_blob("catalog", b"other", &sealed));
    refused(self::ring(2).open_blob("catalog", b"db", &sealed));
    for at in 0..sealed.len() {
        let mut altered = sealed.clone();
        altered[at] ^= 1;
        refused(ring.open_blob("catalog", b"db", &altered));
        refused(ring.open_blob("catalog", b"db", &sealed[..at]));
    }
}

#[test]
fn deterministic_blobs() {
    let ring = ring(1);
    let sealed = seal_deterministic_blob(&ring, "name", b"t", b"text").unwrap();
    assert_eq!(
        sealed,
        seal_deterministic_blob(&ring, "name", b"t", b"text").unwrap()
    );
    let other = seal_deterministic_blob(&ring, "name", b"u", b"text").unwrap();
    assert_ne!(sealed, other);
    let open =
        |context: &[u8], sealed: &[u8]| open_deterministic_blob(&ring, "name", context, sealed);
    assert_eq!(open(b"t", &sealed).unwrap(), b"text");
    assert!(open(b"t", &other).is_err());
    assert!(open(b"t", &sealed[..3]).is_err());
}

fn ids(ids: impl IntoIterator<Item = i64>) -> Int64Array {
    Int64Array::from_iter_values(ids)
}

#[test]
fn sealed_values_as_specified() {
    let vectors: Value = serde_json::from_str(SEALED).unwrap();
    let root = RootSecret::from_bytes(&unhex(&vectors["root"])).unwrap();
    let ring = KeyRing::from_root(root);
    for vector in vectors["values"].as_array().unwrap() {
        let sealed = BinaryArray::from_iter_values([unhex(&vector["sealed"])]);
        let number = |name: &str| u32::try_from(vector[name].as_u64().unwrap()).unwrap();
        let id = (number("table"), number("column"), number("generation"));
        let row = ids([vector["row_id"].as_i64().unwrap()]);
        let value = &vector["value"];
        let wanted: ArrayRef = match vector["type"].as_str().unwrap() {
            "int64" => Arc::new(Int64Array::from(vec![value.as_i64()])),
            "utf8" => Arc::new(StringArray::from(vec![value.as_str()])),
            other => panic!("{other}"),
        };
        let opened = ring
            .open_column(id, &Epochs::legacy(), &sealed, &row, wanted.data_type())
            .unwrap();
        assert_eq!(opened.to_data(), wanted.to_data());
    }
}

#[test]
fn a_moved_or_altered_value_raises() {
    let ring = ring(5);
    let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), None, Some(9)]));
    let sealed = ring
        .seal_column((1, 2, 3), &Epochs::legacy(), &values, &ids(10..13))
        .unwrap();
    assert_eq!(sealed.null_count(), 0);
    let long = DataType::Int64;
    let open = |id, sealed: &dyn Array, ids: Int64Array| {
        ring.open_column(id, &Epochs::legacy(), sealed, &ids, &long)
    };
    let opened = open((1, 2, 3), &sealed, ids(10..13)).unwrap();
    assert_eq!(opened.to_data(), values.to_data());
    let refused = |r: crate::Result<ArrayRef>| assert!(matches!(r, Err(Error::Verify(_))), "{r:?}");
    refused(open((1, 2, 3), &sealed, ids([11, 10, 12])));
    for other in [(0, 2, 3), (1, 0, 3), (1, 2, 0)] {
        refused(open(other, &sealed, ids(10..13)));
    }
    refused(self::ring(6).open_column((1, 2, 3), &Epochs::legacy(), &sealed, &ids(10..13), &long));
    refused(ring.open_column(
        (1, 2, 3),
        &Epochs::legacy(),
        &sealed,
        &ids(10..13),
        &DataType::Utf8,
    ));
    refused(ring.open_column(
        (1, 2, 3),
        &Epochs::legacy(),
        &sealed,
        &ids(10..13),
        &DataType::Int32,
    ));
    let single = sealed
        .as_any()
        .downcast_ref::<BinaryArray>()
        .unwrap()
        .value(1);
    for at in 0..single.len() {
        let mut altered = single.to_vec();
        altered[at] ^= 0x10;
        let error = open(
            (1, 2, 3),
            &BinaryArray::from_iter_values([&altered]),
            ids([11]),
        );
        assert!(error
            .as_ref()
            .unwrap_err()
            .to_string()
            .contains("row id 11"));
        refused(error);
        refused(open(
            (1, 2, 3),
            &BinaryArray::from_iter_values([&single[..at]]),
            ids([11]),
        ));
    }
}

#[test]
fn rows_that_an_outer_join_made_up_are_null() {
    let ring = ring(5);
    let values: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let sealed = ring
        .seal_column((1, 2, 3), &Epochs::legacy(), &values, &ids(0..2))
        .unwrap();
    let sealed = sealed.as_any().downcast_ref::<BinaryArray>().unwrap();
    let joined = BinaryArray::from_iter([Some(sealed.value(1)), None]);
    let open = |ids: Vec<Option<i64>>| {
        ring.open_column(
            (1, 2, 3),
            &Epochs::legacy(),
            &joined,
            &Int64Array::from(ids),
            &DataType::Utf8,
        )
    };
    let opened = open(vec![Some(1), None]).unwrap();
    assert_eq!(
        opened.to_data(),
        StringArray::from(vec![Some("b"), None]).to_data()
    );
    assert!(matches!(
        open(vec![Some(1), Some(2)]),
        Err(Error::Verify(_))
    ));
    assert!(matches!(open(vec![None, None]), Err(Error::Verify(_))));
    let unknown = ring.seal_column(
        (1, 2, 3),
        &Epochs::legacy(),
        &values,
        &Int64Array::from(vec![None, Some(1)]),
    );
    assert!(matches!(unknown, Err(Error::Value(_))));
}

#[test]
fn many_rows_come_back_in_order() {
    let ring = ring(5);
    let rows = 10_000;
    let text: ArrayRef = Arc::new(StringArray::from_iter_values(
        (0..rows).map(|i| format!("{i:0>width$}", width = i as usize % 40)),
    ));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    for values in [text, numbers] {
        let sealed = ring
            .seal_column((1, 1, 1), &Epochs::legacy(), &values, &ids(0..rows))
            .unwrap();
        let opened = ring.open_column(
            (1, 1, 1),
            &Epochs::legacy(),
            &sealed,
            &ids(0..rows),
            values.data_type(),
        );
        assert_eq!(opened.unwrap().to_data(), values.to_data());
    }
}

proptest! {
    #[test]
    fn no_key_file_makes_it_panic(text in ".{0,200}") {
        let _ = keyfile::parse(&text);
        let _ = keyfile::parse(&format!("LOUVER-KEY-1{text}"));
    }

    #[test]
    fn no_sealed_bytes_make_it_panic(bytes in any::<Vec<u8>>()) {
        let ring = ring(1);
        prop_assert!(ring.open_blob("p", b"", &bytes).is_err());
        let column = BinaryArray::from_iter_values([&bytes]);
        let (epochs, text) = (Epochs::legacy(), DataType::Utf8);
        let opened = ring.open_column((1, 1, 1), &epochs, &column, &ids([1]), &text);
        prop_assert!(opened.is_err());
    }
}
