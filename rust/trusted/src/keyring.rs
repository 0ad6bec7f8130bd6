//! The key ring: the operations with keys that the rest of the product may use.

use crate::bound::ColumnId;
use crate::epochs::Epochs;
use crate::error::Result;
use crate::keys::{hex, Purpose, RootSecret};
use crate::ready::Ciphers;
use crate::sdb::SdbSpace;
use crate::sealed;
use crate::{blob, keyfile};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;

/// The keys of one key file. Holds the root secret and a bounded number of derived keys, which are
/// overwritten when this is dropped.
pub struct KeyRing {
    root: RootSecret,
    key_id: [u8; 8],
    ciphers: Ciphers,
}

impl KeyRing {
    /// Writes a new key file (mode 0600, never over an existing one) and returns its key id.
    ///
    /// # Errors
    /// [`crate::Error::KeyFile`].
    pub fn create(path: &str, comment: &str) -> Result<String> {
        keyfile::create(path, comment, keyfile::now_s()).map(|id| hex(&id))
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// [`crate::Error::KeyFile`]: missing, no regular file, open to others, or damaged.
    pub fn open(path: &str) -> Result<Self> {
        keyfile::read(path).map(Self::from_root)
    }

    pub(crate) fn from_root(root: RootSecret) -> Self {
        let key_id = root.key_id();
        Self {
            root,
            key_id,
            ciphers: Ciphers::default(),
        }
    }

    pub(crate) fn root(&self) -> &RootSecret {
        &self.root
    }

    pub(crate) fn ciphers(&self) -> &Ciphers {
        &self.ciphers
    }

    /// The key's public name: 16 hexadecimal digits.
    pub fn key_id(&self) -> String {
        hex(&self.key_id)
    }

    /// Seals a blob for one purpose and context with AES-256-GCM and a random nonce.
    ///
    /// # Errors
    /// [`crate::Error::Value`] if purpose or blob are too long.
    pub fn seal_blob(&self, purpose: &str, context: &[u8], plain: &[u8]) -> Result<Vec<u8>> {
        blob::seal(&self.root, purpose, context, plain)
    }

    /// Opens what [`KeyRing::seal_blob`] sealed.
    ///
    /// # Errors
    /// [`crate::Error::Verify`] if it was altered or belongs to another purpose, context or key.
    pub fn open_blob(&self, purpose: &str, context: &[u8], sealed: &[u8]) -> Result<Vec<u8>> {
        blob::open(&self.root, purpose, context, sealed)
    }

    /// HMAC-SHA256 of `data` under a key of its own for this purpose.
    pub fn mac(&self, purpose: &str, data: &[u8]) -> [u8; 32] {
        let key = self.root.derive(Purpose::whole(&format!("mac/{purpose}")));
        let mut mac = Hmac::<Sha256>::new_from_slice(&key[..]).expect("any length is a key");
        mac.update(data);
        mac.finalize().into_bytes().into()
    }

    /// Seals every value of a column, NULLs included: one binary value a row, none of them null.
    ///
    /// # Errors
    /// [`crate::Error::Value`] for a type that cannot be sealed, a missing row id, lengths that
    /// differ, or more than 2 GiB of ciphertext at once; [`crate::Error::Verify`] for a row of an
    /// epoch that is not known.
    pub fn seal_column(
        &self,
        id: (u32, u32, u32),
        epochs: &Epochs,
        values: &ArrayRef,
        row_ids: &dyn Array,
    ) -> Result<ArrayRef> {
        sealed::seal(self, self.column(id), epochs, values, row_ids)
    }

    /// Opens a sealed column as `data_type` (dictionaries come back as their values).
    ///
    /// # Errors
    /// [`crate::Error::Verify`], naming the row id, for any value that was altered, moved, is
    /// missing, or was sealed as another type.
    pub fn open_column(
        &self,
        id: (u32, u32, u32),
        epochs: &Epochs,
        sealed: &dyn Array,
        row_ids: &dyn Array,
        data_type: &DataType,
    ) -> Result<ArrayRef> {
        let id = self.column(id);
        sealed::open(self, id, epochs, sealed, row_ids, data_type)
    }

    /// The SDB key space of this key ring; `hint` is an earlier space's [`SdbSpace::hint`].
    ///
    /// # Errors
    /// [`crate::Error::Value`] for an unusable size, [`crate::Error::Verify`] for a hint that is
    /// not ours.
    pub fn sdb(&self, hint: Option<&[u8]>, bits: u32) -> Result<SdbSpace> {
        SdbSpace::new(self, hint, bits)
    }

    /// `(table, column, generation)` with the key id.
    pub(crate) fn column(&self, (table, column, generation): (u32, u32, u32)) -> ColumnId {
        ColumnId {
            table,
            column,
            generation,
            key_id: self.key_id,
        }
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyRing({})", self.key_id())
    }
}
