//! The values that a statement comes with, as raw values (`raw`): only what a column of a kind
//! stores as it is, of messages written as PostgreSQL itself writes it. None of anything else,
//! which the local engine reads.

use crate::raw::Raw;
use crate::raw_times;
use louver_postgres::decoders::numeric_text;
use louver_proxy::Values;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// What a column takes as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Whole,
    Truth,
    Text,
    /// Of at most so many characters, which blanks fill up where it says so.
    Short(usize, bool),
    Bytes,
    Uuid,
    Date,
    Moment,
    MomentOfZone,
    Double,
    /// With so many digits behind the point.
    Decimal(u8),
}

const BOOL: u32 = 16;
const BYTEA: u32 = 17;
const TEXTS: [u32; 2] = [25, 1043];
const BPCHAR: u32 = 1042;
const FLOAT8: u32 = 701;
const DATE: u32 = 1082;
const TIMESTAMP: u32 = 1114;
const TIMESTAMPTZ: u32 = 1184;
const NUMERIC: u32 = 1700;
const UUID: u32 = 2950;
/// Digits of decimals that are read here.
const MOST_DIGITS: usize = 36;

impl FromPyObject<'_, '_> for Kind {
    type Error = PyErr;

    /// A name, how many digits a decimal has behind the point, or how long a text is.
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(scale) = object.extract::<u8>() {
            return Ok(Self::Decimal(scale));
        }
        if let Ok((longest, padded)) = object.extract::<(usize, bool)>() {
            return Ok(Self::Short(longest, padded));
        }
        Ok(match object.extract::<String>()?.as_str() {
            "int" => Self::Whole,
            "bool" => Self::Truth,
            "str" => Self::Text,
            "bytes" => Self::Bytes,
            "UUID" => Self::Uuid,
            "date" => Self::Date,
            "datetime" => Self::Moment,
            "moment" => Self::MomentOfZone,
            "float" => Self::Double,
            _ => return Err(PyValueError::new_err("no kind of values")),
        })
    }
}

/// The values of a statement: of Bind, or of Python.
pub(crate) enum Given<'a> {
    Message(&'a Values),
    Python(&'a [Raw]),
}

impl Given<'_> {
    /// The value of a parameter as a column of a kind stores it; `type_` is the parameter's.
    pub(crate) fn value(&self, at: usize, kind: Kind, type_: u32) -> Option<Raw> {
        match self {
            Self::Message(values) => match values.values.get(at)? {
                None => Some(Raw::Null),
                Some(bytes) => value(kind, type_, *values.formats.get(at)?, bytes),
            },
            Self::Python(values) => {
                let given = values.get(at)?;
                if let (Kind::Short(longest, padded), Raw::Text(text)) = (kind, given) {
                    return short(text, longest, padded);
                }
                let fits = match (kind, given) {
                    (_, Raw::Null)
                    | (Kind::Whole, Raw::Whole(_))
                    | (Kind::Truth, Raw::Truth(_))
                    | (Kind::Bytes, Raw::Bytes(_))
                    | (Kind::Double, Raw::Double(_)) => true,
                    (Kind::Text, Raw::Text(text)) => !text.contains('\0'),
                    _ => false,
                };
                fits.then(|| given.clone())
            }
        }
    }
}

/// A value in its text form, of the type that a kind is of; a whole number has none of its own.
pub(crate) fn text_value(kind: Kind, text: &str) -> Option<Raw> {
    let type_ = match kind {
        Kind::Text => TEXTS[0],
        Kind::Uuid => UUID,
        Kind::Decimal(_) => NUMERIC,
        _ => return None,
    };
    value(kind, type_, 0, text.as_bytes())
}

/// A value of a type, in its text (0) or binary (1) form.
fn value(kind: Kind, type_: u32, format: i16, bytes: &[u8]) -> Option<Raw> {
    match (kind, type_, format) {
        (Kind::Whole, 20 | 21 | 23, _) => {
            integer(bytes, format, type_).map(|value| Raw::Whole(value.into()))
        }
        (Kind::Truth, BOOL, _) => match (format, bytes) {
            (1, [0]) | (0, b"f" | b"false") => Some(Raw::Truth(false)),
            (1, [1]) | (0, b"t" | b"true") => Some(Raw::Truth(true)),
            _ => None,
        },
        (Kind::Text, _, _) if TEXTS.contains(&type_) => {
            let text = std::str::from_utf8(bytes).ok()?;
            (!text.contains('\0')).then(|| Raw::Text(text.to_owned()))
        }
        (Kind::Short(longest, padded), _, _)
            if TEXTS.contains(&type_) || (padded && type_ == BPCHAR) =>
        {
            short(std::str::from_utf8(bytes).ok()?, longest, padded)
        }
        (Kind::Bytes, BYTEA, 1) => Some(Raw::Bytes(bytes.to_owned())),
        (Kind::Bytes, BYTEA, 0) => hex(bytes.strip_prefix(b"\\x")?).map(Raw::Bytes),
        (Kind::Uuid, UUID, 1) => (bytes.len() == 16).then(|| Raw::Bytes(bytes.to_owned())),
        (Kind::Uuid, UUID, 0) => uuid(bytes).map(Raw::Bytes),
        (Kind::Double, FLOAT8, 1) => Some(Raw::Double(f64::from_be_bytes(bytes.try_into().ok()?))),
        (Kind::Double, FLOAT8, 0) => double(bytes),
        (Kind::Date, DATE, 1) => {
            raw_times::sent_day(i32::from_be_bytes(bytes.try_into().ok()?)).map(Raw::Whole)
        }
        (Kind::Date, DATE, 0) => raw_times::day(bytes).map(Raw::Whole),
        (Kind::Moment, TIMESTAMP, 1) | (Kind::MomentOfZone, TIMESTAMPTZ, 1) => {
            raw_times::sent_moment(i64::from_be_bytes(bytes.try_into().ok()?)).map(Raw::Whole)
        }
        (Kind::Moment, TIMESTAMP, 0) => raw_times::moment(bytes).map(Raw::Whole),
        (Kind::MomentOfZone, TIMESTAMPTZ, 0) => raw_times::moment_of_zone(bytes).map(Raw::Whole),
        (Kind::Decimal(scale), 20 | 21 | 23, _) => {
            let value = i128::from(integer(bytes, format, type_)?);
            let unit = 10_i128.checked_pow(scale.into())?;
            value.checked_mul(unit).map(Raw::Whole)
        }
        (Kind::Decimal(scale), NUMERIC, 1) => {
            decimal(numeric_text(bytes).ok()?.as_bytes(), scale).map(Raw::Whole)
        }
        (Kind::Decimal(scale), NUMERIC, 0) => decimal(bytes, scale).map(Raw::Whole),
        _ => None,
    }
}

/// A text of at most so many characters, filled up or not.
fn short(text: &str, longest: usize, padded: bool) -> Option<Raw> {
    let count = text.chars().count();
    (count <= longest && !text.contains('\0')).then_some(())?;
    let blanks = if padded { longest - count } else { 0 };
    Some(Raw::Text(format!("{text}{}", " ".repeat(blanks))))
}

/// A whole number of a type.
pub(crate) fn integer(bytes: &[u8], format: i16, type_: u32) -> Option<i64> {
    match (format, type_) {
        (1, 21) => Some(i16::from_be_bytes(bytes.try_into().ok()?).into()),
        (1, 23) => Some(i32::from_be_bytes(bytes.try_into().ok()?).into()),
        (1, 20) => Some(i64::from_be_bytes(bytes.try_into().ok()?)),
        (0, 20 | 21 | 23) => {
            let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
            ((1..=18).contains(&digits.len()) && is_digits(digits)).then_some(())?;
            let value: i64 = std::str::from_utf8(bytes).ok()?.parse().ok()?;
            let fits = match type_ {
                21 => i16::try_from(value).is_ok(),
                23 => i32::try_from(value).is_ok(),
                _ => true,
            };
            fits.then_some(value)
        }
        _ => None,
    }
}

fn is_digits(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_digit)
}

fn hex(bytes: &[u8]) -> Option<Vec<u8>> {
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = bytes.chunks_exact(2);
    pairs
        .map(|pair| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8))
        .collect()
}

fn uuid(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.len() != 36 || [8, 13, 18, 23].iter().any(|&at| bytes[at] != b'-') {
        return None;
    }
    let digits: Vec<u8> = bytes.iter().copied().filter(|&byte| byte != b'-').collect();
    hex(&digits).filter(|value| value.len() == 16)
}

/// A number without anything but digits, a sign, a point and an exponent.
fn double(bytes: &[u8]) -> Option<Raw> {
    let known = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    (bytes.len() <= 32 && bytes.iter().all(known)).then_some(())?;
    let value: f64 = std::str::from_utf8(bytes).ok()?.parse().ok()?;
    // What is too large or too small for a double is an error to PostgreSQL.
    (value.is_normal() || value.to_bits() == 0).then_some(Raw::Double(value))
}

/// `-?digits[.digits]` with at most so many digits behind the point, without that.
pub(crate) fn decimal(bytes: &[u8], scale: u8) -> Option<i128> {
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let point = digits.iter().position(|&byte| byte == b'.');
    let (whole, fraction) = match point {
        Some(at) => (&digits[..at], &digits[at + 1..]),
        None => (digits, &[][..]),
    };
    let scale = usize::from(scale);
    let fine = !whole.is_empty()
        && (point.is_none() || !fraction.is_empty())
        && fraction.len() <= scale
        && whole.len() + scale <= MOST_DIGITS
        && is_digits(whole)
        && is_digits(fraction);
    fine.then_some(())?;
    let filled = std::iter::repeat_n(&b'0', scale - fraction.len());
    let mut value = 0_i128;
    for digit in whole.iter().chain(fraction).chain(filled) {
        value = value * 10 + i128::from(digit - b'0');
    }
    Some(if digits.len() < bytes.len() {
        -value
    } else {
        value
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(kind: Kind, type_: u32, text: &str) -> Option<i128> {
        match value(kind, type_, 0, text.as_bytes())? {
            Raw::Whole(value) => Some(value),
            _ => None,
        }
    }

    #[test]
    fn decimals_are_read() {
        let cents = |text| whole(Kind::Decimal(2), NUMERIC, text);
        assert_eq!(cents("12.5"), Some(1250));
        assert_eq!(cents("-0.07"), Some(-7));
        assert_eq!(cents("3"), Some(300));
        assert_eq!(whole(Kind::Decimal(2), 20, "-12"), Some(-1200));
        for wrong in ["1.234", "1e3", ".5", "1.", "NaN", "", "-", "+1", " 1"] {
            assert_eq!(cents(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn numbers_have_the_limits_of_their_types() {
        assert_eq!(integer(b"32768", 0, 21), None);
        assert_eq!(integer(b"-32768", 0, 21), Some(-32768));
        assert_eq!(integer(b"2147483648", 0, 23), None);
        assert_eq!(integer(&[0, 0, 1], 1, 23), None);
        assert_eq!(integer(b"", 0, 20), None);
    }

    #[test]
    fn texts_have_their_length() {
        let of = |padded, type_, text: &str| {
            let kind = Kind::Short(3, padded);
            match value(kind, type_, 0, text.as_bytes()) {
                Some(Raw::Text(text)) => Some(text),
                _ => None,
            }
        };
        assert_eq!(of(false, 1043, "äö").as_deref(), Some("äö"));
        assert_eq!(of(true, BPCHAR, "äö").as_deref(), Some("äö "));
        assert_eq!(of(true, 25, "").as_deref(), Some("   "));
        assert_eq!(of(false, BPCHAR, "a"), None);
        assert_eq!(of(true, 25, "abc "), None);
        assert_eq!(of(false, 25, "a\0"), None);
    }

    #[test]
    fn bytes_are_read() {
        let of = |kind, type_, text: &str| match value(kind, type_, 0, text.as_bytes()) {
            Some(Raw::Bytes(bytes)) => Some(bytes),
            _ => None,
        };
        assert_eq!(of(Kind::Bytes, BYTEA, "\\x00fF"), Some(vec![0, 255]));
        assert_eq!(of(Kind::Bytes, BYTEA, "\\x0"), None);
        assert_eq!(of(Kind::Bytes, BYTEA, "abc"), None);
        let text = "00112233-4455-6677-8899-aabbccddeeff";
        let bytes = of(Kind::Uuid, UUID, text).unwrap_or_default();
        assert_eq!((bytes.len(), bytes[1], bytes[15]), (16, 0x11, 0xff));
        assert_eq!(of(Kind::Uuid, UUID, &text.replace('-', "0")), None);
    }
}
