//! Values of a domain: what two columns must have in common for their codes to be compared.

use crate::error::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, BooleanArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};
use std::fmt;
use zeroize::Zeroize;

/// Values with the same codes, whichever of its types they have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Domain {
    Bool,
    Int,
    Uint64,
    Dec(i8),
    Date,
    Time,
    /// Microseconds, seconds, milliseconds, nanoseconds.
    Timestamp(TimeUnit),
    /// Of a time zone.
    Instant,
    Double,
    Float,
    Int128,
    Uint128,
    BigDec(i8),
    Text,
    Blob,
    Uuid,
}

/// Names of domains without a scale.
const NAMES: [(&str, Domain); 17] = [
    ("bool", Domain::Bool),
    ("int", Domain::Int),
    ("uint64", Domain::Uint64),
    ("date", Domain::Date),
    ("time", Domain::Time),
    ("ts", Domain::Timestamp(TimeUnit::Microsecond)),
    ("ts_s", Domain::Timestamp(TimeUnit::Second)),
    ("ts_ms", Domain::Timestamp(TimeUnit::Millisecond)),
    ("ts_ns", Domain::Timestamp(TimeUnit::Nanosecond)),
    ("tstz", Domain::Instant),
    ("double", Domain::Double),
    ("float", Domain::Float),
    ("int128", Domain::Int128),
    ("uint128", Domain::Uint128),
    ("text", Domain::Text),
    ("blob", Domain::Blob),
    ("uuid", Domain::Uuid),
];

impl Domain {
    pub(super) fn parse(name: &str) -> Result<Self> {
        if let Some((_, domain)) = NAMES.iter().find(|(of, _)| *of == name) {
            return Ok(*domain);
        }
        let scale = |prefix: &str| name.strip_prefix(prefix)?.parse().ok();
        let parsed = scale("bigdec").map(Self::BigDec);
        let parsed = parsed.or_else(|| scale("dec").map(Self::Dec));
        parsed.ok_or_else(|| Error::value(format!("there is no domain {name:?} of codes")))
    }

    /// Whether equality codes have 128 bits, not 64.
    pub(super) fn is_wide(self) -> bool {
        use Domain as D;
        matches!(
            self,
            D::Int128 | D::Uint128 | D::BigDec(_) | D::Text | D::Blob | D::Uuid
        )
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dec(scale) => write!(f, "dec{scale}"),
            Self::BigDec(scale) => write!(f, "bigdec{scale}"),
            other => {
                let name = NAMES.iter().find(|(_, domain)| domain == other);
                f.write_str(name.map_or("", |(name, _)| name))
            }
        }
    }
}

/// A column's values in a form of their domain; anything where a row is NULL.
pub(super) struct Values<'a> {
    pub(super) domain: Domain,
    pub(super) data: Data<'a>,
    nulls: Option<NullBuffer>,
}

pub(super) enum Data<'a> {
    Whole(Vec<i128>),
    /// Numbers of 128 bits without a sign, and UUIDs.
    Bits(Vec<u128>),
    /// The bits of floating-point numbers, of which there is one 0 and one NaN.
    Real(Vec<u64>),
    Strings(Strings<'a>),
}

impl<'a> Values<'a> {
    /// # Errors
    /// [`Error::Value`] if the array's type does not belong to the domain.
    pub(super) fn new(domain: Domain, array: &'a dyn Array) -> Result<Self> {
        let nulls = array.logical_nulls();
        let data = Data::new(domain, array).ok_or_else(|| {
            let text = format!(
                "Arrow type {} is none of domain {domain}",
                array.data_type()
            );
            Error::value(text)
        })?;
        let values = Self {
            domain,
            data,
            nulls,
        };
        if let Data::Whole(numbers) = &values.data {
            // A decimal of few digits can arrive in 128 bits.
            let fits = |row: usize| i64::try_from(numbers[row]).is_ok() || !values.live(row);
            let small = !domain.is_wide() && domain != Domain::Uint64;
            if small && !(0..numbers.len()).all(fits) {
                return Err(Error::value(format!("a value is none of domain {domain}")));
            }
        }
        Ok(values)
    }

    pub(super) fn nulls(&self) -> Option<&NullBuffer> {
        self.nulls.as_ref()
    }

    pub(super) fn live(&self, row: usize) -> bool {
        self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row))
    }
}

impl Drop for Values<'_> {
    fn drop(&mut self) {
        match &mut self.data {
            Data::Whole(values) => values.zeroize(),
            Data::Bits(values) => values.zeroize(),
            Data::Real(values) => values.zeroize(),
            Data::Strings(_) => {}
        }
    }
}

impl<'a> Data<'a> {
    fn new(domain: Domain, array: &'a dyn Array) -> Option<Self> {
        use DataType as T;
        use Domain as D;
        let fixed = |parse: fn([u8; 16]) -> u128| -> Vec<u128> {
            let array = array.as_fixed_size_binary();
            let bytes = (0..array.len()).map(|row| *array.value(row).first_chunk().expect("16"));
            bytes.map(parse).collect()
        };
        let type_ = array.data_type();
        let whole = match (domain, type_) {
            (D::Double, T::Float64) => {
                let values = array.as_primitive::<Float64Type>().values().iter();
                let bits = values.map(|&v| if v.is_nan() { f64::NAN } else { v + 0.0 });
                return Some(Self::Real(bits.map(f64::to_bits).collect()));
            }
            (D::Float, T::Float32) => {
                let values = array.as_primitive::<Float32Type>().values().iter();
                let bits = values.map(|&v| if v.is_nan() { f32::NAN } else { v + 0.0 });
                return Some(Self::Real(bits.map(|v| u64::from(v.to_bits())).collect()));
            }
            (D::Uuid, T::FixedSizeBinary(16)) => {
                return Some(Self::Bits(fixed(u128::from_be_bytes)));
            }
            (D::Uint128, T::FixedSizeBinary(16)) => {
                return Some(Self::Bits(fixed(u128::from_le_bytes)));
            }
            (D::Text | D::Blob, _) => {
                return Strings::new(array, domain).map(Self::Strings);
            }
            (D::Int128, T::FixedSizeBinary(16)) => {
                let values = fixed(u128::from_le_bytes).into_iter();
                values.map(u128::cast_signed).collect()
            }
            (D::Int128, T::Decimal128(_, 0)) => wholes::<Decimal128Type>(array),
            (D::Bool, T::Boolean) => booleans(array.as_boolean()),
            // As DuckDB's lossless Arrow has it.
            (D::Bool, T::Int8) => {
                let values = array.as_primitive::<Int8Type>().values().iter();
                values.map(|&v| i128::from(v != 0)).collect()
            }
            (D::Dec(scale) | D::BigDec(scale), T::Decimal32(_, of)) if scale == *of => {
                wholes::<Decimal32Type>(array)
            }
            (D::Dec(scale) | D::BigDec(scale), T::Decimal64(_, of)) if scale == *of => {
                wholes::<Decimal64Type>(array)
            }
            (D::Dec(scale) | D::BigDec(scale), T::Decimal128(_, of)) if scale == *of => {
                wholes::<Decimal128Type>(array)
            }
            _ => integers(domain, array)?,
        };
        Some(Self::Whole(whole))
    }
}

fn integers(domain: Domain, array: &dyn Array) -> Option<Vec<i128>> {
    use DataType as T;
    use Domain as D;
    use TimeUnit as U;
    Some(match (domain, array.data_type()) {
        (D::Int, T::Int8) => wholes::<Int8Type>(array),
        (D::Int, T::Int16) => wholes::<Int16Type>(array),
        (D::Int, T::Int32) => wholes::<Int32Type>(array),
        (D::Int, T::Int64) => wholes::<Int64Type>(array),
        (D::Int, T::UInt8) => wholes::<UInt8Type>(array),
        (D::Int, T::UInt16) => wholes::<UInt16Type>(array),
        (D::Int, T::UInt32) => wholes::<UInt32Type>(array),
        (D::Uint64, T::UInt64) => wholes::<UInt64Type>(array),
        (D::Date, T::Date32) => wholes::<Date32Type>(array),
        (D::Time, T::Time64(U::Microsecond)) => wholes::<Time64MicrosecondType>(array),
        (D::Timestamp(wanted), T::Timestamp(unit, _)) if wanted == *unit => match unit {
            U::Second => wholes::<TimestampSecondType>(array),
            U::Millisecond => wholes::<TimestampMillisecondType>(array),
            U::Microsecond => wholes::<TimestampMicrosecondType>(array),
            U::Nanosecond => wholes::<TimestampNanosecondType>(array),
        },
        (D::Instant, T::Timestamp(U::Microsecond, _)) => wholes::<TimestampMicrosecondType>(array),
        _ => return None,
    })
}

fn wholes<T: ArrowPrimitiveType<Native: Into<i128>>>(array: &dyn Array) -> Vec<i128> {
    let values = array.as_primitive::<T>().values();
    values.iter().map(|&value| value.into()).collect()
}

fn booleans(array: &BooleanArray) -> Vec<i128> {
    array.values().iter().map(i128::from).collect()
}

/// Strings of bytes in any of Arrow's layouts.
pub(super) struct Strings<'a> {
    len: usize,
    get: Box<dyn Fn(usize) -> &'a [u8] + Sync + 'a>,
    array: &'a dyn Array,
}

impl<'a> Strings<'a> {
    fn new(array: &'a dyn Array, domain: Domain) -> Option<Self> {
        use DataType as T;
        type Get<'a> = Box<dyn Fn(usize) -> &'a [u8] + Sync + 'a>;
        let text = domain == Domain::Text;
        let get: Get<'a> = match array.data_type() {
            T::Utf8 if text => Box::new(|row| array.as_string::<i32>().value(row).as_bytes()),
            T::LargeUtf8 if text => Box::new(|row| array.as_string::<i64>().value(row).as_bytes()),
            T::Utf8View if text => Box::new(|row| array.as_string_view().value(row).as_bytes()),
            T::Binary if !text => Box::new(|row| array.as_binary::<i32>().value(row)),
            T::LargeBinary if !text => Box::new(|row| array.as_binary::<i64>().value(row)),
            T::BinaryView if !text => Box::new(|row| array.as_binary_view().value(row)),
            _ => return None,
        };
        let len = array.len();
        Some(Self { len, get, array })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, row: usize) -> Option<&'a [u8]> {
        self.array.is_valid(row).then(|| (self.get)(row))
    }
}
