//! Row exponents: `r = AES-128(table key, row id)`; nothing is stored for them.

use crate::columns::RowIds;
use crate::keys::{Purpose, RootSecret};
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use aes::Aes128;

/// The cipher that makes a table's row exponents.
pub(crate) struct RowCipher(Aes128);

impl RowCipher {
    pub(crate) fn new(root: &RootSecret, table: u32) -> Self {
        let key = root.derive(Purpose {
            name: "row",
            table,
            column: 0,
            generation: 0,
        });
        Self(Aes128::new_from_slice(&key[..16]).expect("16 bytes"))
    }

    /// The exponents of some rows, 128 bits each, big endian.
    pub(crate) fn exponents(&self, row_ids: &[i64]) -> Vec<[u8; 16]> {
        let mut blocks: Vec<Array<u8, _>> = row_ids
            .iter()
            .map(|id| {
                let mut block = [0; 16];
                block[8..].copy_from_slice(&id.to_be_bytes());
                block.into()
            })
            .collect();
        self.0.encrypt_blocks(&mut blocks);
        blocks.into_iter().map(Into::into).collect()
    }
}

/// The ids of the given rows; an error names the first row without one.
pub(crate) fn pick(row_ids: &RowIds, rows: &[usize]) -> Result<Vec<i64>, usize> {
    rows.iter()
        .map(|&row| row_ids.get(row).ok_or(row))
        .collect()
}
