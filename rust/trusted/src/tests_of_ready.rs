//! A key ring whose ciphers are ready gives what a fresh one gives.

use crate::codes::{Interval, Onion};
use crate::epochs::Epochs;
use crate::keys::RootSecret;
use crate::ready::MOST;
use crate::text::Search;
use crate::{Declared, EqStep, KeyRing, Recipe, SealedStep, SumStep, TagStep, TextStep};
use arrow_array::*;
use arrow_schema::{DataType, Field};
use proptest::prelude::*;
use std::sync::Arc;

type Id = (u32, u32, u32);

fn ring() -> KeyRing {
    KeyRing::from_root(RootSecret::from_bytes(&[5; 32]).unwrap())
}

/// Two epochs that bear bits, and those of an earlier release below.
fn epochs(seed: u8) -> Epochs {
    Epochs::new(1, vec![(1, [seed; 16]), (2, [seed + 1; 16])]).unwrap()
}

/// Everything that is the same whenever it is computed.
fn deterministic(ring: &KeyRing, id: Id, group: &str, epochs: &Epochs, row: i64) -> Vec<ArrayRef> {
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(row), None]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec![
        format!("row {row}"),
        "a".repeat(40),
    ]));
    let rows: ArrayRef = Arc::new(Int64Array::from(vec![row, row + 1]));
    let field = Field::new("n", DataType::Int64, true);
    let interval = Interval {
        domain: "int",
        low: 0,
        bits: 63,
    };
    let codes = ring.eq_codes(id, group, "int", &numbers).unwrap();
    let mut all = vec![
        ring.close_codes(id, epochs, Onion::Eq, &codes, &rows)
            .unwrap(),
        ring.close_codes(id, epochs, Onion::Ord, &codes, &rows)
            .unwrap(),
        codes,
        ring.eq_codes(id, group, "text", &texts).unwrap(),
        ring.key_tags(group, &["int".into()], &[Arc::clone(&numbers)])
            .unwrap(),
        ring.ord_codes(id, group, interval, &numbers).unwrap(),
        ring.text_seal(id, epochs, &texts, &rows).unwrap(),
        Arc::new(BinaryArray::from_iter([
            ring.text_tokens(id, Search::Word("row"))
        ])),
    ];
    all.extend(ring.sum_seal(id, epochs, &field, &numbers, &rows).unwrap());
    all
}

/// Opens with one ring what the other sealed.
fn moved(from: &KeyRing, to: &KeyRing, id: Id, epochs: &Epochs, row: i64) {
    let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(row), None]));
    let rows = Int64Array::from(vec![row, row + 1]);
    let sealed = from.seal_column(id, epochs, &values, &rows).unwrap();
    let open =
        |id: Id, epochs: &Epochs| to.open_column(id, epochs, &sealed, &rows, &DataType::Int64);
    assert_eq!(&open(id, epochs).unwrap(), &values);
    for other in [
        (id.0 + 1, id.1, id.2),
        (id.0, id.1 + 1, id.2),
        (id.0, id.1, id.2 + 1),
    ] {
        assert!(open(other, epochs).is_err());
    }
    // The same numbers of epochs in another history.
    assert_eq!(open(id, &self::epochs(100)).is_err(), row >> 36 > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn ready_ciphers_are_those_of_their_column_and_epoch(
        uses in prop::collection::vec(
            ((0..2_u32, 0..2_u32, 0..2_u32), "[ab]?", 0..2_u8, 0..3_i64, 0..1000_i64), 1..30,
        ),
    ) {
        let used = ring();
        for (id, group, seed, epoch, number) in uses {
            let (epochs, row) = (epochs(10 * seed), (epoch << 36) + number);
            // A key has a label even where a column has no group.
            let group = format!("{group}g");
            let fresh = deterministic(&ring(), id, &group, &epochs, row);
            prop_assert_eq!(&deterministic(&used, id, &group, &epochs, row), &fresh);
            moved(&used, &ring(), id, &epochs, row);
            moved(&ring(), &used, id, &epochs, row);
        }
    }
}

#[test]
fn more_columns_than_are_kept_ready() {
    let (used, epochs) = (ring(), epochs(1));
    for turn in 0..2 {
        for column in 0..MOST as u32 + 5 {
            let id = (turn, column, 0);
            let value: ArrayRef = Arc::new(Int64Array::from(vec![7]));
            let row = Int64Array::from(vec![1]);
            let sealed = used.seal_column(id, &epochs, &value, &row).unwrap();
            let opened = ring().open_column(id, &epochs, &sealed, &row, &DataType::Int64);
            assert_eq!(&opened.unwrap(), &value);
        }
    }
}

#[test]
fn rows_of_many_threads() {
    let (used, epochs) = (ring(), epochs(1));
    let wanted: Vec<_> = (0..8_u32)
        .map(|n| deterministic(&ring(), (n, 0, 0), "g", &epochs, 5))
        .collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in (0..8).chain(0..8) {
                    let actual = deterministic(&used, (n, 0, 0), "g", &epochs, 5);
                    assert_eq!(actual, wanted[n as usize]);
                }
            });
        }
    });
}

#[test]
fn a_recipe_of_one_row_after_another() {
    let id = (1, 2, 0);
    let eq = EqStep {
        id,
        group: String::new(),
        domain: "int".into(),
        joined: false,
        closed: true,
    };
    let tag = TagStep {
        label: "pk".into(),
        domains: vec!["int".into()],
    };
    let names = |names: &[&str]| names.iter().map(|n| Some((*n).to_owned())).collect();
    let recipe = Recipe::new(
        "row_id".into(),
        vec![
            (Arc::new(tag), vec![0], names(&["tag"])),
            (Arc::new(eq), vec![0], names(&["eq"])),
            (Arc::new(SumStep(id)), vec![0], names(&["l", "h", "f"])),
            (Arc::new(TextStep((1, 3, 0))), vec![1], names(&["words"])),
            (Arc::new(SealedStep(id)), vec![0], names(&["sealed"])),
        ],
    );
    let (used, epochs) = (ring(), epochs(1));
    for row in [3, (1 << 36) + 3, (2 << 36) + 3, 3] {
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![row]));
        let columns: [Declared; 2] = [
            (
                Field::new("n", DataType::Int64, true),
                Arc::new(Int64Array::from(vec![row])),
            ),
            (
                Field::new("t", DataType::Utf8, true),
                Arc::new(StringArray::from(vec!["some words"])),
            ),
        ];
        let seal = |ring: &KeyRing| recipe.seal(ring, &epochs, &columns, &ids).unwrap();
        let (actual, fresh) = (seal(&used), seal(&ring()));
        assert_eq!(actual.columns()[..7], fresh.columns()[..7]);
        let sealed = actual.column(7);
        let opened = ring().open_column(id, &epochs, sealed, &ids, &DataType::Int64);
        assert_eq!(&opened.unwrap(), &columns[0].1);
    }
}
