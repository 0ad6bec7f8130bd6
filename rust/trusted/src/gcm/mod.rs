//! AES-256-GCM (NIST SP 800-38D) for many short values under one key.
//!
//! This is the only AEAD in the workspace that is composed by hand. AES, GHASH and the comparison
//! in constant time come from RustCrypto (`aes`, `ghash`, `ctutils`); counter blocks, padding, the
//! block of lengths and the tag are written here, and GHASH of values of [`WIDE`] bytes and more is
//! our own where the processor has wide instructions (`louver_primitives::ghash`). Output is the
//! same as that of the crate `aes-gcm`, which is used as it is for values of [`LONG`] bytes and
//! more. Two things make it faster on short values: the counter blocks of a whole batch run through
//! AES together, and the part of the associated data that all values share is hashed once.
//!
//! `spec/vectors/gcm.json` has known answers of NIST CAVP and of Wycheproof; `tests` compares with
//! the crate `aes-gcm` on generated values and checks that every changed bit is refused.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes256, Block};
use aes_gcm::aead::AeadInOut;
use aes_gcm::Aes256Gcm;
use ctutils::CtEq;
use ghash::universal_hash::UniversalHash;
use ghash::GHash;
use louver_primitives::ghash::WideGhash;
use zeroize::{Zeroize, ZeroizeOnDrop};

#[cfg(test)]
mod tests;

pub(crate) const NONCE: usize = 12;
pub(crate) const TAG: usize = 16;
/// Values of a batch; more gain nothing. A multiple of the 64 blocks that AES takes at once.
pub(crate) const BATCH: usize = 128;
/// A value of this many bytes or more is encrypted by itself; bounds the memory of a batch.
/// The longest tile of numbers is shorter.
const LONG: usize = 17 * 1024;
/// From this many bytes on, wide instructions pay.
const WIDE: usize = 256;
const BLOCK: usize = 16;

/// Bytes of a row id, which ends the associated data.
const ROW_ID: usize = 8;

/// The key schedules of a column.
pub(crate) struct Gcm {
    aes: Aes256,
    ghash: GHash,
    wide: Option<WideGhash>,
    /// For long values.
    whole: Aes256Gcm,
}

/// Each field overwrites itself.
impl ZeroizeOnDrop for Gcm {}

/// The head of the associated data: what values are bound to besides their row ids.
pub(crate) struct Binding {
    /// After the head's whole blocks.
    ghash: GHash,
    head: Vec<u8>,
}

impl Binding {
    /// The associated data of a row.
    fn whole(&self, row_id: i64) -> Vec<u8> {
        [self.head.as_slice(), &row_id.to_be_bytes()].concat()
    }

    /// The last block of the associated data, which holds the row id.
    fn last(&self, row_id: i64) -> Block {
        let (_, rest) = self.head.as_chunks::<BLOCK>();
        let mut block = Block::default();
        block[..rest.len()].copy_from_slice(rest);
        block[rest.len()..rest.len() + ROW_ID].copy_from_slice(&row_id.to_be_bytes());
        block
    }
}

/// A value to be sealed: its bytes are version and nonce, the plain body, and room for the tag.
pub(crate) struct Plain<'a> {
    pub(crate) binding: &'a Binding,
    pub(crate) row_id: i64,
    pub(crate) nonce: [u8; NONCE],
    pub(crate) body: &'a mut [u8],
    pub(crate) tag: &'a mut [u8; TAG],
}

/// A value to be opened.
pub(crate) struct Sealed<'a> {
    pub(crate) binding: &'a Binding,
    pub(crate) row_id: i64,
    pub(crate) nonce: &'a [u8; NONCE],
    pub(crate) body: &'a [u8],
    pub(crate) tag: &'a [u8; TAG],
}

/// Buffers that a caller reuses for every batch; wiped when dropped.
#[derive(Default)]
pub(crate) struct Scratch {
    blocks: Vec<Block>,
    plain: Vec<u8>,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.blocks
            .iter_mut()
            .for_each(|b| b.as_mut_slice().zeroize());
        self.plain.zeroize();
    }
}

impl Gcm {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        let aes = Aes256::new(key.into());
        let mut h = Block::default();
        aes.encrypt_block(&mut h);
        let ghash = GHash::new(&h);
        let wide = WideGhash::new(h.as_ref());
        h.as_mut_slice().zeroize();
        Self {
            aes,
            ghash,
            wide,
            whole: Aes256Gcm::new(key.into()),
        }
    }

    /// A binding to this head, whose last block has room for a row id.
    pub(crate) fn binding(&self, head: &[u8]) -> Binding {
        let (blocks, rest) = head.as_chunks::<BLOCK>();
        assert!(
            rest.len() + ROW_ID <= BLOCK,
            "one block ends with the row id"
        );
        let mut ghash = self.ghash.clone();
        for block in blocks {
            ghash.update(&[(*block).into()]);
        }
        Binding {
            ghash,
            head: head.to_vec(),
        }
    }

    /// Seals a batch in place; `false` if a value is too long for the cipher.
    pub(crate) fn seal(&self, values: &mut [Plain<'_>], scratch: &mut Scratch) -> bool {
        let shapes = values.iter().map(|v| (&v.nonce, v.body.len()));
        self.key_stream(shapes, &mut scratch.blocks);
        let mut stream = scratch.blocks.as_slice();
        for value in values {
            if value.body.len() >= LONG {
                let associated = value.binding.whole(value.row_id);
                let body = (&mut *value.body).into();
                let nonce = value.nonce.into();
                let sealed = self.whole.encrypt_inout_detached(&nonce, &associated, body);
                let Ok(tag) = sealed else {
                    return false;
                };
                *value.tag = tag.into();
                continue;
            }
            let (own, rest) = stream.split_at(blocks_of(value.body.len()));
            stream = rest;
            mix(value.body, &own[1..]);
            *value.tag = self.tag(value.binding, value.row_id, value.body, &own[0]);
        }
        true
    }

    /// Opens a batch and passes the index and plain body of each value to `give`, in order; the
    /// body is `None` if the tag is wrong. Stops at the first error of `give`.
    pub(crate) fn open<E>(
        &self,
        values: &[Sealed<'_>],
        scratch: &mut Scratch,
        mut give: impl FnMut(usize, Option<&[u8]>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Scratch { blocks, plain } = scratch;
        self.key_stream(values.iter().map(|v| (v.nonce, v.body.len())), blocks);
        let mut stream = blocks.as_slice();
        for (i, value) in values.iter().enumerate() {
            plain.clear();
            plain.extend_from_slice(value.body);
            let fits = if value.body.len() >= LONG {
                let associated = value.binding.whole(value.row_id);
                let (nonce, tag) = ((*value.nonce).into(), (*value.tag).into());
                let body = plain.as_mut_slice().into();
                let opened = self
                    .whole
                    .decrypt_inout_detached(&nonce, &associated, body, &tag);
                opened.is_ok()
            } else {
                let (own, rest) = stream.split_at(blocks_of(value.body.len()));
                stream = rest;
                let tag = self.tag(value.binding, value.row_id, value.body, &own[0]);
                let fits = bool::from(tag.ct_eq(value.tag));
                if fits {
                    mix(plain, &own[1..]);
                }
                fits
            };
            give(i, fits.then_some(plain.as_slice()))?;
        }
        Ok(())
    }

    /// The mask of the tag and then the key stream of every value that is not long.
    fn key_stream<'a>(
        &self,
        shapes: impl Iterator<Item = (&'a [u8; NONCE], usize)>,
        blocks: &mut Vec<Block>,
    ) {
        blocks.clear();
        for (nonce, length) in shapes.filter(|(_, length)| *length < LONG) {
            for counter in 0..blocks_of(length) as u32 {
                let mut block = Block::default();
                block[..NONCE].copy_from_slice(nonce);
                block[NONCE..].copy_from_slice(&(counter + 1).to_be_bytes());
                blocks.push(block);
            }
        }
        self.aes.encrypt_blocks(blocks);
    }

    fn tag(&self, binding: &Binding, row_id: i64, body: &[u8], mask: &Block) -> [u8; TAG] {
        let mut ghash = binding.ghash.clone();
        let mut blocks = [Block::default(); 4];
        blocks[0] = binding.last(row_id);
        let mut lengths = Block::default();
        let associated = binding.head.len() + ROW_ID;
        lengths[..8].copy_from_slice(&(8 * associated as u64).to_be_bytes());
        lengths[8..].copy_from_slice(&(8 * body.len() as u64).to_be_bytes());
        let own = body.len().div_ceil(BLOCK);
        if own <= 2 {
            for (block, part) in blocks[1..].iter_mut().zip(body.chunks(BLOCK)) {
                block[..part.len()].copy_from_slice(part);
            }
            blocks[own + 1] = lengths;
            ghash.update(&blocks[..own + 2]);
        } else if let Some(wide) = self.wide.as_ref().filter(|_| body.len() >= WIDE) {
            ghash.update(&blocks[..1]);
            // What the hash is so far is its state.
            let mut tag: [u8; TAG] = ghash.finalize().into();
            wide.update(&mut tag, body);
            wide.update(&mut tag, &lengths);
            tag.iter_mut().zip(mask).for_each(|(t, m)| *t ^= m);
            return tag;
        } else {
            ghash.update(&blocks[..1]);
            ghash.update_padded(body);
            ghash.update(&[lengths]);
        }
        let mut tag: [u8; TAG] = ghash.finalize().into();
        tag.iter_mut().zip(mask).for_each(|(t, m)| *t ^= m);
        tag
    }
}

/// Blocks of key stream of a value, its tag's mask included.
fn blocks_of(length: usize) -> usize {
    1 + length.div_ceil(BLOCK)
}

fn mix(body: &mut [u8], stream: &[Block]) {
    for (part, block) in body.chunks_mut(BLOCK).zip(stream) {
        part.iter_mut().zip(block).for_each(|(x, k)| *x ^= k);
    }
}
