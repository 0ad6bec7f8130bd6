//! Queries by keys, or by values of columns, that come again at the front door: from the values of
//! Bind to rows on the wire without the interpreter. What it does not know, or refuses, is left to
//! Python's way, which does all of it again: nothing was changed.

use crate::epochs::Epochs;
use crate::keyring::KeyRing;
use crate::look_ups::{uuid, LookUp};
use crate::postgres::Session;
use crate::postgres_replies::Reply;
use crate::postgres_values::Given as Sent;
use crate::proxy_finish::{taken, Bound, Finish};
use crate::proxy_passes::{cancelled, in_formats, LookedAt, CANCELLED};
use crate::proxy_shown::{Counted, GivenReserve, Lacking, Opens, Unrecorded};
use crate::proxy_sources::{GivenSource, Sources};
use crate::proxy_transactions::Transaction;
use crate::proxy_values::{described, Described};
use crate::raw_messages::Given;
use crate::reserve::number;
use arrow_array::Array;
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
    /// Of a query by values of columns that may be no keys, which is in some order or a part.
    finish: Option<Py<Finish>>,
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
    /// reserves of what it shows the server, the names of the encrypted columns that it opens, and
    /// of a query without keys what is done with its rows.
    #[new]
    #[pyo3(signature = (session, ring, epochs, look_up, sql, guard, sources, shown, reserves, opens,
        finish=None))]
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
        finish: Option<Py<Finish>>,
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
            finish,
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
        let sending = self.sending(values)?;
        if !self.unrecorded.take(sending.condition, &self.reserves) {
            return None;
        }
        let query = Step {
            sql: &self.sql,
            values: sending.constants(),
        };
        let session = self.session.get();
        let guard = Some((self.guard.0.as_str(), self.guard.1.as_slice()));
        let mut steps = self.looked_at.guarded(session, guard, &mut within)?;
        steps.push(query);
        // Between two guards that hold, a text was run under this version.
        let looks_again = steps.len() > 1 && self.looks_again();
        if looks_again {
            steps.push(Step {
                sql: &self.guard.0,
                values: self.guard.1.clone(),
            });
        }
        let sent = match &mut within {
            Some(transaction) => transaction.exchange(&steps, &mut || false)?,
            None => session.direct(&steps, &mut || false)?,
        };
        let reply = match sent {
            Ok(mut replies) => {
                // What begins a transaction may go before the steps.
                let behind = looks_again.then(|| replies.pop());
                (behind.is_none_or(|reply| reply.is_some())).then_some(())?;
                replies.pop()?
            }
            Err(Error::Server(said)) if said.code == CANCELLED => {
                return Some(Err(cancelled(&said)));
            }
            Err(_) => return None,
        };
        self.looked_at.again();
        let outcome = self.opened(&Reply::of(reply), &sending, columns)?;
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

    /// What the query is sent with; None where a value is not taken as it is.
    fn sending(&self, values: &Values) -> Option<Sending> {
        let (ring, given) = (self.ring.get(), Given::Message(values));
        Some(match &self.finish {
            None => {
                let tags = self.sources.tags(ring, self.look_up.get(), &given)?;
                Sending {
                    condition: number((self.number, &tags)),
                    tags,
                    bound: None,
                }
            }
            // Python counts a condition by all of its values as well.
            Some(finish) => Sending {
                condition: number((self.number, &values.values, &values.formats)),
                tags: Vec::new(),
                bound: Some(finish.get().bound(ring, &given)?),
            },
        })
    }

    fn looks_again(&self) -> bool {
        let finish = self.finish.as_ref();
        finish.is_some_and(|finish| finish.get().looks_again)
    }

    fn opened(&self, reply: &Reply, sending: &Sending, columns: Vec<Column>) -> Option<Outcome> {
        let look_up = self.look_up.get();
        let answer = look_up.columns(reply).ok()?;
        let (ring, epochs) = (self.ring.get(), self.epochs.get());
        let finish = self.finish.as_ref().zip(sending.bound.as_ref());
        if let Some((finish, _)) = finish.filter(|_| {
            answer
                .first()
                .is_some_and(|ids| look_up.is_beyond(ids.len()))
        }) {
            finish.get().fell();
            return None;
        }
        let opened = look_up.opened(ring, epochs, &answer, &sending.tags).ok()?;
        let rows = match finish {
            Some((finish, bound)) => Some(finish.get().rows(&opened, bound)?),
            None => None,
        };
        let count = rows.as_ref().map_or(opened.first()?.len(), Array::len);
        let mut parts = Vec::with_capacity(columns.len());
        for (&at, column) in self.shown.iter().zip(&columns) {
            let form = if column.format == 1 {
                Form::Binary
            } else {
                Form::Text
            };
            // The row ids go first.
            let values = opened.get(at + 1)?;
            let values = match &rows {
                Some(rows) => taken(values, rows)?,
                None => values.clone(),
            };
            parts.push((values, column.type_, form));
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

/// What a query is sent with.
struct Sending {
    /// What tells it from others that the server sees.
    condition: u64,
    tags: Vec<Vec<Tag>>,
    bound: Option<Bound>,
}

impl Sending {
    fn constants(&self) -> Vec<Value> {
        let tags = self.tags.iter().flatten();
        let tags = tags.map(|tag| Value::Text(uuid(tag)));
        let bound = self
            .bound
            .iter()
            .flat_map(|bound| bound.sent.iter().cloned());
        tags.chain(bound).collect()
    }
}
