//! What a query by equality does with the rows that were opened: decides them by its conditions,
//! puts them in order, and takes as many as it says; as PostgreSQL does, for types of which no
//! setting tells how.

use crate::keyring::KeyRing;
use crate::proxy_constants::{Constants, GivenConstant, Source};
use crate::raw::Raw;
use crate::raw_messages::{Given, Kind};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_select::take::take;
use louver_postgres::Value;
use pyo3::prelude::*;
use std::cmp::Ordering;
use std::sync::atomic::{AtomicU32, Ordering as Memory};

/// Opened rows are in memory up to so many bytes; beyond that Python reads them.
const MOST_BYTES: usize = 16 << 20;
/// At most 2 to the power of this many of the next queries are Python's at once.
const LONGEST_WAIT: u32 = 8;
const BLANK: char = ' ';

/// A column among the opened ones, what it is compared as, whether without the blanks at its end,
/// and the values of which it has one.
type GivenCondition = (usize, Kind, bool, Vec<Source>);
/// A column, whether without the blanks at its end, whether the largest go first, and NULLs.
type GivenOrder = (usize, bool, bool, bool);

/// How a query goes on behind its text.
#[pyclass(frozen, module = "louver._rust.proxy")]
pub(crate) struct Finish {
    constants: Constants,
    conditions: Vec<GivenCondition>,
    order: Vec<GivenOrder>,
    limit: Option<Source>,
    offset: Option<Source>,
    /// Whether the text holds under one version of the catalog only.
    pub(crate) looks_again: bool,
    falls: Falls,
}

/// Answers were too large: how many in a row, and how many queries are Python's therefore.
#[derive(Default)]
struct Falls {
    count: AtomicU32,
    waits: AtomicU32,
}

/// The values of one run.
pub(crate) struct Bound {
    pub(crate) sent: Vec<Value>,
    conditions: Vec<Vec<Raw>>,
    limit: usize,
    offset: usize,
}

#[pymethods]
impl Finish {
    /// What the text is sent with, the conditions that rows meet, the columns that they are put in
    /// order by, how many are taken behind how many, and whether the version of the catalog is to
    /// be looked at behind the text again.
    #[new]
    fn new(
        constants: Vec<GivenConstant>,
        conditions: Vec<GivenCondition>,
        order: Vec<GivenOrder>,
        limit: Option<Source>,
        offset: Option<Source>,
        looks_again: bool,
    ) -> Self {
        Self {
            constants: Constants::new(constants),
            conditions,
            order,
            limit,
            offset,
            looks_again,
            falls: Falls::default(),
        }
    }
}

impl Finish {
    /// With the values of a statement; None where one is not taken as it is.
    pub(crate) fn bound(&self, ring: &KeyRing, given: &Given<'_>) -> Option<Bound> {
        self.falls.is_over().then_some(())?;
        let count = |source: &Option<Source>, none: usize| match source {
            None => Some(none),
            Some(source) => match source.value(Kind::Whole, given)? {
                Raw::Whole(number) => usize::try_from(number).ok(),
                _ => None,
            },
        };
        let conditions = self.conditions.iter().map(|(_, kind, _, sources)| {
            let values = sources.iter().map(|source| source.value(*kind, given));
            values.collect::<Option<Vec<Raw>>>()
        });
        Some(Bound {
            conditions: conditions.collect::<Option<_>>()?,
            limit: count(&self.limit, usize::MAX)?,
            offset: count(&self.offset, 0)?,
            sent: self.constants.sent(ring, given)?,
        })
    }

    /// The rows of the answer, of opened columns behind the row ids; None where they are too large,
    /// or a value is not one that is compared here.
    pub(crate) fn rows(&self, opened: &[ArrayRef], bound: &Bound) -> Option<UInt32Array> {
        let (row_ids, columns) = opened.split_first()?;
        let bytes: usize = opened.iter().map(|c| c.get_buffer_memory_size()).sum();
        if bytes > MOST_BYTES {
            self.fell();
            return None;
        }
        self.falls.ended();
        let mut rows: Vec<u32> = (0..u32::try_from(row_ids.len()).ok()?).collect();
        for ((at, kind, trims, _), values) in self.conditions.iter().zip(&bound.conditions) {
            let column = columns.get(*at)?;
            let wanted: Vec<Raw> = values
                .iter()
                .map(|v| comparable(v.clone(), *trims))
                .collect();
            is_compared(column, *kind).then_some(())?;
            let mut fits = Vec::with_capacity(rows.len());
            for row in rows {
                let value = comparable(Raw::of(column, row as usize)?, *trims);
                if value != Raw::Null && wanted.contains(&value) {
                    fits.push(row);
                }
            }
            rows = fits;
        }
        let rows = self.in_order(rows, row_ids, columns)?;
        let rows = rows.into_iter().skip(bound.offset).take(bound.limit);
        Some(UInt32Array::from_iter_values(rows))
    }

    /// More rows than are taken here.
    pub(crate) fn fell(&self) {
        self.falls.add();
    }

    fn in_order(
        &self,
        rows: Vec<u32>,
        row_ids: &ArrayRef,
        columns: &[ArrayRef],
    ) -> Option<Vec<u32>> {
        let row_ids = row_ids.as_primitive_opt::<Int64Type>()?;
        let mut sorted: Vec<(Vec<Raw>, i64, u32)> = Vec::with_capacity(rows.len());
        for row in rows {
            let at = row as usize;
            let mut values = Vec::with_capacity(self.order.len());
            for (column, trims, ..) in &self.order {
                values.push(comparable(Raw::of(columns.get(*column)?, at)?, *trims));
            }
            sorted.push((values, row_ids.value(at), row));
        }
        // Of equal rows the older go first, so that the same query gives the same again.
        sorted.sort_by(|(left, older, _), (right, newer, _)| {
            let pairs = left.iter().zip(right).zip(&self.order);
            let orders = pairs.map(|((left, right), (.., descends, nulls_first))| {
                compared(left, right, *descends, *nulls_first)
            });
            let first = orders.into_iter().find(|order| order.is_ne());
            first.unwrap_or_else(|| older.cmp(newer))
        });
        Some(sorted.into_iter().map(|item| item.2).collect())
    }
}

impl Falls {
    fn add(&self) {
        let count = self.count.fetch_add(1, Memory::Relaxed).min(LONGEST_WAIT);
        self.waits.store(1 << count, Memory::Relaxed);
    }

    fn ended(&self) {
        self.count.store(0, Memory::Relaxed);
    }

    /// Whether no query is Python's; else one less is.
    fn is_over(&self) -> bool {
        let less = |waits: u32| waits.checked_sub(1);
        let (load, store) = (Memory::Relaxed, Memory::Relaxed);
        self.waits.fetch_update(load, store, less).is_err()
    }
}

/// These rows of a column.
pub(crate) fn taken(column: &ArrayRef, rows: &UInt32Array) -> Option<ArrayRef> {
    take(column.as_ref(), rows, None).ok()
}

/// Whether a column has values as those of a kind are: numbers in the same units.
fn is_compared(column: &ArrayRef, kind: Kind) -> bool {
    use arrow_schema::{DataType as D, TimeUnit};
    matches!(
        (kind, column.data_type()),
        (Kind::Whole, D::Int16 | D::Int32 | D::Int64)
            | (Kind::Truth, D::Boolean)
            | (Kind::Text | Kind::Short(..), D::Utf8)
            | (Kind::Bytes, D::Binary)
            | (Kind::Uuid, D::FixedSizeBinary(16))
            | (Kind::Date, D::Date32)
            | (
                Kind::Moment | Kind::MomentOfZone,
                D::Timestamp(TimeUnit::Microsecond, _)
            )
    ) || matches!((kind, column.data_type()),
        (Kind::Decimal(scale), D::Decimal128(_, own)) if i8::try_from(scale) == Ok(*own))
}

/// A value as it is compared.
fn comparable(value: Raw, trims: bool) -> Raw {
    match value {
        Raw::Text(text) if trims => Raw::Text(text.trim_end_matches(BLANK).to_owned()),
        value => value,
    }
}

/// Two values of one column.
fn compared(left: &Raw, right: &Raw, descends: bool, nulls_first: bool) -> Ordering {
    let order = match (left, right) {
        (Raw::Null, Raw::Null) => return Ordering::Equal,
        (Raw::Null, _) if nulls_first => return Ordering::Less,
        (Raw::Null, _) => return Ordering::Greater,
        (_, Raw::Null) if nulls_first => return Ordering::Greater,
        (_, Raw::Null) => return Ordering::Less,
        (Raw::Truth(left), Raw::Truth(right)) => left.cmp(right),
        (Raw::Whole(left), Raw::Whole(right)) => left.cmp(right),
        (Raw::Text(left), Raw::Text(right)) => left.as_bytes().cmp(right.as_bytes()),
        (Raw::Bytes(left), Raw::Bytes(right)) => left.cmp(right),
        // Python lists columns of one of these kinds alone.
        _ => Ordering::Equal,
    };
    if descends {
        order.reverse()
    } else {
        order
    }
}
