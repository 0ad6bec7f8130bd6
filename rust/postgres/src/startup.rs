//! The first messages: who asks, and the proof of a password (SCRAM-SHA-256, RFC 5802 and 7677).

use crate::error::{Error, Result, ServerError};
use crate::settings::{Binding, Secret, Settings};
use crate::socket::Socket;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::sasl::{
    ChannelBinding, ScramSha256, SCRAM_SHA_256, SCRAM_SHA_256_PLUS,
};
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
        Message::AuthenticationOk if settings.binding == Binding::Required => Err(Error::Tls(
            "it asks for no password, so that no proof of one binds the channel, as \
                 channel_binding=require wants it"
                .to_owned(),
        )),
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
    let (mechanism, mut proof) = begun(socket, settings, offered)?;
    frontend::sasl_initial_response(mechanism, proof.message(), &mut socket.output)
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

/// The mechanism, and the proof that it begins with. Where the server offers no binding although
/// the channel has TLS, the proof says that we would have bound it: a server whose offer somebody
/// took away refuses that.
fn begun(
    socket: &Socket,
    settings: &Settings,
    offered: &AuthenticationSaslBody,
) -> Result<(&'static str, ScramSha256)> {
    let mut offers = offered.mechanisms();
    let (mut plain, mut bound) = (false, false);
    while let Some(name) = offers.next().map_err(Error::protocol)? {
        plain |= name == SCRAM_SHA_256;
        bound |= name == SCRAM_SHA_256_PLUS;
    }
    let missing = |text: &str| Err(Error::Refused(text.to_owned()));
    let Some(password) = settings.password.as_ref().map(Secret::bytes) else {
        return missing("the server asks for a password, and none is given");
    };
    let channel = socket
        .binding()
        .filter(|_| settings.binding != Binding::Off);
    match channel {
        Some(Some(hash)) if bound => Ok((
            SCRAM_SHA_256_PLUS,
            ScramSha256::new(password, ChannelBinding::tls_server_end_point(hash)),
        )),
        _ if settings.binding == Binding::Required => Err(Error::Tls(
            "it offers no channel binding (SCRAM-SHA-256-PLUS), or its certificate allows none, \
             as channel_binding=require wants it"
                .to_owned(),
        )),
        _ if !plain => missing("the server knows no SCRAM-SHA-256"),
        Some(Some(_)) => Ok((
            SCRAM_SHA_256,
            ScramSha256::new(password, ChannelBinding::unrequested()),
        )),
        _ => Ok((
            SCRAM_SHA_256,
            ScramSha256::new(password, ChannelBinding::unsupported()),
        )),
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
