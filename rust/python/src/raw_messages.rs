//! The values that a statement comes with, as raw values (`raw`): only what a column of a kind
//! stores as it is, of messages written as PostgreSQL itself writes it. None of anything else,
//! which the local engine reads.

use crate::raw::Raw;
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
    Bytes,
    Uuid,
    Date,
    Moment,
    Double,
    /// With so many digits behind the point.
    Decimal(u8),
}

const BOOL: u32 = 16;
const BYTEA: u32 = 17;
const TEXTS: [u32; 2] = [25, 1043];
const FLOAT8: u32 = 701;
const DATE: u32 = 1082;
const TIMESTAMP: u32 = 1114;
const NUMERIC: u32 = 1700;
const UUID: u32 = 2950;
/// Days and microseconds between 1970 and 2000, and the days of the years 1 to 9999, which Python
/// has as well.
const EPOCH_DAYS: i128 = 10_957;
const EPOCH_US: i128 = 946_684_800_000_000;
const DAYS: std::ops::RangeInclusive<i128> = -719_162..=2_932_896;
const DAY_US: i128 = 86_400_000_000;
/// Digits of decimals that are read here.
const MOST_DIGITS: usize = 36;

impl FromPyObject<'_, '_> for Kind {
    type Error = PyErr;

    /// The name of Python's type, or how many digits a decimal has behind the point.
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(scale) = object.extract::<u8>() {
            return Ok(Self::Decimal(scale));
        }
        Ok(match object.extract::<String>()?.as_str() {
            "int" => Self::Whole,
            "bool" => Self::Truth,
            "str" => Self::Text,
            "bytes" => Self::Bytes,
            "UUID" => Self::Uuid,
            "date" => Self::Date,
            "datetime" => Self::Moment,
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
        (Kind::Bytes, BYTEA, 1) => Some(Raw::Bytes(bytes.to_owned())),
        (Kind::Bytes, BYTEA, 0) => hex(bytes.strip_prefix(b"\\x")?).map(Raw::Bytes),
        (Kind::Uuid, UUID, 1) => (bytes.len() == 16).then(|| Raw::Bytes(bytes.to_owned())),
        (Kind::Uuid, UUID, 0) => uuid(bytes).map(Raw::Bytes),
        (Kind::Double, FLOAT8, 1) => Some(Raw::Double(f64::from_be_bytes(bytes.try_into().ok()?))),
        (Kind::Double, FLOAT8, 0) => double(bytes),
        (Kind::Date, DATE, 1) => {
            let days = i128::from(i32::from_be_bytes(bytes.try_into().ok()?)) + EPOCH_DAYS;
            DAYS.contains(&days).then_some(Raw::Whole(days))
        }
        (Kind::Date, DATE, 0) => day(bytes).map(Raw::Whole),
        (Kind::Moment, TIMESTAMP, 1) => {
            let us = i128::from(i64::from_be_bytes(bytes.try_into().ok()?)) + EPOCH_US;
            DAYS.contains(&us.div_euclid(DAY_US))
                .then_some(Raw::Whole(us))
        }
        (Kind::Moment, TIMESTAMP, 0) => moment(bytes).map(Raw::Whole),
        (Kind::Decimal(scale), NUMERIC, 1) => {
            decimal(numeric_text(bytes).ok()?.as_bytes(), scale).map(Raw::Whole)
        }
        (Kind::Decimal(scale), NUMERIC, 0) => decimal(bytes, scale).map(Raw::Whole),
        _ => None,
    }
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
fn decimal(bytes: &[u8], scale: u8) -> Option<i128> {
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

/// `YYYY-MM-DD`, in days since 1970.
fn day(bytes: &[u8]) -> Option<i128> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = *bytes else {
        return None;
    };
    let year = number(&[y1, y2, y3, y4])?;
    let (month, day) = (number(&[m1, m2])?, number(&[d1, d2])?);
    (year >= 1 && (1..=12).contains(&month)).then_some(())?;
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let last = match month {
        2 => 28 + i128::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    (1..=last).contains(&day).then_some(())?;
    // Years begin in March, so that the day of a leap year is the last one.
    let (shifted, at) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let of_year = (153 * at + 2) / 5 + day - 1;
    Some(shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + of_year - 719_468)
}

/// `YYYY-MM-DD HH:MM:SS[.ffffff]`, in microseconds since 1970.
fn moment(bytes: &[u8]) -> Option<i128> {
    let (date, time) = bytes.split_at_checked(10)?;
    let [b' ' | b'T', h1, h2, b':', m1, m2, b':', s1, s2, fraction @ ..] = time else {
        return None;
    };
    let (hour, minute) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?);
    let second = number(&[*s1, *s2])?;
    (hour < 24 && minute < 60 && second < 60).then_some(())?;
    let micros = match fraction {
        [] => 0,
        [b'.', digits @ ..] if (1..=6).contains(&digits.len()) => {
            number(digits)? * 10_i128.pow(6 - digits.len() as u32)
        }
        _ => return None,
    };
    let seconds = (hour * 60 + minute) * 60 + second;
    Some(day(date)? * DAY_US + seconds * 1_000_000 + micros)
}

fn number(digits: &[u8]) -> Option<i128> {
    is_digits(digits).then_some(())?;
    let value = digits.iter();
    Some(value.fold(0, |value, digit| value * 10 + i128::from(digit - b'0')))
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
    fn days_are_counted() {
        let days = |text| whole(Kind::Date, DATE, text);
        assert_eq!(days("1970-01-01"), Some(0));
        assert_eq!(days("2000-02-29"), Some(11_016));
        assert_eq!(days("0001-01-01"), Some(*DAYS.start()));
        assert_eq!(days("9999-12-31"), Some(*DAYS.end()));
        for wrong in [
            "1900-02-29",
            "2001-13-01",
            "2001-00-10",
            "2001-1-1",
            "today",
            "2001-04-31",
        ] {
            assert_eq!(days(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn each_day_follows_the_last() {
        let mut before = None;
        for year in 1890..2110 {
            for month in 1..=12 {
                for day_ in 1..=31 {
                    let text = format!("{year:04}-{month:02}-{day_:02}");
                    if let Some(days) = day(text.as_bytes()) {
                        assert!(before.is_none_or(|last: i128| last + 1 == days), "{text}");
                        before = Some(days);
                    }
                }
            }
        }
    }

    #[test]
    fn moments_and_decimals_are_read() {
        let us = |text| whole(Kind::Moment, TIMESTAMP, text);
        assert_eq!(us("1970-01-01 00:00:01.5"), Some(1_500_000));
        assert_eq!(us("1969-12-31 23:59:59"), Some(-1_000_000));
        assert_eq!(us("1970-01-01 24:00:00"), None);
        assert_eq!(us("1970-01-01 00:00:01+02"), None);
        let cents = |text| whole(Kind::Decimal(2), NUMERIC, text);
        assert_eq!(cents("12.5"), Some(1250));
        assert_eq!(cents("-0.07"), Some(-7));
        assert_eq!(cents("3"), Some(300));
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
