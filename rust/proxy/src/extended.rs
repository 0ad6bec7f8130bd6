//! The extended protocol: statements are prepared, bound, described and run by messages of their
//! own.

use crate::engine::{Engine, Failure, Kind, Outcome, Statement};
use crate::message::{Request, Target};
use crate::portals::{self, Portal};
use crate::reply::{self, Column};
use crate::session::{Session, Step, SENT_AT_ONCE, SYNC};
use std::rc::Rc;

impl<E: Engine> Session<'_, E> {
    pub(crate) fn extended(&mut self, request: Request) -> Step<()> {
        match request {
            Request::Parse { name, sql, types } => self.parse(name, &sql, &types),
            Request::Bind {
                portal,
                statement,
                parameter_formats,
                parameters,
                result_formats,
            } => {
                let statement = self.statement(&statement)?;
                let bound = portals::bound(&statement.1, parameter_formats, parameters);
                let values = bound.map_err(|why| portals::misfit(&statement.0, &why))?;
                self.require_no_cursor(&portal)?;
                self.portals
                    .open(portal, Portal::new(statement.1, values, result_formats))?;
                reply::bind_complete(&mut self.client.output);
                Ok(())
            }
            Request::Describe(Target::Statement, name) => self.describe_statement(&name),
            Request::Describe(Target::Portal, name) => self.describe_portal(&name),
            Request::Execute { portal, most } => self.execute(&portal, most),
            Request::Close(target, name) => {
                match target {
                    Target::Statement => self.close_statement(&name)?,
                    Target::Portal => self.close_portal(&name)?,
                }
                reply::close_complete(&mut self.client.output);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn parse(&mut self, name: String, sql: &str, types: &[u32]) -> Step<()> {
        if !name.is_empty() && self.statements.contains_key(&name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(Failure::error("42P05", message).into());
        }
        if name.is_empty() {
            // It is replaced, even by none.
            self.statements.remove("");
        }
        let statement = self.prepared(sql, types, &name)?;
        self.statements.insert(name, Rc::new(statement));
        reply::parse_complete(&mut self.client.output);
        Ok(())
    }

    fn statement(&mut self, name: &str) -> Step<(String, Rc<Statement<E::Handle>>)> {
        let mut known = self.statements.get(name).cloned();
        if known.is_none() && !name.is_empty() {
            known = self.engine.named(name)?.map(Rc::new);
        }
        known.map(|known| (name.to_owned(), known)).ok_or_else(|| {
            let message = if name.is_empty() {
                "unnamed prepared statement does not exist".to_owned()
            } else {
                format!("prepared statement \"{name}\" does not exist")
            };
            Failure::error("26000", message).into()
        })
    }

    fn describe_statement(&mut self, name: &str) -> Step<()> {
        let (_, statement) = self.statement(name)?;
        let fresh = match statement.kind {
            Kind::Varies => Some(self.varying(&statement)?),
            _ => None,
        };
        reply::parameter_description(&mut self.client.output, &statement.parameters)?;
        self.columns(fresh.as_ref().unwrap_or(&statement.columns).as_deref())
    }

    /// The columns of a statement of which they vary. SHOW and EXPLAIN run for that, and are
    /// written down.
    fn varying(&mut self, statement: &Statement<E::Handle>) -> Step<Option<Vec<Column>>> {
        let looks = self.engine.looks(statement);
        if !matches!(looks.kind.as_str(), "SHOW" | "EXPLAIN") {
            return Ok(self.engine.describe(statement)?);
        }
        let entry = self.begins(looks)?;
        let done = self.engine.describe(statement).map_err(Into::into);
        self.ends(&entry, done, |_| 0)
    }

    fn describe_portal(&mut self, name: &str) -> Step<()> {
        if let Some(portal) = self.portals.get(name) {
            let (statement, formats) = (Rc::clone(&portal.statement), portal.formats.clone());
            let fresh = match statement.kind {
                Kind::Varies => self.varying(&statement)?,
                _ => statement.columns.clone(),
            };
            let columns = fresh.map(|all| portals::in_formats(all, &formats));
            return self.columns(columns.transpose()?.as_deref());
        }
        let columns = self.engine.cursor(name)?;
        if columns.is_none() {
            return Err(portals::missing(name).into());
        }
        self.columns(columns.as_deref())
    }

    fn columns(&mut self, columns: Option<&[Column]>) -> Step<()> {
        match columns {
            Some(columns) => reply::row_description(&mut self.client.output, columns)?,
            None => reply::no_data(&mut self.client.output),
        }
        Ok(())
    }

    fn execute(&mut self, name: &str, most: i32) -> Step<()> {
        let alone = self.client.next_tag() == Some(SYNC);
        if self.portals.get(name).is_none() && self.engine.cursor(name)?.is_some() {
            return self.execute_cursor(name, most);
        }
        let portal = self.portals.get(name).ok_or_else(|| portals::missing(name));
        let (statement, values, formats) = match portal?.to_run(name)? {
            Some(parts) => parts,
            None => return self.more(name, most),
        };
        let outcome = self.outcome(&statement, &values, &formats, alone)?;
        if let (Outcome::Rows { columns, .. }, Kind::Other) = (&outcome, statement.kind) {
            portals::require_same(statement.columns.as_deref(), columns)?;
        }
        match outcome {
            outcome @ Outcome::Rows { .. } => {
                if let Some(portal) = self.portals.get_mut(name) {
                    portal.ran(outcome);
                }
                self.more(name, most)
            }
            other => {
                if let Some(portal) = self.portals.get_mut(name) {
                    portal.done();
                }
                self.finish(other)
            }
        }
    }

    /// Rows of a portal that has run.
    fn more(&mut self, name: &str, most: i32) -> Step<()> {
        if self.engine.status() == b'E' {
            let message = "current transaction is aborted, commands ignored until end of \
                           transaction block";
            return Err(Failure::error("25P02", message).into());
        }
        let Some(portal) = self.portals.get_mut(name) else {
            return Err(portals::missing(name).into());
        };
        let (part, end) = portal.next(most);
        for piece in part.chunks(SENT_AT_ONCE) {
            self.client.output.extend_from_slice(piece);
            if self.client.output.len() >= SENT_AT_ONCE {
                self.client.flush()?;
            }
        }
        match end {
            Some(tag) => reply::command_complete(&mut self.client.output, &tag),
            None => reply::portal_suspended(&mut self.client.output),
        }
        Ok(())
    }
}
