//! Keys of data files: one a file, wrapped by one of the table's.

use crate::eds::LakeKeys;
use crate::error::{Error, Result};
use crate::keys::{hex, random, KEY_BYTES};
use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes256Gcm, KeyInit};
use std::fmt;
use zeroize::Zeroizing;

/// Bytes of a file id.
pub const FILE_ID: usize = 16;

/// Version of files and of their key metadata.
const VERSION: u8 = 1;
const NONCE: usize = 12;
const TAG: usize = 16;
/// Version, nonce, wrapped key, tag.
const WRAPPED: usize = 1 + NONCE + KEY_BYTES + TAG;
/// Version, table id, file id.
pub(super) const CONTEXT: usize = 1 + 4 + FILE_ID;

/// A file's data key.
pub(super) type DataKey = Zeroizing<[u8; KEY_BYTES]>;

/// What wraps the data keys of one table's files.
pub struct FileKeys {
    table: u32,
    wrap: Zeroizing<[u8; KEY_BYTES]>,
}

impl FileKeys {
    /// Those of a table.
    pub fn of(keys: &LakeKeys) -> Self {
        Self {
            table: keys.table(),
            wrap: keys.derive("lake/files", 0, 0),
        }
    }

    /// What a file's keys and modules are bound to: version, table id, file id.
    pub(super) fn context(&self, file_id: &[u8; FILE_ID]) -> [u8; CONTEXT] {
        let mut out = [VERSION; CONTEXT];
        out[1..5].copy_from_slice(&self.table.to_be_bytes());
        out[5..].copy_from_slice(file_id);
        out
    }

    /// A fresh data key, and the key metadata from which [`FileKeys::unwrap`] gets it back.
    pub(super) fn fresh(&self, file_id: &[u8; FILE_ID]) -> Result<(DataKey, Vec<u8>)> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        random(key.as_mut())?;
        let mut out = vec![0; WRAPPED];
        out[0] = VERSION;
        random(&mut out[1..=NONCE])?;
        let (head, rest) = out.split_at_mut(1 + NONCE);
        let (body, tag) = rest.split_at_mut(KEY_BYTES);
        body.copy_from_slice(&key[..]);
        let nonce: [u8; NONCE] = head[1..].try_into().expect("12 bytes");
        let sealed = Aes256Gcm::new((&*self.wrap).into())
            .encrypt_inout_detached(&nonce.into(), &self.context(file_id), body.into())
            .map_err(|_| Error::value("a data key could not be wrapped"))?;
        tag.copy_from_slice(&sealed);
        Ok((key, out))
    }

    /// The data key of a file.
    ///
    /// # Errors
    /// [`Error::Verify`] if it was wrapped for another file, table or key file, or was altered.
    pub(super) fn unwrap(&self, file_id: &[u8; FILE_ID], wrapped: &[u8]) -> Result<DataKey> {
        let wrong = || bad(file_id, "its key metadata");
        if wrapped.len() != WRAPPED || wrapped[0] != VERSION {
            return Err(wrong());
        }
        let nonce: [u8; NONCE] = wrapped[1..=NONCE].try_into().expect("12 bytes");
        let tag: [u8; TAG] = wrapped[WRAPPED - TAG..].try_into().expect("16 bytes");
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        key.copy_from_slice(&wrapped[1 + NONCE..WRAPPED - TAG]);
        Aes256Gcm::new((&*self.wrap).into())
            .decrypt_inout_detached(
                &nonce.into(),
                &self.context(file_id),
                key.as_mut_slice().into(),
                &tag.into(),
            )
            .map_err(|_| wrong())?;
        Ok(key)
    }
}

impl fmt::Debug for FileKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileKeys(table {}, redacted)", self.table)
    }
}

/// The error of a file that is not what was written. Says which part, and nothing out of it.
pub(super) fn bad(file_id: &[u8; FILE_ID], part: &str) -> Error {
    let id = hex(file_id);
    Error::verify(format!(
        "data file {id}: {part} was altered, cut short, swapped with another's, or written under \
         another key"
    ))
}
