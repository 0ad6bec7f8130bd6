//! Where a server is and who asks.

use std::fmt;
use std::path::PathBuf;
use zeroize::Zeroize;

/// A text that is wiped when it goes and is not shown.
#[derive(Default)]
pub struct Secret(String);

impl Secret {
    /// Takes a password over.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// The folder of a Unix socket.
    Folder(PathBuf),
    /// A name or an address of a network. Without TLS, one of a loopback interface.
    Network(String),
}

/// What is checked of a server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Nothing: the proof of the password, bound to the certificate, is what proves the server.
    Nothing,
    /// That an authority of the roots signed it.
    Authority,
    /// That too, and that it names the host.
    Name,
}

/// The authorities that sign servers' certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// Those of the operating system.
    System,
    /// Those of a PEM file.
    File(PathBuf),
}

/// Our own certificate, with those between it and its authority, and its key: PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The certificates.
    pub certificate: PathBuf,
    /// The key, which others than its owner must not be able to read.
    pub key: PathBuf,
}

/// How a connection is encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// What is checked of the server.
    pub check: Check,
    /// Who may sign its certificate.
    pub roots: Roots,
    /// What we show, if the server asks.
    pub identity: Option<Identity>,
}

/// Whether a password's proof is bound to the TLS session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// It is not.
    Off,
    /// It is if the server offers it.
    Offered,
    /// It is, or there is no connection.
    Required,
}

/// What a connection is opened with.
#[derive(Debug)]
pub struct Settings {
    /// Where the server listens.
    pub host: Host,
    /// How it is encrypted on a network; None only for loopback addresses.
    pub tls: Option<Tls>,
    /// Whether the proof of the password is bound to the encryption.
    pub binding: Binding,
    /// The port, which also names the Unix socket.
    pub port: u16,
    /// The role.
    pub user: String,
    /// The database.
    pub database: String,
    /// The password, if the server asks for one.
    pub password: Option<Secret>,
    /// Settings of the session that go with the start: `search_path`, `application_name`.
    pub parameters: Vec<(String, String)>,
    /// How long to wait for the connection, in milliseconds.
    pub timeout_ms: u64,
    /// The longest message that is read, in bytes. A row is one message.
    pub most_message_bytes: usize,
}
