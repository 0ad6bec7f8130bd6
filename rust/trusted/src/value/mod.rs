//! Arrow values as bytes and back (`spec/rnd.md`, "Values").
//!
//! An element is a flag byte (class, and whether it is NULL) and then either as many bytes as its
//! type has (a NULL has zeros), or a length and a body. A stored value of a type without fixed
//! length is padded with zeros to a multiple of [`STEP`], so that its length reveals little and a
//! NULL looks like a short value.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub(crate) use decode::Builder;
pub(crate) use encode::Encoder;

use crate::error::{Error, Result};
use arrow_schema::DataType;

/// Padding step of values of variable length, in bytes.
pub(crate) const STEP: usize = 16;
/// Deepest nesting of a type.
const MAX_DEPTH: usize = 64;

/// The kind of value that a flag byte names; shifted left by one, bit 0 says NULL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Class {
    Null = 1,
    Bool = 2,
    Fixed = 3,
    Text = 4,
    Bytes = 5,
    List = 6,
    Struct = 7,
    Map = 8,
    Union = 9,
}

impl Class {
    pub(crate) fn flag(self, null: bool) -> u8 {
        (self as u8) << 1 | u8::from(null)
    }
}

/// The class of a type.
///
/// # Errors
/// [`Error::Value`] for a type that has none.
pub(crate) fn class_of(data_type: &DataType) -> Result<Class> {
    use DataType as T;
    Ok(match data_type {
        T::Null => Class::Null,
        T::Boolean => Class::Bool,
        T::Utf8 | T::LargeUtf8 | T::Utf8View => Class::Text,
        T::Binary | T::LargeBinary | T::BinaryView => Class::Bytes,
        T::List(_) | T::LargeList(_) | T::FixedSizeList(_, _) => Class::List,
        T::Struct(_) => Class::Struct,
        T::Map(_, _) => Class::Map,
        T::Union(_, _) => Class::Union,
        T::Dictionary(_, values) => class_of(values)?,
        _ if width_of(data_type).is_some() => Class::Fixed,
        _ => return Err(unsupported(data_type)),
    })
}

/// Bytes of a type whose values all have the same length, without the flag byte.
pub(crate) fn width_of(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::Null => Some(0),
        DataType::Boolean => Some(1),
        DataType::FixedSizeBinary(width) => usize::try_from(*width).ok(),
        DataType::Dictionary(_, values) => width_of(values),
        _ => data_type.primitive_width(),
    }
}

/// The type with dictionaries replaced by their values, at every depth.
pub(crate) fn plain_type(data_type: &DataType) -> Result<DataType> {
    plain(data_type, 0)
}

fn plain(data_type: &DataType, depth: usize) -> Result<DataType> {
    use arrow_schema::{Field, FieldRef, Fields, UnionFields};
    use DataType as T;
    if depth > MAX_DEPTH {
        return Err(Error::value(format!(
            "a type is nested more than {MAX_DEPTH} deep"
        )));
    }
    let convert = |field: &FieldRef| -> Result<FieldRef> {
        let inner = plain(field.data_type(), depth + 1)?;
        Ok(FieldRef::new(Field::clone(field).with_data_type(inner)))
    };
    class_of(data_type)?;
    Ok(match data_type {
        T::Dictionary(_, values) => plain(values, depth + 1)?,
        T::List(field) => T::List(convert(field)?),
        T::LargeList(field) => T::LargeList(convert(field)?),
        T::FixedSizeList(field, size) => T::FixedSizeList(convert(field)?, *size),
        T::Map(field, sorted) => T::Map(convert(field)?, *sorted),
        T::Struct(fields) => T::Struct(fields.iter().map(convert).collect::<Result<Fields>>()?),
        T::Union(fields, mode) => {
            let pairs = fields.iter().map(|(id, f)| convert(f).map(|f| (id, f)));
            T::Union(pairs.collect::<Result<UnionFields>>()?, *mode)
        }
        other => other.clone(),
    })
}

pub(crate) fn unsupported(data_type: &DataType) -> Error {
    Error::value(format!("values of Arrow type {data_type} cannot be sealed"))
}
