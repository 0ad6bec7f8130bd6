//! Single values in the form in which Arrow stores them: days, microseconds and unscaled numbers
//! are whole numbers, UUIDs bytes. Between Arrow, Python (`raw_values`) and messages
//! (`raw_messages`).

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use arrow_array::{
    new_null_array, Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array,
    FixedSizeBinaryArray, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array,
    StringArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, TimeUnit};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// A value. It has no `Debug`: it may be a secret.
#[derive(Clone, PartialEq)]
pub(crate) enum Raw {
    Null,
    Truth(bool),
    Whole(i128),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Raw {
    /// Whether values of a type are taken.
    pub(crate) fn has(data_type: &DataType) -> bool {
        matches!(
            data_type,
            DataType::Boolean
                | DataType::Int16
                | DataType::Int32
                | DataType::Int64
                | DataType::Date32
                | DataType::Timestamp(TimeUnit::Microsecond, _)
                | DataType::Decimal128(..)
                | DataType::Float32
                | DataType::Float64
                | DataType::Utf8
                | DataType::Binary
                | DataType::FixedSizeBinary(16)
        )
    }

    /// The value of a row; None of a type whose values are not taken.
    pub(crate) fn of(column: &ArrayRef, row: usize) -> Option<Self> {
        if column.is_null(row) {
            return Raw::has(column.data_type()).then_some(Self::Null);
        }
        Some(match column.data_type() {
            DataType::Boolean => Self::Truth(column.as_boolean().value(row)),
            DataType::Int16 => Self::Whole(column.as_primitive::<Int16Type>().value(row).into()),
            DataType::Int32 => Self::Whole(column.as_primitive::<Int32Type>().value(row).into()),
            DataType::Int64 => Self::Whole(column.as_primitive::<Int64Type>().value(row).into()),
            DataType::Date32 => Self::Whole(column.as_primitive::<Date32Type>().value(row).into()),
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                let column = column.as_primitive::<TimestampMicrosecondType>();
                Self::Whole(column.value(row).into())
            }
            DataType::Decimal128(..) => {
                Self::Whole(column.as_primitive::<Decimal128Type>().value(row))
            }
            DataType::Float32 => {
                Self::Double(column.as_primitive::<Float32Type>().value(row).into())
            }
            DataType::Float64 => Self::Double(column.as_primitive::<Float64Type>().value(row)),
            DataType::Utf8 => Self::Text(column.as_string::<i32>().value(row).to_owned()),
            DataType::Binary => Self::Bytes(column.as_binary::<i32>().value(row).to_owned()),
            DataType::FixedSizeBinary(16) => {
                Self::Bytes(column.as_fixed_size_binary().value(row).to_owned())
            }
            _ => return None,
        })
    }

    /// What a column of few values is known to have it by: the begin of a hash of what Python
    /// prints of it (`executor/cardinality.py`); None where only Python tells.
    pub(crate) fn mark(&self, data_type: &DataType) -> Option<String> {
        let printed = match (self, data_type) {
            (Self::Truth(value), _) => if *value { "True" } else { "False" }.to_owned(),
            (Self::Whole(value), DataType::Decimal128(_, scale)) => {
                format!("Decimal('{}')", decimal(*value, *scale)?)
            }
            (Self::Whole(value), _) => value.to_string(),
            (Self::Text(value), _) => printed(value)?,
            _ => return None,
        };
        let hash = Sha256::digest(printed);
        Some(
            hash.iter()
                .take(8)
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        )
    }

    /// The value as a column of one row; None where it is not of this type.
    pub(crate) fn array(&self, data_type: &DataType) -> Option<ArrayRef> {
        Some(match (self, data_type) {
            (Self::Null, _) => new_null_array(data_type, 1),
            (Self::Truth(value), DataType::Boolean) => Arc::new(BooleanArray::from(vec![*value])),
            (Self::Whole(value), _) => return whole(*value, data_type),
            (Self::Double(value), DataType::Float32) => {
                let narrow = *value as f32;
                (f64::from(narrow).to_bits() == value.to_bits()).then_some(())?;
                Arc::new(Float32Array::from(vec![narrow]))
            }
            (Self::Double(value), DataType::Float64) => Arc::new(Float64Array::from(vec![*value])),
            (Self::Text(value), DataType::Utf8) => {
                Arc::new(StringArray::from(vec![value.as_str()]))
            }
            (Self::Bytes(value), DataType::Binary) => {
                Arc::new(BinaryArray::from(vec![value.as_slice()]))
            }
            (Self::Bytes(value), DataType::FixedSizeBinary(16)) => {
                (value.len() == 16).then_some(())?;
                let items = [value.as_slice()].into_iter();
                Arc::new(FixedSizeBinaryArray::try_from_iter(items).ok()?)
            }
            _ => return None,
        })
    }
}

/// A decimal as Python prints it, if that is without an exponent.
fn decimal(unscaled: i128, scale: i8) -> Option<String> {
    let scale = usize::try_from(scale).ok().filter(|scale| *scale <= 6)?;
    let digits = format!("{:0width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if unscaled < 0 { "-" } else { "" };
    let point = if scale > 0 { "." } else { "" };
    Some(format!("{sign}{whole}{point}{fraction}"))
}

fn whole(value: i128, data_type: &DataType) -> Option<ArrayRef> {
    Some(match data_type {
        DataType::Int16 => Arc::new(Int16Array::from(vec![i16::try_from(value).ok()?])),
        DataType::Int32 => Arc::new(Int32Array::from(vec![i32::try_from(value).ok()?])),
        DataType::Int64 => Arc::new(Int64Array::from(vec![i64::try_from(value).ok()?])),
        DataType::Date32 => Arc::new(Date32Array::from(vec![i32::try_from(value).ok()?])),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let column = TimestampMicrosecondArray::from(vec![i64::try_from(value).ok()?]);
            Arc::new(column.with_timezone_opt(zone.clone()))
        }
        DataType::Decimal128(precision, scale) => {
            let column = Decimal128Array::from(vec![value]);
            let column = column.with_precision_and_scale(*precision, *scale).ok()?;
            column.validate_decimal_precision(*precision).ok()?;
            Arc::new(column)
        }
        _ => return None,
    })
}

/// A text as Python's `repr` prints it; None of letters of which it is not certain that it prints
/// them as they are.
fn printed(text: &str) -> Option<String> {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut result = String::with_capacity(text.len() + 2);
    result.push(quote);
    for letter in text.chars() {
        match letter {
            '\n' => result.push_str("\\n"),
            '\r' => result.push_str("\\r"),
            '\t' => result.push_str("\\t"),
            _ if letter == '\\' || letter == quote => result.extend(['\\', letter]),
            ' '..='~' => result.push(letter),
            '\0'..='\x7f' => result.push_str(&format!("\\x{:02x}", u32::from(letter))),
            '\u{a1}'..'\u{590}' | '\u{4e00}'..='\u{9fa5}' if letter.is_alphanumeric() => {
                result.push(letter);
            }
            _ => return None,
        }
    }
    result.push(quote);
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The marks are Python's: `sha256(repr(value).encode()).hexdigest()[:16]`.
    #[test]
    fn marks_are_those_of_python() {
        let known = [
            (Raw::Whole(7), DataType::Int32, "7902699be42c8a8e"),
            (Raw::Whole(-7), DataType::Int64, "a770d3270c9dcded"),
            (Raw::Truth(true), DataType::Boolean, "3cbc87c7681f34db"),
            (
                Raw::Text("GC x".to_owned()),
                DataType::Utf8,
                "22a2d0eefcff35bf",
            ),
            (
                Raw::Whole(5),
                DataType::Decimal128(12, 2),
                "8c7d1761b4962a66",
            ),
            (
                Raw::Whole(-1250),
                DataType::Decimal128(12, 2),
                "fca328cb3654cbef",
            ),
            (
                Raw::Whole(0),
                DataType::Decimal128(12, 2),
                "0659b4e59d8fd6cc",
            ),
            (
                Raw::Whole(1),
                DataType::Decimal128(12, 6),
                "4050847d20660d69",
            ),
            (
                Raw::Whole(12),
                DataType::Decimal128(12, 0),
                "efb83357d8a64766",
            ),
        ];
        for (value, data_type, mark) in known {
            assert_eq!(value.mark(&data_type).as_deref(), Some(mark));
        }
        let small = DataType::Decimal128(12, 7);
        assert_eq!(Raw::Whole(1).mark(&small), None);
    }

    #[test]
    fn marks_of_texts_are_those_of_python() {
        let texts = [
            ("it's", Some("e8a14e7df117da81")),
            ("\"", Some("3251eb06ac2e2848")),
            ("a'\"b", Some("a07c328d49f7a7f3")),
            ("\\", Some("66720edc85ee3131")),
            ("\n\t\r", Some("840f0a195de9a454")),
            ("\x07\x7f", Some("27307315fe178e44")),
            ("ä", Some("58c859b76dbef4bb")),
            ("Ж", Some("1752d58598f93fa2")),
            ("漢字", Some("9eae9f8a60f38db5")),
            ("\u{ad}", None),
            ("\u{1f600}", None),
        ];
        for (text, mark) in texts {
            assert_eq!(
                Raw::Text(text.to_owned()).mark(&DataType::Utf8).as_deref(),
                mark
            );
        }
    }

    #[test]
    fn values_come_back_from_arrow() {
        let known = [
            (Raw::Whole(-7), DataType::Int16),
            (Raw::Whole(7), DataType::Date32),
            (Raw::Whole(1250), DataType::Decimal128(12, 2)),
            (Raw::Double(-0.0), DataType::Float64),
            (Raw::Bytes(vec![0; 16]), DataType::FixedSizeBinary(16)),
            (Raw::Null, DataType::Utf8),
        ];
        for (value, data_type) in known {
            let column = value.array(&data_type);
            let back = column.and_then(|column| Raw::of(&column, 0));
            assert!(back.is_some_and(|back| back == value), "{data_type}");
        }
        assert!(Raw::Whole(1 << 15).array(&DataType::Int16).is_none());
        assert!(Raw::Whole(1000)
            .array(&DataType::Decimal128(3, 0))
            .is_none());
        assert!(Raw::Truth(true).array(&DataType::Int16).is_none());
    }
}
