//! Answers in parts, and rows in bulk.

use crate::answer::{fields, Field};
use crate::connection::{unexpected, unsendable, Connection, Look};
use crate::error::{Error, Result};
use crate::oid::Oid;
use crate::rows::Rows;
use crate::statements::{bind, Step, BINARY};
use crate::values::Value;
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend::{self, CopyData};

impl Connection {
    /// Opens a portal within a transaction: a query whose rows are fetched in parts.
    ///
    /// # Errors
    /// What the server says.
    pub fn open_portal(
        &mut self,
        portal: &str,
        step: &Step<'_>,
        look: Look<'_>,
    ) -> Result<Vec<Field>> {
        let types: Vec<Oid> = step.values.iter().map(Value::oid).collect();
        self.parse("", step.sql, &types)?;
        bind(portal, "", &step.values, &BINARY, &mut self.socket.output)?;
        frontend::describe(b'P', portal, &mut self.socket.output).map_err(unsendable)?;
        self.sync()?;
        let mut columns = Vec::new();
        self.read_until_ready(look, |_, message| {
            match message {
                Message::ParseComplete | Message::BindComplete | Message::NoData => {}
                Message::RowDescription(body) => columns = fields(&body)?,
                _ => return Err(unexpected()),
            }
            Ok(())
        })?;
        Ok(columns)
    }

    /// The next rows of a portal, and whether there may be more.
    ///
    /// # Errors
    /// What the server says.
    pub fn fetch(
        &mut self,
        portal: &str,
        columns: &[Field],
        most: i32,
        look: Look<'_>,
    ) -> Result<(Rows, bool)> {
        frontend::execute(portal, most.max(1), &mut self.socket.output).map_err(unsendable)?;
        self.sync()?;
        let (mut rows, mut more) = (Rows::new(columns.to_vec()), false);
        self.read_until_ready(look, |_, message| {
            match message {
                Message::DataRow(body) => rows.push(&body)?,
                Message::PortalSuspended => more = true,
                Message::CommandComplete(_) => {}
                _ => return Err(unexpected()),
            }
            Ok(())
        })?;
        Ok((rows, more))
    }

    /// Runs `COPY … FROM STDIN` with these bytes. A failure of what gives them ends the COPY, which
    /// then writes nothing, and is handed back.
    ///
    /// # Errors
    /// What the server says; the outer one of the connection, the inner one of the bytes.
    pub fn copy_in<E>(
        &mut self,
        sql: &str,
        mut next: impl FnMut() -> std::result::Result<Option<Vec<u8>>, E>,
        look: Look<'_>,
    ) -> Result<std::result::Result<u64, E>> {
        frontend::query(sql, &mut self.socket.output).map_err(unsendable)?;
        self.start()?;
        let mut failed = None;
        let mut tag = String::new();
        let done = self.read_until_ready(look, |connection, message| {
            match message {
                Message::CopyInResponse(_) => {
                    loop {
                        match next() {
                            Ok(Some(bytes)) => {
                                let data = CopyData::new(bytes.as_slice()).map_err(unsendable)?;
                                data.write(&mut connection.socket.output);
                                connection.socket.flush()?;
                            }
                            Ok(None) => break,
                            Err(error) => {
                                failed = Some(error);
                                break;
                            }
                        }
                    }
                    let out = &mut connection.socket.output;
                    if failed.is_some() {
                        frontend::copy_fail("the rows ended early", out).map_err(unsendable)?;
                    } else {
                        frontend::copy_done(out);
                    }
                    connection.socket.flush()?;
                }
                Message::CommandComplete(body) => {
                    body.tag().map_err(Error::protocol)?.clone_into(&mut tag);
                }
                _ => return Err(unexpected()),
            }
            Ok(())
        });
        match (done, failed) {
            (Err(error), None) => Err(error),
            (Err(error), Some(_)) if error.is_fatal() => Err(error),
            (_, Some(error)) => Ok(Err(error)),
            (Ok(()), None) => Ok(Ok(tag
                .rsplit(' ')
                .next()
                .and_then(|word| word.parse().ok())
                .unwrap_or(0))),
        }
    }
}
