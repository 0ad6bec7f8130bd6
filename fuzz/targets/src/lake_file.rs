//! Data files of lakes and their wrapped keys, as a store returns them.

use crate::input::{put, Input};
use crate::token::KEYS;
use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, StructArray};
use louver_trusted::parquet::{write, FileKeys, SealedFile, Tail, FILE_ID};
use std::sync::{Arc, LazyLock};

const ID: [u8; FILE_ID] = [3; FILE_ID];
static FILE_KEYS: LazyLock<FileKeys> = LazyLock::new(|| FileKeys::of(&KEYS));

pub(crate) fn run(data: &[u8]) {
    let mut input = Input(data);
    let (key, bytes) = (input.piece(), input.0);
    let size = bytes.len() as u64;
    let Ok(sealed) = SealedFile::new(&FILE_KEYS, &ID, key, size) else {
        return;
    };
    let mut length = sealed.tail_length();
    let file = loop {
        let tail = bytes.len() - length as usize;
        match sealed.open(&bytes[tail..]) {
            Ok(Tail::More(more)) => {
                assert!(more > length && more <= size, "a tail that does not grow");
                length = more;
            }
            Ok(Tail::Open(file)) => break file,
            Err(_) => return,
        }
    };
    let columns = file.columns().to_vec();
    let ranges = file.ranges(&columns, None).expect("its own columns");
    let part = |(start, length): (u64, u64)| {
        let (from, to) = (start as usize, (start + length) as usize);
        (start, bytes[from..to].to_vec())
    };
    let parts = ranges.into_iter().map(part).collect();
    if let Ok((_, batches)) = file.read(&columns, parts, None) {
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(rows, file.row_groups().iter().sum::<usize>());
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    [0, 3, 40].map(seed).into()
}

fn seed(rows: usize) -> Vec<u8> {
    let numbers: Int64Array = (0..rows as i64)
        .map(|i| (i % 5 != 0).then_some(i))
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
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let whole = StructArray::from(batch.clone());
    let file = write(&FILE_KEYS, &ID, &batch.schema(), &[whole], 1).expect("a file");
    let mut out = Vec::new();
    put(&mut out, &file.key_metadata);
    out.extend(&file.bytes);
    out
}
