//! The values that keys are looked up by, in the domains of their columns (`spec/eq.md`): what
//! is the same value in any session.

use crate::raw::Raw;
use crate::raw_messages::{text_value, Given, Kind};
use arrow_array::ArrayRef;
use arrow_schema::{DataType, TimeUnit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyString};

/// What a domain's values are read as, and what they are in Arrow; None of a domain whose values
/// are not taken so.
fn of_domain(domain: &str) -> Option<(Kind, DataType)> {
    Some(match domain {
        "int" => (Kind::Whole, DataType::Int64),
        "text" => (Kind::Text, DataType::Utf8),
        "uuid" => (Kind::Uuid, DataType::FixedSizeBinary(16)),
        "bool" => (Kind::Truth, DataType::Boolean),
        "date" => (Kind::Date, DataType::Date32),
        "ts" => (
            Kind::Moment,
            DataType::Timestamp(TimeUnit::Microsecond, None),
        ),
        "tstz" => (
            Kind::MomentOfZone,
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        ),
        _ => {
            let (scale, width) = match domain.strip_prefix("big") {
                Some(rest) => (rest.strip_prefix("dec")?, 38),
                None => (domain.strip_prefix("dec")?, 18),
            };
            let scale: u8 = scale.parse().ok()?;
            (scale <= width).then_some(())?;
            let data_type = DataType::Decimal128(width, i8::try_from(scale).ok()?);
            (Kind::Decimal(scale), data_type)
        }
    })
}

/// A whole number of a statement's text.
pub(crate) fn of_number(domain: &str, number: i64) -> Option<ArrayRef> {
    let (kind, data_type) = of_domain(domain)?;
    let number = i128::from(number);
    let value = match kind {
        Kind::Whole => number,
        Kind::Decimal(scale) => number.checked_mul(10_i128.checked_pow(scale.into())?)?,
        _ => return None,
    };
    Raw::Whole(value).array(&data_type)
}

/// A parameter of this type, within its limits if it has any.
pub(crate) fn of_given(
    domain: &str,
    given: &Given<'_>,
    (at, type_, limits): (usize, u32, Option<(i64, i64)>),
) -> Option<ArrayRef> {
    let (kind, data_type) = of_domain(domain)?;
    let value = given.value(at, kind, type_)?;
    if let (Kind::Whole, Raw::Whole(value), Some((least, most))) = (kind, &value, limits) {
        (i128::from(least)..=most.into())
            .contains(value)
            .then_some(())?;
    }
    (value != Raw::Null).then(|| value.array(&data_type))?
}

/// A text of a statement's.
pub(crate) fn of_text(domain: &str, text: &str) -> Option<ArrayRef> {
    let (kind, data_type) = of_domain(domain)?;
    text_value(kind, text)?.array(&data_type)
}

/// A whole number of Python's, or a text that is written as PostgreSQL does.
pub(crate) fn of_python(domain: &str, value: &Bound<'_, PyAny>) -> Option<ArrayRef> {
    if value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>() {
        return of_number(domain, value.extract().ok()?);
    }
    let text: String = value.cast::<PyString>().ok()?.extract().ok()?;
    of_text(domain, &text)
}
