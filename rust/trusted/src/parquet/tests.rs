//! What a hostile store does to data files; types are tested through DuckDB, in Python.

use super::*;
use crate::eds::LakeKeys;
use crate::keys::RootSecret;
use crate::KeyRing;
use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt8Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int64Array, RecordBatch, StringArray, StructArray,
};
use proptest::prelude::*;
use std::sync::Arc;

const ROWS: usize = 3000;

fn keys(table: u32) -> FileKeys {
    keys_of(7, table)
}

fn keys_of(root: u8, table: u32) -> FileKeys {
    let root = RootSecret::from_bytes(&[root; 32]).unwrap();
    FileKeys::of(&LakeKeys::new(Arc::new(KeyRing::from_root(root)), table))
}

fn batch(rows: usize) -> RecordBatch {
    let numbers: Int64Array = (0..rows as i64)
        .map(|i| (i % 5 != 0).then_some(i * i))
        .collect();
    let texts: StringArray = (0..rows).map(|i| Some(format!("text {i}"))).collect();
    let mut lists = ListBuilder::new(Int32Builder::new());
    for i in 0..rows {
        lists.append_value((0..i as i32 % 4).map(Some));
    }
    let columns: [(&str, ArrayRef); 3] = [
        ("c1", Arc::new(numbers)),
        ("c7", Arc::new(texts)),
        ("c3", Arc::new(lists.finish())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn file(id: u8, rows: usize) -> Written {
    let batch = batch(rows);
    let whole = StructArray::from(batch.clone());
    write(&keys(5), &[id; 16], &batch.schema(), &[whole], 1).unwrap()
}

/// Reads all that is requested, fetching as a caller does.
fn read(keys: &FileKeys, id: u8, meta: &[u8], bytes: &[u8], ids: &[u32]) -> Result<RecordBatch> {
    let sealed = SealedFile::new(keys, &[id; 16], meta, bytes.len() as u64)?;
    let mut length = sealed.tail_length() as usize;
    let open = loop {
        match sealed.open(&bytes[bytes.len() - length..])? {
            Tail::More(more) => length = more as usize,
            Tail::Open(open) => break open,
        }
    };
    let part = |(at, n): (u64, u64)| (at, bytes[at as usize..(at + n) as usize].to_vec());
    let parts = open.ranges(ids, None)?.into_iter().map(part).collect();
    let (schema, batches) = open.read(ids, parts, None)?;
    arrow_select::concat::concat_batches(&schema, &batches).map_err(|e| Error::value(e.to_string()))
}

#[test]
fn what_was_written_is_read() {
    let written = file(1, ROWS);
    assert_eq!(written.rows, ROWS);
    let wanted = batch(ROWS);
    let got = read(
        &keys(5),
        1,
        &written.key_metadata,
        &written.bytes,
        &[1, 7, 3],
    )
    .unwrap();
    assert_eq!(got, wanted);
    let got = read(
        &keys(5),
        1,
        &written.key_metadata,
        &written.bytes,
        &[3, 9, 1],
    )
    .unwrap();
    assert_eq!(got, wanted.project(&[2, 0]).unwrap());
    let got = read(&keys(5), 1, &written.key_metadata, &written.bytes, &[]).unwrap();
    assert_eq!((got.num_columns(), got.num_rows()), (0, ROWS));
}

#[test]
fn row_groups_are_read_alone() {
    let rows = 2 * ROW_GROUP_ROWS + 5;
    let written = file(1, rows);
    let sealed = SealedFile::new(
        &keys(5),
        &[1; 16],
        &written.key_metadata,
        written.bytes.len() as u64,
    );
    let Tail::Open(open) = sealed.unwrap().open(&written.bytes).unwrap() else {
        panic!("all bytes are there")
    };
    assert_eq!(open.row_groups(), [ROW_GROUP_ROWS, ROW_GROUP_ROWS, 5]);
    let [(at, length)] = open.ranges(&[7], Some(&[1])).unwrap()[..] else {
        panic!("one chunk")
    };
    let part = written.bytes[at as usize..(at + length) as usize].to_vec();
    let (_, batches) = open.read(&[7], vec![(at, part)], Some(&[1])).unwrap();
    let wanted = batch(rows).slice(ROW_GROUP_ROWS, ROW_GROUP_ROWS);
    assert_eq!(batches, [wanted.project(&[1]).unwrap()]);
    assert!(matches!(
        open.ranges(&[7], Some(&[3])),
        Err(Error::Value(_))
    ));
    let nothing: Vec<(u64, Vec<u8>)> = vec![];
    assert!(matches!(
        open.read(&[7], nothing, None),
        Err(Error::Value(_))
    ));
}

#[test]
fn another_file_table_or_key_is_refused() {
    let (first, second) = (file(1, 40), file(2, 40));
    let refused = |keys: &FileKeys, id, meta: &[u8], bytes: &[u8]| {
        let got = read(keys, id, meta, bytes, &[1]);
        assert!(matches!(got, Err(Error::Verify(_))), "{got:?}");
    };
    refused(&keys(5), 1, &second.key_metadata, &first.bytes);
    refused(&keys(5), 1, &second.key_metadata, &second.bytes);
    refused(&keys(5), 1, &first.key_metadata, &second.bytes);
    refused(&keys(6), 1, &first.key_metadata, &first.bytes);
    refused(&keys_of(8, 5), 1, &first.key_metadata, &first.bytes);
}

/// A Parquet file that is not encrypted is refused, and so is one with an open footer.
#[test]
fn plaintext_is_refused() {
    let written = file(1, 40);
    let mut plain = Vec::new();
    let batch = batch(40);
    let mut writer =
        ::parquet::arrow::ArrowWriter::try_new(&mut plain, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let got = read(&keys(5), 1, &written.key_metadata, &plain, &[1]);
    assert!(matches!(got, Err(Error::Verify(_))));
}

/// Modules that change places are detected: of one size, in one file, under one key.
#[test]
fn moved_pages_are_refused() {
    let rows = 2 * ROW_GROUP_ROWS;
    let numbers: Int64Array = (0..rows as i64).map(|i| i % 2).collect();
    let batch = RecordBatch::try_from_iter([("c1", Arc::new(numbers) as ArrayRef)]).unwrap();
    let whole = StructArray::from(batch.clone());
    let written = write(&keys(5), &[1; 16], &batch.schema(), &[whole], 1).unwrap();
    let sealed = SealedFile::new(
        &keys(5),
        &[1; 16],
        &written.key_metadata,
        written.bytes.len() as u64,
    );
    let Tail::Open(open) = sealed.unwrap().open(&written.bytes).unwrap() else {
        panic!("all bytes are there")
    };
    let range = |group| open.ranges(&[1], Some(&[group])).unwrap()[0];
    let ((a, n), (b, m)) = (range(0), range(1));
    assert_eq!(n, m, "two row groups alike");
    let mut bytes = written.bytes.clone();
    let (a, b, n) = (a as usize, b as usize, n as usize);
    bytes[a..a + n].copy_from_slice(&written.bytes[b..b + n]);
    bytes[b..b + n].copy_from_slice(&written.bytes[a..a + n]);
    let got = read(&keys(5), 1, &written.key_metadata, &bytes, &[1]);
    assert!(matches!(got, Err(Error::Verify(_))), "{got:?}");
    assert!(read(&keys(5), 1, &written.key_metadata, &written.bytes, &[1]).is_ok());
}

#[test]
fn dictionaries_that_no_reader_could_join_are_refused() {
    let words = |from: usize| {
        let words: StringArray = (from..from + 200).map(|i| Some(i.to_string())).collect();
        let indexes = (0..200).map(|i| Some(i as u8));
        let indexes = indexes.collect::<arrow_array::PrimitiveArray<UInt8Type>>();
        let array = DictionaryArray::try_new(indexes, Arc::new(words)).unwrap();
        RecordBatch::try_from_iter([("c1", Arc::new(array) as ArrayRef)]).unwrap()
    };
    let (first, same, other) = (words(0), words(0), words(100));
    let schema = first.schema();
    let batches = [first.clone().into(), same.into()];
    let written = write(&keys(5), &[1; 16], &schema, &batches, 1).unwrap();
    let got = read(&keys(5), 1, &written.key_metadata, &written.bytes, &[1]).unwrap();
    assert_eq!(got.schema(), schema);
    assert_eq!(got.num_rows(), 400);
    let refused = write(
        &keys(5),
        &[1; 16],
        &schema,
        &[first.into(), other.into()],
        1,
    );
    assert!(matches!(refused, Err(Error::Value(_))));
}

#[test]
fn names_are_pseudonyms() {
    for name in ["name", "c", "c01", "c-1", "c4294967296", "C1"] {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let batch = RecordBatch::try_from_iter([(name, column)]).unwrap();
        let whole = StructArray::from(batch.clone());
        let refused = write(&keys(5), &[1; 16], &batch.schema(), &[whole], 1);
        assert!(matches!(refused, Err(Error::Value(_))), "{name}");
    }
}

#[test]
fn no_bit_of_a_small_file_may_change() {
    let written = file(1, 3);
    let wanted = batch(3).project(&[0]).unwrap();
    for at in 0..written.bytes.len() {
        let mut bytes = written.bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        match read(&keys(5), 1, &written.key_metadata, &bytes, &[1]) {
            // A column that was not requested, or the magic at the start.
            Ok(got) => assert_eq!(got, wanted),
            Err(error) => assert!(matches!(error, Error::Verify(_)), "{error:?}"),
        }
        let all = read(&keys(5), 1, &written.key_metadata, &bytes, &[1, 7, 3]);
        assert!(at < 4 || matches!(all, Err(Error::Verify(_))), "byte {at}");
    }
    for at in 0..written.key_metadata.len() {
        let mut meta = written.key_metadata.clone();
        meta[at] ^= 0x10;
        assert!(read(&keys(5), 1, &meta, &written.bytes, &[1]).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn hostile_bytes_are_refused(
        cut in 0_usize..3000,
        noise in proptest::collection::vec(any::<u8>(), 0..3000),
        meta in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        let written = file(1, 20);
        let refused = |meta: &[u8], bytes: &[u8]| {
            matches!(read(&keys(5), 1, meta, bytes, &[1, 3, 7]), Err(Error::Verify(_)))
        };
        let length = cut % written.bytes.len();
        prop_assert!(refused(&written.key_metadata, &written.bytes[..length]));
        let tail = &written.bytes[written.bytes.len() - length..];
        prop_assert!(refused(&written.key_metadata, tail));
        prop_assert!(refused(&written.key_metadata, &noise));
        prop_assert!(refused(&meta, &written.bytes));
        // Noise before a right end, and a right start before noise.
        let mixed = [&noise[..], &written.bytes[written.bytes.len() - length..]].concat();
        prop_assert!(refused(&written.key_metadata, &mixed));
        let mixed = [&written.bytes[..length], &noise[..]].concat();
        prop_assert!(refused(&written.key_metadata, &mixed));
    }
}

#[test]
fn numbers_keep_their_order() {
    let written = file(9, ROWS);
    let got = read(&keys(5), 9, &written.key_metadata, &written.bytes, &[1]).unwrap();
    let numbers = got.column(0).as_primitive::<Int64Type>();
    assert!((0..ROWS).all(|i| numbers.is_null(i) || numbers.value(i) == (i * i) as i64));
}
