//! The end of a server, which its sessions are told of where they wait.

use rustix::pipe::{pipe_with, PipeFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a server is to end.
#[derive(Debug)]
pub struct Stop {
    set: AtomicBool,
    /// There is something to read here from then on, for everybody.
    signal: OwnedFd,
    write: OwnedFd,
}

impl Stop {
    /// Not yet.
    ///
    /// # Errors
    /// Where the system has no pipe to spare.
    pub fn new() -> io::Result<Self> {
        let (signal, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Self {
            set: AtomicBool::new(false),
            signal,
            write,
        })
    }

    /// From now on.
    pub fn set(&self) {
        if !self.set.swap(true, Ordering::SeqCst) {
            let _ = rustix::io::write(&self.write, &[1]);
        }
    }

    /// Whether it was set.
    pub fn is_set(&self) -> bool {
        self.set.load(Ordering::SeqCst)
    }

    /// What can be read from once it was set.
    pub fn signal(&self) -> BorrowedFd<'_> {
        self.signal.as_fd()
    }
}
