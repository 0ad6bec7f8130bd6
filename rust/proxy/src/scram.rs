//! The server's side of SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, RFC 7677), as PostgreSQL
//! does it: the user's name is that of the startup message, extensions are not looked at.

use crate::error::{Error, Result};
use crate::users::{hmac, random, Users, Verifier};
use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use ctutils::CtEq;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// The mechanism without channel binding.
pub(crate) const SCRAM_SHA_256: &str = "SCRAM-SHA-256";
/// The mechanism with channel binding.
pub(crate) const SCRAM_SHA_256_PLUS: &str = "SCRAM-SHA-256-PLUS";
/// The longest message of a client, in bytes, as PostgreSQL has it.
pub(crate) const MOST_MESSAGE: usize = 1024;
const BOUND: &str = "p=tls-server-end-point";
const NONCE_BYTES: usize = 18;

/// An exchange with a client. It goes the same way for users that are not known, up to its end.
#[derive(Debug)]
pub struct Exchange<'a> {
    user: &'a str,
    verifier: Verifier,
    /// What binds to the channel, where that is offered.
    binding: Option<&'a [u8]>,
    state: State,
}

#[derive(Debug)]
enum State {
    Begun,
    Challenged(Challenge),
    Over,
}

/// What of the first messages the proof is about.
#[derive(Debug)]
struct Challenge {
    /// What the client's last message must state of the channel, in base64.
    channel: String,
    client_first: String,
    server_first: String,
    nonce: String,
}

impl<'a> Exchange<'a> {
    /// Begins it for the user of this name. `binding` is what `tls-server-end-point` is, where
    /// channel binding is offered.
    pub fn new(users: &Users, user: &'a str, binding: Option<&'a [u8]>) -> Self {
        // It is computed for each user, so that its time does not tell either.
        let mock = users.mock(user);
        Self {
            user,
            verifier: users.verifier(user).cloned().unwrap_or(mock),
            binding,
            state: State::Begun,
        }
    }

    /// The mechanisms to offer, best first.
    pub fn mechanisms(&self) -> &'static [&'static str] {
        match self.binding {
            Some(_) => &[SCRAM_SHA_256_PLUS, SCRAM_SHA_256],
            None => &[SCRAM_SHA_256],
        }
    }

    /// Takes the client's first message (the body of SASLInitialResponse); what to answer.
    ///
    /// # Errors
    /// [`Error::Protocol`] for what RFC 5802 does not allow, [`Error::Refused`] for what is not
    /// done, and for a client that did not see that channel binding is offered (28000).
    pub fn first(&mut self, body: &[u8]) -> Result<String> {
        let mut nonce = [0; NONCE_BYTES];
        random(&mut nonce)?;
        if !matches!(
            std::mem::replace(&mut self.state, State::Over),
            State::Begun
        ) {
            return Err(Error::protocol("a SASL message out of its order"));
        }
        let message = self.initial(body)?;
        let mut parts = message.splitn(3, ',');
        let (Some(flag), Some(identity), Some(bare)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(malformed());
        };
        match identity {
            "" => {}
            _ if identity.starts_with("a=") => {
                let text = "client uses authorization identity, but it is not supported";
                return Err(Error::refused("0A000", text));
            }
            _ => return Err(malformed()),
        }
        let mut stated = format!("{flag},,").into_bytes();
        if flag == BOUND {
            stated.extend_from_slice(self.binding.unwrap_or_default());
        }
        let client_nonce = client_nonce(bare)?;
        let nonce = format!("{client_nonce}{}", STANDARD.encode(nonce));
        let salt = STANDARD.encode(&self.verifier.salt);
        let server_first = format!("r={nonce},s={salt},i={}", self.verifier.iterations);
        self.state = State::Challenged(Challenge {
            channel: STANDARD.encode(stated),
            client_first: bare.to_owned(),
            server_first: server_first.clone(),
            nonce,
        });
        Ok(server_first)
    }

    /// Takes the client's last message (the body of SASLResponse), with its proof; what to answer,
    /// which proves to the client that we have its verifier.
    ///
    /// # Errors
    /// As [`Exchange::first`]; `28P01` for a proof that is wrong, and for users that there are not.
    pub fn last(&mut self, body: &[u8]) -> Result<String> {
        let State::Challenged(challenge) = std::mem::replace(&mut self.state, State::Over) else {
            return Err(Error::protocol("a SASL message out of its order"));
        };
        let message = text(body)?;
        let (stated, proof) = message.rsplit_once(",p=").ok_or_else(malformed)?;
        let mut parts = stated.split(',');
        let channel = parts.next().and_then(|part| part.strip_prefix("c="));
        let nonce = parts.next().and_then(|part| part.strip_prefix("r="));
        let (Some(channel), Some(nonce)) = (channel, nonce) else {
            return Err(malformed());
        };
        if !parts.all(is_attribute) {
            return Err(malformed());
        }
        if channel != challenge.channel {
            return Err(Error::refused(
                "28000",
                "SCRAM channel binding check failed",
            ));
        }
        if nonce != challenge.nonce {
            return Err(Error::protocol(
                "invalid SCRAM response: Nonce does not match.",
            ));
        }
        let proof = STANDARD.decode(proof).map_err(|_| malformed())?;
        let proof = Zeroizing::new(<[u8; 32]>::try_from(proof).map_err(|_| malformed())?);
        let Challenge {
            client_first,
            server_first,
            ..
        } = &challenge;
        let signed = format!("{client_first},{server_first},{stated}");
        self.judge(signed.as_bytes(), &proof)
    }

    fn judge(&self, signed: &[u8], proof: &[u8; 32]) -> Result<String> {
        let signature = hmac(&self.verifier.stored_key, &[signed]);
        let mut client_key = Zeroizing::new(*proof);
        for (byte, other) in client_key.iter_mut().zip(signature.iter()) {
            *byte ^= other;
        }
        let stored_key = Zeroizing::new(<[u8; 32]>::from(Sha256::digest(*client_key)));
        let fits = stored_key.ct_eq(&*self.verifier.stored_key).to_bool();
        let answer = hmac(&self.verifier.server_key, &[signed]);
        if !fits || self.verifier.is_mock {
            let text = format!("password authentication failed for user \"{}\"", self.user);
            return Err(Error::refused("28P01", text));
        }
        Ok(format!("v={}", STANDARD.encode(*answer)))
    }

    /// The client's first message behind the mechanism, which must be one that was offered and
    /// go with what the message says of channel binding.
    fn initial<'b>(&self, body: &'b [u8]) -> Result<&'b str> {
        let end = body.iter().position(|byte| *byte == 0);
        let (mechanism, rest) = body.split_at(end.ok_or_else(malformed)?);
        let rest = rest.get(1..).and_then(<[u8]>::split_first_chunk::<4>);
        let (length, message) = rest.ok_or_else(malformed)?;
        if usize::try_from(i32::from_be_bytes(*length)) != Ok(message.len()) {
            return Err(malformed());
        }
        let offered = self.mechanisms().iter();
        let Some(mechanism) = offered.copied().find(|name| name.as_bytes() == mechanism) else {
            let text = "client selected an invalid SASL authentication mechanism";
            return Err(Error::protocol(text));
        };
        let message = text(message)?;
        let is_bound = mechanism == SCRAM_SHA_256_PLUS;
        let flag = message.split(',').next().unwrap_or_default();
        match flag {
            BOUND if is_bound => Ok(message),
            "n" if !is_bound => Ok(message),
            // Somebody in between may have taken our offer away.
            "y" if !is_bound && self.binding.is_some() => Err(Error::refused(
                "28000",
                "SCRAM channel binding negotiation error: The client supports SCRAM channel \
                 binding but thinks the server does not.  However, this server does support \
                 channel binding.",
            )),
            "y" if !is_bound => Ok(message),
            "n" | "y" | BOUND => Err(Error::protocol(
                "malformed SCRAM message: what it says of channel binding does not go with its \
                 mechanism",
            )),
            _ if flag.starts_with("p=") => {
                Err(Error::protocol("unsupported SCRAM channel-binding type"))
            }
            _ => Err(malformed()),
        }
    }
}

/// The nonce of a client's first message, without what stands before `n=`. Of a name in it nothing
/// is read: the startup message has it.
fn client_nonce(bare: &str) -> Result<&str> {
    let mut parts = bare.split(',');
    let name = parts.next().unwrap_or_default();
    if name.starts_with("m=") {
        let text = "client requires an unsupported SCRAM extension";
        return Err(Error::refused("0A000", text));
    }
    let nonce = parts.next().and_then(|part| part.strip_prefix("r="));
    let nonce = nonce
        .filter(|nonce| !nonce.is_empty() && nonce.bytes().all(|byte| byte.is_ascii_graphic()));
    match nonce {
        Some(nonce) if name.starts_with("n=") && parts.all(is_attribute) => Ok(nonce),
        _ => Err(malformed()),
    }
}

/// Whether this is a letter with a value.
fn is_attribute(part: &str) -> bool {
    let bytes = part.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic) && bytes.get(1) == Some(&b'=')
}

fn text(message: &[u8]) -> Result<&str> {
    if message.len() > MOST_MESSAGE || message.contains(&0) {
        return Err(malformed());
    }
    std::str::from_utf8(message).map_err(|_| malformed())
}

fn malformed() -> Error {
    Error::protocol("malformed SCRAM message")
}
