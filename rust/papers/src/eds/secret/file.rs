//! The paper's form: one filter a file, each bit or block under a key of its own number and the
//! file's id (Algorithms 1 and 2). It is what a manifest's `bytes` field holds, and what others are
//! compared with; segments are smaller by nothing and faster to build and to query.
//!
//! H, F1 and F2 are the spec's hash. A file id MUST be used for one filter of an index only.

use super::blocks::filters;
use crate::eds::block_token::{units, BlockToken, Form};
use crate::eds::cbc::Cbc;
use crate::eds::hash::{keyed, once};
use crate::eds::spec::{Encryption, Spec};
use crate::Root;
use louver_primitives::eds::token::PAIR_KEY;
use louver_trusted::eds::keys::{numbered, IndexKeys};
use louver_trusted::eds::{tokens, Ranges};
use louver_trusted::{Error, Result};
use std::fmt;
use zeroize::Zeroizing;

/// Bytes of a file id.
pub const FILE_ID: usize = 16;
/// What comes first in a block that becomes the key of a unit.
const UNIT: u8 = 2;

/// The keys of the filters of one column's files.
pub struct FileIndex {
    keys: IndexKeys<Spec>,
    /// F1 of every unit's number.
    units: Zeroizing<Vec<u8>>,
    whole: Option<Cbc>,
}

impl FileIndex {
    /// The keys of filters of single files of a table's column in a generation.
    pub fn new(root: &Root, id: [u32; 3], spec: Spec) -> Self {
        let derive = |name: &str| root.derive(&format!("{name}/file"), id);
        let keys = IndexKeys::new(spec, derive);
        let hash = keyed(spec.hash, &derive("lake/eds/units"));
        let spec = &keys.spec;
        let (count, width) = units(spec);
        let mut own = Zeroizing::new(Vec::with_capacity(count as usize * width));
        for number in 0..count {
            let key = Zeroizing::new(hash.digest(&numbered(UNIT, number)));
            own.extend_from_slice(&key[..width]);
        }
        let tweaked = spec.encryption == Encryption::Aes;
        let whole = (tweaked || spec.encryption == Encryption::AesEmptyIv)
            .then(|| Cbc::new(own.first_chunk().expect("one key"), tweaked));
        Self {
            keys,
            units: own,
            whole,
        }
    }

    #[cfg(test)]
    pub(crate) fn keys(&self) -> &IndexKeys<Spec> {
        &self.keys
    }

    /// The encrypted filter of one file, of one range, of none, or of any value.
    ///
    /// # Errors
    /// [`Error::Value`] for more than one file, an unknown state, and a range whose ends are in
    /// the wrong order; [`Error::System`] without randomness.
    pub fn filter(&self, file_id: &[u8; FILE_ID], range: &Ranges<'_>) -> Result<Vec<u8>> {
        if range.check()? != 1 {
            return Err(Error::Value("a filter is of one file".into()));
        }
        let mut filter = filters(&self.keys, range)?.to_vec();
        let spec = &self.keys.spec;
        let (_, width) = units(spec);
        if let Some(cbc) = &self.whole {
            cbc.encrypt(file_id, &mut filter);
            return Ok(filter);
        }
        let stream = |key: &[u8]| {
            let key: &[u8; PAIR_KEY] = key.try_into().expect("the key of a bit or block");
            once(spec.hash, key, file_id)
        };
        match spec.encryption {
            Encryption::XorBit => {
                for (position, key) in self.units.chunks_exact(width).enumerate() {
                    filter[position / 8] ^= (stream(key)[0] & 1) << (position % 8);
                }
            }
            Encryption::XorBlock => {
                let blocks = filter.chunks_mut(spec.kind.block_bits() as usize / 8);
                for (block, key) in blocks.zip(self.units.chunks_exact(width)) {
                    let pad = stream(key);
                    block.iter_mut().zip(pad).for_each(|(to, pad)| *to ^= pad);
                }
            }
            _ => {}
        }
        Ok(filter)
    }

    /// The token of an inclusive range; with `sides`, sub-tokens name their side.
    ///
    /// # Errors
    /// [`Error::Value`] if `low` is above `high`.
    pub fn token(&self, low: u64, high: u64, sides: bool) -> Result<Vec<u8>> {
        let (header, positions) = tokens::positions(&self.keys, low, high, sides)?;
        let (_, width) = units(&header.spec);
        let mut opened = Zeroizing::new(Vec::new());
        for number in BlockToken::needed(&header.spec, &positions) {
            let start = number as usize * width;
            opened.extend_from_slice(&self.units[start..start + width]);
        }
        Ok(BlockToken::encode(&header, Form::File, &positions, &opened))
    }
}

impl fmt::Debug for FileIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileIndex({:?}, redacted)", self.keys.spec)
    }
}
