//! What statements at the front door read of the time, without Python: values of parameters that
//! stand for words such as CURRENT_TIMESTAMP. It is the statement's own outside of transactions;
//! within one it stands still, also for what Python runs once it has taken over.

use crate::postgres::Session;
use crate::proxy_client::Client;
use crate::proxy_transactions::Transaction;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::Array;
use bytes::Bytes;
use louver_postgres::{Reply, Step};
use louver_proxy::Values;
use pyo3::prelude::*;
use std::time::{SystemTime, UNIX_EPOCH};

const NOW: &str = "SELECT (extract(epoch FROM now()) * 1000000)::bigint - 946684800000000";
const DATE: u32 = 1082;
const YEAR_2000_S: u64 = 946_684_800;
const DAY_MICROSECONDS: i64 = 86_400_000_000;

/// Further parameters of a statement.
pub(crate) struct Moments {
    /// Their types.
    pub(crate) types: Vec<u32>,
    /// Where the values of all parameters are among the client's and these.
    pub(crate) places: Vec<usize>,
}

impl Client {
    /// The values of a statement with those of its words of time, in the order of its text; None
    /// where the time is not known.
    pub(crate) fn with_moments(&mut self, moments: &Moments, values: &Values) -> Option<Values> {
        let moment = if self.within.is_some() {
            self.fixed_moment()?
        } else {
            now()?
        };
        let mut all = values.clone();
        for &type_ in &moments.types {
            let bytes = if type_ == DATE {
                let day = i32::try_from(moment.div_euclid(DAY_MICROSECONDS)).ok()?;
                Bytes::copy_from_slice(&day.to_be_bytes())
            } else {
                Bytes::copy_from_slice(&moment.to_be_bytes())
            };
            all.values.push(Some(bytes));
            all.formats.push(1);
        }
        let places = || moments.places.iter();
        Some(Values {
            values: places()
                .map(|&at| all.values.get(at).cloned())
                .collect::<Option<_>>()?,
            formats: places()
                .map(|&at| all.formats.get(at).copied())
                .collect::<Option<_>>()?,
        })
    }

    /// That of the open transaction, at which Python's time then stands still as well.
    fn fixed_moment(&mut self) -> Option<i64> {
        self.within.as_mut()?.fixed_moment()
    }

    /// Before Python does anything: the time of the private server stands still.
    pub(crate) fn tell_time(&mut self, py: Python<'_>) {
        if self.within.as_mut().is_some_and(Transaction::tells_time) {
            let _ = self.object.call_method0(py, "time_is_fixed");
        }
    }

    /// A transaction has ended that Python does not know of: the time goes on.
    pub(crate) fn release_time(&mut self, ended: &Transaction) {
        if ended.has_told_time() {
            let _ = Python::attach(|py| {
                self.call_apart(py, |object| object.call_method0("release_time").map(drop))
            });
        } else {
            ended.release_time();
        }
    }
}

/// The sessions of the private server, whose time is that of the transaction that is open there.
/// It is read of the first one.
pub(crate) struct Clock(pub(crate) Vec<Py<Session>>);

impl Clock {
    /// Lets the time stand still: what it is, in microseconds since the year 2000. None where a
    /// session is in use, or not there.
    pub(crate) fn fix(&self) -> Option<i64> {
        let steps = [step("BEGIN"), step(NOW)];
        let mut moment = None;
        for (at, session) in self.0.iter().enumerate() {
            let count = if at == 0 { 2 } else { 1 };
            let steps = steps.get(..count).unwrap_or_default();
            let replies = session.get().direct(steps, &mut || false);
            let Some(Ok(mut replies)) = replies else {
                self.release(at + 1);
                return None;
            };
            if at == 0 {
                moment = replies.pop().and_then(number);
            }
        }
        if moment.is_none() {
            self.release(self.0.len());
        }
        moment
    }

    /// Lets it go on, in so many sessions.
    pub(crate) fn release(&self, count: usize) {
        for session in self.0.iter().take(count) {
            let _ = session
                .get()
                .direct_within(&[step("COMMIT")], &mut || false);
        }
    }
}

fn step(sql: &str) -> Step<'_> {
    Step {
        sql,
        values: Vec::new(),
    }
}

/// The only value of an answer.
pub(crate) fn number(reply: Reply) -> Option<i64> {
    let (_, columns) = reply.rows.finish();
    let shown = columns.first()?.as_primitive_opt::<Int64Type>()?;
    (shown.len() == 1 && shown.is_valid(0)).then(|| shown.value(0))
}

fn now() -> Option<i64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let seconds = since.as_secs().checked_sub(YEAR_2000_S)?;
    let microseconds = i64::try_from(seconds).ok()?.checked_mul(1_000_000)?;
    microseconds.checked_add(i64::from(since.subsec_micros()))
}
