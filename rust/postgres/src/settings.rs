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
    /// A name or an address of a network. Without TLS, which is not built yet, a loopback one.
    Network(String),
}

/// What a connection is opened with.
#[derive(Debug)]
pub struct Settings {
    /// Where the server listens.
    pub host: Host,
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
