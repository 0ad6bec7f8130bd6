//! The values of one column of COPY as an Arrow column: those that PostgreSQL takes as they are.
//! What it would cut, round, fill up or read otherwise is None here, and so is what it refuses.

use crate::numeric;
use crate::oid::{self, Oid};
use crate::texts::{self, DAYS, DAY_US};
use crate::values::{EPOCH_DAYS, EPOCH_US};
use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Decimal128Builder, FixedSizeBinaryBuilder, PrimitiveBuilder,
    StringBuilder,
};
use arrow_array::types::{
    Date32Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{ArrayRef, ArrowPrimitiveType};
use arrow_schema::{DataType, TimeUnit};
use std::sync::Arc;

/// Before the number in the modifier of a type.
const HEAD: i32 = 4;
const MOST_PRECISION: i32 = 36;

/// What a column is: the number of its type, and the modifier.
pub type CopyColumn = (Oid, i32);

/// A column that is read.
pub(crate) enum Reading {
    Bool(BooleanBuilder),
    Int2(PrimitiveBuilder<Int16Type>),
    Int4(PrimitiveBuilder<Int32Type>),
    Int8(PrimitiveBuilder<Int64Type>),
    Float4(PrimitiveBuilder<Float32Type>),
    Float8(PrimitiveBuilder<Float64Type>),
    Date(PrimitiveBuilder<Date32Type>),
    Timestamp(PrimitiveBuilder<TimestampMicrosecondType>),
    Zoned(PrimitiveBuilder<TimestampMicrosecondType>),
    /// Of so many characters at most.
    Text(StringBuilder, usize),
    /// Of so many characters, spaces at the end.
    Padded(StringBuilder, usize),
    /// Below this value, with so many digits behind the point.
    Decimal(Decimal128Builder, i128, u8),
    /// Of any size, as text.
    Numeric(StringBuilder),
    Uuid(FixedSizeBinaryBuilder),
    Bytes(BinaryBuilder),
}

impl Reading {
    /// For a column; None of a type that is not read here.
    pub(crate) fn of((type_, modifier): CopyColumn) -> Option<Self> {
        let length = usize::try_from(modifier - HEAD);
        Some(match (type_, modifier) {
            (oid::BOOL, -1) => Self::Bool(BooleanBuilder::new()),
            (oid::INT2, -1) => Self::Int2(PrimitiveBuilder::new()),
            (oid::INT4, -1) => Self::Int4(PrimitiveBuilder::new()),
            (oid::INT8, -1) => Self::Int8(PrimitiveBuilder::new()),
            (oid::FLOAT4, -1) => Self::Float4(PrimitiveBuilder::new()),
            (oid::FLOAT8, -1) => Self::Float8(PrimitiveBuilder::new()),
            (oid::DATE, -1) => Self::Date(PrimitiveBuilder::new()),
            (oid::TIMESTAMP, -1) => Self::Timestamp(PrimitiveBuilder::new()),
            (oid::TIMESTAMPTZ, -1) => Self::Zoned(PrimitiveBuilder::new()),
            (oid::TEXT | oid::VARCHAR, -1) => Self::Text(StringBuilder::new(), usize::MAX),
            (oid::VARCHAR, _) => Self::Text(StringBuilder::new(), length.ok()?),
            (oid::BPCHAR, HEAD..) => Self::Padded(StringBuilder::new(), length.ok()?),
            (oid::NUMERIC, -1) => Self::Numeric(StringBuilder::new()),
            (oid::NUMERIC, HEAD..) => Self::decimal(modifier - HEAD)?,
            (oid::UUID, -1) => Self::Uuid(FixedSizeBinaryBuilder::new(16)),
            (oid::BYTEA, -1) => Self::Bytes(BinaryBuilder::new()),
            _ => return None,
        })
    }

    fn decimal(modifier: i32) -> Option<Self> {
        let (precision, scale) = (modifier >> 16 & 0xFFFF, modifier & 0x7FF);
        (precision <= MOST_PRECISION && scale <= precision).then_some(())?;
        let (digits, scale) = (u8::try_from(precision).ok()?, u8::try_from(scale).ok()?);
        let kind = DataType::Decimal128(digits, i8::try_from(scale).ok()?);
        let limit = 10_i128.pow(u32::from(digits));
        let builder = Decimal128Builder::new().with_data_type(kind);
        Some(Self::Decimal(builder, limit, scale))
    }

    /// NULL.
    pub(crate) fn null(&mut self) {
        match self {
            Self::Bool(to) => to.append_null(),
            Self::Int2(to) => to.append_null(),
            Self::Int4(to) => to.append_null(),
            Self::Int8(to) => to.append_null(),
            Self::Float4(to) => to.append_null(),
            Self::Float8(to) => to.append_null(),
            Self::Date(to) => to.append_null(),
            Self::Timestamp(to) | Self::Zoned(to) => to.append_null(),
            Self::Text(to, _) | Self::Padded(to, _) | Self::Numeric(to) => to.append_null(),
            Self::Decimal(to, ..) => to.append_null(),
            Self::Uuid(to) => to.append_null(),
            Self::Bytes(to) => to.append_null(),
        }
    }

    /// A value's text; it is UTF-8 without NUL.
    pub(crate) fn text(&mut self, text: &str) -> Option<()> {
        let bytes = text.as_bytes();
        match self {
            Self::Bool(to) => to.append_value(match bytes {
                b"t" | b"true" => true,
                b"f" | b"false" => false,
                _ => return None,
            }),
            Self::Int2(to) => to.append_value(texts::whole(bytes)?.try_into().ok()?),
            Self::Int4(to) => to.append_value(texts::whole(bytes)?.try_into().ok()?),
            Self::Int8(to) => to.append_value(texts::whole(bytes)?),
            Self::Float4(to) => to.append_value(texts::single(bytes)?),
            Self::Float8(to) => to.append_value(texts::double(bytes)?),
            Self::Date(to) => to.append_value(texts::day(bytes)?.try_into().ok()?),
            Self::Timestamp(to) => to.append_value(texts::moment(bytes)?.try_into().ok()?),
            Self::Zoned(to) => to.append_value(texts::zoned(bytes)?.try_into().ok()?),
            Self::Text(to, most) => {
                fits(text, *most)?;
                to.append_value(text);
            }
            Self::Padded(to, most) => padded(to, text, *most)?,
            Self::Decimal(to, limit, scale) => {
                let value = texts::decimal(bytes, *scale)?;
                (value.abs() < *limit).then_some(())?;
                to.append_value(value);
            }
            Self::Numeric(to) => {
                is_canonical(bytes).then_some(())?;
                to.append_value(text);
            }
            Self::Uuid(to) => to.append_value(texts::uuid(bytes)?).ok()?,
            Self::Bytes(to) => to.append_value(texts::hex(bytes.strip_prefix(b"\\x")?)?),
        }
        Some(())
    }

    /// A value in binary form.
    pub(crate) fn binary(&mut self, bytes: &[u8]) -> Option<()> {
        match self {
            Self::Bool(to) => match bytes {
                [byte @ (0 | 1)] => to.append_value(*byte == 1),
                _ => return None,
            },
            Self::Int2(to) => put(to, bytes, i16::from_be_bytes)?,
            Self::Int4(to) => put(to, bytes, i32::from_be_bytes)?,
            Self::Int8(to) => put(to, bytes, i64::from_be_bytes)?,
            Self::Float4(to) => put(to, bytes, f32::from_be_bytes)?,
            Self::Float8(to) => put(to, bytes, f64::from_be_bytes)?,
            Self::Date(to) => {
                let days = i32::from_be_bytes(bytes.try_into().ok()?).checked_add(EPOCH_DAYS)?;
                DAYS.contains(&i128::from(days)).then_some(())?;
                to.append_value(days);
            }
            Self::Timestamp(to) | Self::Zoned(to) => {
                let us = i64::from_be_bytes(bytes.try_into().ok()?).checked_add(EPOCH_US)?;
                let day = i128::from(us).div_euclid(DAY_US);
                DAYS.contains(&day).then_some(())?;
                to.append_value(us);
            }
            Self::Text(..) | Self::Padded(..) => {
                let text = std::str::from_utf8(bytes).ok()?;
                (!bytes.contains(&0)).then_some(())?;
                self.text(text)?;
            }
            Self::Decimal(..) | Self::Numeric(..) => {
                let text = numeric::text(bytes).ok()?;
                self.text(&text)?;
            }
            Self::Uuid(to) => to.append_value(bytes).ok()?,
            Self::Bytes(to) => to.append_value(bytes),
        }
        Some(())
    }

    /// The column.
    pub(crate) fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Bool(to) => Arc::new(to.finish()),
            Self::Int2(to) => Arc::new(to.finish()),
            Self::Int4(to) => Arc::new(to.finish()),
            Self::Int8(to) => Arc::new(to.finish()),
            Self::Float4(to) => Arc::new(to.finish()),
            Self::Float8(to) => Arc::new(to.finish()),
            Self::Date(to) => Arc::new(to.finish()),
            Self::Timestamp(to) => Arc::new(to.finish()),
            Self::Zoned(to) => {
                let kind = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
                Arc::new(to.finish().with_data_type(kind))
            }
            Self::Text(to, _) | Self::Padded(to, _) | Self::Numeric(to) => Arc::new(to.finish()),
            Self::Decimal(to, ..) => Arc::new(to.finish()),
            Self::Uuid(to) => Arc::new(to.finish()),
            Self::Bytes(to) => Arc::new(to.finish()),
        }
    }
}

fn put<T: ArrowPrimitiveType, const N: usize>(
    to: &mut PrimitiveBuilder<T>,
    bytes: &[u8],
    read: impl Fn([u8; N]) -> T::Native,
) -> Option<()> {
    to.append_value(read(bytes.try_into().ok()?));
    Some(())
}

fn fits(text: &str, most: usize) -> Option<()> {
    (text.len() <= most || text.chars().count() <= most).then_some(())
}

fn padded(to: &mut StringBuilder, text: &str, length: usize) -> Option<()> {
    let missing = length.checked_sub(text.chars().count())?;
    if missing == 0 {
        to.append_value(text);
    } else {
        to.append_value(format!("{text}{}", " ".repeat(missing)));
    }
    Some(())
}

/// Whether a number is written as numeric prints it.
fn is_canonical(bytes: &[u8]) -> bool {
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let mut parts = digits.splitn(2, |byte| *byte == b'.');
    let (whole, fraction) = (parts.next().unwrap_or_default(), parts.next());
    let is_zero = digits.iter().all(|byte| b"0.".contains(byte));
    !whole.is_empty()
        && digits.len() <= 1_000
        && texts::is_digits(whole)
        && (whole == b"0" || whole[0] != b'0')
        && fraction.is_none_or(|part| !part.is_empty() && texts::is_digits(part))
        && !(is_zero && digits.len() < bytes.len())
}
