//! The greeting: TLS, the startup message, and the proof of a password.

use crate::audit::Audit;
use crate::error::{Error, Result};
use crate::log::Log;
use crate::message::Request;
use crate::packet::{self, Packet};
use crate::reply::{self, Fields};
use crate::scram::{Exchange, MOST_MESSAGE};
use crate::socket::{Client, Stream};
use crate::tls::Certificate;
use crate::users::Users;
use bytes::{Bytes, BytesMut};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use crate::packet::Greeting;

/// The newest minor version of 3 that is spoken.
pub(crate) const NEWEST_MINOR: u16 = 2;
/// With which byte a handshake of TLS begins, and no startup packet that we would read.
const HANDSHAKE: u8 = 0x16;
/// How long a client that is refused may take to read why.
const FAREWELL: Duration = Duration::from_secs(1);

/// Who is let in.
#[derive(Debug)]
pub struct Options {
    /// Without one, no TLS is spoken.
    pub certificate: Option<Arc<Certificate>>,
    /// Whether clients that do not speak TLS are refused; Unix sockets need none.
    pub tls_required: bool,
    /// Who proves a password.
    pub users: Arc<Users>,
    /// Whether clients on this machine prove none, where there are no users.
    pub trust_loopback: bool,
    /// The longest message of a session, in bytes; the greeting has its own bounds.
    pub most_message_bytes: usize,
    /// How long the whole greeting may take; 60 seconds by default.
    pub patience: Duration,
    /// Where each statement is written down, if anywhere.
    pub audit: Option<Arc<Audit>>,
    /// Where it is said what happens, if anywhere.
    pub log: Option<Arc<Log>>,
}

impl Options {
    /// No TLS, these users, messages of up to 1 GiB, 60 seconds.
    pub fn new(users: Arc<Users>) -> Self {
        Self {
            certificate: None,
            tls_required: false,
            users,
            trust_loopback: false,
            most_message_bytes: 1 << 30,
            patience: Duration::from_secs(60),
            audit: None,
            log: None,
        }
    }
}

/// What a connection is for.
#[derive(Debug)]
pub enum Opened {
    /// A session. AuthenticationOk is in the client's output and not yet sent.
    Session(Client, Greeting),
    /// To cancel what another one runs. Nothing is to be answered.
    Cancel {
        /// The process, as it was told to that client.
        process: u32,
        /// Its secret, which is not checked yet.
        secret: Vec<u8>,
    },
}

/// Greets a client: agrees on TLS, reads who it is, and has the password proved.
///
/// # Errors
/// Of the client's doing, or the time is over ([`Error::Io`]). A client that can be told was told.
pub fn greet(stream: Stream, options: &Options) -> Result<Opened> {
    let mut client = Client::new(stream)?;
    client.set_deadline(Instant::now().checked_add(options.patience));
    let opened = opening(&mut client, options).and_then(|packet| match packet {
        Packet::Cancel { process, secret } => Ok(Err((process, secret))),
        Packet::Startup {
            greeting,
            negotiate,
        } => {
            if let Some((minor, unknown)) = negotiate {
                reply::negotiate_version(&mut client.output, u32::from(minor), &unknown);
            }
            admit(&mut client, &greeting.user, options)?;
            Ok(Ok(greeting))
        }
        Packet::Tls | Packet::Gss => Err(packet::unsupported()),
    });
    match opened {
        Ok(Ok(greeting)) => {
            client.set_deadline(None);
            Ok(Opened::Session(client, greeting))
        }
        Ok(Err((process, secret))) => Ok(Opened::Cancel { process, secret }),
        Err(error) => {
            farewell(&mut client, &error);
            Err(error)
        }
    }
}

/// The packet that says what the connection is for, behind the requests to encrypt it.
fn opening(client: &mut Client, options: &Options) -> Result<Packet> {
    // Of a Unix socket, both ends are on this machine: as with PostgreSQL, TLS is not offered.
    let is_unix = matches!(client.stream(), Stream::Unix(_));
    let certificate = options.certificate.as_deref().filter(|_| !is_unix);
    let (mut tls, mut gss) = (false, false);
    client_bytes(client)?;
    if client.input().first() == Some(&HANDSHAKE) {
        let missing = || Error::Tls("it is not offered here, and was not asked for".to_owned());
        client.encrypt(certificate.ok_or_else(missing)?)?;
        if !client.is_named() {
            return Err(Error::protocol(
                "received direct SSL connection request without ALPN protocol negotiation \
                 extension",
            ));
        }
    }
    loop {
        match next_packet(client)? {
            Packet::Tls if !tls && !client.is_encrypted() => {
                tls = true;
                alone(client, "SSL")?;
                answer(client, if certificate.is_some() { b'S' } else { b'N' })?;
                if let Some(certificate) = certificate {
                    client.encrypt(certificate)?;
                }
            }
            Packet::Gss if !gss && !client.is_encrypted() => {
                gss = true;
                alone(client, "GSSAPI encryption")?;
                answer(client, b'N')?;
            }
            Packet::Startup { .. }
                if options.tls_required && !is_unix && !client.is_encrypted() =>
            {
                return Err(Error::refused(
                    "28000",
                    "this server takes encrypted connections only: connect with \
                     sslmode=verify-full, or at least require",
                ));
            }
            other => return Ok(other),
        }
    }
}

/// That nothing came behind a request to encrypt: it would be taken for what the client says within
/// (as CVE-2021-23222 has it the other way round).
fn alone(client: &mut Client, what: &str) -> Result<()> {
    if client.input().is_empty() {
        return Ok(());
    }
    Err(Error::protocol(format!(
        "received unencrypted data after {what} request"
    )))
}

fn answer(client: &mut Client, byte: u8) -> Result<()> {
    client.output.extend_from_slice(&[byte]);
    client.flush()
}

fn client_bytes(client: &mut Client) -> Result<()> {
    if client.input().is_empty() {
        client.more()?;
    }
    if client.input().is_empty() {
        return Err(gone());
    }
    Ok(())
}

fn next_packet(client: &mut Client) -> Result<Packet> {
    loop {
        if let Some(packet) = packet::take(client.input())? {
            return packet::read(packet);
        }
        let before = client.input().len();
        client.more()?;
        if client.input().len() == before {
            return Err(gone());
        }
    }
}

fn gone() -> Error {
    let text = "the client went within the greeting";
    Error::Io(io::Error::new(ErrorKind::UnexpectedEof, text))
}

/// Has the client prove who it is.
fn admit(client: &mut Client, user: &str, options: &Options) -> Result<()> {
    if !options.users.is_empty() {
        prove(client, user, options)?;
    } else if !(options.trust_loopback && client.stream().is_local()) {
        return Err(Error::refused(
            "28000",
            "this server has no users, and trusts no client that proves no password",
        ));
    }
    reply::authentication_ok(&mut client.output);
    Ok(())
}

fn prove(client: &mut Client, user: &str, options: &Options) -> Result<()> {
    let certificate = options.certificate.as_deref();
    let binding = certificate
        .filter(|_| client.is_encrypted())
        .and_then(Certificate::binding);
    let mut exchange = Exchange::new(&options.users, user, binding);
    reply::authentication_sasl(&mut client.output, exchange.mechanisms());
    let body = response(client)?;
    let challenge = exchange.first(&body)?;
    reply::authentication_sasl_continue(&mut client.output, challenge.as_bytes())?;
    let body = response(client)?;
    let proof = exchange.last(&body)?;
    reply::authentication_sasl_final(&mut client.output, proof.as_bytes())
}

/// The client's next message of SASL.
fn response(client: &mut Client) -> Result<Bytes> {
    client.flush()?;
    // Behind the letter are a length, the mechanism, and another length.
    match client.next(MOST_MESSAGE + 64)? {
        Some(Request::Password(body)) => Ok(body),
        Some(_) => Err(Error::protocol("expected SASL response")),
        None => Err(gone()),
    }
}

/// Tells a client why it is refused, if it can be told.
fn farewell(client: &mut Client, error: &Error) {
    if matches!(error, Error::Io(_) | Error::Tls(_)) {
        return;
    }
    let mut out = BytesMut::new();
    let fields = Fields {
        severity: "FATAL",
        sqlstate: error.sqlstate().to_owned(),
        message: error.to_string(),
        ..Fields::default()
    };
    reply::error(&mut out, &fields);
    // What was written and not sent (NegotiateProtocolVersion) goes first.
    client.output.extend_from_slice(&out);
    client.set_deadline(Instant::now().checked_add(FAREWELL));
    let _ = client.flush();
}
