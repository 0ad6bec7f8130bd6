//! An Arrow column as one bound value: an array of PostgreSQL's, for `unnest($1)`.

use crate::error::{Error, Result};
use crate::oid::{self, Oid};
use crate::values::{writer, Value};
use arrow_array::Array;
use arrow_schema::{DataType, TimeUnit};

impl Value {
    /// The value of one row, of the type that holds all values of Arrow's; None where a column has
    /// no such type.
    ///
    /// # Errors
    /// [`Error::Value`] for a value that the type does not hold.
    pub fn of_row(column: &dyn Array, row: usize) -> Result<Option<Self>> {
        let Some(type_) = type_of(column.data_type()) else {
            return Ok(None);
        };
        if column.is_null(row) {
            return Ok(Some(Self::NullOf(type_)));
        }
        let mut out = Vec::new();
        writer(column, type_)?(row, &mut out)?;
        Ok(Some(Self::Binary(type_, out)))
    }

    /// The array of a column's values, whose items have this type.
    ///
    /// # Errors
    /// [`Error::Value`] for types that do not fit, or more than the protocol can say.
    pub fn array(column: &dyn Array, item: Oid) -> Result<Self> {
        let of = oid::array_of(item)
            .ok_or_else(|| Error::value(format!("no arrays of type {item} are sent")))?;
        let write = writer(column, item)?;
        let too_many = || Error::value("more than an array of PostgreSQL's can hold");
        let count = i32::try_from(column.len()).map_err(|_| too_many())?;
        let mut out = Vec::new();
        let dimensions = i32::from(count > 0);
        for word in [dimensions, i32::from(column.null_count() > 0), item as i32] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        if count > 0 {
            out.extend_from_slice(&count.to_be_bytes());
            out.extend_from_slice(&1_i32.to_be_bytes());
        }
        for row in 0..column.len() {
            sized(column, row, &write, &mut out)?;
        }
        if out.len() > i32::MAX as usize {
            return Err(too_many());
        }
        Ok(Self::Binary(of, out))
    }
}

fn type_of(data_type: &DataType) -> Option<Oid> {
    Some(match data_type {
        DataType::Boolean => oid::BOOL,
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => oid::INT2,
        DataType::UInt16 | DataType::Int32 => oid::INT4,
        DataType::UInt32 | DataType::Int64 | DataType::UInt64 => oid::INT8,
        DataType::Float32 => oid::FLOAT4,
        DataType::Float64 => oid::FLOAT8,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => oid::TEXT,
        DataType::FixedSizeBinary(16) => oid::UUID,
        DataType::Binary | DataType::LargeBinary | DataType::FixedSizeBinary(_) => oid::BYTEA,
        DataType::Date32 => oid::DATE,
        DataType::Decimal128(_, 0..) => oid::NUMERIC,
        DataType::Timestamp(TimeUnit::Microsecond, None) => oid::TIMESTAMP,
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => oid::TIMESTAMPTZ,
        _ => return None,
    })
}

/// A value behind its length; NULL has the length −1.
pub(crate) fn sized(
    column: &dyn Array,
    row: usize,
    write: &crate::values::Writer<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    if column.is_null(row) {
        out.extend_from_slice(&(-1_i32).to_be_bytes());
        return Ok(());
    }
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(row, out)?;
    let length = i32::try_from(out.len() - start - 4)
        .map_err(|_| Error::value("a value of more than 2 GiB"))?;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}
