//! TLS below the protocol: the server's certificate, and the records of a session.

use crate::error::{Error, Result};
use crate::files::{self, unreadable};
use bytes::BytesMut;
use louver_postgres::decoders::certificate_hash;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::NoServerSessionStorage;
use rustls::{ServerConfig, ServerConnection};
use std::fmt;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// The protocol's name in ALPN.
pub(crate) const ALPN: &[u8] = b"postgresql";
const MOST_KEY_BYTES: u64 = 1 << 20;

/// Who the server is: a certificate with those between it and its authority, and the key.
pub struct Certificate {
    config: Arc<ServerConfig>,
    binding: Option<Vec<u8>>,
}

impl Certificate {
    /// Reads PEM files: the chain, the server's own certificate first, and its key without a
    /// passphrase, which others than its owner must not be able to read.
    ///
    /// # Errors
    /// [`Error::Refused`] for files that cannot be read, [`Error::Tls`] for what is in them.
    pub fn read(chain: &Path, key: &Path) -> Result<Self> {
        // As PostgreSQL holds it: root may let a group read.
        let text = files::secret(key, MOST_KEY_BYTES, |about| {
            about.mode() & if about.uid() == 0 { 0o037 } else { 0o077 } != 0
        })?;
        let key = PrivateKeyDer::from_pem_slice(&text).map_err(|error| {
            unreadable(key, format!("no key in PEM without a passphrase: {error}"))
        })?;
        let bytes = std::fs::read(chain).map_err(|error| unreadable(chain, error))?;
        let certificates = CertificateDer::pem_slice_iter(&bytes)
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|error| unreadable(chain, error))?;
        Self::new(certificates, key)
    }

    /// The same from what is in those files.
    ///
    /// # Errors
    /// [`Error::Tls`] for no certificate, or a key that is not its.
    pub fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Self> {
        let binding = match chain.first() {
            Some(own) => certificate_hash(own),
            None => return Err(Error::Tls("there is no certificate in PEM".to_owned())),
        };
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(failed)?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        // A session is never resumed: as with PostgreSQL, each connection is proved anew.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        let config = Arc::new(config);
        Ok(Self { config, binding })
    }

    /// What binds a password's proof to this certificate (`tls-server-end-point`, RFC 5929); None
    /// where the way that it is signed has no such hash.
    pub fn binding(&self) -> Option<&[u8]> {
        self.binding.as_deref()
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificate(…)")
    }
}

/// A session of TLS. It reads and writes bytes; the socket carries them.
#[derive(Debug)]
pub(crate) struct Channel(Box<ServerConnection>);

impl Channel {
    pub(crate) fn new(certificate: &Certificate) -> Result<Self> {
        let mut session = ServerConnection::new(certificate.config.clone()).map_err(failed)?;
        // What is written is taken out at once.
        session.set_buffer_limit(None);
        Ok(Self(Box::new(session)))
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.0.is_handshaking()
    }

    /// Whether the client named the protocol in the handshake.
    pub(crate) fn is_named(&self) -> bool {
        self.0.alpn_protocol() == Some(ALPN)
    }

    /// Records that are due, with these bytes in them.
    pub(crate) fn seal(&mut self, bytes: &[u8]) -> Result<Vec<u8>> {
        let mut records = Vec::with_capacity(bytes.len() + bytes.len() / 64);
        self.0.writer().write_all(bytes)?;
        while self.0.wants_write() {
            self.0.write_tls(&mut records)?;
        }
        Ok(records)
    }

    /// The record that says goodbye.
    pub(crate) fn goodbye(&mut self) -> Result<Vec<u8>> {
        self.0.send_close_notify();
        self.seal(&[])
    }

    /// Puts what these records hold behind `input`; whether the client has said goodbye.
    pub(crate) fn open(&mut self, mut records: &[u8], input: &mut BytesMut) -> Result<bool> {
        while !records.is_empty() {
            let count = self.0.read_tls(&mut records)?;
            let state = self.0.process_new_packets().map_err(failed)?;
            let before = input.len();
            input.resize(before + state.plaintext_bytes_to_read(), 0);
            self.0.reader().read_exact(&mut input[before..])?;
            if count == 0 || state.peer_has_closed() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn failed(error: rustls::Error) -> Error {
    Error::Tls(match error {
        rustls::Error::AlertReceived(alert) => format!("the client ended it ({alert:?})"),
        other => other.to_string(),
    })
}
