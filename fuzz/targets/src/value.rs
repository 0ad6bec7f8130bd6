//! Encodings of values, as sealed values contain them: of every class of types.

use crate::input::{joined, Input};
use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, StringArray};
use arrow_schema::{DataType, Field, Fields, TimeUnit, UnionFields, UnionMode};
use louver_trusted::fuzz;
use std::sync::{Arc, LazyLock};

static TYPES: LazyLock<Vec<DataType>> = LazyLock::new(|| {
    use DataType as T;
    let item = |of: T| Arc::new(Field::new("item", of, true));
    let fields = || -> Fields {
        let list = Field::new("b", T::List(item(T::Utf8)), true);
        vec![Field::new("a", T::Int32, true), list].into()
    };
    let union = |mode| {
        let member = |id: i8, of: T| (id, Arc::new(Field::new(format!("m{id}"), of, true)));
        let members: UnionFields = [member(0, T::Int16), member(5, T::Utf8)]
            .into_iter()
            .collect();
        T::Union(members, mode)
    };
    let entry: Fields = vec![
        Field::new("key", T::Utf8, false),
        Field::new("value", T::Int64, true),
    ]
    .into();
    let entries = Arc::new(Field::new("entries", T::Struct(entry), false));
    vec![
        T::Null,
        T::Boolean,
        T::Int64,
        T::Decimal128(38, 3),
        T::Timestamp(TimeUnit::Microsecond, None),
        T::FixedSizeBinary(16),
        T::Utf8,
        T::LargeUtf8,
        T::Utf8View,
        T::Binary,
        T::BinaryView,
        T::List(item(T::Int32)),
        T::LargeList(item(T::Utf8)),
        T::List(item(T::List(item(T::Null)))),
        T::FixedSizeList(item(T::UInt8), 3),
        T::Struct(fields()),
        T::Map(entries, false),
        union(UnionMode::Sparse),
        union(UnionMode::Dense),
        T::List(item(union(UnionMode::Sparse))),
        T::Float64,
    ]
});

pub(crate) fn run(data: &[u8]) {
    let mut input = Input(data);
    let which = usize::from(input.byte()) % TYPES.len();
    let stored = input.pieces(8);
    let Ok(array) = fuzz::decode_values(&TYPES[which], &stored) else {
        return;
    };
    array
        .to_data()
        .validate_full()
        .expect("an array of its type");
    let again = fuzz::encode_values(&array).expect("what was decoded can be encoded");
    let parts: Vec<&[u8]> = again.iter().map(Vec::as_slice).collect();
    let other = fuzz::decode_values(&TYPES[which], &parts).expect("its own encoding");
    assert_eq!(again, fuzz::encode_values(&other).expect("once more"));
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.values().append_value("one");
    lists.values().append_null();
    lists.append(true);
    lists.append(false);
    let arrays: [(DataType, ArrayRef); 4] = [
        (
            DataType::Int64,
            Arc::new(Int64Array::from(vec![Some(5), None])),
        ),
        (
            DataType::Boolean,
            Arc::new(BooleanArray::from(vec![Some(true), None])),
        ),
        (
            DataType::Utf8,
            Arc::new(StringArray::from(vec![Some("Ann Smith"), None])),
        ),
        (DataType::Null, Arc::new(lists.finish())),
    ];
    let mut seeds: Vec<Vec<u8>> = arrays
        .iter()
        .map(|(kind, array)| {
            let stored = fuzz::encode_values(array).expect("plain types");
            let parts: Vec<&[u8]> = stored.iter().map(Vec::as_slice).collect();
            let which = TYPES.iter().position(|name| name == kind);
            joined(&[which.unwrap_or_default() as u8], &parts)
        })
        .collect();
    // A list of lists, a struct, a map, a union: flags, lengths and elements by hand.
    let flag = |class: u8| class << 1;
    let list = [flag(6), 8, 0, 0, 0, 1, 0, 0, 0, flag(3), 0, 0, 0];
    let element = [&list[..], &[0; 3]].concat();
    for which in 0..TYPES.len() as u8 {
        seeds.push(joined(&[which], &[&element, &[flag(which % 10) | 1; 16]]));
    }
    seeds
}
