//! What tiles hold inside their encryption: numbers of every width, byte strings in every layout.

use crate::input::Input;
use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array};
use arrow_array::{Int32Array, StringArray};
use arrow_schema::{DataType, Field};
use louver_trusted::tiles::{TileColumn, TileForm, TILE_ROWS};
use louver_trusted::{fuzz, Epochs, KeyRing};
use std::sync::{Arc, LazyLock};

const FIRST: i64 = 1 << 36;
const UNIT: TileForm = TileForm::Units {
    unit: 8,
    limit: 1 << 16,
};
static RING: LazyLock<KeyRing> = LazyLock::new(fuzz::ring);
static EPOCHS: LazyLock<Epochs> =
    LazyLock::new(|| Epochs::new(0, vec![(1, [7; 16])]).expect("one epoch"));
static COLUMNS: LazyLock<Vec<(DataType, TileForm)>> = LazyLock::new(|| {
    use DataType as T;
    let packed = |base, bits, nulls| TileForm::Packed { base, bits, nulls };
    let item = Arc::new(Field::new("item", T::Utf8, true));
    vec![
        (T::Int64, packed(-3, 5, true)),
        (T::Int64, packed(9, 0, true)),
        (T::Int32, packed(0, 3, false)),
        (T::Boolean, packed(0, 1, true)),
        (T::Decimal128(38, 0), packed(0, 66, false)),
        (T::Utf8, UNIT),
        (T::Binary, UNIT),
        (T::Utf8View, UNIT),
        (T::Float64, UNIT),
        (T::List(item), UNIT),
        (T::Null, UNIT),
    ]
});

fn open(which: usize, plain: &[u8]) -> Option<ArrayRef> {
    let (data_type, form) = &COLUMNS[which];
    let column = TileColumn {
        id: (1, 2, 3),
        epochs: &EPOCHS,
        form: *form,
    };
    let sealed = fuzz::seal_tile(&RING, &column, FIRST, plain).expect("a known epoch");
    let sealed = BinaryArray::from_iter_values([sealed]);
    let first = Int64Array::from(vec![FIRST]);
    let opened = RING.open_tiles(&column, &sealed, &first, data_type, None);
    let (array, rows) = opened.ok()?;
    assert_eq!(rows, [array.len() as u16]);
    Some(array)
}

pub(crate) fn run(data: &[u8]) {
    let mut input = Input(data);
    let which = usize::from(input.byte()) % COLUMNS.len();
    // A header that fits, more often than chance would have it.
    let mut plain = input.0.to_vec();
    let check = &seal(which, &arrays(which))[4..8];
    if plain.first() == Some(&0xff) {
        plain.remove(0);
    } else if plain.len() >= 8 {
        plain[4..8].copy_from_slice(check);
    }
    let Some(array) = open(which, &plain) else {
        return;
    };
    let valid = array.to_data().validate_full();
    valid.expect("an array of its type");
    let again = seal(which, &array);
    if matches!(COLUMNS[which].1, TileForm::Packed { .. }) {
        assert_eq!(again, plain, "numbers have one encoding");
    }
    let same = open(which, &again).expect("its own encoding");
    assert_eq!(&same, &array);
}

fn seal(which: usize, array: &ArrayRef) -> Vec<u8> {
    let tiles = fuzz::encode_tiles(COLUMNS[which].1, array, TILE_ROWS);
    tiles.expect("what was opened can be sealed").swap_remove(0)
}

/// Some values of a column.
fn arrays(which: usize) -> ArrayRef {
    let texts = || (0..40).map(|n| (n % 5 != 1).then(|| "text ".repeat(n % 3)));
    let column: ArrayRef = match &COLUMNS[which].0 {
        DataType::Int64 if which == 1 => Arc::new(Int64Array::from(vec![Some(9), None])),
        DataType::Int64 => Arc::new(Int64Array::from(vec![Some(5), None, Some(-3)])),
        DataType::Int32 => Arc::new(Int32Array::from(vec![7, 0])),
        DataType::Boolean => Arc::new(BooleanArray::from(vec![Some(true), None])),
        DataType::Utf8 => Arc::new(StringArray::from_iter(texts())),
        DataType::Float64 => Arc::new(Float64Array::from(vec![Some(0.5), None, Some(-0.0)])),
        DataType::List(_) => {
            let mut lists = ListBuilder::new(StringBuilder::new());
            lists.append_value([Some("one"), None]);
            lists.append_null();
            Arc::new(lists.finish())
        }
        other => arrow_array::new_null_array(other, 3),
    };
    match &COLUMNS[which] {
        (kind @ DataType::Decimal128(_, _), _) => {
            let numbers = arrow_array::Decimal128Array::from(vec![1 << 65, 0]);
            Arc::new(numbers.with_data_type(kind.clone()))
        }
        _ => column,
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for which in 0..COLUMNS.len() {
        seeds.push([&[which as u8], &seal(which, &arrays(which))[..]].concat());
    }
    let distinct = (0..30).map(|n| format!("{n} {}", "y".repeat(n)));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(distinct));
    seeds.push([&[5], &seal(5, &texts)[..]].concat());
    seeds
}
