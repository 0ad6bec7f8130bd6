//! Rows of an answer, in PostgreSQL's binary form, as Arrow columns.

use crate::answer::Field;
use crate::error::{Error, Result};
use crate::numeric;
use crate::oid::{self, Oid};
use crate::values::{EPOCH_DAYS, EPOCH_US};
use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, FixedSizeBinaryBuilder, PrimitiveBuilder, StringBuilder,
};
use arrow_array::types::{
    Date32Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, UInt32Type,
};
use arrow_array::{ArrayRef, ArrowPrimitiveType};
use arrow_schema::{DataType, Field as ArrowField, TimeUnit};
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::DataRowBody;
use std::collections::HashMap;
use std::sync::Arc;

/// Arrow's offsets end there.
const MOST_BYTES: usize = i32::MAX as usize;

/// The rows of an answer, column by column.
pub struct Rows {
    /// What the columns are.
    pub fields: Vec<Field>,
    columns: Vec<Column>,
    count: usize,
}

enum Column {
    Bool(BooleanBuilder),
    Int2(PrimitiveBuilder<Int16Type>),
    Int4(PrimitiveBuilder<Int32Type>),
    Int8(PrimitiveBuilder<Int64Type>),
    Oid(PrimitiveBuilder<UInt32Type>),
    Float4(PrimitiveBuilder<Float32Type>),
    Float8(PrimitiveBuilder<Float64Type>),
    Date(PrimitiveBuilder<Date32Type>),
    Timestamp(PrimitiveBuilder<TimestampMicrosecondType>, bool),
    Text(StringBuilder, usize),
    Numeric(StringBuilder, usize),
    Uuid(FixedSizeBinaryBuilder),
    /// Any other type: its binary form.
    Other(BinaryBuilder, usize),
}

/// Columns begin with room for so many values, and bytes: most answers are a row or two.
const FEW: usize = 8;
const FEW_BYTES: usize = 256;

/// The Arrow field of a column with this name and type.
pub fn arrow_field(name: &str, type_: Oid) -> ArrowField {
    let uuid = ("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned());
    let metadata: HashMap<_, _> = if type_ == oid::UUID {
        [uuid].into()
    } else {
        HashMap::new()
    };
    let kind = Column::of(type_).finish().data_type().clone();
    ArrowField::new(name, kind, true).with_metadata(metadata)
}

/// A column of these values of one type, NULLs as None.
///
/// # Errors
/// [`Error::Protocol`] for bytes that are no value of the type.
pub fn column(type_: Oid, values: &[Option<&[u8]>]) -> Result<ArrayRef> {
    let mut column = Column::of(type_);
    for value in values {
        column.push(*value)?;
    }
    Ok(column.finish())
}

impl Rows {
    pub(crate) fn new(fields: Vec<Field>) -> Self {
        let columns = fields.iter().map(|field| Column::of(field.type_)).collect();
        Self {
            fields,
            columns,
            count: 0,
        }
    }

    pub(crate) fn push(&mut self, row: &DataRowBody) -> Result<()> {
        let mut ranges = row.ranges();
        let bytes = row.buffer();
        for column in &mut self.columns {
            let range = ranges.next().map_err(Error::protocol)?;
            let range = range.ok_or_else(|| Error::Protocol("a row with too few values".into()))?;
            let value = range.map(|range| bytes.get(range).ok_or(())).transpose();
            column.push(value.map_err(|()| Error::Protocol("a value beyond its row".into()))?)?;
        }
        if ranges.next().map_err(Error::protocol)?.is_some() {
            return Err(Error::Protocol("a row with too many values".into()));
        }
        self.count += 1;
        Ok(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The columns and what they are.
    pub fn finish(self) -> (Vec<Field>, Vec<ArrayRef>) {
        (
            self.fields,
            self.columns
                .into_iter()
                .map(|mut column| column.finish())
                .collect(),
        )
    }
}

impl Column {
    fn of(type_: Oid) -> Self {
        match type_ {
            oid::BOOL => Self::Bool(BooleanBuilder::with_capacity(FEW)),
            oid::INT2 => Self::Int2(PrimitiveBuilder::with_capacity(FEW)),
            oid::INT4 => Self::Int4(PrimitiveBuilder::with_capacity(FEW)),
            oid::INT8 => Self::Int8(PrimitiveBuilder::with_capacity(FEW)),
            oid::OID => Self::Oid(PrimitiveBuilder::with_capacity(FEW)),
            oid::FLOAT4 => Self::Float4(PrimitiveBuilder::with_capacity(FEW)),
            oid::FLOAT8 => Self::Float8(PrimitiveBuilder::with_capacity(FEW)),
            oid::DATE => Self::Date(PrimitiveBuilder::with_capacity(FEW)),
            oid::TIMESTAMP => Self::Timestamp(PrimitiveBuilder::with_capacity(FEW), false),
            oid::TIMESTAMPTZ => Self::Timestamp(PrimitiveBuilder::with_capacity(FEW), true),
            oid::NUMERIC => Self::Numeric(StringBuilder::with_capacity(FEW, FEW_BYTES), 0),
            oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME => {
                Self::Text(StringBuilder::with_capacity(FEW, FEW_BYTES), 0)
            }
            oid::UUID => Self::Uuid(FixedSizeBinaryBuilder::with_capacity(FEW, 16)),
            _ => Self::Other(BinaryBuilder::with_capacity(FEW, FEW_BYTES), 0),
        }
    }

    fn push(&mut self, value: Option<&[u8]>) -> Result<()> {
        match self {
            Self::Bool(to) => match value {
                None => to.append_null(),
                Some([byte @ (0 | 1)]) => to.append_value(*byte == 1),
                Some(_) => return Err(wrong()),
            },
            Self::Int2(to) => put(to, value, |b| Some(i16::from_be_bytes(b)))?,
            Self::Int4(to) => put(to, value, |b| Some(i32::from_be_bytes(b)))?,
            Self::Int8(to) => put(to, value, |b| Some(i64::from_be_bytes(b)))?,
            Self::Oid(to) => put(to, value, |b| Some(u32::from_be_bytes(b)))?,
            Self::Float4(to) => put(to, value, |b| Some(f32::from_be_bytes(b)))?,
            Self::Float8(to) => put(to, value, |b| Some(f64::from_be_bytes(b)))?,
            Self::Date(to) => put(to, value, |b| match i32::from_be_bytes(b) {
                i32::MAX => Some(i32::MAX),
                i32::MIN => Some(-i32::MAX),
                days => days.checked_add(EPOCH_DAYS),
            })?,
            Self::Timestamp(to, _) => put(to, value, |b| match i64::from_be_bytes(b) {
                i64::MAX => Some(i64::MAX),
                i64::MIN => Some(-i64::MAX),
                us => us.checked_add(EPOCH_US),
            })?,
            Self::Text(to, total) => match value {
                None => to.append_null(),
                Some(bytes) => {
                    room(total, bytes.len())?;
                    to.append_value(std::str::from_utf8(bytes).map_err(Error::protocol)?);
                }
            },
            Self::Numeric(to, total) => match value {
                None => to.append_null(),
                Some(bytes) => {
                    let text = numeric::text(bytes)?;
                    room(total, text.len())?;
                    to.append_value(text);
                }
            },
            Self::Uuid(to) => match value {
                None => to.append_null(),
                Some(bytes) => to.append_value(bytes).map_err(Error::protocol)?,
            },
            Self::Other(to, total) => match value {
                None => to.append_null(),
                Some(bytes) => {
                    room(total, bytes.len())?;
                    to.append_value(bytes);
                }
            },
        }
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Bool(column) => Arc::new(column.finish()),
            Self::Int2(column) => Arc::new(column.finish()),
            Self::Int4(column) => Arc::new(column.finish()),
            Self::Int8(column) => Arc::new(column.finish()),
            Self::Oid(column) => Arc::new(column.finish()),
            Self::Float4(column) => Arc::new(column.finish()),
            Self::Float8(column) => Arc::new(column.finish()),
            Self::Date(column) => Arc::new(column.finish()),
            Self::Timestamp(column, zoned) => {
                let zone = zoned.then(|| "UTC".into());
                let kind = DataType::Timestamp(TimeUnit::Microsecond, zone);
                Arc::new(column.finish().with_data_type(kind))
            }
            Self::Text(column, _) | Self::Numeric(column, _) => Arc::new(column.finish()),
            Self::Uuid(column) => Arc::new(column.finish()),
            Self::Other(column, _) => Arc::new(column.finish()),
        }
    }
}

fn put<T: ArrowPrimitiveType, const N: usize>(
    to: &mut PrimitiveBuilder<T>,
    value: Option<&[u8]>,
    read: impl Fn([u8; N]) -> Option<T::Native>,
) -> Result<()> {
    match value {
        None => to.append_null(),
        Some(bytes) => {
            let bytes = bytes.try_into().map_err(|_| wrong())?;
            to.append_value(read(bytes).ok_or_else(beyond)?);
        }
    }
    Ok(())
}

fn room(total: &mut usize, more: usize) -> Result<()> {
    *total += more;
    if *total > MOST_BYTES {
        return Err(Error::value(
            "a column of more than 2 GiB in one answer: fetch it in parts",
        ));
    }
    Ok(())
}

fn beyond() -> Error {
    Error::value("a date or time that Arrow does not reach: cast it to text")
}

fn wrong() -> Error {
    Error::Protocol("a value that is none of its type".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{arrow_field, column};
    use crate::oid;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Date32Type, TimestampMicrosecondType};
    use arrow_array::Array;
    use proptest::prelude::*;

    const TYPES: [u32; 16] = [
        oid::BOOL,
        oid::BYTEA,
        oid::NAME,
        oid::INT8,
        oid::INT2,
        oid::INT4,
        oid::TEXT,
        oid::OID,
        oid::FLOAT4,
        oid::FLOAT8,
        oid::DATE,
        oid::TIMESTAMP,
        oid::TIMESTAMPTZ,
        oid::NUMERIC,
        oid::UUID,
        600,
    ];

    proptest! {
        #[test]
        fn no_bytes_panic(
            type_ in prop::sample::select(&TYPES[..]),
            values in prop::collection::vec(
                prop::option::of(prop::collection::vec(any::<u8>(), 0..20)), 0..6),
        ) {
            let slices: Vec<_> = values.iter().map(Option::as_deref).collect();
            if let Ok(read) = column(type_, &slices) {
                prop_assert_eq!(read.len(), values.len());
                for (row, value) in values.iter().enumerate() {
                    prop_assert_eq!(read.is_null(row), value.is_none());
                }
            }
        }
    }

    #[test]
    fn infinities_and_the_first_day() {
        let days = |day: i32| day.to_be_bytes();
        let all = [days(0), days(i32::MAX), days(i32::MIN), days(-10_957)];
        let read = column(
            oid::DATE,
            &all.iter().map(|d| Some(&d[..])).collect::<Vec<_>>(),
        )
        .unwrap();
        assert_eq!(
            read.as_primitive::<Date32Type>().values(),
            &[10_957, i32::MAX, -i32::MAX, 0]
        );
        assert!(column(oid::DATE, &[Some(&days(i32::MAX - 1))]).is_err());
        let read = column(
            oid::TIMESTAMPTZ,
            &[Some(&(-946_684_800_000_000_i64).to_be_bytes())],
        );
        let read = read.unwrap();
        assert_eq!(read.as_primitive::<TimestampMicrosecondType>().value(0), 0);
        assert_eq!(
            read.data_type(),
            arrow_field("t", oid::TIMESTAMPTZ).data_type()
        );
    }
}
