//! The values that a statement comes with, as raw values (`raw`): only what a column of a kind
//! stores as it is, of messages written as PostgreSQL itself writes it. None of anything else,
//! which the local engine reads.

use crate::raw::Raw;
use crate::raw_times;
use louver_postgres::decoders::numeric_text;
use louver_postgres::texts::{self, day, decimal, hex, moment, uuid};
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
        (Kind::Double, FLOAT8, 0) => texts::double(bytes).map(Raw::Double),
        (Kind::Date, DATE, 1) => {
            raw_times::sent_day(i32::from_be_bytes(bytes.try_into().ok()?)).map(Raw::Whole)
        }
        (Kind::Date, DATE, 0) => day(bytes).map(Raw::Whole),
        (Kind::Moment, TIMESTAMP, 1) | (Kind::MomentOfZone, TIMESTAMPTZ, 1) => {
            raw_times::sent_moment(i64::from_be_bytes(bytes.try_into().ok()?)).map(Raw::Whole)
        }
        (Kind::Moment, TIMESTAMP, 0) => moment(bytes).map(Raw::Whole),
        (Kind::MomentOfZone, TIMESTAMPTZ, 0) => texts::zoned(bytes).map(Raw::Whole),
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
            let value = texts::whole(bytes)?;
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
