//! Statements and cursors have the same names in SQL and in the protocol, as in PostgreSQL: FETCH
//! reads from a portal, and a message executes a cursor of DECLARE.

use crate::engine::{CursorUse, CursorVerb, Engine, Failure, Outcome, Statement, Values};
use crate::portals;
use crate::reply;
use crate::session::{Session, Step, SENT_AT_ONCE};

impl<E: Engine> Session<'_, E> {
    /// That a portal may have this name.
    pub(crate) fn require_no_cursor(&mut self, name: &str) -> Step<()> {
        if !name.is_empty() && self.engine.cursor(name)?.is_some() {
            return Err(taken(name).into());
        }
        Ok(())
    }

    pub(crate) fn close_statement(&mut self, name: &str) -> Step<()> {
        self.statements.remove(name);
        if !name.is_empty() {
            self.engine.close_named(name)?;
        }
        Ok(())
    }

    pub(crate) fn close_portal(&mut self, name: &str) -> Step<()> {
        let is_portal = name.is_empty() || self.portals.get(name).is_some();
        self.portals.close(name);
        if !is_portal && self.engine.cursor(name)?.is_some() {
            self.run_text(&format!("CLOSE {}", quoted(name)))?;
        }
        Ok(())
    }

    /// Execute of a cursor that SQL has declared.
    pub(crate) fn execute_cursor(&mut self, name: &str, most: i32) -> Step<()> {
        let count = match most {
            1.. => most.to_string(),
            _ => "ALL".to_owned(),
        };
        let outcome = self.run_text(&format!("FETCH FORWARD {count} FROM {}", quoted(name)))?;
        let Outcome::Rows { messages, ends, .. } = outcome else {
            return Err(portals::missing(name).into());
        };
        for piece in messages.chunks(SENT_AT_ONCE) {
            self.client.output.extend_from_slice(piece);
            if self.client.output.len() >= SENT_AT_ONCE {
                self.client.flush()?;
            }
        }
        if most > 0 && ends.len() as u64 == u64::from(most.unsigned_abs()) {
            reply::portal_suspended(&mut self.client.output);
        } else {
            reply::command_complete(&mut self.client.output, &format!("SELECT {}", ends.len()));
        }
        Ok(())
    }

    fn run_text(&mut self, sql: &str) -> Step<Outcome> {
        let statement = self.prepared(sql, &[], "")?;
        self.outcome(&statement, &Values::default(), &[], true)
    }

    /// What a statement on a cursor does, where that is a portal; None where it is for the engine.
    pub(crate) fn on_portal(&mut self, statement: &Statement<E::Handle>) -> Step<Option<Outcome>> {
        let Some(used) = &statement.cursor else {
            return Ok(None);
        };
        if self.engine.status() == b'E' || self.portals.get(&used.name).is_none() {
            return Ok(None);
        }
        match used.verb {
            CursorVerb::Declare => Err(taken(&used.name).into()),
            CursorVerb::Close => {
                self.portals.close(&used.name);
                let tag = "CLOSE CURSOR".to_owned();
                Ok(Some(Outcome::Done { tag }))
            }
            CursorVerb::Fetch | CursorVerb::Move => self.fetched(used).map(Some),
        }
    }

    fn fetched(&mut self, used: &CursorUse) -> Step<Outcome> {
        let most = i32::try_from(used.ahead).unwrap_or(i32::MAX);
        if most < 0 {
            let message = "cursor can only scan forward";
            return Err(Failure::error("55000", message).into());
        }
        let Some(portal) = self.portals.get(&used.name) else {
            return Err(portals::missing(&used.name).into());
        };
        if portal.formats.iter().any(|format| *format != 0) {
            let message = "FETCH from a portal in binary form is not supported";
            return Err(Failure::error("0A000", message).into());
        }
        if let Some((own, values, formats)) = portal.to_run(&used.name)? {
            let outcome = self.outcome(&own, &values, &formats, false)?;
            let has_rows = matches!(outcome, Outcome::Rows { .. });
            if let Some(portal) = self.portals.get_mut(&used.name) {
                portal.ran(outcome);
            }
            if !has_rows {
                return Err(portals::done(&used.name).into());
            }
        }
        let Some(portal) = self.portals.get_mut(&used.name) else {
            return Err(portals::missing(&used.name).into());
        };
        let (columns, messages, ends) = portal.rows(most);
        if used.verb == CursorVerb::Move {
            let tag = format!("MOVE {}", ends.len());
            return Ok(Outcome::Done { tag });
        }
        Ok(Outcome::Rows {
            tag: "FETCH ".to_owned(),
            columns,
            messages,
            ends,
        })
    }
}

fn taken(name: &str) -> Failure {
    Failure::error("42P03", format!("cursor \"{name}\" already exists"))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
