//! The log: lines of JSON about connections and errors, which hold no value and no text of a
//! statement or a message.

use crate::json::{moment, Object};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

/// The form of its lines.
const VERSION: u64 = 1;
/// What Louver says where the server behind is lost.
const LOST: &str = "server.lost";

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Every connection, and every error of a statement.
    Info,
    /// What is refused.
    Warning,
    /// What keeps clients from being served.
    Error,
}

impl Level {
    /// By its name.
    pub fn of(name: &str) -> Option<Self> {
        [Self::Info, Self::Warning, Self::Error]
            .into_iter()
            .find(|level| level.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Where lines go. One that cannot be written is lost.
#[derive(Debug)]
pub struct Log {
    /// None is the standard error.
    file: Option<File>,
    least: Level,
    is_upstream_lost: AtomicBool,
}

impl Log {
    /// Appends to a file, which is made with mode 0600, or writes to the standard error.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn open(path: Option<&Path>, least: Level) -> std::io::Result<Self> {
        let open = |path| {
            OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o600)
                .custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32)
                .open(path)
        };
        Ok(Self {
            file: path.map(open).transpose()?,
            least,
            is_upstream_lost: AtomicBool::new(false),
        })
    }

    /// Writes a line, if it matters enough.
    pub(crate) fn say(&self, level: Level, event: &str, more: impl FnOnce(Object) -> Object) {
        if level < self.least {
            return;
        }
        let line = Object::new()
            .number("version", VERSION)
            .text("at", &moment(SystemTime::now()))
            .text("level", level.name())
            .text("event", event);
        let line = more(line).end() + "\n";
        let _ = match self.file.as_ref() {
            Some(mut file) => file.write_all(line.as_bytes()),
            None => std::io::stderr().lock().write_all(line.as_bytes()),
        };
    }

    /// A statement was done, or failed with a code of Louver's.
    pub(crate) fn upstream(&self, code: Option<Option<&str>>) {
        let is_lost = match code {
            None => false,
            Some(Some(LOST)) => true,
            Some(_) => return,
        };
        if self.is_upstream_lost.load(Ordering::Relaxed) == is_lost
            || self.is_upstream_lost.swap(is_lost, Ordering::Relaxed) == is_lost
        {
            return;
        }
        if is_lost {
            self.say(Level::Error, "upstream lost", |line| line);
        } else {
            self.say(Level::Info, "upstream returned", |line| line);
        }
    }
}
