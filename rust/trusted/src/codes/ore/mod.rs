//! Order-revealing values (`spec/ore.md`): the right ciphertexts and left tokens of Lewi and Wu,
//! "Order-Revealing Encryption: New Constructions, Applications, and Lower Bounds" (CCS 2016).

#[cfg(test)]
mod tests;

use super::ord::{Interval, Ranks};
use crate::error::{Error, Result};
use crate::keyring::KeyRing;
use crate::keys::{random, Purpose, RootSecret};
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use arrow_array::{Array, ArrayRef, BinaryArray};
use arrow_buffer::{Buffer, OffsetBuffer};
use louver_primitives::ore::{
    Entry, Masks, BLOCK_BITS, BLOCK_VALUES, HEAD, KEY, LEFT, MOST_BLOCKS, RIGHT, VERSION,
};
use rayon::prelude::*;
use std::sync::Arc;
use zeroize::Zeroize;

/// Rows a task takes.
const CHUNK: usize = 1024;

impl KeyRing {
    /// Right ciphertexts of values, NULL like one that is above all others.
    ///
    /// # Errors
    /// [`Error::Value`] for another type, a value outside of the interval, or too many at once;
    /// [`Error::System`].
    pub fn ore_seal(
        &self,
        id: (u32, u32, u32),
        interval: Interval<'_>,
        values: &dyn Array,
    ) -> Result<ArrayRef> {
        let ranks = Ranks::new(interval, values)?;
        let scheme = Scheme::new(self.root(), id, interval);
        let width = HEAD + RIGHT * scheme.blocks;
        let (rows, total) = (ranks.ranks.len(), ranks.ranks.len() * width);
        if i32::try_from(total).is_err() {
            let text = "more than 2 GiB of ciphertext at once: seal fewer rows at a time";
            return Err(Error::value(text));
        }
        let mut bytes = vec![0; total];
        let chunks = bytes.par_chunks_mut(width * CHUNK).enumerate();
        chunks.try_for_each(|(chunk, bytes)| {
            let mut nonces = vec![[0; KEY]; bytes.len() / width];
            random(nonces.as_flattened_mut())?;
            let mut room = Room::default();
            let values = bytes.chunks_exact_mut(width).zip(&nonces);
            for (row, (out, nonce)) in (chunk * CHUNK..).zip(values) {
                let live = ranks.live(row).then(|| ranks.ranks[row]);
                scheme.right(scheme.number(live), nonce, &mut room, out);
            }
            Ok::<_, Error>(())
        })?;
        let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(width, rows));
        let array = BinaryArray::new(offsets, Buffer::from_vec(bytes), None);
        Ok(Arc::new(array))
    }

    /// The token by which a server compares a column with the one value given.
    ///
    /// # Errors
    /// [`Error::Value`]: another type, a value outside of the interval, NULL, or not one value.
    pub fn ore_token(
        &self,
        id: (u32, u32, u32),
        interval: Interval<'_>,
        value: &dyn Array,
    ) -> Result<Vec<u8>> {
        let ranks = Ranks::new(interval, value)?;
        match ranks.ranks.as_slice() {
            [rank] if ranks.live(0) => {
                let scheme = Scheme::new(self.root(), id, interval);
                Ok(scheme.left(scheme.number(Some(*rank))))
            }
            _ => Err(Error::value(
                "a token is made for one value that is not NULL",
            )),
        }
    }
}

/// The keys of a column: of what unlocks an entry, and of the order of entries.
struct Scheme {
    entries: Aes128Enc,
    places: Aes128Enc,
    bits: u32,
    blocks: usize,
}

/// What a value needs while it is sealed; wiped when dropped.
#[derive(Default)]
struct Room {
    keys: Vec<Block>,
    hashes: Vec<Block>,
    seeds: Vec<Block>,
}

impl Drop for Room {
    fn drop(&mut self) {
        let blocks = self.keys.iter_mut().chain(&mut self.hashes);
        let blocks = blocks.chain(&mut self.seeds);
        blocks.for_each(|block| block.as_mut_slice().zeroize());
    }
}

impl Scheme {
    fn new(
        root: &RootSecret,
        (table, column, generation): (u32, u32, u32),
        Interval { domain, low, bits }: Interval<'_>,
    ) -> Self {
        let key = root.derive(Purpose {
            name: &format!("ore/{domain}/{low}/{bits}"),
            table,
            column,
            generation,
        });
        let (entries, places) = key.split_at(KEY);
        let cipher = |half: &[u8]| Aes128Enc::new(half.try_into().expect("half of 32 bytes"));
        let blocks = (bits + 1).div_ceil(BLOCK_BITS) as usize;
        debug_assert!(blocks <= MOST_BLOCKS);
        Self {
            entries: cipher(entries),
            places: cipher(places),
            bits,
            blocks,
        }
    }

    /// A rank as it is encrypted; that of NULL is above all others.
    fn number(&self, rank: Option<u64>) -> u128 {
        rank.map_or(1 << self.bits, u128::from)
    }

    /// The blocks of a number, the highest first, each with the number's part before it.
    fn blocks(&self, number: u128) -> impl Iterator<Item = (u128, usize)> {
        (0..self.blocks as u32).rev().map(move |left| {
            let head = number >> (BLOCK_BITS * left);
            (head >> BLOCK_BITS, head as usize % BLOCK_VALUES)
        })
    }

    /// For every block, what decides the order of its entries.
    fn seeds(&self, number: u128, seeds: &mut Vec<Block>) {
        seeds.clear();
        let blocks = self.blocks(number).enumerate();
        seeds.extend(blocks.map(|(at, (before, _))| point(at, 0, before)));
        self.places.encrypt_blocks(seeds);
    }

    fn right(&self, number: u128, nonce: &[u8; KEY], room: &mut Room, out: &mut [u8]) {
        let Room {
            keys,
            hashes,
            seeds,
        } = room;
        self.seeds(number, seeds);
        keys.clear();
        for (at, (before, _)) in self.blocks(number).enumerate() {
            keys.extend((0..BLOCK_VALUES).map(|slot| point(at, slot, before)));
        }
        self.entries.encrypt_blocks(keys);
        hashes.resize(keys.len(), Block::default());
        let mut masks = Masks::new(nonce).many(keys, hashes);
        out[0] = VERSION;
        out[1..HEAD].copy_from_slice(nonce);
        let words = out[HEAD..].chunks_exact_mut(RIGHT).zip(seeds.iter());
        for ((word, seed), (_, own)) in words.zip(self.blocks(number)) {
            let mut order = [Entry::Equal; BLOCK_VALUES];
            for (value, slot) in places(seed).into_iter().enumerate() {
                order[usize::from(slot)] = match value.cmp(&own) {
                    std::cmp::Ordering::Less => Entry::Less,
                    std::cmp::Ordering::Equal => Entry::Equal,
                    std::cmp::Ordering::Greater => Entry::Greater,
                };
            }
            let mut bits = 0;
            for (slot, (entry, mask)) in order.into_iter().zip(&mut masks).enumerate() {
                bits |= u32::from((entry as u8 + mask) % 3) << (2 * slot);
            }
            word.copy_from_slice(&bits.to_be_bytes());
        }
    }

    fn left(&self, number: u128) -> Vec<u8> {
        let mut seeds = Vec::new();
        self.seeds(number, &mut seeds);
        let mut token = Vec::with_capacity(1 + LEFT * self.blocks);
        token.push(VERSION);
        for ((at, (before, own)), seed) in self.blocks(number).enumerate().zip(&seeds) {
            let slot = places(seed)[own];
            let mut key = point(at, usize::from(slot), before);
            self.entries.encrypt_block(&mut key);
            token.extend_from_slice(&key);
            token.push(slot);
        }
        token
    }
}

/// The block, the slot in it, and all that comes before it, as one block of AES.
fn point(at: usize, slot: usize, before: u128) -> Block {
    let point = (at as u128) << 120 | (slot as u128) << 112 | before;
    point.to_be_bytes().into()
}

/// A permutation of a block's values from 128 random bits, by Fisher and Yates.
fn places(seed: &Block) -> [u8; BLOCK_VALUES] {
    let mut fraction = u128::from_be_bytes((*seed).into());
    let mut places: [u8; BLOCK_VALUES] = std::array::from_fn(|value| value as u8);
    for last in (1..BLOCK_VALUES).rev() {
        let of = last as u128 + 1;
        // The integer part of of · fraction / 2^128; what is left of the fraction goes on.
        let low = ((fraction & u128::from(u64::MAX)) * of) >> 64;
        let drawn = ((fraction >> 64) * of + low) >> 64;
        fraction = fraction.wrapping_mul(of);
        places.swap(last, drawn as usize);
    }
    places
}
