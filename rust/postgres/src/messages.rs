//! All that is read of a server's messages, one after the other, without a connection.

use crate::answer::fields;
use crate::error::{Error, Result, ServerError};
use crate::rows::Rows;
use crate::socket::whole;
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::Message;

/// Reads messages as sessions do; how many rows there were. What is left at the end is of no
/// message.
///
/// # Errors
/// [`Error::Protocol`] for bytes that no server sends.
pub fn read(bytes: &[u8]) -> Result<usize> {
    let (mut input, mut count) = (BytesMut::from(bytes), 0);
    let mut rows = Rows::new(Vec::new());
    while let Some(message) = whole(&mut input, bytes.len())? {
        match message {
            Message::ErrorResponse(body) => drop(ServerError::read(body.fields())?),
            Message::NoticeResponse(body) => drop(ServerError::read(body.fields())?),
            Message::RowDescription(body) => rows = Rows::new(fields(&body)?),
            Message::DataRow(body) => {
                rows.push(&body)?;
                count += 1;
            }
            Message::CommandComplete(body) => {
                body.tag().map_err(Error::protocol)?;
                drop(std::mem::replace(&mut rows, Rows::new(Vec::new())).finish());
            }
            Message::ParameterDescription(body) => {
                body.parameters().count().map_err(Error::protocol)?;
            }
            Message::ParameterStatus(body) => {
                body.name().and(body.value()).map_err(Error::protocol)?;
            }
            Message::NotificationResponse(body) => {
                body.channel()
                    .and(body.message())
                    .map_err(Error::protocol)?;
            }
            _ => {}
        }
    }
    Ok(count)
}
