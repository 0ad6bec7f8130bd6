//! The audit file: lines of JSON that say who ran what, what it opened, and what it newly showed to
//! the server behind. They hold names and numbers, and no value of a statement (spec/audit.md).
//!
//! A statement does not run unless a line fits on the disk, and a line is written before the
//! client is sent what its statement gave. What does more than give rows has a line before it runs
//! as well, so that the end of the process leaves nothing without one.

use crate::error::{Error, Result};
use rustix::fs::{fallocate, FallocateFlags};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// So many bytes of a line are on the disk before its statement runs.
const MOST_LINE: u64 = 64 << 10;
/// How much room is taken at a time.
const ROOM: u64 = 1 << 20;

/// The audit file of a server.
#[derive(Debug)]
pub struct Audit {
    path: PathBuf,
    state: Mutex<State>,
    lines: AtomicU64,
    statements: AtomicU64,
}

#[derive(Debug)]
struct State {
    file: File,
    /// Up to where there is room.
    room: u64,
    /// Whether the last line may be there in part.
    is_torn: bool,
}

impl Audit {
    /// Opens the file, or makes it, to append to: mode 0600.
    ///
    /// # Errors
    /// [`Error::Refused`] for a file that cannot be written, or that others may read.
    pub fn open(path: &Path) -> Result<Self> {
        let (file, _) = opened(path)?;
        let audit = Self {
            path: path.to_owned(),
            state: Mutex::new(State {
                file,
                room: 0,
                is_torn: false,
            }),
            lines: AtomicU64::new(0),
            statements: AtomicU64::new(0),
        };
        audit.require()?;
        Ok(audit)
    }

    /// How many lines were written.
    pub fn lines(&self) -> u64 {
        self.lines.load(Ordering::Relaxed)
    }

    /// The number of the next statement.
    pub(crate) fn next(&self) -> u64 {
        self.statements.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Has room for a line, in the file that has the name now: one that was moved away, as
    /// rotation does, is left.
    ///
    /// # Errors
    /// [`Error::Refused`] where there is none. Nothing may run then.
    pub(crate) fn require(&self) -> Result<()> {
        self.required(&mut self.state())
    }

    fn required(&self, state: &mut State) -> Result<()> {
        let failed = |error: std::io::Error| unwritable(&self.path, &error);
        let own = state.file.metadata().map_err(failed)?;
        let now = std::fs::symlink_metadata(&self.path);
        let size = if now.is_ok_and(|now| (now.dev(), now.ino()) == (own.dev(), own.ino())) {
            own.len()
        } else {
            let (file, size) = opened(&self.path)?;
            *state = State {
                file,
                room: 0,
                is_torn: false,
            };
            size
        };
        // It may have been cut short.
        if size + MOST_LINE > state.room || state.room > size + 2 * ROOM {
            match fallocate(&state.file, FallocateFlags::KEEP_SIZE, size, ROOM) {
                // Not every file system can; then a line that does not fit ends its session.
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => state.room = size + ROOM,
                Err(error) => return Err(failed(error.into())),
            }
        }
        Ok(())
    }

    /// Appends a line. Other processes may append to the same file.
    ///
    /// # Errors
    /// [`Error::Refused`] where it cannot be written.
    pub(crate) fn write(&self, mut line: String) -> Result<()> {
        line.push('\n');
        let mut state = self.state();
        if state.is_torn {
            line.insert(0, '\n');
        }
        let mut file = &state.file;
        let done = match file.write(line.as_bytes()) {
            Ok(count) if count == line.len() => Ok(()),
            Ok(_) => Err(std::io::Error::other("the disk is full")),
            Err(error) => Err(error),
        };
        state.is_torn = done.is_err();
        done.map_err(|error| unwritable(&self.path, &error))?;
        self.lines.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The file and its size.
fn opened(path: &Path) -> Result<(File, u64)> {
    let failed = |error: std::io::Error| unwritable(path, &error);
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(flags.bits() as i32)
        .open(path)
        .map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    let why = if !about.is_file() {
        "it is not a file"
    } else if about.mode() & 0o077 != 0 {
        "chmod 600 is needed, for others may read it"
    } else {
        return Ok((file, about.len()));
    };
    Err(failed(std::io::Error::other(why)))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Error {
    let path = path.display();
    Error::refused(
        "58030",
        format!("the audit file {path} cannot be written: {error}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn lines_are_appended_and_the_file_is_its_owners() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("audit");
        for expected in ["a\n", "a\nb\n"] {
            let audit = Audit::open(&path).expect("a file");
            let line = expected.trim_end().rsplit('\n').next().expect("a line");
            audit.write(line.to_owned()).expect("a line");
            assert_eq!(std::fs::read_to_string(&path).expect("text"), expected);
        }
        let mode = |path| {
            std::fs::metadata(path)
                .expect("a file")
                .permissions()
                .mode()
                & 0o777
        };
        assert_eq!(mode(&path), 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("mode");
        assert!(Audit::open(&path).is_err());
        assert!(Audit::open(&folder.path().join("none/audit")).is_err());
        assert!(Audit::open(folder.path()).is_err());
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        assert!(Audit::open(&link).is_err());
    }

    #[test]
    fn a_file_that_was_moved_away_is_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, old) = (folder.path().join("audit"), folder.path().join("old"));
        let audit = Audit::open(&path).expect("a file");
        audit.write("one".to_owned()).expect("a line");
        std::fs::rename(&path, &old).expect("moved");
        audit.require().expect("room");
        audit.write("two".to_owned()).expect("a line");
        let text = |path| std::fs::read_to_string(path).expect("text");
        assert_eq!((text(&old), text(&path)), ("one\n".into(), "two\n".into()));
        std::fs::remove_file(&path).expect("removed");
        std::fs::create_dir(&path).expect("a folder");
        assert_eq!(audit.require().expect_err("a folder").sqlstate(), "58030");
    }

    #[test]
    fn what_cannot_be_written_is_refused_and_torn_lines_are_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("audit");
        let audit = Audit::open(&path).expect("a file");
        let full = File::open("/dev/full").and(OpenOptions::new().write(true).open("/dev/full"));
        let Ok(full) = full else { return };
        let own = std::mem::replace(&mut audit.state().file, full);
        let error = audit.write("lost".to_owned()).expect_err("full");
        assert_eq!(error.sqlstate(), "58030");
        audit.state().file = own;
        audit.write("more".to_owned()).expect("a line");
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "\nmore\n");
        assert_eq!(audit.lines(), 1);
    }
}
