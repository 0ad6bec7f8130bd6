//! Values of a statement, and of Arrow columns, in the form that PostgreSQL reads.

use crate::error::{Error, Result};
use crate::numeric;
use crate::oid::{self, Oid};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Int8Type, TimestampMicrosecondType, UInt16Type, UInt32Type, UInt64Type, UInt8Type,
};
use arrow_array::{Array, ArrowPrimitiveType, PrimitiveArray};
use arrow_schema::{DataType, TimeUnit};

/// Days and microseconds between 1970, where Arrow begins to count, and 2000.
pub(crate) const EPOCH_DAYS: i32 = 10_957;
pub(crate) const EPOCH_US: i64 = 946_684_800_000_000;

/// One bound value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// NULL of a type that the server infers.
    Null,
    /// NULL of a type.
    NullOf(Oid),
    /// boolean
    Bool(bool),
    /// bigint
    Int8(i64),
    /// double precision
    Float8(f64),
    /// A text of a type that the server infers.
    Text(String),
    /// A text of a type.
    Typed(Oid, String),
    /// bytea
    Bytes(Vec<u8>),
    /// A value of a type in its binary form.
    Binary(Oid, Vec<u8>),
}

impl Value {
    pub(crate) fn oid(&self) -> Oid {
        match self {
            Self::Null | Self::Text(_) => oid::UNKNOWN,
            Self::Bool(_) => oid::BOOL,
            Self::Int8(_) => oid::INT8,
            Self::Float8(_) => oid::FLOAT8,
            Self::Bytes(_) => oid::BYTEA,
            Self::Binary(oid, _) | Self::Typed(oid, _) | Self::NullOf(oid) => *oid,
        }
    }

    /// 0 is text, 1 binary.
    pub(crate) fn format(&self) -> i16 {
        i16::from(!matches!(self, Self::Text(_) | Self::Typed(..)))
    }

    /// How many bytes are sent of it.
    pub fn size(&self) -> usize {
        match self {
            Self::Null | Self::NullOf(_) => 0,
            Self::Bool(_) => 1,
            Self::Int8(_) | Self::Float8(_) => 8,
            Self::Text(value) | Self::Typed(_, value) => value.len(),
            Self::Bytes(value) | Self::Binary(_, value) => value.len(),
        }
    }

    pub(crate) fn write(&self, out: &mut bytes::BytesMut) -> bool {
        match self {
            Self::Null | Self::NullOf(_) => return false,
            Self::Bool(value) => out.extend_from_slice(&[u8::from(*value)]),
            Self::Int8(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::Float8(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::Text(value) | Self::Typed(_, value) => out.extend_from_slice(value.as_bytes()),
            Self::Bytes(value) | Self::Binary(_, value) => out.extend_from_slice(value),
        }
        true
    }
}

/// Writes the values of one Arrow column as a type of PostgreSQL.
pub(crate) type Writer<'a> = Box<dyn Fn(usize, &mut Vec<u8>) -> Result<()> + 'a>;

/// The writer of a column, or an error that names both types.
pub(crate) fn writer<'a>(array: &'a dyn Array, type_: Oid) -> Result<Writer<'a>> {
    let refused = || {
        let arrow = array.data_type();
        Error::value(format!(
            "a column of Arrow's type {arrow} cannot be sent as type {type_}"
        ))
    };
    Ok(match (array.data_type(), type_) {
        (DataType::Boolean, oid::BOOL) => {
            let values = array.as_boolean();
            Box::new(|row, out| {
                out.push(u8::from(values.value(row)));
                Ok(())
            })
        }
        (DataType::Int8, _) => integers::<Int8Type>(array, type_).ok_or_else(refused)?,
        (DataType::Int16, _) => integers::<Int16Type>(array, type_).ok_or_else(refused)?,
        (DataType::Int32, _) => integers::<Int32Type>(array, type_).ok_or_else(refused)?,
        (DataType::Int64, _) => integers::<Int64Type>(array, type_).ok_or_else(refused)?,
        (DataType::UInt8, _) => integers::<UInt8Type>(array, type_).ok_or_else(refused)?,
        (DataType::UInt16, _) => integers::<UInt16Type>(array, type_).ok_or_else(refused)?,
        (DataType::UInt32, _) => integers::<UInt32Type>(array, type_).ok_or_else(refused)?,
        // The same 64 bits: who reads a code knows what is above 2^63.
        (DataType::UInt64, oid::INT8) => fixed(array.as_primitive::<UInt64Type>(), |v: u64| {
            Some(v.to_be_bytes())
        }),
        (DataType::Float32, oid::FLOAT4) => fixed(array.as_primitive::<Float32Type>(), |v: f32| {
            Some(v.to_be_bytes())
        }),
        (DataType::Float64, oid::FLOAT8) => fixed(array.as_primitive::<Float64Type>(), |v: f64| {
            Some(v.to_be_bytes())
        }),
        (DataType::Date32, oid::DATE) => fixed(array.as_primitive::<Date32Type>(), day),
        (DataType::Timestamp(TimeUnit::Microsecond, _), oid::TIMESTAMP | oid::TIMESTAMPTZ) => {
            fixed(array.as_primitive::<TimestampMicrosecondType>(), moment)
        }
        (DataType::Decimal128(_, scale), oid::NUMERIC) => {
            let scale = u8::try_from(*scale).map_err(|_| refused())?;
            let values = array.as_primitive::<Decimal128Type>();
            Box::new(move |row, out| {
                numeric::bytes_of(values.value(row), scale, out);
                Ok(())
            })
        }
        _ => bytes(array, type_).ok_or_else(refused)?,
    })
}

/// Days since 2000; the infinities are the type's limits on both sides.
fn day(days: i32) -> Option<[u8; 4]> {
    let days = match days {
        i32::MAX => i32::MAX,
        _ if days <= -i32::MAX => i32::MIN,
        _ => days.checked_sub(EPOCH_DAYS)?,
    };
    Some(days.to_be_bytes())
}

fn moment(us: i64) -> Option<[u8; 8]> {
    let us = match us {
        i64::MAX => i64::MAX,
        _ if us <= -i64::MAX => i64::MIN,
        _ => us.checked_sub(EPOCH_US)?,
    };
    Some(us.to_be_bytes())
}

fn bytes(array: &dyn Array, type_: Oid) -> Option<Writer<'_>> {
    let is_text = matches!(type_, oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME);
    Some(match array.data_type() {
        DataType::Utf8 if type_ == oid::NUMERIC => {
            let values = array.as_string::<i32>();
            Box::new(|row, out| {
                numeric::bytes_of_text(values.value(row), out)
                    .ok_or_else(|| Error::value("a text that is no number"))
            })
        }
        DataType::Utf8 if is_text => {
            let values = array.as_string::<i32>();
            Box::new(|row, out| text(values.value(row), out))
        }
        DataType::LargeUtf8 if is_text => {
            let values = array.as_string::<i64>();
            Box::new(|row, out| text(values.value(row), out))
        }
        DataType::Utf8View if is_text => {
            let values = array.as_string_view();
            Box::new(|row, out| text(values.value(row), out))
        }
        DataType::Binary if !is_text => {
            let values = array.as_binary::<i32>();
            Box::new(|row, out| {
                out.extend_from_slice(values.value(row));
                Ok(())
            })
        }
        DataType::LargeBinary if !is_text => {
            let values = array.as_binary::<i64>();
            Box::new(|row, out| {
                out.extend_from_slice(values.value(row));
                Ok(())
            })
        }
        DataType::FixedSizeBinary(size)
            if type_ == oid::BYTEA || (type_ == oid::UUID && *size == 16) =>
        {
            let values = array.as_fixed_size_binary();
            Box::new(|row, out| {
                out.extend_from_slice(values.value(row));
                Ok(())
            })
        }
        _ => return None,
    })
}

fn text(value: &str, out: &mut Vec<u8>) -> Result<()> {
    if value.as_bytes().contains(&0) {
        return Err(Error::value("PostgreSQL's texts hold no NUL"));
    }
    out.extend_from_slice(value.as_bytes());
    Ok(())
}

fn integers<T>(array: &dyn Array, type_: Oid) -> Option<Writer<'_>>
where
    T: ArrowPrimitiveType,
    i64: From<T::Native>,
{
    let values = array.as_primitive::<T>();
    Some(match type_ {
        oid::INT2 => fixed(values, |v| {
            i16::try_from(i64::from(v)).ok().map(i16::to_be_bytes)
        }),
        oid::INT4 => fixed(values, |v| {
            i32::try_from(i64::from(v)).ok().map(i32::to_be_bytes)
        }),
        oid::INT8 => fixed(values, |v| Some(i64::from(v).to_be_bytes())),
        _ => return None,
    })
}

fn fixed<'a, T: ArrowPrimitiveType, const N: usize>(
    values: &'a PrimitiveArray<T>,
    bytes: impl Fn(T::Native) -> Option<[u8; N]> + 'a,
) -> Writer<'a> {
    Box::new(move |row, out| {
        let value = bytes(values.value(row));
        out.extend_from_slice(&value.ok_or_else(|| Error::value("a value is out of range"))?);
        Ok(())
    })
}
