//! Files that only their owner may read.

use crate::error::{Error, Result};
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use zeroize::Zeroizing;

/// The bytes of a file of at most `most`; `loose` says what of its mode is too much.
pub(crate) fn secret(
    path: &Path,
    most: u64,
    loose: impl Fn(&Metadata) -> bool,
) -> Result<Zeroizing<Vec<u8>>> {
    let mut file = File::open(path).map_err(|error| unreadable(path, error))?;
    let about = file.metadata().map_err(|error| unreadable(path, error))?;
    if !about.is_file() {
        return Err(unreadable(path, "it is not a file"));
    }
    if loose(&about) {
        let mode = about.mode() & 0o7777;
        let why = format!("chmod 600 is needed, for its mode {mode:o} lets others at it");
        return Err(unreadable(path, why));
    }
    if about.len() > most {
        return Err(unreadable(path, format!("it has more than {most} bytes")));
    }
    // All of it at once, so that no copy is left behind where the bytes were moved.
    let mut bytes = Zeroizing::new(Vec::with_capacity(about.len() as usize + 1));
    file.by_ref()
        .take(about.len())
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(path, error))?;
    Ok(bytes)
}

pub(crate) fn unreadable(path: &Path, error: impl std::fmt::Display) -> Error {
    Error::refused(
        "58030",
        format!("{} cannot be read: {error}", path.display()),
    )
}
