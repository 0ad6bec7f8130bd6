//! TLS below the protocol: what the server answers when it is asked for it, and the records.

use crate::binding;
use crate::error::{Error, Result};
use crate::settings::Tls;
use crate::trust;
use bytes::BytesMut;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConnection};
use std::io::{Read, Write};

/// A session of TLS. It reads and writes bytes; the socket carries them.
#[derive(Debug)]
pub(crate) struct Channel(Box<ClientConnection>);

impl Channel {
    /// The client's side of a handshake with the server of this name.
    pub(crate) fn new(name: &str, tls: &Tls) -> Result<Self> {
        let server = ServerName::try_from(name.to_owned())
            .map_err(|_| Error::Tls(format!("{name:?} is not a name that a certificate has")))?;
        let mut session = ClientConnection::new(trust::config(tls)?, server).map_err(failed)?;
        // What is written is taken out at once.
        session.set_buffer_limit(None);
        Ok(Self(Box::new(session)))
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.0.is_handshaking()
    }

    /// Records that are due, with these bytes in them.
    pub(crate) fn seal(&mut self, bytes: &[u8]) -> Result<Vec<u8>> {
        let mut records = Vec::new();
        self.0.writer().write_all(bytes).map_err(Error::Lost)?;
        while self.0.wants_write() {
            self.0.write_tls(&mut records).map_err(Error::Lost)?;
        }
        Ok(records)
    }

    /// Puts what these records hold behind `input`.
    pub(crate) fn open(&mut self, mut records: &[u8], input: &mut BytesMut) -> Result<()> {
        while !records.is_empty() {
            let count = self.0.read_tls(&mut records).map_err(Error::Lost)?;
            let state = self.0.process_new_packets().map_err(failed)?;
            let before = input.len();
            input.resize(before + state.plaintext_bytes_to_read(), 0);
            let mut reader = self.0.reader();
            reader
                .read_exact(&mut input[before..])
                .map_err(Error::Lost)?;
            if count == 0 {
                break; // The server has said goodbye.
            }
        }
        Ok(())
    }

    /// What binds a password's proof to this session, where RFC 5929 says what that is.
    pub(crate) fn binding(&self) -> Option<Vec<u8>> {
        binding::hash(self.0.peer_certificates()?.first()?)
    }
}

/// Whether the server agreed to TLS. Nothing but its one byte may have come: what stands behind it
/// is of somebody who wants it taken for what the server says within TLS (CVE-2021-23222).
///
/// # Errors
/// [`Error::Tls`] for anything else; what a server says without TLS is not shown.
pub fn agreed(answer: &[u8]) -> Result<()> {
    match answer {
        [b'S'] => Ok(()),
        [b'S', ..] => Err(Error::Tls(
            "bytes came between its answer and the handshake: somebody in between put them there"
                .to_owned(),
        )),
        [b'N', ..] => Err(Error::Tls(
            "it does not speak TLS: have its administrator set ssl = on, or reach it through a \
             tunnel to a loopback address"
                .to_owned(),
        )),
        _ => Err(Error::Tls(
            "what answers is not a PostgreSQL server, or is one that takes no connections now"
                .to_owned(),
        )),
    }
}

fn failed(error: rustls::Error) -> Error {
    let rustls::Error::InvalidCertificate(why) = error else {
        return Error::Tls(match error {
            rustls::Error::AlertReceived(alert) => {
                format!("it ended the handshake ({alert:?})")
            }
            other => other.to_string(),
        });
    };
    Error::Tls(match why {
        CertificateError::UnknownIssuer => {
            "its certificate is not signed by an authority in sslrootcert".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet, by this machine's clock".to_owned()
        }
        CertificateError::NotValidForName => {
            "its certificate is for another host (subjectAltName is compared)".to_owned()
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => format!(
            "its certificate is not for {}, but for {} (subjectAltName is compared)",
            expected.to_str(),
            if presented.is_empty() {
                "no host".to_owned()
            } else {
                presented.join(", ")
            }
        ),
        other => format!(
            "its certificate cannot be used ({other}): one of version 3 with subjectAltName is \
             needed, signed by an authority that is not the server itself"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_byte_agrees() {
        assert!(agreed(b"S").is_ok());
        for answer in [
            &b"N"[..],
            b"SN",
            b"S\x16\x03",
            b"",
            b"E",
            b"s",
            b"NS",
            b"HTTP/1.1 400",
        ] {
            assert!(matches!(agreed(answer), Err(Error::Tls(_))), "{answer:?}");
        }
    }
}
