//! Queries by keys that come again at the front door: from the values of Bind to rows on the wire
//! without the interpreter. What it does not know, or refuses, is left to Python's way, which does
//! all of it again: nothing was changed.

use crate::epochs::Epochs;
use crate::keyring::KeyRing;
use crate::look_ups::{uuid, LookUp};
use crate::postgres::Session;
use crate::postgres_replies::Reply;
use crate::postgres_values::Given as Sent;
use crate::proxy_passes::{cancelled, in_formats, LookedAt, CANCELLED};
use crate::proxy_shown::{Counted, GivenReserve, Lacking, Opens, Unrecorded};
use crate::proxy_sources::{GivenSource, Sources};
use crate::proxy_transactions::Transaction;
use crate::proxy_values::{described, Described};
use crate::raw_messages::Given;
use crate::reserve::number;
use bytes::BytesMut;
use louver_postgres::{data_rows, Error, Form, Step, Value};
use louver_proxy::{Column, Disclosed, Failure, Outcome, Values};
use louver_trusted::Tag;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

static READS: AtomicU64 = AtomicU64::new(0);

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
    looked_at: LookedAt,
    sources: Sources,
    /// The columns of the answer among those that are opened, and what clients learn of them; text
    /// is printed of those that are `firm`.
    shown: Vec<usize>,
    columns: Vec<Column>,
    firm: Vec<bool>,
    reserves: Vec<Counted>,
    unrecorded: Unrecorded,
    opens: Opens,
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
        guard: (String, Vec<Sent>),
        sources: Vec<Vec<Vec<GivenSource>>>,
        shown: Vec<(usize, Described, bool)>,
        reserves: Vec<GivenReserve>,
        opens: Vec<String>,
    ) -> PyResult<Self> {
        let sources = Sources::new(sources, look_up.get())?;
        Ok(Self {
            number: READS.fetch_add(1, Ordering::Relaxed),
            session,
            ring,
            epochs,
            look_up,
            sql,
            guard: (guard.0, Sent::values(guard.1)?),
            looked_at: LookedAt::now(),
            sources,
            firm: shown.iter().map(|item| item.2).collect(),
            columns: shown.iter().map(|item| described(item.1.clone())).collect(),
            shown: shown.iter().map(|item| item.0).collect(),
            reserves: Counted::all(reserves),
            unrecorded: Unrecorded::default(),
            opens: Opens::new(opens),
        })
    }
}

impl Read {
    /// The rows of the query with these values, read `within` a transaction or outside of any; None
    /// where Python's way is to be taken. The interpreter's lock is not held.
    pub(crate) fn run(
        &self,
        values: &Values,
        formats: &[i16],
        mut within: Option<&mut Transaction>,
    ) -> Option<Result<Outcome, Failure>> {
        self.unrecorded.clear();
        let columns = in_formats(&self.columns, &self.firm, formats)?;
        let tags =
            self.sources
                .tags(self.ring.get(), self.look_up.get(), &Given::Message(values))?;
        let condition = number((self.number, &tags));
        if !self.unrecorded.take(condition, &self.reserves) {
            return None;
        }
        let constants = tags.iter().flatten().map(|tag| Value::Text(uuid(tag)));
        let query = Step {
            sql: &self.sql,
            values: constants.collect(),
        };
        let session = self.session.get();
        let guard = Some((self.guard.0.as_str(), self.guard.1.as_slice()));
        let mut steps = self.looked_at.guarded(session, guard, &mut within)?;
        steps.push(query);
        let sent = match &mut within {
            Some(transaction) => transaction.exchange(&steps, &mut || false)?,
            None => session.direct(&steps, &mut || false)?,
        };
        let reply = match sent {
            Ok(mut replies) => replies.pop()?,
            Err(Error::Server(said)) if said.code == CANCELLED => {
                return Some(Err(cancelled(&said)));
            }
            Err(_) => return None,
        };
        self.looked_at.again();
        let outcome = self.opened(&Reply::of(reply), &tags, columns)?;
        self.opens.opened();
        Some(Ok(outcome))
    }

    /// What it has opened and newly shown since this was last called.
    pub(crate) fn disclosed(&self) -> Disclosed {
        self.opens.disclosed(self.reserves.iter())
    }

    /// What it cannot go on without.
    pub(crate) fn lacking(&self) -> Lacking<'_> {
        Lacking::of(self.reserves.iter(), false, Vec::new())
    }

    /// Python has run the query, for which it has looked at the version, and recorded it.
    pub(crate) fn recorded(&self) {
        self.looked_at.again();
        self.unrecorded.recorded(&self.reserves);
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
}
