//! Cancelling: a connection of its own that names the statement's session.

use crate::error::{Error, Result};
use crate::settings::Settings;
use crate::socket::Socket;
use crate::startup;
use postgres_protocol::message::frontend;
use std::fmt;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, PoisonError};

/// Ends the statement that runs, from any thread.
#[derive(Clone)]
pub struct Cancel(Arc<Mutex<Target>>);

pub(crate) struct Target {
    pub(crate) settings: Settings,
    pub(crate) process: i32,
    pub(crate) secret: i32,
    pub(crate) runs: bool,
}

impl Cancel {
    pub(crate) fn new(target: Target) -> Self {
        Self(Arc::new(Mutex::new(target)))
    }

    pub(crate) fn set_key(&self, process: i32, secret: i32) {
        let mut target = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (target.process, target.secret) = (process, secret);
    }

    /// Asks the server to end the statement that runs; none is met that begins later.
    ///
    /// # Errors
    /// [`Error::Lost`] where no connection for it can be opened.
    pub fn send(&self) -> Result<()> {
        let target = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !target.runs {
            return Ok(());
        }
        let mut socket = Socket::open(&target.settings)?;
        frontend::cancel_request(target.process, target.secret, &mut socket.output);
        socket.flush()?;
        // The server closes it when the signal is sent.
        match socket.next(&mut startup::patience(&target.settings)) {
            Err(Error::Lost(error)) if error.kind() == ErrorKind::UnexpectedEof => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Err(Error::Protocol(
                "an answer to a request to cancel".to_owned(),
            )),
        }
    }

    pub(crate) fn set_runs(&self, runs: bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).runs = runs;
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cancel(…)")
    }
}
