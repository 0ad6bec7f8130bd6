//! What statements at the front door read of the time, without Python: values of parameters that
//! stand for words such as CURRENT_TIMESTAMP. It is the statement's own outside of transactions;
//! within one it stands still, also for what Python runs once it has taken over.

use crate::proxy_client::Client;
use crate::proxy_transactions::Transaction;
use bytes::Bytes;
use louver_proxy::Values;
use pyo3::prelude::*;
use std::time::{SystemTime, UNIX_EPOCH};

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
        if let Some(moment) = self.within.as_ref()?.moment {
            return Some(moment);
        }
        let moment = Python::attach(|py| {
            self.call_apart(py, |object| object.call_method0("fix_time")?.extract())
        });
        let open = self.within.as_mut()?;
        open.moment = moment.ok();
        open.moment
    }

    /// A transaction has ended that Python does not know of: the time goes on.
    pub(crate) fn release_time(&mut self, ended: &Transaction) {
        if ended.moment.is_some() {
            let _ = Python::attach(|py| {
                self.call_apart(py, |object| object.call_method0("release_time").map(drop))
            });
        }
    }
}

fn now() -> Option<i64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let seconds = since.as_secs().checked_sub(YEAR_2000_S)?;
    let microseconds = i64::try_from(seconds).ok()?.checked_mul(1_000_000)?;
    microseconds.checked_add(i64::from(since.subsec_micros()))
}
