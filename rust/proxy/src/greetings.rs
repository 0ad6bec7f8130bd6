//! Connections that have not proved yet who they are: no clients, and bounded by their number, as
//! by the time that a greeting may take.

use crate::pool::lock;
use crate::socket::Stream;
use rustix::net::{shutdown, Shutdown};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;

/// Those that are being greeted, the oldest first.
#[derive(Default)]
pub(crate) struct Greetings(Mutex<State>);

#[derive(Default)]
struct State {
    next: u64,
    open: VecDeque<(u64, OwnedFd)>,
}

impl Greetings {
    /// One more, which is known by a number. Where there are more than `most`, the oldest is
    /// closed: who says nothing keeps no one else out.
    pub(crate) fn begin(&self, stream: &Stream, most: usize) -> io::Result<u64> {
        let descriptor = stream.as_fd().try_clone_to_owned()?;
        let mut state = lock(&self.0);
        state.next += 1;
        let number = state.next;
        state.open.push_back((number, descriptor));
        if state.open.len() > most {
            if let Some((_, oldest)) = state.open.pop_front() {
                let _ = shutdown(oldest, Shutdown::Both);
            }
        }
        Ok(number)
    }

    /// It was greeted, or has gone.
    pub(crate) fn end(&self, number: u64) {
        lock(&self.0).open.retain(|(other, _)| *other != number);
    }
}
