//! Addresses that a server listens on.

use crate::error::{Error, Result};
use crate::socket::Stream;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

/// Where a server listens.
pub enum Address {
    /// A name or number with a port; 0 is any that is free.
    Network(String, u16),
    /// A socket in the file system, which nobody but the user may use.
    Socket(PathBuf),
}

pub(crate) enum Listening {
    Network(TcpListener),
    Socket(UnixListener, PathBuf),
}

impl Listening {
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Network(listener) => listener.as_fd(),
            Self::Socket(listener, _) => listener.as_fd(),
        }
    }

    pub(crate) fn accept(&self) -> std::io::Result<Stream> {
        match self {
            Self::Network(listener) => listener.accept().map(|(s, _)| Stream::Tcp(s)),
            Self::Socket(listener, _) => listener.accept().map(|(s, _)| Stream::Unix(s)),
        }
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Network(listener) => listener.local_addr().ok(),
            Self::Socket(..) => None,
        }
    }
}

pub(crate) fn listen(address: &Address, listening: &mut Vec<Listening>) -> Result<()> {
    match address {
        Address::Network(name, port) => {
            for own in (name.as_str(), *port)
                .to_socket_addrs()
                .map_err(Error::Io)?
            {
                let listener = TcpListener::bind(own).map_err(Error::Io)?;
                listener.set_nonblocking(true).map_err(Error::Io)?;
                listening.push(Listening::Network(listener));
            }
        }
        Address::Socket(path) => {
            // Of a server that was killed; what is no socket is somebody's.
            let about = std::fs::symlink_metadata(path).map(|about| about.file_type());
            let is_socket = about.is_ok_and(|kind| kind.is_socket());
            if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
                std::fs::remove_file(path).map_err(Error::Io)?;
            }
            let listener = UnixListener::bind(path).map_err(Error::Io)?;
            let own = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(path, own).map_err(Error::Io)?;
            listener.set_nonblocking(true).map_err(Error::Io)?;
            listening.push(Listening::Socket(listener, path.clone()));
        }
    }
    Ok(())
}
