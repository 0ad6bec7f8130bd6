//! The first messages: who asks, and the proof of a password (SCRAM-SHA-256, RFC 5802 and 7677).

use crate::error::{Error, Result, ServerError};
use crate::settings::Settings;
use crate::socket::Socket;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256, SCRAM_SHA_256};
use postgres_protocol::message::backend::{AuthenticationSaslBody, Message};
use postgres_protocol::message::frontend;
use std::time::{Duration, Instant};

/// Speaks until the server let us in; the next message is about the session.
pub(crate) fn introduce(socket: &mut Socket, settings: &Settings) -> Result<()> {
    let fixed = [
        ("user", settings.user.as_str()),
        ("database", settings.database.as_str()),
        ("client_encoding", "UTF8"),
    ];
    let own = settings
        .parameters
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    frontend::startup_message(fixed.into_iter().chain(own), &mut socket.output)
        .map_err(|error| Error::value(error.to_string()))?;
    socket.flush()?;
    let mut look = patience(settings);
    match socket.next(&mut look)? {
        Message::AuthenticationOk => Ok(()),
        Message::AuthenticationSasl(body) => scram(socket, settings, &body, &mut look),
        Message::ErrorResponse(body) => {
            Err(Error::Server(Box::new(ServerError::read(body.fields())?)))
        }
        Message::AuthenticationMd5Password(_) | Message::AuthenticationCleartextPassword => {
            Err(Error::Refused(
                "the server asks for a password in a form that gives it away (md5 or plain): set \
                 password_encryption = 'scram-sha-256' there, and the password anew"
                    .to_owned(),
            ))
        }
        _ => Err(Error::Refused(
            "the server asks for GSSAPI, SSPI or a method that this client does not know"
                .to_owned(),
        )),
    }
}

/// Lets a server that says nothing be given up.
pub(crate) fn patience(settings: &Settings) -> impl FnMut() -> Result<()> {
    let end = Instant::now() + Duration::from_millis(settings.timeout_ms);
    move || {
        if Instant::now() < end {
            return Ok(());
        }
        let kind = std::io::ErrorKind::TimedOut;
        Err(Error::Lost(std::io::Error::new(
            kind,
            "the server did not answer in time",
        )))
    }
}

fn scram(
    socket: &mut Socket,
    settings: &Settings,
    offered: &AuthenticationSaslBody,
    look: &mut dyn FnMut() -> Result<()>,
) -> Result<()> {
    let mut offers = offered.mechanisms();
    let mut known = false;
    while let Some(name) = offers.next().map_err(Error::protocol)? {
        known |= name == SCRAM_SHA_256;
    }
    let Some(password) = settings.password.as_ref().filter(|_| known) else {
        return Err(Error::Refused(
            "the server asks for a password, and none is given".to_owned(),
        ));
    };
    let mut proof = ScramSha256::new(password.bytes(), ChannelBinding::unsupported());
    frontend::sasl_initial_response(SCRAM_SHA_256, proof.message(), &mut socket.output)
        .map_err(Error::protocol)?;
    socket.flush()?;
    match socket.next(look)? {
        Message::AuthenticationSaslContinue(body) => {
            proof.update(body.data()).map_err(Error::protocol)?;
        }
        other => return Err(denied(other)),
    }
    frontend::sasl_response(proof.message(), &mut socket.output).map_err(Error::protocol)?;
    socket.flush()?;
    match socket.next(look)? {
        // The server proves that it knows the password too.
        Message::AuthenticationSaslFinal(body) => {
            proof.finish(body.data()).map_err(Error::protocol)?;
        }
        other => return Err(denied(other)),
    }
    match socket.next(look)? {
        Message::AuthenticationOk => Ok(()),
        other => Err(denied(other)),
    }
}

fn denied(message: Message) -> Error {
    match message {
        Message::ErrorResponse(body) => match ServerError::read(body.fields()) {
            Ok(error) => Error::Server(Box::new(error)),
            Err(error) => error,
        },
        _ => Error::Protocol("another message where the login should go on".to_owned()),
    }
}
