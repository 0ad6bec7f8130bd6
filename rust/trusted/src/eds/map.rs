//! Monotone maps of a type's values to 64 bits, in the order in which DuckDB compares them
//! (`spec/eds.md`, "Values"). A map need not distinguish values; but where one value is less than
//! another its number is never greater, or files would be lost.

use crate::error::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, UInt64Array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};

/// Least and greatest number of a column's values, and how many are NULL.
pub type Bounds = (Option<(u64, u64)>, usize);

/// Whether values of a type have a map; `letters` selects the paper's map of strings.
pub fn mappable(duckdb_type: &str, letters: bool) -> bool {
    Order::parse(duckdb_type, letters).is_some()
}

/// The numbers of values; NULL for NULL.
///
/// # Errors
/// [`Error::Value`] for a type without a map, and for arrays of another type.
pub fn values(array: &dyn Array, duckdb_type: &str, letters: bool) -> Result<UInt64Array> {
    let (numbers, nulls) = mapped(array, duckdb_type, letters)?;
    Ok(UInt64Array::new(numbers.into(), nulls))
}

/// The least and the greatest number of an array's values.
///
/// # Errors
/// As [`values`].
pub fn bounds(array: &dyn Array, duckdb_type: &str, letters: bool) -> Result<Bounds> {
    let (numbers, nulls) = mapped(array, duckdb_type, letters)?;
    let count = nulls.as_ref().map_or(0, NullBuffer::null_count);
    let valid = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    let live = numbers.iter().enumerate().filter(|(row, _)| valid(*row));
    let extent = live.fold(None, |extent: Option<(u64, u64)>, (_, &number)| {
        let (low, high) = extent.unwrap_or((number, number));
        Some((low.min(number), high.max(number)))
    });
    Ok((extent, count))
}

type Mapped = (Vec<u64>, Option<NullBuffer>);

fn mapped(array: &dyn Array, duckdb_type: &str, letters: bool) -> Result<Mapped> {
    let order = Order::parse(duckdb_type, letters)
        .ok_or_else(|| Error::value(format!("values of {duckdb_type} have no order to skip by")))?;
    let numbers = order.numbers(array).ok_or_else(|| {
        let arrow_type = array.data_type();
        Error::value(format!(
            "Arrow type {arrow_type} is none of DuckDB's type {duckdb_type}"
        ))
    })?;
    Ok((numbers, array.logical_nulls()))
}

/// How values of a type compare.
enum Order {
    Bool,
    /// Whole numbers of at most 64 bits.
    Signed,
    Unsigned,
    Date,
    /// Of one unit alone: the numbers of two units do not compare.
    Time(TimeUnit),
    Timestamp(TimeUnit),
    /// A decimal of this scale, of at most 18 digits, and of more.
    Decimal(i8),
    WideDecimal(i8),
    Huge,
    UnsignedHuge,
    Real,
    Uuid,
    /// By the position among the labels.
    Enum(Vec<String>),
    Strings,
    /// The paper's: twelve letters in base 30.
    Letters,
}

impl Order {
    fn parse(name: &str, letters: bool) -> Option<Self> {
        Some(match name {
            "BOOLEAN" => Self::Bool,
            "TINYINT" | "SMALLINT" | "INTEGER" | "BIGINT" => Self::Signed,
            "UTINYINT" | "USMALLINT" | "UINTEGER" | "UBIGINT" => Self::Unsigned,
            "DATE" => Self::Date,
            "TIME" => Self::Time(TimeUnit::Microsecond),
            "TIME_NS" => Self::Time(TimeUnit::Nanosecond),
            "TIMESTAMP" | "TIMESTAMP WITH TIME ZONE" => Self::Timestamp(TimeUnit::Microsecond),
            "TIMESTAMP_S" => Self::Timestamp(TimeUnit::Second),
            "TIMESTAMP_MS" => Self::Timestamp(TimeUnit::Millisecond),
            "TIMESTAMP_NS" => Self::Timestamp(TimeUnit::Nanosecond),
            "HUGEINT" => Self::Huge,
            "UHUGEINT" => Self::UnsignedHuge,
            "FLOAT" | "DOUBLE" => Self::Real,
            "UUID" => Self::Uuid,
            "VARCHAR" if letters => Self::Letters,
            "VARCHAR" | "BLOB" => Self::Strings,
            _ => return Self::with_arguments(name),
        })
    }

    fn with_arguments(name: &str) -> Option<Self> {
        let (base, arguments) = name.strip_suffix(')')?.split_once('(')?;
        match base {
            "DECIMAL" => {
                let (digits, scale) = arguments.split_once(',')?;
                let (digits, scale) = (digits.trim().parse().ok()?, scale.trim().parse().ok()?);
                match digits {
                    1..=18_u8 => Some(Self::Decimal(scale)),
                    19..=38 => Some(Self::WideDecimal(scale)),
                    _ => None,
                }
            }
            "ENUM" => labels(arguments).map(Self::Enum),
            _ => None,
        }
    }

    /// One number a row, anything where it is NULL; `None` if the array is of another type.
    fn numbers(&self, array: &dyn Array) -> Option<Vec<u64>> {
        if let DataType::Dictionary(_, _) = array.data_type() {
            let dictionary = array.as_any_dictionary();
            let own = self.numbers(dictionary.values())?;
            let keys = dictionary.normalized_keys();
            let number = |key: usize| own.get(key).copied().unwrap_or(0);
            return Some(keys.into_iter().map(number).collect());
        }
        if array.data_type() == &DataType::Null {
            return Some(vec![0; array.len()]);
        }
        match self {
            Self::Bool => booleans(array),
            Self::Signed => signed_whole(array),
            Self::Unsigned => unsigned_whole(array),
            Self::Date => match array.data_type() {
                DataType::Date32 => Some(each::<Date32Type>(array, |v| signed(v.into()))),
                _ => None,
            },
            Self::Time(unit) => times(array, *unit),
            Self::Timestamp(unit) => timestamps(array, *unit),
            Self::Decimal(scale) => {
                let narrow =
                    |value: i128| signed(value.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
                decimals(array, *scale, narrow)
            }
            Self::WideDecimal(scale) => decimals(array, *scale, huge),
            Self::Huge => match array.data_type() {
                DataType::Decimal128(_, 0) => decimals(array, 0, huge),
                _ => fixed(array, |bytes| huge(i128::from_le_bytes(bytes))),
            },
            Self::UnsignedHuge => fixed(array, |bytes| unsigned_huge(u128::from_le_bytes(bytes))),
            Self::Uuid => fixed(array, |bytes| (u128::from_be_bytes(bytes) >> 64) as u64),
            Self::Real => reals(array),
            Self::Enum(labels) => by_label(array, labels),
            Self::Strings => strings(array, first_bytes),
            Self::Letters => strings(array, twelve_letters),
        }
    }
}

/// The labels between the parentheses of `ENUM('a', 'it''s')`.
fn labels(text: &str) -> Option<Vec<String>> {
    let mut out = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start().strip_prefix('\'')?;
        let mut label = String::new();
        loop {
            let (part, after) = rest.split_once('\'')?;
            label.push_str(part);
            let Some(quoted) = after.strip_prefix('\'') else {
                rest = after.trim_start();
                break;
            };
            label.push('\'');
            rest = quoted;
        }
        out.push(label);
        if rest.is_empty() {
            return Some(out);
        }
        rest = rest.strip_prefix(',')?;
    }
}

fn by_label(array: &dyn Array, labels: &[String]) -> Option<Vec<u64>> {
    let label_index = |text: &[u8]| labels.iter().position(|label| label.as_bytes() == text);
    let indexes = strings(array, |text| {
        label_index(text).map_or(u64::MAX, |at| at as u64)
    })?;
    let unknown = |row: usize| indexes[row] == u64::MAX && array.is_valid(row);
    (!(0..indexes.len()).any(unknown)).then_some(indexes)
}

fn signed(value: i64) -> u64 {
    value.cast_unsigned() ^ 1 << 63
}

/// Numbers of 128 bits: those of 62 bits and a sign as they are, the others at both ends, each
/// with 2^65 neighbours.
fn huge(value: i128) -> u64 {
    const MIDDLE: i128 = 1 << 62;
    let outer = |distance: u128| (distance >> 65) as u64;
    if value >= MIDDLE {
        (3 << 62) + outer((value - MIDDLE).cast_unsigned())
    } else if value < -MIDDLE {
        (1 << 62) - 1 - outer((-MIDDLE - 1 - value).cast_unsigned())
    } else {
        signed(value as i64)
    }
}

/// The same without a sign: numbers of 63 bits as they are.
fn unsigned_huge(value: u128) -> u64 {
    const MIDDLE: u128 = 1 << 63;
    match value.checked_sub(MIDDLE) {
        Some(distance) => (1 << 63) + (distance >> 65) as u64,
        None => value as u64,
    }
}

/// The order of IEEE 754, but one zero, and one NaN above all.
fn real(value: f64) -> u64 {
    let value = if value.is_nan() {
        f64::NAN.abs()
    } else {
        value + 0.0
    };
    let bits = value.to_bits();
    if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

/// The first eight bytes, filled up with zeros.
fn first_bytes(text: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let taken = text.len().min(8);
    bytes[..taken].copy_from_slice(&text[..taken]);
    u64::from_be_bytes(bytes)
}

/// The first twelve letters as digits of base 30, `a` being 0. From the first byte that is no
/// letter on, all digits are the least or the greatest there are, as the byte lies below `a` or
/// above `z`; past the end they are the least.
fn twelve_letters(text: &[u8]) -> u64 {
    let mut rest = None;
    (0..12).fold(0, |number: u64, at| {
        let digit = rest.unwrap_or_else(|| match text.get(at) {
            Some(letter @ b'a'..=b'z') => u64::from(letter - b'a'),
            Some(byte) if *byte > b'z' => *rest.insert(25),
            _ => *rest.insert(0),
        });
        number * 30 + digit
    })
}

fn booleans(array: &dyn Array) -> Option<Vec<u64>> {
    match array.data_type() {
        DataType::Boolean => Some(array.as_boolean().values().iter().map(u64::from).collect()),
        // As DuckDB's lossless Arrow has it.
        DataType::Int8 => {
            let values = array.as_primitive::<Int8Type>().values().iter();
            Some(values.map(|&value| u64::from(value != 0)).collect())
        }
        _ => None,
    }
}

fn each<T: ArrowPrimitiveType>(array: &dyn Array, number: impl Fn(T::Native) -> u64) -> Vec<u64> {
    let values = array.as_primitive::<T>().values();
    values.iter().map(|&value| number(value)).collect()
}

fn signed_whole(array: &dyn Array) -> Option<Vec<u64>> {
    use DataType as T;
    Some(match array.data_type() {
        T::Int8 => each::<Int8Type>(array, |v| signed(v.into())),
        T::Int16 => each::<Int16Type>(array, |v| signed(v.into())),
        T::Int32 => each::<Int32Type>(array, |v| signed(v.into())),
        T::Int64 => each::<Int64Type>(array, signed),
        _ => return None,
    })
}

fn unsigned_whole(array: &dyn Array) -> Option<Vec<u64>> {
    use DataType as T;
    Some(match array.data_type() {
        T::UInt8 => each::<UInt8Type>(array, u64::from),
        T::UInt16 => each::<UInt16Type>(array, u64::from),
        T::UInt32 => each::<UInt32Type>(array, u64::from),
        T::UInt64 => each::<UInt64Type>(array, |v| v),
        _ => return None,
    })
}

fn times(array: &dyn Array, unit: TimeUnit) -> Option<Vec<u64>> {
    use TimeUnit as U;
    match (array.data_type(), unit) {
        (DataType::Time64(U::Microsecond), U::Microsecond) => {
            Some(each::<Time64MicrosecondType>(array, signed))
        }
        (DataType::Time64(U::Nanosecond), U::Nanosecond) => {
            Some(each::<Time64NanosecondType>(array, signed))
        }
        _ => None,
    }
}

fn timestamps(array: &dyn Array, unit: TimeUnit) -> Option<Vec<u64>> {
    use TimeUnit as U;
    match array.data_type() {
        DataType::Timestamp(of, _) if *of == unit => Some(match unit {
            U::Second => each::<TimestampSecondType>(array, signed),
            U::Millisecond => each::<TimestampMillisecondType>(array, signed),
            U::Microsecond => each::<TimestampMicrosecondType>(array, signed),
            U::Nanosecond => each::<TimestampNanosecondType>(array, signed),
        }),
        _ => None,
    }
}

fn decimals(array: &dyn Array, scale: i8, number: impl Fn(i128) -> u64) -> Option<Vec<u64>> {
    use DataType as T;
    Some(match array.data_type() {
        T::Decimal32(_, of) if *of == scale => each::<Decimal32Type>(array, |v| number(v.into())),
        T::Decimal64(_, of) if *of == scale => each::<Decimal64Type>(array, |v| number(v.into())),
        T::Decimal128(_, of) if *of == scale => each::<Decimal128Type>(array, number),
        _ => return None,
    })
}

fn reals(array: &dyn Array) -> Option<Vec<u64>> {
    match array.data_type() {
        DataType::Float32 => Some(each::<Float32Type>(array, |v| real(v.into()))),
        DataType::Float64 => Some(each::<Float64Type>(array, real)),
        _ => None,
    }
}

fn fixed(array: &dyn Array, number: impl Fn([u8; 16]) -> u64) -> Option<Vec<u64>> {
    let array = array.as_fixed_size_binary_opt()?;
    let value = |row: usize| array.value(row).try_into().ok().map(&number);
    (0..array.len()).map(value).collect()
}

fn strings(array: &dyn Array, number: impl Fn(&[u8]) -> u64) -> Option<Vec<u64>> {
    use DataType as T;
    fn all<'a>(
        array: impl Iterator<Item = Option<&'a [u8]>>,
        number: impl Fn(&[u8]) -> u64,
    ) -> Vec<u64> {
        array.map(|value| value.map_or(0, &number)).collect()
    }
    Some(match array.data_type() {
        T::Utf8 => all(
            array
                .as_string::<i32>()
                .iter()
                .map(|v| v.map(str::as_bytes)),
            number,
        ),
        T::LargeUtf8 => all(
            array
                .as_string::<i64>()
                .iter()
                .map(|v| v.map(str::as_bytes)),
            number,
        ),
        T::Utf8View => all(
            array.as_string_view().iter().map(|v| v.map(str::as_bytes)),
            number,
        ),
        T::Binary => all(array.as_binary::<i32>().iter(), number),
        T::LargeBinary => all(array.as_binary::<i64>().iter(), number),
        T::BinaryView => all(array.as_binary_view().iter(), number),
        _ => return None,
    })
}
