//! The values of keys that rows are looked up by at the front door: of Bind, or numbers of the text.

use crate::keyring::KeyRing;
use crate::look_ups::{tag_of, LookUp};
use crate::raw_messages::integer;
use arrow_array::{ArrayRef, Int64Array, StringArray};
use louver_proxy::Values;
use louver_trusted::{Key, Tag};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// What a value of a key is: a parameter with the type that it has and its limits, or a constant.
enum Source {
    Parameter {
        at: usize,
        type_: u32,
        limits: Option<(i64, i64)>,
    },
    Number(i64),
}

/// `(position of the parameter, number of its type, limits)`, or a constant.
#[derive(FromPyObject)]
pub(crate) enum GivenSource {
    Parameter((usize, u32, Option<(i64, i64)>)),
    Number(i64),
}

/// Of each key the values that it may have, of each its columns' sources.
pub(crate) struct Sources(Vec<Vec<Vec<Source>>>);

impl Sources {
    pub(crate) fn new(given: Vec<Vec<Vec<GivenSource>>>, look_up: &LookUp) -> PyResult<Self> {
        let keys = look_up.keys();
        let fits = |(key, all): (&Key, &Vec<Vec<GivenSource>>)| {
            all.iter().all(|value| value.len() == key.domains.len())
        };
        if keys.len() != given.len() || !keys.iter().zip(&given).all(fits) {
            return Err(PyValueError::new_err("a value for each column of each key"));
        }
        let own = |given| match given {
            GivenSource::Parameter((at, type_, limits)) => Source::Parameter { at, type_, limits },
            GivenSource::Number(value) => Source::Number(value),
        };
        let of_value = |columns: Vec<_>| columns.into_iter().map(own).collect();
        let of_key = |values: Vec<_>| values.into_iter().map(of_value).collect();
        Ok(Self(given.into_iter().map(of_key).collect()))
    }

    /// The tags of the values; None where a column does not take one as it is.
    pub(crate) fn tags(
        &self,
        ring: &KeyRing,
        look_up: &LookUp,
        values: &Values,
    ) -> Option<Vec<Vec<Tag>>> {
        let mut tags = Vec::with_capacity(self.0.len());
        for (key, wanted) in look_up.keys().iter().zip(&self.0) {
            let mut of_key = Vec::with_capacity(wanted.len());
            for sources in wanted {
                let pairs = key.domains.iter().zip(sources);
                let columns = pairs.map(|(domain, source)| column_of(domain, source, values));
                let columns = columns.collect::<Option<Vec<ArrayRef>>>()?;
                of_key.push(tag_of(ring, key, &columns).ok()??);
            }
            tags.push(of_key);
        }
        Some(tags)
    }
}

/// A value of a key's column; None of any that the column does not take as it is.
fn column_of(domain: &str, source: &Source, values: &Values) -> Option<ArrayRef> {
    let (bytes, format, type_, limits) = match source {
        Source::Number(value) if domain == "int" => {
            return Some(Arc::new(Int64Array::from(vec![*value])));
        }
        Source::Number(_) => return None,
        Source::Parameter { at, type_, limits } => {
            let bytes = values.values.get(*at)?.as_ref()?;
            (bytes, *values.formats.get(*at)?, *type_, *limits)
        }
    };
    match domain {
        "int" => {
            let value = integer(bytes, format, type_)?;
            let (least, most) = limits.unwrap_or((i64::MIN, i64::MAX));
            (least..=most).contains(&value).then_some(())?;
            Some(Arc::new(Int64Array::from(vec![value])))
        }
        "text" if matches!(type_, 25 | 1043) => {
            let text = std::str::from_utf8(bytes).ok()?;
            (!text.contains('\0')).then(|| Arc::new(StringArray::from(vec![text])) as ArrayRef)
        }
        _ => None,
    }
}
