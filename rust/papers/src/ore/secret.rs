//! The secret side of the order-revealing baseline: left and right ciphertexts.

use super::{right_bytes, sum, widths, Entry, Left, Mask, KEY};
use crate::Root;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use std::fmt;

/// Words of randomness that one block of AES gives a shuffle.
const DRAWN: usize = 4;

/// The keys of a column, and what its first block shares between all values.
pub struct Baseline {
    keys: Aes128Enc,
    shuffles: Aes128Enc,
    mask: Mask,
    bits: u32,
    widths: Vec<u32>,
    first: Places,
}

/// Of one block under one prefix: the value of each slot, and the slot's key.
#[derive(Default)]
struct Places {
    values: Vec<u16>,
    keys: Vec<Block>,
}

/// What is kept between values.
#[derive(Default)]
pub struct Room {
    slots: Places,
    drawn: Vec<Block>,
    sums: Vec<Block>,
    hashes: Vec<Block>,
}

impl Baseline {
    /// The keys of a column of 64-bit or 32-bit numbers.
    pub fn new(root: &Root, column: u32, bits: u32) -> Self {
        let key = root.derive("eds-baseline", [0, column, bits]);
        let cipher = |at: usize| Aes128Enc::new_from_slice(&key[at..at + KEY]).expect("16 bytes");
        let mut new = Self {
            keys: cipher(0),
            shuffles: cipher(KEY),
            mask: Mask::default(),
            bits,
            widths: widths(bits),
            first: Places::default(),
        };
        let mut first = Places::default();
        new.places(0, 0, &mut first, &mut Vec::new());
        new.first = first;
        new
    }

    /// Blocks of a value, the highest first: what comes before, and its own bits.
    fn blocks(&self, value: u64) -> impl Iterator<Item = (u64, u16)> + '_ {
        let mut left = self.bits;
        self.widths.iter().map(move |width| {
            left -= width;
            let head = value >> left;
            (head >> width, (head & ((1 << width) - 1)) as u16)
        })
    }

    /// Lays out a block: Fisher and Yates over AES in counter mode, and a key for every slot.
    fn places(&self, at: usize, before: u64, slots: &mut Places, drawn: &mut Vec<Block>) {
        let count = 1_u32 << self.widths[at];
        let numbers = 0..count / DRAWN as u32;
        drawn.clear();
        drawn.extend(numbers.map(|number| point(at, number, before)));
        self.shuffles.encrypt_blocks(drawn);
        slots.values.clear();
        slots.values.extend(0..count as u16);
        let words = Block::slice_as_flattened(drawn).as_chunks::<4>().0;
        for (last, word) in (1..count).rev().zip(words) {
            let word = u64::from(u32::from_le_bytes(*word));
            let other = (word * u64::from(last + 1)) >> 32;
            slots.values.swap(last as usize, other as usize);
        }
        slots.keys.clear();
        slots
            .keys
            .extend((0..count).map(|slot| point(at, slot, before)));
        self.keys.encrypt_blocks(&mut slots.keys);
    }

    /// A right ciphertext: what is stored. `out` has [`right_bytes`].
    ///
    /// # Errors
    /// The operating system gives no randomness.
    pub fn right(
        &self,
        value: u64,
        room: &mut Room,
        out: &mut [u8],
    ) -> Result<(), getrandom::Error> {
        debug_assert_eq!(out.len(), right_bytes(self.bits));
        let mut nonce = [0; KEY];
        getrandom::fill(&mut nonce)?;
        let (head, mut rest) = out.split_at_mut(KEY);
        head.copy_from_slice(&nonce);
        for (at, (before, own)) in self.blocks(value).enumerate() {
            if at > 0 {
                self.places(at, before, &mut room.slots, &mut room.drawn);
            }
            let slots = if at > 0 { &room.slots } else { &self.first };
            room.sums.clear();
            let keys = slots.keys.iter();
            room.sums.extend(keys.map(|key| sum(key.as_ref(), &nonce)));
            room.hashes.resize(room.sums.len(), Block::default());
            let masks = self.mask.many(&room.sums, &mut room.hashes);
            let (block, tail) = rest.split_at_mut(slots.keys.len() / 4);
            block.fill(0);
            for (slot, (value, mask)) in slots.values.iter().zip(masks).enumerate() {
                let entry = match value.cmp(&own) {
                    std::cmp::Ordering::Less => Entry::Less,
                    std::cmp::Ordering::Equal => Entry::Equal,
                    std::cmp::Ordering::Greater => Entry::Greater,
                };
                let hidden = entry as u8 + mask;
                let hidden = if hidden > 2 { hidden - 3 } else { hidden };
                block[slot / 4] |= hidden << (2 * (slot % 4));
            }
            rest = tail;
        }
        Ok(())
    }

    /// A left ciphertext: what a query contains.
    pub fn left(&self, value: u64, room: &mut Room) -> Left {
        let blocks = self.blocks(value).enumerate();
        Left(
            blocks
                .map(|(at, (before, own))| {
                    self.places(at, before, &mut room.slots, &mut room.drawn);
                    let slots = &room.slots;
                    let slot = slots.values.iter().position(|value| *value == own);
                    let slot = slot.expect("every value has a slot");
                    (slots.keys[slot].into(), slot as u16)
                })
                .collect(),
        )
    }
}

/// Which block, a number, and all that comes before the block, as one block of AES.
fn point(at: usize, number: u32, before: u64) -> Block {
    let point = (at as u128) << 120 | u128::from(number) << 64 | u128::from(before);
    point.to_be_bytes().into()
}

impl fmt::Debug for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Baseline(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ore::server::{compare, prune, Column};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn they_compare_as_numbers(a: u64, b: u64, near in 0..6_u64, wide: bool) {
            let root = Root::new([3; 32]);
            let bits = if wide { 64 } else { 32 };
            let ore = Baseline::new(&root, 1, bits);
            let (a, b) = (a >> (64 - bits), b >> (64 - bits));
            let stored = [a, b, a ^ near, u64::MAX >> (64 - bits), 0];
            let mut room = Room::default();
            let mut right = |value: &u64| {
                let mut out = vec![0; right_bytes(bits)];
                ore.right(*value, &mut room, &mut out).unwrap();
                out
            };
            let rights: Vec<Vec<u8>> = stored.iter().map(&mut right).collect();
            prop_assert_ne!(&right(&a), &rights[0]);
            let slices: Vec<&[u8]> = rights.iter().map(Vec::as_slice).collect();
            let column = Column::new(bits, &slices).unwrap();
            for query in stored {
                let left = ore.left(query, &mut room);
                let outcome = column.compare(&left).unwrap();
                for ((value, right), outcome) in stored.iter().zip(&rights).zip(outcome) {
                    prop_assert_eq!(outcome, value.cmp(&query));
                    prop_assert_eq!(compare(bits, right, &left).unwrap(), outcome);
                }
                let hits = prune(&column, &column, &left, &left).unwrap();
                let wanted: Vec<bool> = stored.iter().map(|value| *value == query).collect();
                prop_assert_eq!(hits, wanted);
                prop_assert!(compare(96 - bits, &rights[0], &left).is_err());
                prop_assert!(compare(bits, &rights[0][1..], &left).is_err());
            }
        }
    }
}
