//! Key files: one line of text with a checksum and comment lines for people, as age does it
//! (`spec/keyfile.md`).

use crate::error::{Error, Result};
use crate::keys::{hex, RootSecret};
use bech32::primitives::decode::CheckedHrpstring;
use bech32::{Bech32, Hrp};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use zeroize::Zeroizing;

/// The checksummed line's human-readable part; the last `1` after it separates it from the data.
const PREFIX: &str = "louver-key-";
/// No key file is longer; a longer one is not a key file.
const MAX_BYTES: u64 = 64 * 1024;

/// Writes a new key file of mode 0600 and returns its secret's key id.
///
/// # Errors
/// [`Error::KeyFile`] if the path exists or cannot be written.
pub(crate) fn create(path: &str, comment: &str, now_s: u64) -> Result<[u8; 8]> {
    let root = RootSecret::random()?;
    let text = format(&root, comment, now_s);
    let fail = |e: &std::io::Error| match e.kind() {
        std::io::ErrorKind::AlreadyExists => failure(
            path,
            "a file of this name exists already",
            "choose another name, or move the file away; never overwrite a key you still need",
        ),
        _ => failure(path, &e.to_string(), "choose a place that you may write to"),
    };
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|e| fail(&e))?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| sync_folder(path));
    if let Err(e) = written {
        // Half a key file is worse than none; the error below is the one that matters.
        let _ = std::fs::remove_file(path);
        return Err(fail(&e));
    }
    Ok(root.key_id())
}

/// Reads a key file.
///
/// # Errors
/// [`Error::KeyFile`] if it is missing, no regular file, open to others, too long, without a key
/// line, with two of them, or with one whose checksum fails.
pub(crate) fn read(path: &str) -> Result<RootSecret> {
    let unreadable = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::NotFound => failure(
            path,
            "there is no such key file",
            &format!("create one with `louver key new {path}`, or name the right file"),
        ),
        _ => failure(path, &e.to_string(), "make it readable for you alone"),
    };
    check(path, &std::fs::metadata(path).map_err(unreadable)?)?;
    let file = File::open(path).map_err(unreadable)?;
    // Once more on the open file: what the name leads to may have changed in between.
    check(path, &file.metadata().map_err(unreadable)?)?;
    let mut text = Zeroizing::new(String::with_capacity(4096));
    file.take(MAX_BYTES)
        .read_to_string(&mut text)
        .map_err(|_| failure(path, "it is not a text file", HOW))?;
    parse(&text).map_err(|cause| failure(path, cause, HOW))
}

const HOW: &str = "restore the file from your backup: a damaged key cannot be repaired";

fn check(path: &str, meta: &Metadata) -> Result<()> {
    if !meta.is_file() {
        let fix = "name the key file itself";
        return Err(failure(path, "it is not a regular file", fix));
    }
    let mode = meta.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(failure(
            path,
            &format!("mode {mode:04o} lets others on this machine read or change it"),
            &format!("run `chmod 600 {path}`"),
        ));
    }
    if meta.len() > MAX_BYTES {
        return Err(failure(path, "it is too long for a key file", HOW));
    }
    Ok(())
}

/// Finds the one key line in a key file's text.
pub(crate) fn parse(text: &str) -> std::result::Result<RootSecret, &'static str> {
    let mut key_line = None;
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if key_line.replace(line).is_some() {
            return Err("it has more than one line that is no comment");
        }
    }
    let line = key_line.ok_or("it has no key line")?;
    let damaged = "its key line is damaged (the checksum does not fit)";
    let checked = CheckedHrpstring::new::<Bech32>(line).map_err(|_| damaged)?;
    if checked.hrp().to_lowercase() != PREFIX {
        return Err("its key line is no Louver key");
    }
    let bytes = Zeroizing::new(checked.byte_iter().collect::<Vec<u8>>());
    RootSecret::from_bytes(&bytes).ok_or(damaged)
}

/// A key file's whole text.
pub(crate) fn format(root: &RootSecret, comment: &str, now_s: u64) -> Zeroizing<String> {
    let hrp = Hrp::parse(PREFIX).expect("a constant that tests parse");
    let key = bech32::encode_upper::<Bech32>(hrp, root.expose())
        .expect("32 bytes are within Bech32's limit");
    let key = Zeroizing::new(key);
    let mut text = Zeroizing::new(String::with_capacity(1024 + 3 * comment.len()));
    text.push_str("# Louver key file. Keep it secret, and keep a copy: without it the data is\n");
    text.push_str("# lost, and with it anyone can read everything.\n");
    text.push_str(&format!("# created: {}\n", utc(now_s)));
    text.push_str(&format!("# key id: {}\n", hex(&root.key_id())));
    for line in comment.lines() {
        text.push_str("# ");
        text.push_str(line);
        text.push('\n');
    }
    text.push_str(&key);
    text.push('\n');
    text
}

/// Seconds since 1970, now.
pub(crate) fn now_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs())
}

/// `2026-11-21T09:00:00Z` from seconds since 1970.
fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days to a civil date, counting years from March (Hinnant's algorithm).
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Makes the new name itself durable.
fn sync_folder(path: &str) -> std::io::Result<()> {
    let folder = Path::new(path)
        .parent()
        .filter(|p| !p.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn failure(path: &str, cause: &str, fix: &str) -> Error {
    Error::KeyFile {
        path: path.to_owned(),
        cause: cause.to_owned(),
        fix: fix.to_owned(),
    }
}
