//! Every type there and back, and any bytes without a panic.

use super::*;
use arrow_array::builder::{MapBuilder, StringBuilder, UInt32Builder};
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{IntervalMonthDayNano, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{Field, Fields, TimeUnit, UnionFields, UnionMode};
use proptest::prelude::*;
use std::sync::Arc;

fn round_trip(array: &ArrayRef) -> ArrayRef {
    let encoder = Encoder::new(array).unwrap();
    let data_type = plain_type(array.data_type()).unwrap();
    let mut builder = Builder::new(&data_type, array.len()).unwrap();
    for row in 0..array.len() {
        let mut bytes = Vec::new();
        encoder.write(row, &mut bytes).unwrap();
        match width_of(array.data_type()) {
            Some(width) => assert_eq!(bytes.len(), width + 1),
            None => assert_eq!(bytes.len() % STEP, 0),
        }
        builder.push(&bytes).unwrap();
    }
    builder.finish().unwrap()
}

#[track_caller]
fn same(array: impl Array + 'static) {
    let array: ArrayRef = Arc::new(array);
    assert_eq!(round_trip(&array).to_data(), array.to_data());
    let part = array.slice(1, array.len() - 1);
    assert_eq!(round_trip(&part).to_data(), part.to_data());
    let none = array.slice(0, 0);
    assert_eq!(round_trip(&none).to_data(), none.to_data());
}

#[test]
fn fixed_widths() {
    same(NullArray::new(3));
    same(BooleanArray::from(vec![Some(true), None, Some(false)]));
    same(Int8Array::from(vec![Some(-128), None, Some(127)]));
    same(Int16Array::from(vec![Some(-1), None]));
    same(Int32Array::from(vec![Some(i32::MIN), None]));
    same(Int64Array::from(vec![Some(i64::MIN), None, Some(i64::MAX)]));
    same(UInt8Array::from(vec![Some(255), None]));
    same(UInt16Array::from(vec![Some(1), None]));
    same(UInt32Array::from(vec![Some(1), None]));
    same(UInt64Array::from(vec![Some(u64::MAX), None]));
    same(Float32Array::from(vec![
        Some(-0.0),
        None,
        Some(f32::INFINITY),
    ]));
    same(Date32Array::from(vec![Some(-1), None]));
    same(Date64Array::from(vec![Some(-1), None]));
    same(Time32SecondArray::from(vec![Some(1), None]));
    same(Time64MicrosecondArray::from(vec![Some(1), None]));
    same(Time64NanosecondArray::from(vec![Some(1), None]));
    same(TimestampSecondArray::from(vec![Some(1), None]));
    same(TimestampMillisecondArray::from(vec![Some(1), None]));
    same(TimestampNanosecondArray::from(vec![Some(1), None]));
    same(TimestampMicrosecondArray::from(vec![Some(i64::MAX), None]).with_timezone("Etc/UTC"));
    same(DurationMicrosecondArray::from(vec![Some(1), None]));
    same(Decimal128Array::from(vec![Some(i128::MAX), None]));
    let wide = arrow_buffer::i256::MINUS_ONE;
    same(Decimal256Array::from(vec![Some(wide), None]));
    let interval = IntervalMonthDayNano::new(-1, 31, i64::MIN);
    same(IntervalMonthDayNanoArray::from(vec![Some(interval), None]));
    let bytes: Vec<Option<&[u8]>> = vec![Some(&[7; 16]), None, Some(&[0; 16])];
    same(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes.into_iter(), 16).unwrap());
}

#[test]
fn floats_keep_every_bit() {
    let payload = f64::from_bits(0x7ff8_dead_beef_0001);
    let array: ArrayRef = Arc::new(Float64Array::from(vec![payload, -0.0, f64::NAN]));
    let back = round_trip(&array);
    assert_eq!(back.to_data().buffers()[0], array.to_data().buffers()[0]);
}

#[test]
fn text_and_bytes() {
    let long = "é".repeat(5000);
    let text = vec![Some(""), None, Some("a"), Some("elf letters"), Some(&long)];
    same(StringArray::from(text.clone()));
    same(LargeStringArray::from(text.clone()));
    same(StringViewArray::from(text));
    let bytes: Vec<Option<&[u8]>> = vec![Some(b""), None, Some(b"\0\0"), Some(&[255; 99])];
    same(BinaryArray::from(bytes.clone()));
    same(LargeBinaryArray::from(bytes.clone()));
    same(BinaryViewArray::from(bytes));
}

#[test]
fn a_null_is_as_long_as_a_short_value() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec![None, Some(""), Some("elf letters")]));
    let encoder = Encoder::new(&texts).unwrap();
    for row in 0..3 {
        let mut bytes = Vec::new();
        encoder.write(row, &mut bytes).unwrap();
        assert_eq!(bytes.len(), STEP);
    }
}

#[test]
fn enums_come_back_as_text() {
    let array: DictionaryArray<UInt8Type> = vec![Some("b"), None, Some("a"), Some("b")]
        .into_iter()
        .collect();
    let back = round_trip(&(Arc::new(array) as ArrayRef));
    let text = StringArray::from(vec![Some("b"), None, Some("a"), Some("b")]);
    assert_eq!(back.to_data(), text.to_data());
}

fn numbers(count: i32) -> ArrayRef {
    let values = (0..count).map(|i| (i % 3 != 1).then_some(i));
    Arc::new(values.collect::<Int32Array>())
}

#[test]
fn nested() {
    let item = Arc::new(Field::new("l", DataType::Int32, true));
    let valid = || Some(NullBuffer::from(vec![true, false, true, true]));
    let lengths = || [2, 0, 0, 5];
    let small = OffsetBuffer::from_lengths(lengths());
    let list = ListArray::new(item.clone(), small, numbers(7), valid());
    same(list.clone());
    let large = OffsetBuffer::<i64>::from_lengths(lengths());
    same(LargeListArray::new(
        item.clone(),
        large,
        numbers(7),
        valid(),
    ));
    same(FixedSizeListArray::new(item, 2, numbers(8), valid()));
    let fields = Fields::from(vec![
        Field::new("a", DataType::Int32, true),
        Field::new("b", list.data_type().clone(), true),
    ]);
    let children: Vec<ArrayRef> = vec![numbers(4), Arc::new(list)];
    same(StructArray::new(fields, children, valid()));
    let mut map = MapBuilder::new(None, StringBuilder::new(), UInt32Builder::new());
    map.keys().append_value("k");
    map.values().append_null();
    map.append(true).unwrap();
    map.append(false).unwrap();
    map.append(true).unwrap();
    same(map.finish());
}

#[test]
fn unions() {
    let fields = || {
        UnionFields::try_new(
            vec![0, 5],
            vec![
                Field::new("n", DataType::Int32, true),
                Field::new("s", DataType::Utf8, true),
            ],
        )
        .unwrap()
    };
    let text: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), None, Some("z")]));
    let ids = ScalarBuffer::from(vec![5i8, 0, 0]);
    let children = vec![numbers(3), text.clone()];
    let sparse: ArrayRef = Arc::new(UnionArray::try_new(fields(), ids, None, children).unwrap());
    let dense_ids = ScalarBuffer::from(vec![5i8, 0, 5, 0]);
    let offsets = Some(ScalarBuffer::from(vec![0i32, 0, 1, 1]));
    let children = vec![numbers(2), text.slice(0, 2)];
    let dense = UnionArray::try_new(fields(), dense_ids, offsets, children).unwrap();
    same(dense);
    // Members that a sparse row does not use need not come back.
    let back = round_trip(&sparse);
    let (before, after) = (sparse.as_any(), back.as_any());
    let before = before.downcast_ref::<UnionArray>().unwrap();
    let after = after.downcast_ref::<UnionArray>().unwrap();
    assert_eq!(before.type_ids(), after.type_ids());
    for row in 0..3 {
        assert_eq!(before.value(row).to_data(), after.value(row).to_data());
    }
    assert!(matches!(
        back.data_type(),
        DataType::Union(_, UnionMode::Sparse)
    ));
}

#[test]
fn types_without_a_form_are_refused() {
    let view = DataType::ListView(Arc::new(Field::new("l", DataType::Int8, true)));
    assert!(plain_type(&view).is_err());
    let deep = (0..100).fold(DataType::Int8, |inner, _| {
        DataType::List(Arc::new(Field::new("l", inner, true)))
    });
    assert!(plain_type(&deep).is_err());
}

fn some_type() -> impl Strategy<Value = DataType> {
    let leaf = prop_oneof![
        Just(DataType::Null),
        Just(DataType::Boolean),
        Just(DataType::Int8),
        Just(DataType::Int64),
        Just(DataType::Decimal128(38, 0)),
        Just(DataType::Timestamp(TimeUnit::Second, None)),
        Just(DataType::FixedSizeBinary(3)),
        Just(DataType::Utf8),
        Just(DataType::BinaryView),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let field = |t: DataType| Arc::new(Field::new("f", t, true));
        prop_oneof![
            inner.clone().prop_map(move |t| DataType::List(field(t))),
            inner
                .clone()
                .prop_map(move |t| DataType::FixedSizeList(field(t), 2)),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|types| {
                let fields = types.into_iter().enumerate();
                let fields = fields.map(|(i, t)| Field::new(format!("f{i}"), t, true));
                DataType::Struct(fields.collect())
            }),
            (inner.clone(), inner, any::<bool>()).prop_map(|(a, b, dense)| {
                let fields = vec![Field::new("a", a, true), Field::new("b", b, true)];
                let fields = UnionFields::try_new(vec![0, 1], fields).unwrap();
                let mode = if dense {
                    UnionMode::Dense
                } else {
                    UnionMode::Sparse
                };
                DataType::Union(fields, mode)
            }),
        ]
    })
}

/// Random bytes in which flags and small lengths are likely.
fn some_bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![0u8..20, Just(0), any::<u8>()];
    prop::collection::vec(byte, 0..80)
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        data_type in some_type(),
        values in prop::collection::vec(some_bytes(), 0..4),
    ) {
        let mut builder = Builder::new(&data_type, values.len()).unwrap();
        let mut good = true;
        for value in &values {
            good &= builder.push(value).is_ok();
        }
        if good {
            // What was read is written back as it was.
            if let Ok(array) = builder.finish() {
                let encoder = Encoder::new(&array).unwrap();
                for row in 0..array.len() {
                    encoder.write(row, &mut Vec::new()).unwrap();
                }
            }
        }
    }

    #[test]
    fn numbers_and_text_come_back(
        numbers in prop::collection::vec(any::<Option<i64>>(), 1..40),
        text in prop::collection::vec(any::<Option<String>>(), 1..40),
    ) {
        same(Int64Array::from(numbers));
        same(StringArray::from(text));
    }
}
