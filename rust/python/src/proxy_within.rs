//! Statements of a client's open transaction that Python does not know of, and how it takes that
//! over: it does again what was done, each statement with the same outcome.

use crate::proxy_client::Client;
use crate::proxy_passes::{cancelled, CANCELLED};
use crate::proxy_running::RUNS;
use crate::proxy_statements::{Direct, End, Handle};
use crate::proxy_transactions::Transaction;
use louver_postgres::Error;
use louver_proxy::{Done, Failure, Kind, Outcome, Statement, Values};
use pyo3::prelude::*;

/// Of so many transactions with the same begin that were taken over, the next ones are Python's.
const MOST_FALLS: u32 = 2;
/// At most 2 to the power of this many of them.
const LONGEST_WAIT: u32 = 6;

impl Client {
    /// What a statement gave within the open transaction; None where Python is to run it.
    pub(crate) fn run_within(
        &mut self,
        statement: &Statement<Handle>,
        values: &Values,
        formats: &[i16],
    ) -> Option<Done<Outcome>> {
        if let Some(end) = statement.handle.ends() {
            return self.end_within(end);
        }
        let open = self.within.as_mut()?;
        if statement.kind != Kind::Other || open.status() != b'T' || !open.has_space() {
            return None;
        }
        if open.first().is_none() {
            let mut known = statement.handle.known();
            if known.waits > 0 {
                known.waits -= 1;
                return None;
            }
        }
        let done = self.run_known(statement, values, formats);
        let open = self.within.as_mut()?;
        if done.is_none() && open.is_deadlocked() {
            open.fail();
            return Some(Err(Failure::error("40P01", "deadlock detected")));
        }
        if done.is_none() {
            let known = statement.handle.known();
            open.excused = known.way.is_none() && known.runs < RUNS;
        }
        let done = done?;
        match &done {
            Ok(outcome) => open.add(&statement.handle, values, formats, outcome),
            Err(_) => open.fail(),
        }
        Some(done)
    }

    fn end_within(&mut self, end: End) -> Option<Done<Outcome>> {
        let tag = |tag: &str| {
            Some(Ok(Outcome::Done {
                tag: tag.to_owned(),
            }))
        };
        let open = self.within.as_mut()?;
        if end == End::Rollback || open.status() == b'E' {
            self.abandon();
            return tag("ROLLBACK");
        }
        match open.commit() {
            Ok(grew) => {
                if let Some(first) = open.first() {
                    let mut known = first.known();
                    known.falls = known.falls.saturating_sub(1);
                }
                self.wrote |= grew;
                self.abandon();
                tag("COMMIT")
            }
            Err(Some(error)) if error.is_fatal() => {
                self.abandon();
                Some(self.unsure())
            }
            Err(Some(Error::Server(said))) if said.code == CANCELLED => {
                self.abandon();
                Some(Err(cancelled(&said)))
            }
            // Python says why, or does it all.
            Err(_) => None,
        }
    }

    /// Has Python take over the open transaction, if there is one that it does not know of.
    ///
    /// # Errors
    /// What was done ends otherwise now, since others have changed it; or the server is not there.
    pub(crate) fn hand_over(&mut self, py: Python<'_>) -> Done<()> {
        let Some(mut open) = self.within.take() else {
            return Ok(());
        };
        open.undo();
        if let Some(first) = open.first().filter(|_| !open.excused) {
            let mut known = first.known();
            known.falls = (known.falls + 1).min(LONGEST_WAIT);
            if known.falls > MOST_FALLS {
                known.waits = 1 << known.falls;
            }
        }
        // It draws the same numbers again, for the client may know them.
        let stood: Vec<_> = open.drawn().to_vec();
        let marks: Vec<_> = stood.iter().map(|(numbers, _)| numbers.mark()).collect();
        if open.status() != b'E' {
            for (numbers, mark) in &stood {
                numbers.return_to(*mark);
            }
        }
        let done = self.do_again(py, open);
        if done.is_err() {
            // Numbers that were drawn stay so.
            for ((numbers, _), mark) in stood.iter().zip(marks) {
                numbers.return_to(mark);
                self.wrote = true;
            }
        }
        done
    }

    fn do_again(&mut self, py: Python<'_>, mut open: Transaction) -> Done<()> {
        let begin = open.begin().clone();
        if let Err(failure) = self.run_planned(&begin, &Values::default(), &[]) {
            // The client is within a transaction still, of which nothing is left.
            open.fail();
            self.within = Some(open);
            return Err(failure);
        }
        if open.status() == b'E' {
            return self.call_apart(py, |object| object.call_method0("fail").map(drop));
        }
        for done in open.take_done() {
            let again = self.run_planned(&done.handle, &done.values, &done.formats);
            if !again.is_ok_and(|again| open.is_same(&done, &again)) {
                self.call_apart(py, |object| object.call_method0("fail").map(drop))?;
                let message = "could not serialize access due to concurrent update";
                return Err(Failure::error("40001", message));
            }
        }
        Ok(())
    }

    /// Whether the open transaction has begun again under the newest catalog, since the one that it
    /// relied on was another, and nothing was done in it.
    pub(crate) fn began_again(&mut self) -> bool {
        if !self.within.as_ref().is_some_and(Transaction::is_stale) {
            return false;
        }
        let done =
            Python::attach(|py| self.call_apart(py, |o| o.call_method0("refresh").map(drop)));
        let Some(begin) = self.within.as_ref().map(|open| open.begin().clone()) else {
            return false;
        };
        if done.is_err() {
            return false;
        }
        self.renew(&begin, false);
        let known = begin.known();
        let Some(Direct::Begin(begin)) = known.way.as_ref().filter(|_| self.is_valid(&known))
        else {
            return false;
        };
        let open = self.within.as_mut();
        open.map(|open| open.begin_again(begin.get())).is_some()
    }

    /// Leaves the open transaction, which is undone if the server has not ended it.
    pub(crate) fn abandon(&mut self) {
        if let Some(mut open) = self.within.take() {
            open.undo();
            self.release_time(&open);
        }
    }
}
