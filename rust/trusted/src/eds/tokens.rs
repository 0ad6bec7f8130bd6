//! Tokens: the sub-tokens of a range, filled up with others and shuffled.

use super::keys::{element, numbered, wipe, Element, IndexKeys, Scratch};
use super::keys::{DUMMY, GREATEST, LEAST, SIDE};
use crate::error::{Error, Result};
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use louver_primitives::eds::spec::Form;
use louver_primitives::eds::token::{push, Header, Pair, SUB_TOKENS};
use louver_primitives::eds::tree::{prefix_cover, suffix_cover};
use zeroize::Zeroize;

/// Sub-tokens of a side, where tokens name sides.
const SIDE_TOKENS: usize = SUB_TOKENS / 2;
/// What comes first in a block that becomes a sub-token that fills up, or a position in the order.
const FILLING: u8 = 1;
const ORDER: u8 = 2;

/// The token of an inclusive range.
///
/// # Errors
/// [`Error::Value`] if `low` is above `high`.
pub fn token<S: Form>(keys: &IndexKeys<S>, low: u64, high: u64, sides: bool) -> Result<Vec<u8>> {
    let (header, positions) = positions(keys, low, high, sides)?;
    let mut out = Vec::with_capacity(header.total());
    out.extend_from_slice(&header.encode());
    let opens = keys.position_keys(positions.iter().copied());
    for (&position, key) in positions.iter().zip(&opens.0) {
        let key = key.as_ref();
        push(&mut out, Pair { position, key });
    }
    Ok(out)
}

/// The header of a range's token, and the positions of all its sub-tokens.
///
/// # Errors
/// [`Error::Value`] if `low` is above `high`.
pub fn positions<S: Form>(
    keys: &IndexKeys<S>,
    low: u64,
    high: u64,
    sides: bool,
) -> Result<(Header<S>, Vec<u32>)> {
    if low > high {
        return Err(Error::value(
            "the range of a token has its ends in the wrong order",
        ));
    }
    let spec = keys.spec;
    let header = Header {
        spec,
        index_id: keys.id,
        sides,
    };
    let elements = elements(&Own::new(keys, low, high, sides), low, high, sides);
    let mut scratch = Scratch::default();
    keys.digests(&elements, &mut scratch);
    let digests = scratch.0.iter();
    let positions = digests.flat_map(|digest| spec.positions(digest).to_vec());
    Ok((header, positions.collect()))
}

/// The elements of a range: always [`SUB_TOKENS`] elements, in an order that says nothing.
fn elements(own: &Own, low: u64, high: u64, sides: bool) -> Vec<Element> {
    let least = prefix_cover(high).map(|node| element(node, LEAST));
    let greatest = suffix_cover(low).map(|node| element(node, GREATEST));
    let mut fill = (0..).map(|at| own.filling(at));
    let mut all: Vec<Element> = least.collect();
    if sides {
        all.extend(fill.by_ref().take(SIDE_TOKENS - all.len()));
    }
    all.extend(greatest);
    all.extend(fill.take(SUB_TOKENS - all.len()));
    let whole = if sides { SIDE_TOKENS } else { SUB_TOKENS };
    for (at, part) in all.chunks_mut(whole).enumerate() {
        own.shuffle(part, (at * whole) as u32);
    }
    all
}

/// A cipher of one range alone: what it makes depends on nothing else.
struct Own {
    cipher: Aes128Enc,
    sides: u8,
}

impl Own {
    fn new<S: Form>(keys: &IndexKeys<S>, low: u64, high: u64, sides: bool) -> Self {
        let mut key = Block::default();
        key[..8].copy_from_slice(&low.to_be_bytes());
        key[8..].copy_from_slice(&high.to_be_bytes());
        keys.dummies.encrypt_block(&mut key);
        let cipher = Aes128Enc::new(&key);
        wipe(std::slice::from_mut(&mut key));
        let sides = u8::from(sides);
        Self { cipher, sides }
    }

    fn block(&self, domain: u8, at: u32) -> [u8; 16] {
        let mut block = numbered(domain, at);
        block[1] = self.sides;
        self.cipher.encrypt_block(&mut block);
        block.into()
    }

    /// An element that belongs to no node.
    fn filling(&self, at: u32) -> Element {
        let mut element = self.block(FILLING, at);
        element[SIDE] = DUMMY;
        element
    }

    /// Fisher and Yates, from the last position down.
    fn shuffle(&self, elements: &mut [Element], first: u32) {
        for last in (1..elements.len()).rev() {
            let mut random = self.block(ORDER, first + last as u32);
            let (half, _) = random.split_first_chunk().expect("16 bytes");
            let share = u128::from(u64::from_be_bytes(*half)) * (last as u128 + 1);
            random.zeroize();
            elements.swap(last, (share >> 64) as usize);
        }
    }
}
