//! Row exponents: `r = AES-128(key, row id)` under the table's key for the row's epoch; nothing is
//! stored for them.

use crate::columns::RowIds;
use crate::epochs::{EpochBits, Epochs, PerEpoch};
use crate::error::Result;
use crate::keys::{Purpose, RootSecret};
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use aes::Aes128;

/// The ciphers that make a table's row exponents.
pub(crate) struct RowCiphers<'a> {
    root: &'a RootSecret,
    table: u32,
    ciphers: PerEpoch<'a, Aes128>,
}

impl<'a> RowCiphers<'a> {
    pub(crate) fn new(root: &'a RootSecret, table: u32, epochs: &'a Epochs) -> Self {
        Self {
            root,
            table,
            ciphers: PerEpoch::new(epochs),
        }
    }

    fn cipher(&self, epoch: Option<&EpochBits>) -> Aes128 {
        let purpose = Purpose {
            name: "row",
            table: self.table,
            column: 0,
            generation: 0,
        };
        let key = self.root.derive_in(purpose, epoch);
        Aes128::new_from_slice(&key[..16]).expect("16 bytes")
    }

    /// The exponents of some rows, 128 bits each, big endian.
    ///
    /// # Errors
    /// [`crate::Error::Verify`] for a row of an unknown epoch.
    pub(crate) fn exponents(&self, row_ids: &[i64]) -> Result<Vec<[u8; 16]>> {
        let mut blocks: Vec<Array<u8, _>> = row_ids
            .iter()
            .map(|id| {
                let mut block = [0; 16];
                block[8..].copy_from_slice(&id.to_be_bytes());
                block.into()
            })
            .collect();
        let mut rest = blocks.as_mut_slice();
        for ids in row_ids.chunk_by(|a, b| Epochs::end(*a) == Epochs::end(*b)) {
            let (own, after) = rest.split_at_mut(ids.len());
            let cipher = self.ciphers.at(ids[0], |epoch| self.cipher(epoch))?;
            cipher.encrypt_blocks(own);
            rest = after;
        }
        Ok(blocks.into_iter().map(Into::into).collect())
    }
}

/// The ids of the given rows; an error names the first row without one.
pub(crate) fn pick(row_ids: &RowIds, rows: &[usize]) -> std::result::Result<Vec<i64>, usize> {
    rows.iter()
        .map(|&row| row_ids.get(row).ok_or(row))
        .collect()
}
