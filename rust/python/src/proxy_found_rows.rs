//! A change of a row that is found by its keys.

use crate::postgres_replies::Reply;
use crate::proxy_exchanges::{On, Stop};
use crate::proxy_returning::{Changed, Decided, Job};
use crate::proxy_rows::{Chosen, NewRow};
use crate::proxy_writes::{unmade, Write};
use louver_postgres::{Look, Step, Value};
use louver_trusted::Tag;

/// A row that was waited for may have been removed and put in anew by a change of several rows, of
/// which a statement that began before sees neither. Where there is none, it is looked once more,
/// which is what a statement would have seen that began later; the flag says whether that begins.
const LOOKS: [bool; 2] = [true, false];

impl Write {
    /// Changes the row that has the keys, or removes it, if there is one.
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
            return self.remove(chosen, sql, &constants, on, look);
        }
        let mut decided = None;
        for begins in LOOKS {
            let step = Step {
                sql: &chosen.sql,
                values: constants.clone(),
            };
            let mut replies = self.exchange(on, step, (begins, false), look)?;
            let reply = replies.pop().map(Reply::of);
            decided = match self.decided(chosen, new_row, reply, &tags, job) {
                Err(stop) => {
                    self.let_go(on);
                    return Err(stop);
                }
                Ok(decided) => decided,
            };
            if decided.is_some() {
                break;
            }
        }
        let Some(decided) = decided else {
            self.let_go(on);
            return Ok(Changed::default());
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
        sql: &str,
        constants: &[Value],
        on: &mut On<'_>,
        look: Look<'_>,
    ) -> Result<Changed, Stop> {
        if !chosen.records_touched() {
            return Err(Stop::Other);
        }
        for _ in LOOKS {
            let step = Step {
                sql,
                values: constants.to_vec(),
            };
            let removed = match self.exchange(on, step, (true, true), look) {
                Ok(replies) => replies.last().map_or(0, louver_postgres::Reply::count),
                Err(Stop::Unsure(error)) => return Err(Stop::Unsure(error)),
                Err(stop) => {
                    chosen.nothing_touched();
                    return Err(stop);
                }
            };
            if removed > 0 {
                on.grow(self.growth.get(), -1, &[]);
                return Ok(Changed {
                    count: 1,
                    row: None,
                });
            }
        }
        chosen.nothing_touched();
        Ok(Changed::default())
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
