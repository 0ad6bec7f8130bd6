//! Clients of the front door that use an engine one after the other.

use crate::proxy_client::Client;
use louver_proxy::{Done, Lent};
use pyo3::prelude::*;

/// A client that takes its settings along from one engine to another.
pub(crate) struct Guest {
    object: Py<PyAny>,
    /// The same as of others with the same user and settings; 0 where they are not known yet.
    stamp: u64,
    /// Whether it knows numbers of the one engine that it has.
    pinned: bool,
}

impl Guest {
    /// Of such an object of Python's.
    pub(crate) fn new(object: Py<PyAny>) -> Self {
        Self {
            object,
            stamp: 0,
            pinned: false,
        }
    }
}

impl Client {
    /// The next client may not know what these show.
    fn forget_texts(&mut self) {
        self.texts.clear();
        self.shapes.clear();
    }
}

impl Lent for Client {
    type Visitor = Guest;

    fn enter(&mut self, guest: &mut Guest) -> Done<()> {
        if guest.stamp == 0 || guest.stamp != self.stamp {
            self.stamp = 0;
            self.forget_texts();
            let object = &guest.object;
            guest.stamp = Python::attach(|py| {
                self.call(py, |o| o.call_method1("enter", (object,))?.extract())
            })?;
            self.stamp = guest.stamp;
        }
        self.touched = false;
        Ok(())
    }

    fn leave(&mut self, guest: &mut Guest) -> Done<bool> {
        self.forget_texts();
        if !self.touched {
            return Ok(guest.pinned);
        }
        let object = &guest.object;
        let (stamp, pinned) =
            Python::attach(|py| self.call(py, |o| o.call_method1("leave", (object,))?.extract()))?;
        (guest.stamp, self.stamp, guest.pinned) = (stamp, stamp, pinned);
        self.notices.clear();
        Ok(pinned)
    }

    fn reset(&mut self) -> bool {
        self.stamp = 0;
        self.abandon();
        self.forget_texts();
        self.ran.clear();
        let done = Python::attach(|py| self.call(py, |o| o.call_method0("reset")?.extract()));
        self.notices.clear();
        done.unwrap_or(false)
    }
}
