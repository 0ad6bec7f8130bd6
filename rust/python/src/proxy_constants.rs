//! What a query is sent with: codes and tags of the values that it compares columns with, and the
//! values of plain columns as they are.

use crate::key_values;
use crate::keyring::KeyRing;
use crate::look_ups::{tag_of, uuid};
use crate::raw::Raw;
use crate::raw_messages::{text_value, Given, Kind};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use louver_postgres::Value;
use louver_trusted::Key;
use pyo3::prelude::*;

const INT8: u32 = 20;
const TEXT: u32 = 25;

/// Where a value comes from: `(position of the parameter, number of its type, limits)`, or a
/// constant of the text.
#[derive(Clone, FromPyObject)]
pub(crate) enum Source {
    Parameter((usize, u32, Option<(i64, i64)>)),
    Number(i64),
    Text(String),
}

impl Source {
    /// The value as a column of a kind has it; None of NULL, and of any that is not taken as it is.
    pub(crate) fn value(&self, kind: Kind, given: &Given<'_>) -> Option<Raw> {
        let value = match self {
            Self::Parameter((at, type_, limits)) => {
                let value = given.value(*at, kind, *type_)?;
                if let (Kind::Whole, Raw::Whole(number), Some((least, most))) =
                    (kind, &value, limits)
                {
                    (i128::from(*least)..=i128::from(*most))
                        .contains(number)
                        .then_some(())?;
                }
                value
            }
            Self::Number(number) => match kind {
                Kind::Whole => Raw::Whole((*number).into()),
                Kind::Decimal(scale) => {
                    let unit = 10_i128.checked_pow(scale.into())?;
                    Raw::Whole(i128::from(*number).checked_mul(unit)?)
                }
                _ => return None,
            },
            Self::Text(text) => text_value(kind, text)?,
        };
        (value != Raw::Null).then_some(value)
    }

    /// The value in a domain of codes, as a column of one row.
    fn in_domain(&self, domain: &str, given: &Given<'_>) -> Option<ArrayRef> {
        match self {
            Self::Parameter(parameter) => key_values::of_given(domain, given, *parameter),
            Self::Number(number) => key_values::of_number(domain, *number),
            Self::Text(text) => key_values::of_text(domain, text),
        }
    }
}

/// The tag of a key: its label and domains, and its columns' values; the code of a column: its id,
/// its group, its domain, and whether it is the group's; a plain value: its type.
#[derive(FromPyObject)]
pub(crate) enum GivenConstant {
    Tag((String, Vec<String>, Vec<Source>)),
    Code(((u32, u32, u32), String, String, bool, Source)),
    Plain((u32, Source)),
}

enum Constant {
    Tag(Key, Vec<Source>),
    Code {
        id: (u32, u32, u32),
        group: String,
        domain: String,
        joins: bool,
        source: Source,
    },
    Plain(u32, Source),
}

/// What goes beside a text, in its order.
pub(crate) struct Constants(Vec<Constant>);

impl Constants {
    pub(crate) fn new(given: Vec<GivenConstant>) -> Self {
        let own = |constant| match constant {
            GivenConstant::Tag((label, domains, sources)) => {
                let columns = Vec::new();
                let key = Key {
                    label,
                    domains,
                    columns,
                };
                Constant::Tag(key, sources)
            }
            GivenConstant::Code((id, group, domain, joins, source)) => Constant::Code {
                id,
                group,
                domain,
                joins,
                source,
            },
            GivenConstant::Plain((type_, source)) => Constant::Plain(type_, source),
        };
        Self(given.into_iter().map(own).collect())
    }

    /// As the server is sent them; None where a column does not take a value as it is.
    pub(crate) fn sent(&self, ring: &KeyRing, given: &Given<'_>) -> Option<Vec<Value>> {
        let all = self.0.iter();
        all.map(|constant| match constant {
            Constant::Tag(key, sources) => {
                let pairs = key.domains.iter().zip(sources);
                let columns = pairs.map(|(domain, source)| source.in_domain(domain, given));
                let columns = columns.collect::<Option<Vec<ArrayRef>>>()?;
                let tag = tag_of(ring, key, &columns).ok()??;
                Some(Value::Text(uuid(&tag)))
            }
            Constant::Code {
                id,
                group,
                domain,
                joins,
                source,
            } => {
                let column = source.in_domain(domain, given)?;
                let codes = if *joins {
                    ring.0.eq_join_codes(group, domain, &column)
                } else {
                    ring.0.eq_codes(*id, group, domain, &column)
                };
                code(&codes.ok()?)
            }
            Constant::Plain(type_, source) => plain(*type_, source, given),
        })
        .collect()
    }
}

/// The only code of a column, of 8 or 16 bytes.
fn code(codes: &ArrayRef) -> Option<Value> {
    (codes.len() == 1 && codes.is_valid(0)).then_some(())?;
    if let Some(narrow) = codes.as_primitive_opt::<Int64Type>() {
        return Some(Value::Int8(narrow.value(0)));
    }
    let wide = codes.as_fixed_size_binary_opt()?.value(0);
    Some(Value::Text(uuid(wide.try_into().ok()?)))
}

/// A number or a text as it is.
fn plain(type_: u32, source: &Source, given: &Given<'_>) -> Option<Value> {
    match type_ {
        INT8 => match source.value(Kind::Whole, given)? {
            Raw::Whole(number) => Some(Value::Int8(number.try_into().ok()?)),
            _ => None,
        },
        TEXT => match source.value(Kind::Text, given)? {
            Raw::Text(text) => Some(Value::Typed(TEXT, text)),
            _ => None,
        },
        _ => None,
    }
}
