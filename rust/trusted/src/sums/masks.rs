//! The masks: AES-128 of row ids, batch by batch.

use crate::epochs::{EpochBits, Epochs, PerEpoch};
use crate::error::Result;
use crate::keyring::KeyRing;
use crate::keys::Purpose;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};
use std::sync::Arc;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Blocks that go through AES together: a multiple of what it takes at once.
pub(super) const BATCH: usize = 512;

/// The two mask functions of a column in one epoch: of its values, and of its flags.
#[derive(ZeroizeOnDrop)]
pub(crate) struct Masks {
    value: Aes128,
    flag: Aes128,
}

/// A column's masks: those of every epoch.
pub(super) struct AllMasks<'a> {
    ring: &'a KeyRing,
    id: (u32, u32, u32),
    masks: PerEpoch<'a, Arc<Masks>>,
}

impl<'a> AllMasks<'a> {
    pub(super) fn new(ring: &'a KeyRing, id: (u32, u32, u32), epochs: &'a Epochs) -> Self {
        Self {
            ring,
            id,
            masks: PerEpoch::new(epochs),
        }
    }

    /// The masks of a row and of all others of its epoch.
    pub(super) fn of(&self, row_id: i64) -> Result<&Masks> {
        let make = |bits: Option<&EpochBits>| {
            let masks = &self.ring.ciphers().masks;
            masks.get((self.id, bits.copied()), || {
                Masks::new(self.ring, self.id, bits)
            })
        };
        self.masks.at(row_id, make).map(Arc::as_ref)
    }
}

impl Masks {
    fn new(
        ring: &KeyRing,
        (table, column, generation): (u32, u32, u32),
        epoch: Option<&EpochBits>,
    ) -> Self {
        let purpose = Purpose {
            name: "sum",
            table,
            column,
            generation,
        };
        let key = ring.root().derive_in(purpose, epoch);
        let (value, flag) = key.split_at(16);
        let cipher = |half: &[u8]| Aes128::new(half.try_into().expect("half of 32 bytes"));
        Self {
            value: cipher(value),
            flag: cipher(flag),
        }
    }

    /// F at every point, into `out`.
    pub(super) fn values(&self, points: &[i64], out: &mut Vec<Block>) {
        encrypt(&self.value, points, out);
    }

    /// G at every point, into `out`.
    pub(super) fn flags(&self, points: &[i64], out: &mut Vec<Block>) {
        encrypt(&self.flag, points, out);
    }
}

fn encrypt(cipher: &Aes128, points: &[i64], out: &mut Vec<Block>) {
    let block = |point: &i64| Block::from(i128::from(*point).cast_unsigned().to_be_bytes());
    out.clear();
    out.extend(points.iter().map(block));
    cipher.encrypt_blocks(out);
}

/// A block as a number.
pub(super) fn number(block: &Block) -> u128 {
    u128::from_be_bytes((*block).into())
}

/// Blocks that are wiped when dropped.
#[derive(Default)]
pub(super) struct Blocks(pub(super) Vec<Block>);

impl Drop for Blocks {
    fn drop(&mut self) {
        let blocks = self.0.iter_mut();
        blocks.for_each(|block| block.as_mut_slice().zeroize());
    }
}
