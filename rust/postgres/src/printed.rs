//! Values of Arrow columns as PostgreSQL prints them, of the types whose text depends on no setting
//! but `DateStyle`, `TimeZone`, `bytea_output` and `extra_float_digits`: as ISO, UTC, `hex` and the
//! shortest text that gives the same number.

use crate::error::Error;
use crate::oid::{self, Oid};
use crate::values::Writer;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, UInt32Type,
};
use arrow_array::{Array, ArrowPrimitiveType, PrimitiveArray};
use arrow_schema::{DataType, TimeUnit};
use std::fmt::{Display, Write};

const DAY_US: i64 = 86_400_000_000;

/// The writer of a column's texts; None of a type that is printed elsewhere.
pub(crate) fn printer(array: &dyn Array, type_: Oid) -> Option<Writer<'_>> {
    Some(match (array.data_type(), type_) {
        (DataType::Boolean, oid::BOOL) => {
            let values = array.as_boolean();
            Box::new(|row, out| {
                out.push(if values.value(row) { b't' } else { b'f' });
                Ok(())
            })
        }
        (DataType::FixedSizeBinary(16), oid::UUID) => {
            let values = array.as_fixed_size_binary();
            Box::new(|row, out| {
                uuid(values.value(row), out);
                Ok(())
            })
        }
        (DataType::Binary, oid::BYTEA) => {
            let values = array.as_binary::<i32>();
            Box::new(|row, out| {
                out.extend_from_slice(b"\\x");
                values.value(row).iter().for_each(|byte| hex(*byte, out));
                Ok(())
            })
        }
        (DataType::Utf8, oid::NUMERIC | oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME) => {
            plain(array)
        }
        (DataType::Date32 | DataType::Timestamp(TimeUnit::Microsecond, _), _) => {
            time(array, type_)?
        }
        _ => number(array, type_)?,
    })
}

fn number(array: &dyn Array, type_: Oid) -> Option<Writer<'_>> {
    Some(match (array.data_type(), type_) {
        (DataType::Int16, oid::INT2) => shown(array.as_primitive::<Int16Type>()),
        (DataType::Int32, oid::INT4) => shown(array.as_primitive::<Int32Type>()),
        (DataType::Int64, oid::INT8) => shown(array.as_primitive::<Int64Type>()),
        (DataType::UInt32, oid::OID) => shown(array.as_primitive::<UInt32Type>()),
        (DataType::Float32, oid::FLOAT4) => {
            let values = array.as_primitive::<Float32Type>();
            Box::new(|row, out| {
                let value = values.value(row);
                float(f64::from(value), &format!("{value:e}"), 6, out);
                Ok(())
            })
        }
        (DataType::Float64, oid::FLOAT8) => {
            let values = array.as_primitive::<Float64Type>();
            Box::new(|row, out| {
                let value = values.value(row);
                float(value, &format!("{value:e}"), 15, out);
                Ok(())
            })
        }
        (DataType::Decimal128(_, scale), oid::NUMERIC) => {
            let values = array.as_primitive::<Decimal128Type>();
            let scale = usize::try_from(*scale).ok()?;
            Box::new(move |row, out| {
                decimal(values.value(row), scale, out);
                Ok(())
            })
        }
        _ => return None,
    })
}

fn time(array: &dyn Array, type_: Oid) -> Option<Writer<'_>> {
    Some(match (array.data_type(), type_) {
        (DataType::Date32, oid::DATE) => {
            let values = array.as_primitive::<Date32Type>();
            Box::new(|row, out| {
                date(values.value(row), out);
                Ok(())
            })
        }
        (DataType::Timestamp(..), oid::TIMESTAMP | oid::TIMESTAMPTZ) => {
            let values = array.as_primitive::<TimestampMicrosecondType>();
            let zone = if type_ == oid::TIMESTAMPTZ { "+00" } else { "" };
            Box::new(move |row, out| {
                moment(values.value(row), zone, out);
                Ok(())
            })
        }
        _ => return None,
    })
}

/// The writer of texts as they are.
pub(crate) fn plain(array: &dyn Array) -> Writer<'_> {
    let values = array.as_string::<i32>();
    Box::new(|row, out| {
        out.extend_from_slice(values.value(row).as_bytes());
        Ok(())
    })
}

fn shown<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>) -> Writer<'_>
where
    T::Native: Display,
{
    Box::new(|row, out| {
        put(out, format_args!("{}", values.value(row)));
        Ok(())
    })
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    struct Bytes<'a>(&'a mut Vec<u8>);
    impl Write for Bytes<'_> {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            self.0.extend_from_slice(text.as_bytes());
            Ok(())
        }
    }
    // It never fails.
    let _ = Bytes(out).write_fmt(text);
}

fn uuid(bytes: &[u8], out: &mut Vec<u8>) {
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        hex(*byte, out);
    }
}

fn hex(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.push(DIGITS[usize::from(byte >> 4)]);
    out.push(DIGITS[usize::from(byte & 15)]);
}

/// A number by its shortest digits, `d.ddde±x`; from `most` digits before the point on, and below
/// 0.0001, with its exponent.
fn float(value: f64, digits: &str, most: i32, out: &mut Vec<u8>) {
    if !value.is_finite() {
        let name = match (value.is_nan(), value > 0.0) {
            (true, _) => "NaN",
            (false, true) => "Infinity",
            (false, false) => "-Infinity",
        };
        out.extend_from_slice(name.as_bytes());
        return;
    }
    let (mantissa, exponent) = digits.split_once('e').unwrap_or((digits, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    out.extend_from_slice(sign.as_bytes());
    let bare: String = mantissa.chars().filter(|c| *c != '.').collect();
    if exponent < -4 || exponent >= most {
        let mark = if exponent < 0 { '-' } else { '+' };
        put(out, format_args!("{mantissa}e{mark}{:02}", exponent.abs()));
    } else if exponent < 0 {
        let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0));
        put(out, format_args!("0.{zeros}{bare}"));
    } else {
        let whole = usize::try_from(exponent).unwrap_or(0) + 1;
        if bare.len() <= whole {
            put(
                out,
                format_args!("{bare}{}", "0".repeat(whole - bare.len())),
            );
        } else {
            put(out, format_args!("{}.{}", &bare[..whole], &bare[whole..]));
        }
    }
}

fn decimal(value: i128, scale: usize, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    let digits = format!("{:0width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    out.extend_from_slice(whole.as_bytes());
    if scale > 0 {
        out.push(b'.');
        out.extend_from_slice(part.as_bytes());
    }
}

/// Days since 1970; the limits are the infinities.
fn date(days: i32, out: &mut Vec<u8>) {
    match days {
        i32::MAX => out.extend_from_slice(b"infinity"),
        _ if days <= -i32::MAX => out.extend_from_slice(b"-infinity"),
        _ => {
            if day(i64::from(days), out) {
                out.extend_from_slice(b" BC");
            }
        }
    }
}

fn moment(us: i64, zone: &str, out: &mut Vec<u8>) {
    match us {
        i64::MAX => out.extend_from_slice(b"infinity"),
        _ if us <= -i64::MAX => out.extend_from_slice(b"-infinity"),
        _ => {
            let before = day(us.div_euclid(DAY_US), out);
            let rest = us.rem_euclid(DAY_US);
            let (seconds, part) = (rest / 1_000_000, rest % 1_000_000);
            put(
                out,
                format_args!(
                    " {:02}:{:02}:{:02}",
                    seconds / 3_600,
                    seconds / 60 % 60,
                    seconds % 60
                ),
            );
            if part > 0 {
                let digits = format!("{part:06}");
                put(out, format_args!(".{}", digits.trim_end_matches('0')));
            }
            out.extend_from_slice(zone.as_bytes());
            if before {
                out.extend_from_slice(b" BC");
            }
        }
    }
}

/// A day since 1970 in the Gregorian calendar; whether it is before our era, which has no year 0.
/// The algorithm is Howard Hinnant's `civil_from_days`.
fn day(days: i64, out: &mut Vec<u8>) -> bool {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let before = year <= 0;
    let year = if before { 1 - year } else { year };
    put(out, format_args!("{year:04}-{month:02}-{day:02}"));
    before
}

/// The error of a column that has no text here.
pub(crate) fn refused(array: &dyn Array, type_: Oid) -> Error {
    let arrow = array.data_type();
    Error::value(format!(
        "a column of Arrow's type {arrow} has no text as type {type_} here"
    ))
}
