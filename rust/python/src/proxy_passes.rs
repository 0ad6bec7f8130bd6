//! Queries that need no key, at the front door: the server is sent the values of Bind, and what it
//! answers is relayed, without the interpreter.

use crate::postgres::Session;
use crate::postgres_values::Given;
use crate::proxy_transactions::Transaction;
use crate::proxy_values::{described, Described};
use crate::raw_messages::integer;
use louver_postgres::{Error, Relay, Reply, ServerError, Step, Value};
use louver_proxy::{Column, Failure, Outcome, Values};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A look at the catalog's version goes together with a query if the last one was so shortly ago.
const RECENT: Duration = Duration::from_secs(1);
pub(crate) const CANCELLED: &str = "57014";

/// When a version was looked at.
pub(crate) struct LookedAt(Mutex<Instant>);

impl LookedAt {
    /// Now.
    pub(crate) fn now() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    fn is_recent(&self) -> bool {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.elapsed() < RECENT
    }

    /// What goes before a query, if anything, in one round trip with it. Where the last look was
    /// longer ago, that goes before by itself, so that no more is sent if it fails; None then.
    pub(crate) fn guarded<'a>(
        &self,
        session: &Session,
        guard: Option<(&'a str, &[Value])>,
        within: &mut Option<&mut Transaction>,
    ) -> Option<Vec<Step<'a>>> {
        let is_held = within.as_ref().is_some_and(|open| open.entered);
        let Some((sql, values)) = guard.filter(|_| !is_held) else {
            return Some(Vec::new());
        };
        let step = || Step {
            sql,
            values: values.to_vec(),
        };
        if self.is_recent() {
            return Some(vec![step()]);
        }
        match within {
            Some(transaction) => transaction.exchange(&[step()], &mut || false)?.ok()?,
            None => session.direct(&[step()], &mut || false)?.ok()?,
        };
        self.again();
        Some(vec![step()])
    }

    pub(crate) fn again(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// One query over plain columns, as Python has judged it.
#[pyclass(frozen, module = "louver._rust.proxy")]
pub(crate) struct Pass {
    session: Py<Session>,
    /// What must hold of the catalog; None of a query that reads no table.
    guard: Option<(String, Vec<Value>)>,
    looked_at: LookedAt,
    sql: String,
    parameters: Parameters,
    columns: Vec<Column>,
    /// Of each column whether its text may be sent.
    firm: Vec<bool>,
}

#[pymethods]
impl Pass {
    /// A query's text, its guard, the types of its parameters and its columns, of each of which the
    /// text may be sent or not.
    #[new]
    fn new(
        session: Py<Session>,
        guard: Option<(String, Vec<Given>)>,
        sql: String,
        parameters: Parameters,
        columns: Vec<(Described, bool)>,
    ) -> PyResult<Self> {
        let guard = guard.map(|(sql, values)| Ok::<_, PyErr>((sql, Given::values(values)?)));
        Ok(Self {
            session,
            guard: guard.transpose()?,
            looked_at: LookedAt::now(),
            sql,
            parameters,
            firm: columns.iter().map(|item| item.1).collect(),
            columns: columns.into_iter().map(|item| described(item.0)).collect(),
        })
    }
}

impl Pass {
    /// Python has looked at the version.
    pub(crate) fn looked(&self) {
        self.looked_at.again();
    }

    /// The rows of the query with these values, read `within` a transaction or outside of any; None
    /// where Python's way is to be taken.
    pub(crate) fn run(
        &self,
        values: &Values,
        formats: &[i16],
        mut within: Option<&mut Transaction>,
    ) -> Option<Result<Outcome, Failure>> {
        let columns = in_formats(&self.columns, &self.firm, formats)?;
        let results: Vec<i16> = columns.iter().map(|column| column.format).collect();
        let query = Step {
            sql: &self.sql,
            values: bound(&self.parameters, values)?,
        };
        let session = self.session.get();
        let guard = self
            .guard
            .as_ref()
            .map(|(sql, values)| (sql.as_str(), values.as_slice()));
        // A query that reads no table is the private server's, which has no transaction then.
        let mut within = within.take().filter(|_| guard.is_some());
        let mut steps = self.looked_at.guarded(session, guard, &mut within)?;
        steps.push(query);
        let sent = match &mut within {
            Some(transaction) => transaction.relay(&steps, 0, &results, 0)?,
            None => {
                let relay = Relay {
                    at: steps.len() - 1,
                    formats: &results,
                    hidden: 0,
                };
                session.relayed(&steps, relay, false)?
            }
        };
        let reply = match sent {
            Ok(mut replies) => replies.pop()?,
            Err(Error::Server(said)) if said.code == CANCELLED => {
                return Some(Err(cancelled(&said)));
            }
            Err(_) => return None,
        };
        self.looked_at.again();
        let is_whole = reply.rows.fields.len() == columns.len();
        (is_whole && are_as_described(&reply, &columns)).then_some(())?;
        Some(Ok(Outcome::Rows {
            tag: "SELECT ".to_owned(),
            columns,
            messages: reply.relayed.messages,
            ends: reply.relayed.ends,
        }))
    }
}

/// Of each parameter the type that the client says, the one that it has, which may be wider, and
/// whether texts of that mean the same under all settings.
pub(crate) type Parameters = Vec<(u32, u32, bool)>;

/// The values of Bind as the server is sent them; None where one is not of its type.
pub(crate) fn bound(parameters: &Parameters, values: &Values) -> Option<Vec<Value>> {
    (values.values.len() == parameters.len()).then_some(())?;
    let all = values.values.iter().zip(&values.formats);
    all.zip(parameters)
        .map(|((value, format), &(given, type_, is_firm))| {
            let Some(bytes) = value else {
                return Some(Value::NullOf(type_));
            };
            if TEXTS.contains(&given) && TEXTS.contains(&type_) && given != type_ {
                // Blanks at the end count beside text, and not beside varchar.
                let counts = (given, type_) == (TEXT, BLANK_PADDED);
                (!counts || !bytes.ends_with(b" ")).then_some(())?;
                let text = std::str::from_utf8(bytes).ok()?;
                return (!text.contains('\0')).then(|| Value::Typed(type_, text.to_owned()));
            }
            if given != type_ {
                let number = integer(bytes, *format, given)?;
                return Some(Value::Typed(type_, number.to_string()));
            }
            if *format == 1 {
                return Some(Value::Binary(type_, bytes.to_vec()));
            }
            is_firm.then_some(())?;
            let text = std::str::from_utf8(bytes).ok()?;
            (!text.contains('\0')).then(|| Value::Typed(type_, text.to_owned()))
        })
        .collect()
}

/// Whether an answer begins with these columns.
pub(crate) fn are_as_described(reply: &Reply, columns: &[Column]) -> bool {
    let mut fields = reply.rows.fields.iter().map(|field| field.type_);
    let mut described = columns.iter().map(|column| column.type_);
    described.all(|own| fields.next().is_some_and(|field| is_sent_as(field, own)))
}

/// text, varchar and char(n).
const TEXTS: [u32; 3] = [TEXT, 1043, BLANK_PADDED];
const TEXT: u32 = 25;
const BLANK_PADDED: u32 = 1042;

/// Whether values of a type are sent in the same way as those of another one.
fn is_sent_as(type_: u32, other: u32) -> bool {
    let is_text = |type_| type_ != BLANK_PADDED && TEXTS.contains(&type_);
    type_ == other || (is_text(type_) && is_text(other))
}

/// A statement that was cancelled, by its client or by a limit of time.
pub(crate) fn cancelled(said: &ServerError) -> Failure {
    let limit = "canceling statement due to statement timeout";
    let request = "canceling statement due to user request";
    let is_limit = said.message == limit;
    Failure::error(CANCELLED, if is_limit { limit } else { request })
}

/// The columns in the formats that a client wants; None where one's text is not `firm`.
pub(crate) fn in_formats(
    columns: &[Column],
    firm: &[bool],
    formats: &[i16],
) -> Option<Vec<Column>> {
    if formats.len() > 1 && formats.len() != columns.len() {
        return None;
    }
    let mut columns = columns.to_vec();
    for (at, (column, firm)) in columns.iter_mut().zip(firm).enumerate() {
        column.format = formats.get(at).or(formats.first()).copied().unwrap_or(0);
        (column.format == 1 || (column.format == 0 && *firm)).then_some(())?;
    }
    Some(columns)
}
