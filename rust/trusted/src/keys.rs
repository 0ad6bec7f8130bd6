//! The root secret and the derivation of all other keys (`spec/keyfile.md`).

use crate::epochs::EpochBits;
use crate::error::{Error, Result};
use hkdf::Hkdf;
use sha2::Sha256;
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Bytes of the root secret and of every derived key.
pub(crate) const KEY_BYTES: usize = 32;

/// Bytes of a key id.
pub(crate) const KEY_ID_BYTES: usize = 8;

/// What a derived key is for. Table, column and generation are 0 where they do not apply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Purpose<'a> {
    pub(crate) name: &'a str,
    pub(crate) table: u32,
    pub(crate) column: u32,
    pub(crate) generation: u32,
}

impl<'a> Purpose<'a> {
    /// A purpose of the whole key ring.
    pub(crate) fn whole(name: &'a str) -> Self {
        Self {
            name,
            table: 0,
            column: 0,
            generation: 0,
        }
    }

    fn info(&self) -> String {
        let Self {
            name,
            table,
            column,
            generation,
        } = self;
        format!("louver/1/{name}/{table}/{column}/{generation}")
    }
}

/// The secret of the key file, from which everything else derives.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct RootSecret {
    secret: [u8; KEY_BYTES],
    /// What HKDF extracts from it, which every derivation expands.
    extracted: [u8; KEY_BYTES],
}

impl RootSecret {
    /// A fresh one from the operating system.
    pub(crate) fn random() -> Result<Self> {
        let mut secret = Zeroizing::new([0; KEY_BYTES]);
        random(secret.as_mut())?;
        Ok(Self::new(&secret))
    }

    /// One that was read; `None` if it has not exactly 32 bytes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::new)
    }

    fn new(secret: &[u8; KEY_BYTES]) -> Self {
        let (mut extracted, _) = Hkdf::<Sha256>::extract(None, secret);
        let root = Self {
            secret: *secret,
            extracted: extracted.into(),
        };
        extracted.as_mut_slice().zeroize();
        root
    }

    pub(crate) fn expose(&self) -> &[u8; KEY_BYTES] {
        &self.secret
    }

    /// HKDF-SHA256 with info `louver/1/<purpose>/<table>/<column>/<generation>`.
    pub(crate) fn derive(&self, purpose: Purpose<'_>) -> Zeroizing<[u8; KEY_BYTES]> {
        self.expand(&purpose.info())
    }

    /// The key of a purpose for the rows of one epoch: its bits in hexadecimal digits follow the
    /// info. Without bits, for rows of earlier releases, [`RootSecret::derive`].
    pub(crate) fn derive_in(
        &self,
        purpose: Purpose<'_>,
        epoch: Option<&EpochBits>,
    ) -> Zeroizing<[u8; KEY_BYTES]> {
        match epoch {
            Some(bits) => self.expand(&format!("{}/{}", purpose.info(), hex(bits))),
            None => self.derive(purpose),
        }
    }

    fn expand(&self, info: &str) -> Zeroizing<[u8; KEY_BYTES]> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        Hkdf::<Sha256>::from_prk(&self.extracted)
            .expect("as many bytes as the hash has")
            .expand(info.as_bytes(), key.as_mut())
            .expect("32 bytes are within HKDF's limit");
        key
    }

    /// The public name of this secret: 8 bytes from which nothing leads back.
    pub(crate) fn key_id(&self) -> [u8; KEY_ID_BYTES] {
        let key = self.derive(Purpose::whole("key-id"));
        let mut id = [0; KEY_ID_BYTES];
        id.copy_from_slice(&key[..KEY_ID_BYTES]);
        id
    }
}

impl fmt::Debug for RootSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RootSecret(redacted)")
    }
}

/// Fills `out` from the operating system.
pub(crate) fn random(out: &mut [u8]) -> Result<()> {
    getrandom::fill(out)
        .map_err(|e| Error::System(format!("the system's random source failed: {e}")))
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    let digits = bytes.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]);
    digits.collect()
}
