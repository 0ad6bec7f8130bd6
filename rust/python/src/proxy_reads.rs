//! Queries by keys that come again at the front door: from the values of Bind to rows on the wire
//! without the interpreter. What it does not know, or refuses, is left to Python's way, which does
//! all of it again: nothing was changed.

use crate::epochs::Epochs;
use crate::keyring::KeyRing;
use crate::look_ups::{tag_of, uuid, LookUp};
use crate::postgres::Session;
use crate::postgres_replies::Reply;
use crate::postgres_values::Given;
use crate::proxy_client::{leak, GivenLeak};
use crate::proxy_values::{described, Described};
use crate::reserve::{number, Reserve};
use arrow_array::{ArrayRef, Int64Array, StringArray};
use bytes::BytesMut;
use louver_postgres::{data_rows, Error, Form, Step, Value};
use louver_proxy::{Column, Disclosed, Failure, Leak, Outcome, Values};
use louver_trusted::{Key, Tag};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A look at the catalog's version goes together with a query if the last one was so shortly ago.
const RECENT: Duration = Duration::from_secs(1);
const CANCELLED: &str = "57014";
static READS: AtomicU64 = AtomicU64::new(0);

/// What a value of a key is: a parameter with the type that it has and its limits, or a constant.
enum Source {
    Parameter {
        at: usize,
        type_: u32,
        limits: Option<(i64, i64)>,
    },
    Number(i64),
}

/// One query, as Python has planned it.
#[pyclass(frozen, module = "louver._rust.proxy")]
pub(crate) struct Read {
    number: u64,
    session: Py<Session>,
    ring: Py<KeyRing>,
    epochs: Py<Epochs>,
    look_up: Py<LookUp>,
    sql: String,
    /// What must hold of the catalog.
    guard: (String, Vec<Value>),
    looked_at: Mutex<Instant>,
    /// Of each key the values that it may have, of each its columns' sources.
    sources: Vec<Vec<Vec<Source>>>,
    /// The columns of the answer among those that are opened, and what clients learn of them; text
    /// is printed of those that are `firm`.
    shown: Vec<usize>,
    columns: Vec<Column>,
    firm: Vec<bool>,
    /// What further conditions are taken from, with what one of them leaks.
    reserves: Vec<(Py<Reserve>, Leak)>,
    opens: Vec<String>,
}

/// `(position of the parameter, number of its type, limits)`, or a constant.
#[derive(FromPyObject)]
enum GivenSource {
    Parameter((usize, u32, Option<(i64, i64)>)),
    Number(i64),
}

#[pymethods]
impl Read {
    /// A query: what it is sent by and opened with, its guard, the sources of its keys' values, the
    /// opened columns that are shown with their descriptions and whether they are printed here, the
    /// reserves of what it shows the server, and the names of the encrypted columns that it opens.
    #[new]
    #[allow(clippy::too_many_arguments)]
    fn new(
        session: Py<Session>,
        ring: Py<KeyRing>,
        epochs: Py<Epochs>,
        look_up: Py<LookUp>,
        sql: String,
        guard: (String, Vec<Given>),
        sources: Vec<Vec<Vec<GivenSource>>>,
        shown: Vec<(usize, Described, bool)>,
        reserves: Vec<(Py<Reserve>, GivenLeak)>,
        opens: Vec<String>,
    ) -> PyResult<Self> {
        let keys = look_up.get().keys();
        let fits = |(key, all): (&Key, &Vec<Vec<GivenSource>>)| {
            all.iter().all(|value| value.len() == key.domains.len())
        };
        if keys.len() != sources.len() || !keys.iter().zip(&sources).all(fits) {
            return Err(PyValueError::new_err("a value for each column of each key"));
        }
        let own = |given| match given {
            GivenSource::Parameter((at, type_, limits)) => Source::Parameter { at, type_, limits },
            GivenSource::Number(value) => Source::Number(value),
        };
        let of_value = |columns: Vec<_>| columns.into_iter().map(own).collect();
        let of_key = |values: Vec<_>| values.into_iter().map(of_value).collect();
        Ok(Self {
            number: READS.fetch_add(1, Ordering::Relaxed),
            session,
            ring,
            epochs,
            look_up,
            sql,
            guard: (guard.0, Given::values(guard.1)?),
            looked_at: Mutex::new(Instant::now()),
            sources: sources.into_iter().map(of_key).collect(),
            firm: shown.iter().map(|item| item.2).collect(),
            columns: shown.iter().map(|item| described(item.1.clone())).collect(),
            shown: shown.iter().map(|item| item.0).collect(),
            reserves: reserves
                .into_iter()
                .map(|(reserve, given)| (reserve, leak(given)))
                .collect(),
            opens,
        })
    }
}

impl Read {
    /// The rows of the query with these values; None where Python's way is to be taken. The
    /// interpreter's lock is not held.
    pub(crate) fn run(
        &self,
        values: &Values,
        formats: &[i16],
    ) -> Option<Result<(Outcome, Disclosed), Failure>> {
        let columns = self.in_formats(formats)?;
        let recent = {
            let looked_at = self
                .looked_at
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            looked_at.elapsed() < RECENT
        };
        let tags = self.tags(values)?;
        let condition = number((self.number, &tags));
        if !recent {
            return None;
        }
        let leaked = self.leaked(condition)?;
        let constants = tags.iter().flatten().map(|tag| Value::Text(uuid(tag)));
        let steps = [
            Step {
                sql: &self.guard.0,
                values: self.guard.1.clone(),
            },
            Step {
                sql: &self.sql,
                values: constants.collect(),
            },
        ];
        let reply = match self.session.get().direct(&steps)? {
            Ok(mut replies) => replies.pop()?,
            Err(Error::Server(said)) if said.code == CANCELLED => {
                let message = "canceling statement due to user request";
                return Some(Err(Failure::error(CANCELLED, message)));
            }
            Err(_) => return None,
        };
        *self
            .looked_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let outcome = self.opened(&Reply::of(reply), &tags, columns)?;
        let opened = self.opens.clone();
        Some(Ok((outcome, Disclosed { opened, leaked })))
    }

    /// What a condition newly leaks; None where none is left of what was recorded ahead.
    fn leaked(&self, condition: u64) -> Option<Vec<Leak>> {
        let mut leaked = Vec::new();
        for (reserve, leak) in &self.reserves {
            if reserve.get().take(condition)? {
                leaked.push(leak.clone());
            }
        }
        Some(leaked)
    }

    fn opened(&self, reply: &Reply, tags: &[Vec<Tag>], columns: Vec<Column>) -> Option<Outcome> {
        let look_up = self.look_up.get();
        let answer = look_up.columns(reply).ok()?;
        let (ring, epochs) = (self.ring.get(), self.epochs.get());
        let opened = look_up.opened(ring, epochs, &answer, tags).ok()?;
        let count = opened.first()?.len();
        let mut parts = Vec::with_capacity(columns.len());
        for (&at, column) in self.shown.iter().zip(&columns) {
            let form = if column.format == 1 {
                Form::Binary
            } else {
                Form::Text
            };
            // The row ids go first.
            parts.push((opened.get(at + 1)?.clone(), column.type_, form));
        }
        let (messages, ends) = data_rows(&parts, count).ok()?;
        Some(Outcome::Rows {
            tag: "SELECT ".to_owned(),
            columns,
            messages: BytesMut::from(bytes::Bytes::from(messages)),
            ends,
        })
    }

    fn in_formats(&self, formats: &[i16]) -> Option<Vec<Column>> {
        if formats.len() > 1 && formats.len() != self.columns.len() {
            return None;
        }
        let of = |at: usize| formats.get(at).or(formats.first()).copied().unwrap_or(0);
        let mut columns = self.columns.clone();
        for (at, column) in columns.iter_mut().enumerate() {
            column.format = of(at);
            if column.format == 0 && !self.firm.get(at).copied().unwrap_or(false) {
                return None;
            }
        }
        Some(columns)
    }

    fn tags(&self, values: &Values) -> Option<Vec<Vec<Tag>>> {
        let (ring, look_up) = (self.ring.get(), self.look_up.get());
        let mut tags = Vec::with_capacity(self.sources.len());
        for (key, wanted) in look_up.keys().iter().zip(&self.sources) {
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

fn integer(bytes: &[u8], format: i16, type_: u32) -> Option<i64> {
    match (format, type_) {
        (1, 21) => Some(i16::from_be_bytes(bytes.try_into().ok()?).into()),
        (1, 23) => Some(i32::from_be_bytes(bytes.try_into().ok()?).into()),
        (1, 20) => Some(i64::from_be_bytes(bytes.try_into().ok()?)),
        (0, 20 | 21 | 23) => {
            let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
            let plain = (1..=18).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
            plain.then_some(())?;
            std::str::from_utf8(bytes).ok()?.parse().ok()
        }
        _ => None,
    }
}
