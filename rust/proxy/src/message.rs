//! What a client sends behind its greeting, as PostgreSQL's manual lists it ("Message Formats").

use crate::error::{Error, Result};
use bytes::{Buf, Bytes, BytesMut};
use std::ffi::CStr;

/// Bytes of a message whose texts are only names, with its length: PostgreSQL's own bound.
const MOST_OF_NAMES: usize = 10_000;
/// A message's letter, and its length.
const HEAD: usize = 5;

/// What DESCRIBE and CLOSE are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A prepared statement.
    Statement,
    /// A portal.
    Portal,
}

/// A message. Texts are UTF-8 and have no NUL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Statements to run at once, by the simple protocol.
    Query(String),
    /// A statement to prepare.
    Parse {
        /// The statement's name, "" for the unnamed one.
        name: String,
        /// Its text.
        sql: String,
        /// The types of its first parameters, 0 where the server is to say.
        types: Vec<u32>,
    },
    /// Values for a prepared statement.
    Bind {
        /// The portal's name, "" for the unnamed one.
        portal: String,
        /// The statement's name.
        statement: String,
        /// 0 for text, 1 for binary: none (all are text), one for all, or one for each.
        parameter_formats: Vec<i16>,
        /// The values, None for NULL.
        parameters: Vec<Option<Bytes>>,
        /// As `parameter_formats`, for the columns of the result; their number is not checked.
        result_formats: Vec<i16>,
    },
    /// What columns and parameters there are.
    Describe(Target, String),
    /// Rows of a portal.
    Execute {
        /// The portal's name.
        portal: String,
        /// The most rows; 0 or less for all.
        most: i32,
    },
    /// A statement or a portal is needed no more.
    Close(Target, String),
    /// What was answered is to be sent.
    Flush,
    /// The end of a pipeline.
    Sync,
    /// Bytes of COPY FROM STDIN.
    CopyData(Bytes),
    /// All of them were sent.
    CopyDone,
    /// The client gives up, for this reason.
    CopyFail(String),
    /// A call of a function by its number, which nothing sends any more; not read further.
    FunctionCall,
    /// A password, or a message of SASL.
    Password(Bytes),
    /// The client says goodbye.
    Terminate,
}

/// Takes the next message off `input`; None, and nothing taken, if not all of it is there. `most`
/// bounds its length in bytes, by what it announces.
///
/// # Errors
/// [`Error::Protocol`] for what is not a message: nothing that follows is one then.
/// [`Error::Refused`] (22021) for a text that is not UTF-8: the message is taken.
pub fn decode(input: &mut BytesMut, most: usize) -> Result<Option<Request>> {
    let Some((tag, length)) = head(input)? else {
        return Ok(None);
    };
    if length > bound(tag, most)? {
        return Err(Error::protocol(format!(
            "invalid message length: {length} bytes of type {:?}",
            char::from(tag)
        )));
    }
    if input.len() <= length {
        return Ok(None);
    }
    let mut message = input.split_to(length + 1).freeze();
    message.advance(HEAD);
    let mut body = Body(message);
    let request = request(tag, &mut body)?;
    body.end()?;
    Ok(Some(request))
}

/// The letter of the next message, if all of that is there.
pub fn next_tag(input: &BytesMut) -> Option<u8> {
    let (tag, length) = head(input).ok()??;
    (input.len() > length).then_some(tag)
}

/// The letter of the next message, and its length without the letter.
fn head(input: &BytesMut) -> Result<Option<(u8, usize)>> {
    let Some((&tag, rest)) = input.split_first() else {
        return Ok(None);
    };
    bound(tag, 0)?;
    let Some(length) = rest.first_chunk::<4>() else {
        return Ok(None);
    };
    // As PostgreSQL has it, a length is of 31 bits.
    match usize::try_from(i32::from_be_bytes(*length)) {
        Ok(length) if length >= 4 => Ok(Some((tag, length))),
        _ => Err(Error::protocol("invalid message length")),
    }
}

/// The greatest length of a message with this letter.
fn bound(tag: u8, most: usize) -> Result<usize> {
    match tag {
        b'Q' | b'P' | b'B' | b'F' | b'd' => Ok(most),
        b'C' | b'D' | b'E' | b'H' | b'S' | b'X' | b'c' | b'f' | b'p' => Ok(most.min(MOST_OF_NAMES)),
        _ => Err(Error::protocol(format!(
            "invalid frontend message type {tag}"
        ))),
    }
}

fn request(tag: u8, body: &mut Body) -> Result<Request> {
    Ok(match tag {
        b'Q' => Request::Query(body.text()?),
        b'P' => Request::Parse {
            name: body.text()?,
            sql: body.text()?,
            types: body.list(4, |body| body.u32())?,
        },
        b'B' => bind(body)?,
        b'D' => Request::Describe(body.target()?, body.text()?),
        b'E' => Request::Execute {
            portal: body.text()?,
            most: body.i32()?,
        },
        b'C' => Request::Close(body.target()?, body.text()?),
        b'H' => Request::Flush,
        b'S' => Request::Sync,
        b'd' => Request::CopyData(body.rest()),
        b'c' => Request::CopyDone,
        b'f' => Request::CopyFail(body.text()?),
        b'p' => Request::Password(body.rest()),
        b'X' => Request::Terminate,
        _ => {
            body.rest();
            Request::FunctionCall
        }
    })
}

fn bind(body: &mut Body) -> Result<Request> {
    let (portal, statement) = (body.text()?, body.text()?);
    let parameter_formats = body.list(2, Body::format)?;
    let parameters = body.list(4, Body::value)?;
    let (formats, values) = (parameter_formats.len(), parameters.len());
    if formats > 1 && formats != values {
        return Err(Error::protocol(format!(
            "bind message has {formats} parameter formats but {values} parameters"
        )));
    }
    Ok(Request::Bind {
        portal,
        statement,
        parameter_formats,
        parameters,
        result_formats: body.list(2, Body::format)?,
    })
}

/// What is left of a message.
struct Body(Bytes);

impl Body {
    fn take(&mut self, count: usize) -> Result<Bytes> {
        if count > self.0.len() {
            return Err(insufficient());
        }
        Ok(self.0.split_to(count))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let array = *self.0.first_chunk().ok_or_else(insufficient)?;
        self.0.advance(N);
        Ok(array)
    }

    fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn i32(&mut self) -> Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.0)
    }

    /// A text up to its NUL.
    fn text(&mut self) -> Result<String> {
        let text = CStr::from_bytes_until_nul(&self.0)
            .map_err(|_| Error::protocol("invalid string in message"))?;
        let length = text.count_bytes();
        let text = utf8(text.to_bytes())?.to_owned();
        self.0.advance(length + 1);
        Ok(text)
    }

    fn target(&mut self) -> Result<Target> {
        match self.array()? {
            [b'S'] => Ok(Target::Statement),
            [b'P'] => Ok(Target::Portal),
            [other] => Err(Error::protocol(format!("invalid message subtype {other}"))),
        }
    }

    fn format(&mut self) -> Result<i16> {
        match i16::from_be_bytes(self.array()?) {
            format @ (0 | 1) => Ok(format),
            other => Err(Error::protocol(format!("unsupported format code: {other}"))),
        }
    }

    fn value(&mut self) -> Result<Option<Bytes>> {
        match self.i32()? {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length)
                    .map_err(|_| Error::protocol("invalid length of a parameter"))?;
                self.take(length).map(Some)
            }
        }
    }

    /// Things behind their number, each of at least `size` bytes: memory is taken for no more than
    /// can be there.
    fn list<T>(&mut self, size: usize, next: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let count = usize::from(u16::from_be_bytes(self.array()?));
        if count * size > self.0.len() {
            return Err(insufficient());
        }
        (0..count).map(|_| next(self)).collect()
    }

    fn end(&self) -> Result<()> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Error::protocol("invalid message format"))
        }
    }
}

fn insufficient() -> Error {
    Error::protocol("insufficient data left in message")
}

/// Bytes as a text, or PostgreSQL's error with the first of those that are wrong.
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| {
        let wrong = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
        Error::refused(
            "22021",
            format!("invalid byte sequence for encoding \"UTF8\": 0x{wrong:02x}"),
        )
    })
}
