//! A change of a row that is found by its keys.

use crate::postgres_replies::Reply;
use crate::proxy_exchanges::{On, Stop};
use crate::proxy_returning::{Changed, Decided, Job};
use crate::proxy_rows::{Chosen, NewRow};
use crate::proxy_writes::{unmade, Write};
use louver_postgres::{Look, Step, Value};
use louver_trusted::Tag;

impl Write {
    pub(crate) fn change(
        &self,
        chosen: &Chosen,
        new_row: Option<&NewRow>,
        job: &Job<'_>,
        on: &mut On<'_>,
        look: Look<'_>,
    ) -> Result<Changed, Stop> {
        let ring = self.ring.get();
        if !new_row.is_none_or(|new_row| new_row.takes(&job.given)) {
            return Err(Stop::Other);
        }
        let (tags, constants) = chosen.tags(ring, &job.given).ok_or(Stop::Other)?;
        if !chosen.records(self.number, &tags) {
            return Err(Stop::Other);
        }
        // Where a unique key has one constant, there is one row at most.
        let is_one = tags.iter().any(|constants| constants.len() == 1);
        let unread = self.unread.as_ref().filter(|_| is_one);
        if let (Some(sql), None, None) = (unread, new_row, &self.returning) {
            let step = Step {
                sql,
                values: constants,
            };
            return self.remove(chosen, step, on, look);
        }
        let step = Step {
            sql: &chosen.sql,
            values: constants,
        };
        let mut replies = self.exchange(on, step, (true, false), look)?;
        let reply = replies.pop().map(Reply::of);
        let decided = match self.decided(chosen, new_row, reply, &tags, job) {
            Ok(Some(decided)) => decided,
            nothing => {
                self.let_go(on);
                return nothing.map(|_| Changed::default());
            }
        };
        let last = Step {
            sql: &self.sql,
            values: decided.values,
        };
        self.exchange(on, last, (false, true), look)?;
        let count = if new_row.is_none() { -1 } else { 0 };
        on.grow(self.growth.get(), count, &decided.marks);
        Ok(Changed {
            count: 1,
            row: decided.row,
        })
    }

    /// Removes the row that has the keys, if there is one: they are all of its condition.
    fn remove(
        &self,
        chosen: &Chosen,
        step: Step<'_>,
        on: &mut On<'_>,
        look: Look<'_>,
    ) -> Result<Changed, Stop> {
        if !chosen.records_touched() {
            return Err(Stop::Other);
        }
        let removed = match self.exchange(on, step, (true, true), look) {
            Ok(replies) => replies.last().map_or(0, louver_postgres::Reply::count),
            Err(Stop::Unsure(error)) => return Err(Stop::Unsure(error)),
            Err(stop) => {
                chosen.nothing_touched();
                return Err(stop);
            }
        };
        if removed == 0 {
            chosen.nothing_touched();
            return Ok(Changed::default());
        }
        on.grow(self.growth.get(), -1, &[]);
        Ok(Changed {
            count: 1,
            row: None,
        })
    }

    /// The values of the statement that changes the row of an answer, and what is given back of it;
    /// None where there is none.
    fn decided(
        &self,
        chosen: &Chosen,
        new_row: Option<&NewRow>,
        reply: Option<Reply>,
        tags: &[Vec<Tag>],
        job: &Job<'_>,
    ) -> Result<Option<Decided>, Stop> {
        let (ring, epochs) = (self.ring.get(), self.epochs.get());
        let reply = reply.ok_or(Stop::Other)?;
        let row = chosen.row(ring, epochs, &reply, tags).ok_or(Stop::Other)?;
        let Some((number, old)) = row else {
            return Ok(None);
        };
        if !chosen.records_touched() {
            return Err(Stop::Other);
        }
        let (mut values, row, marks) = match new_row {
            Some(new_row) => {
                let fresh = new_row.row(Some(&old), &job.given, self.growth.get());
                let (row, marks) = fresh.map_err(unmade)?;
                let printed = self.printed(&row, job)?;
                let sealed = new_row.sealed(ring, epochs, &row);
                (sealed.map_err(unmade)?.values, printed, marks)
            }
            None => (Vec::new(), self.printed(&old, job)?, Vec::new()),
        };
        // It must be one row still.
        values.extend([Value::Int8(number), Value::Int8(1)]);
        Ok(Some(Decided { values, row, marks }))
    }
}
