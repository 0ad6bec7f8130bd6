//! The values of keys that rows are looked up by: of a statement's parameters, or numbers of its
//! text.

use crate::key_values;
use crate::keyring::KeyRing;
use crate::look_ups::{tag_of, LookUp};
use crate::raw_messages::Given;
use arrow_array::ArrayRef;
use louver_trusted::{Key, Tag};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

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
        given: &Given<'_>,
    ) -> Option<Vec<Vec<Tag>>> {
        let mut tags = Vec::with_capacity(self.0.len());
        for (key, wanted) in look_up.keys().iter().zip(&self.0) {
            let mut of_key = Vec::with_capacity(wanted.len());
            for sources in wanted {
                let pairs = key.domains.iter().zip(sources);
                let columns = pairs.map(|(domain, source)| column_of(domain, source, given));
                let columns = columns.collect::<Option<Vec<ArrayRef>>>()?;
                of_key.push(tag_of(ring, key, &columns).ok()??);
            }
            tags.push(of_key);
        }
        Some(tags)
    }
}

/// A value of a key's column; None of any that the column does not take as it is.
fn column_of(domain: &str, source: &Source, given: &Given<'_>) -> Option<ArrayRef> {
    match source {
        Source::Number(value) => key_values::of_number(domain, *value),
        Source::Parameter { at, type_, limits } => {
            key_values::of_given(domain, given, (*at, *type_, *limits))
        }
    }
}
