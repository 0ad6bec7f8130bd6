//! The simple protocol: texts of statements; and COPY, which both protocols have.

use crate::copy_rows::{CopyForm, Splitter};
use crate::engine::{CopyPiece, Engine, Failure, Outcome, Values};
use crate::message::Request;
use crate::portals::Rows;
use crate::reply;
use crate::session::{Halt, Session, Step, SENT_AT_ONCE};

impl<E: Engine> Session<'_, E> {
    /// The simple protocol: statements of a text, one after the other, all of them one transaction
    /// where it begins none.
    pub(crate) fn query(&mut self, sql: &str) -> Step<()> {
        self.statements.remove("");
        self.portals.close("");
        let done = self.run_all(sql);
        if let Err(Halt::Failed(failure)) = &done {
            self.say(failure)?;
            if failure.ends {
                return done;
            }
        }
        if let Err(Halt::Lost(error)) = done {
            return Err(Halt::Lost(error));
        }
        self.end_implicit(done.is_ok())?;
        Ok(self.ready()?)
    }

    fn run_all(&mut self, sql: &str) -> Step<()> {
        let split = self.engine.split(sql);
        let texts = split.or_else(|failure| self.unprepared(failure))?;
        if texts.is_empty() {
            reply::empty_query(&mut self.client.output);
        }
        let alone = texts.len() == 1;
        for (text, before) in &texts {
            self.run_one(text, alone).map_err(|halt| match halt {
                Halt::Failed(failure) => Halt::Failed(failure.behind(*before)),
                lost => lost,
            })?;
        }
        Ok(())
    }

    fn run_one(&mut self, text: &str, alone: bool) -> Step<()> {
        let statement = self.prepared(text, &[], "")?;
        match self.outcome(&statement, &Values::default(), &[], alone)? {
            outcome @ Outcome::Rows { .. } => self.send_rows(outcome),
            other => self.finish(other),
        }
    }

    fn send_rows(&mut self, outcome: Outcome) -> Step<()> {
        if let Outcome::Rows { columns, .. } = &outcome {
            reply::row_description(&mut self.client.output, columns)?;
        }
        let mut rows = Rows::of(outcome);
        let (part, tag) = rows.all();
        for piece in part.chunks(SENT_AT_ONCE) {
            self.client.output.extend_from_slice(piece);
            if self.client.output.len() >= SENT_AT_ONCE {
                self.client.flush()?;
            }
        }
        reply::command_complete(&mut self.client.output, &tag);
        Ok(())
    }

    pub(crate) fn copy_in(&mut self, format: i8, columns: usize) -> Step<String> {
        reply::copy_in(
            &mut self.client.output,
            format,
            &vec![format.into(); columns],
        )?;
        self.client.flush()?;
        loop {
            let request = self.client.next(self.most_message_bytes);
            match request {
                Ok(Some(Request::CopyData(data))) => self.engine.copy_in(&data)?,
                Ok(Some(Request::CopyDone)) => return Ok(self.engine.copy_end(None)?),
                Ok(Some(Request::CopyFail(why))) => {
                    return Ok(self.engine.copy_end(Some(&why))?);
                }
                Ok(Some(Request::Flush | Request::Sync)) => {}
                other => {
                    let _ = self.engine.copy_end(Some("the client has gone"));
                    return Err(match other {
                        Err(error) => Halt::Lost(error),
                        _ => Failure::fatal("08P01", "no data in COPY FROM STDIN").into(),
                    });
                }
            }
        }
    }

    pub(crate) fn copy_out(&mut self, form: CopyForm, columns: usize) -> Step<String> {
        let format = i8::from(form == CopyForm::Binary);
        reply::copy_out(
            &mut self.client.output,
            format,
            &vec![format.into(); columns],
        )?;
        let mut rows = Splitter::new(form);
        while let Some(piece) = self.engine.copy_out()? {
            let data = match piece {
                CopyPiece::Data(data) => data,
                CopyPiece::Messages(messages) => {
                    self.client.output.extend_from_slice(&messages);
                    self.client.flush()?;
                    continue;
                }
            };
            rows.add(&data);
            while let Some(row) = rows.next_row() {
                reply::copy_data(&mut self.client.output, &row)?;
                if self.client.output.len() >= SENT_AT_ONCE {
                    self.client.flush()?;
                }
            }
        }
        if let Some(rest) = rows.rest() {
            reply::copy_data(&mut self.client.output, &rest)?;
        }
        reply::copy_done(&mut self.client.output);
        Ok(self.engine.copy_end(None)?)
    }
}
