//! The packets that a connection begins with, which have no letter.

use crate::error::{Error, Result};
use crate::message::utf8;
use crate::startup::NEWEST_MINOR;
use bytes::{Buf, Bytes, BytesMut};

/// PostgreSQL's bound of a packet, with its length.
const MOST_BYTES: usize = 10_000;
const TLS: u32 = 1234 << 16 | 5679;
const GSS: u32 = 1234 << 16 | 5680;
const CANCEL: u32 = 1234 << 16 | 5678;

/// Who a client says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The user.
    pub user: String,
    /// The database, which is the user's name if the client names none.
    pub database: String,
    /// All other settings, in the order in which they apply: first those of `options`.
    pub parameters: Vec<(String, String)>,
    /// The minor version of 3 that is spoken: 0 or 2.
    pub minor: u16,
}

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// SSLRequest.
    Tls,
    /// GSSENCRequest.
    Gss,
    /// CancelRequest.
    Cancel {
        /// The process.
        process: u32,
        /// Its secret: 4 to 256 bytes.
        secret: Vec<u8>,
    },
    /// StartupMessage.
    Startup {
        /// Who it is.
        greeting: Greeting,
        /// What the client must be told: the minor version, if it wants another, and options of
        /// the protocol that are not known.
        negotiate: Option<(u16, Vec<String>)>,
    },
}

/// Takes a packet off `input`, without its length; None if not all of it is there.
///
/// # Errors
/// [`Error::Protocol`] for one that is too long or too short to be one.
pub fn take(input: &mut BytesMut) -> Result<Option<Bytes>> {
    let Some(length) = input.first_chunk::<4>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*length) as usize;
    if !(8..=MOST_BYTES).contains(&length) {
        return Err(Error::protocol("invalid length of startup packet"));
    }
    if input.len() < length {
        return Ok(None);
    }
    let mut packet = input.split_to(length).freeze();
    packet.advance(4);
    Ok(Some(packet))
}

/// Reads a packet without its length.
///
/// # Errors
/// [`Error::Protocol`] for what the protocol does not allow, [`Error::Refused`] for what is not
/// done here.
pub fn read(packet: Bytes) -> Result<Packet> {
    let layout = || Error::protocol("invalid startup packet layout");
    let (version, body) = packet.split_first_chunk::<4>().ok_or_else(layout)?;
    match (u32::from_be_bytes(*version), body) {
        (TLS, []) => Ok(Packet::Tls),
        (GSS, []) => Ok(Packet::Gss),
        (CANCEL, body) => match body.split_first_chunk::<4>() {
            Some((process, secret)) if (4..=256).contains(&secret.len()) => Ok(Packet::Cancel {
                process: u32::from_be_bytes(*process),
                secret: secret.to_vec(),
            }),
            _ => Err(Error::protocol("invalid length of query cancel packet")),
        },
        (version, body) if version >> 16 == 3 => startup((version & 0xffff) as u16, body),
        (TLS | GSS, _) => Err(layout()),
        (version, _) => Err(Error::refused(
            "0A000",
            format!(
                "unsupported frontend protocol {}.{}: server supports 3.0 to 3.{NEWEST_MINOR}",
                version >> 16,
                version & 0xffff
            ),
        )),
    }
}

/// A request to encrypt that comes where none can.
pub(crate) fn unsupported() -> Error {
    Error::protocol("a request to encrypt the connection that was answered already")
}

fn startup(version: u16, body: &[u8]) -> Result<Packet> {
    let (mut user, mut database) = (None, None);
    let (mut parameters, mut unknown, mut options) = (Vec::new(), Vec::new(), String::new());
    for (name, value) in pairs(body)? {
        match name {
            "user" => user = Some(value),
            "database" => database = Some(value),
            "options" => options = value.to_owned(),
            "replication" if is_false(value) => {}
            "replication" => {
                let text = "replication connections are not supported";
                return Err(Error::refused("0A000", text));
            }
            _ if name.starts_with("_pq_.") => unknown.push(name.to_owned()),
            _ => parameters.push((name.to_owned(), value.to_owned())),
        }
    }
    let user = user.filter(|user| !user.is_empty()).ok_or_else(|| {
        Error::refused(
            "28000",
            "no PostgreSQL user name specified in startup packet",
        )
    })?;
    let database = database.filter(|database| !database.is_empty());
    let mut all = settings(&options)?;
    all.append(&mut parameters);
    // 3.1 was never spoken by anybody.
    let minor = if version >= NEWEST_MINOR {
        NEWEST_MINOR
    } else {
        0
    };
    let negotiate = (minor != version || !unknown.is_empty()).then_some((minor, unknown));
    Ok(Packet::Startup {
        greeting: Greeting {
            user: user.to_owned(),
            database: database.unwrap_or(user).to_owned(),
            parameters: all,
            minor,
        },
        negotiate,
    })
}

/// Names and values, each behind the other and ended by a NUL; an empty name ends them.
fn pairs(body: &[u8]) -> Result<Vec<(&str, &str)>> {
    let layout =
        || Error::protocol("invalid startup packet layout: expected terminator as last byte");
    let body = body.strip_suffix(&[0]).ok_or_else(layout)?;
    if body.is_empty() {
        return Ok(Vec::new());
    }
    let body = body.strip_suffix(&[0]).ok_or_else(layout)?;
    let mut texts = body.split(|byte| *byte == 0);
    let mut pairs = Vec::new();
    while let Some(name) = texts.next() {
        let value = texts.next().ok_or_else(layout)?;
        if name.is_empty() {
            return Err(layout());
        }
        pairs.push((utf8(name)?, utf8(value)?));
    }
    Ok(pairs)
}

/// Whether this is a way to say no.
fn is_false(value: &str) -> bool {
    const NO: [&str; 6] = ["false", "off", "no", "0", "f", "n"];
    NO.iter().any(|no| value.eq_ignore_ascii_case(no))
}

/// The settings of `options`: `-c name=value` or `--name=value`, in words that blanks part where no
/// backslash stands before them.
fn settings(options: &str) -> Result<Vec<(String, String)>> {
    let mut settings = Vec::new();
    let mut words = words(options).into_iter();
    while let Some(word) = words.next() {
        let (setting, switch) = if let Some(setting) = word.strip_prefix("--") {
            (setting.to_owned(), "--")
        } else if word == "-c" {
            (words.next().unwrap_or_default(), "-c ")
        } else if let Some(setting) = word.strip_prefix("-c") {
            (setting.to_owned(), "-c ")
        } else {
            (String::new(), "")
        };
        match setting.split_once('=') {
            Some((name, value)) if !name.is_empty() => {
                settings.push((name.replace('-', "_"), value.to_owned()));
            }
            None if !setting.is_empty() => {
                let text = format!("{switch}{setting} requires a value");
                return Err(Error::refused("42601", text));
            }
            _ => {
                let text = format!("invalid command-line argument for server process: {word}");
                return Err(Error::refused("42601", text));
            }
        }
    }
    Ok(settings)
}

fn words(options: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut letters = options.chars();
    while let Some(letter) = letters.next() {
        match letter {
            // What isspace() is in the C locale.
            ' ' | '\t'..='\r' => words.extend(word.take()),
            '\\' => word.get_or_insert_default().extend(letters.next()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}
