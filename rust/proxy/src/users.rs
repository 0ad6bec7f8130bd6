//! The file of users: for each a name, and what proves a password without telling it.
//!
//! A line is `name SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`, the verifier as
//! PostgreSQL writes it in `pg_authid`, and after that words `key=value`. What stands behind a word
//! that begins with `#` is a comment.

use crate::error::{Error, Result};
use crate::files;
use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use hmac::{Hmac, KeyInit, Mac};
use postgres_protocol::password;
use sha2::Sha256;
use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;
use zeroize::{Zeroize, Zeroizing};

const MOST_FILE_BYTES: u64 = 16 << 20;
const MOST_LINE_BYTES: usize = 4096;
/// As PostgreSQL has it.
const MOST_NAME_BYTES: usize = 63;
/// RFC 7677 wants no fewer; more make a client of ours wait for minutes.
const ITERATIONS: std::ops::RangeInclusive<u32> = 4096..=10_000_000;
const SALT_BYTES: std::ops::RangeInclusive<usize> = 8..=32;
/// What PostgreSQL makes: what an unknown user's verifier looks like where there are no others.
const USUAL: (u32, usize) = (4096, 16);

/// A text that is wiped when it goes and is not shown.
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes a password over.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// What a password is checked by.
#[derive(Clone)]
pub struct Verifier {
    /// The words behind it, in their order.
    pub words: Vec<(String, String)>,
    pub(crate) iterations: u32,
    pub(crate) salt: Vec<u8>,
    pub(crate) stored_key: Zeroizing<[u8; 32]>,
    pub(crate) server_key: Zeroizing<[u8; 32]>,
    /// No password fits.
    pub(crate) is_mock: bool,
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier")
            .field("words", &self.words)
            .finish_non_exhaustive()
    }
}

/// All users.
#[derive(Debug)]
pub struct Users {
    verifiers: BTreeMap<String, Verifier>,
    /// The iterations and the length of the salt of each.
    looks: Vec<(u32, usize)>,
    mocks: &'static Mocks,
}

/// The secret that the verifiers of unknown users are computed from: the same for the life of the
/// process, also where the file is read anew.
struct Mocks([u8; 32]);

impl Mocks {
    fn of_process() -> Result<&'static Self> {
        static MOCKS: OnceLock<Mocks> = OnceLock::new();
        if let Some(mocks) = MOCKS.get() {
            return Ok(mocks);
        }
        let mut secret = [0; 32];
        random(&mut secret)?;
        Ok(MOCKS.get_or_init(|| Self(secret)))
    }
}

impl fmt::Debug for Mocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mocks(…)")
    }
}

impl Users {
    /// No users.
    ///
    /// # Errors
    /// [`Error::Refused`] if the system gives no random bytes.
    pub fn none() -> Result<Self> {
        Self::parse(&[])
    }

    /// Reads the file, which must be its owner's alone (mode 0600 or less).
    ///
    /// # Errors
    /// [`Error::Refused`] for a file that cannot be read, is open to others, or has a line that is
    /// wrong; of the line, its number is said.
    pub fn read(path: &Path) -> Result<Self> {
        let loose = |about: &std::fs::Metadata| about.mode() & 0o177 != 0;
        let bytes = files::secret(path, MOST_FILE_BYTES, loose)?;
        Self::parse(&bytes).map_err(|error| match error {
            Error::Refused { sqlstate, message } => Error::Refused {
                sqlstate,
                message: format!("{}: {message}", path.display()),
            },
            other => other,
        })
    }

    /// The users of such a file's bytes.
    ///
    /// # Errors
    /// As [`Users::read`].
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut verifiers = BTreeMap::new();
        for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let wrong = |why: &str| {
                // The line holds a secret, so it is not quoted.
                Error::refused("F0000", format!("line {}: {why}", at + 1))
            };
            if let Some((name, verifier)) = user(line).map_err(wrong)? {
                if verifiers.insert(name, verifier).is_some() {
                    return Err(wrong("this user has a line already"));
                }
            }
        }
        let looks = |verifier: &Verifier| (verifier.iterations, verifier.salt.len());
        Ok(Self {
            looks: verifiers.values().map(looks).collect(),
            verifiers,
            mocks: Mocks::of_process()?,
        })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.verifiers.is_empty()
    }

    /// What a user's password is checked by.
    pub fn verifier(&self, name: &str) -> Option<&Verifier> {
        self.verifiers.get(name)
    }

    /// What an unknown user's password is checked by: always the same while the process lives, of
    /// the looks of somebody's verifier, and fit for no password. So that a client that knows no
    /// password does not learn which names there are.
    pub(crate) fn mock(&self, name: &str) -> Verifier {
        let looks = self.derived(b"looks", name);
        let number = looks.iter().fold(0, |sum, byte| {
            (sum << 8 | usize::from(*byte)) % self.looks.len().max(1)
        });
        let (iterations, length) = self.looks.get(number).copied().unwrap_or(USUAL);
        let mut salt = self.derived(b"salt", name).to_vec();
        salt.truncate(length);
        Verifier {
            words: Vec::new(),
            iterations,
            salt,
            stored_key: self.derived(b"stored", name),
            server_key: self.derived(b"server", name),
            is_mock: true,
        }
    }

    fn derived(&self, purpose: &[u8], name: &str) -> Zeroizing<[u8; 32]> {
        hmac(&self.mocks.0, &[purpose, b"\0", name.as_bytes()])
    }
}

/// The text of a verifier for a password, as it stands in the file and as PostgreSQL takes it: a
/// random salt, 4096 iterations, the password by SASLprep.
///
/// # Errors
/// [`Error::Refused`] for an empty password, which nobody has.
pub fn verifier(password: &Secret) -> Result<String> {
    if password.0.is_empty() {
        return Err(Error::refused("28P01", "a password is not empty"));
    }
    Ok(password::scram_sha_256(password.0.as_bytes()))
}

/// HMAC-SHA-256 over parts.
pub(crate) fn hmac(key: &[u8; 32], parts: &[&[u8]]) -> Zeroizing<[u8; 32]> {
    // A key is filled up to a block with zeros, which is what HMAC does with a shorter one.
    let mut block = Zeroizing::new([0; 64]);
    block[..32].copy_from_slice(key);
    let mut mac = Hmac::<Sha256>::new((&*block).into());
    parts.iter().for_each(|part| mac.update(part));
    let mut result = mac.finalize().into_bytes();
    let copy = Zeroizing::new(result.into());
    result.zeroize();
    copy
}

pub(crate) fn random(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes)
        .map_err(|error| Error::refused("58000", format!("no random bytes: {error}")))
}

type Parsed<T> = std::result::Result<T, &'static str>;

/// A line; None for one without a user.
fn user(line: &[u8]) -> Parsed<Option<(String, Verifier)>> {
    if line.len() > MOST_LINE_BYTES {
        return Err("it has more than 4096 bytes");
    }
    let line = std::str::from_utf8(line).map_err(|_| "it is not UTF-8")?;
    let mut words = line
        .split_ascii_whitespace()
        .take_while(|word| !word.starts_with('#'));
    let Some(name) = words.next() else {
        return Ok(None);
    };
    if name.len() > MOST_NAME_BYTES {
        return Err("the name has more than 63 bytes");
    }
    if name.contains('\0') {
        return Err("there is a NUL in the name");
    }
    let text = words
        .next()
        .ok_or("behind the name a verifier is missing")?;
    let mut verifier = read_verifier(text)?;
    for word in words {
        let (key, value) = word
            .split_once('=')
            .filter(|(key, _)| !key.is_empty())
            .ok_or("what follows the verifier are words of the form key=value")?;
        if verifier.words.iter().any(|(other, _)| other == key) {
            return Err("a key is there twice");
        }
        verifier.words.push((key.to_owned(), value.to_owned()));
    }
    Ok(Some((name.to_owned(), verifier)))
}

fn read_verifier(text: &str) -> Parsed<Verifier> {
    const FORM: &str =
        "the verifier is not SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>";
    let rest = text.strip_prefix("SCRAM-SHA-256$").ok_or(FORM)?;
    let (first, keys) = rest.split_once('$').ok_or(FORM)?;
    let (iterations, salt) = first.split_once(':').ok_or(FORM)?;
    let (stored, server) = keys.split_once(':').ok_or(FORM)?;
    if !iterations.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(FORM);
    }
    let iterations = iterations.parse().map_err(|_| FORM)?;
    if !ITERATIONS.contains(&iterations) {
        return Err("the verifier has fewer than 4096 or more than 10,000,000 iterations");
    }
    let salt = STANDARD.decode(salt).map_err(|_| FORM)?;
    if !SALT_BYTES.contains(&salt.len()) {
        return Err("the verifier's salt has fewer than 8 or more than 32 bytes");
    }
    let key = |text: &str| {
        let bytes = Zeroizing::new(STANDARD.decode(text).ok()?);
        <[u8; 32]>::try_from(bytes.as_slice())
            .ok()
            .map(Zeroizing::new)
    };
    Ok(Verifier {
        words: Vec::new(),
        iterations,
        salt,
        stored_key: key(stored).ok_or(FORM)?,
        server_key: key(server).ok_or(FORM)?,
        is_mock: false,
    })
}
