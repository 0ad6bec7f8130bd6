//! The generator by the `aes` crate, which picks the processor's instructions by itself and has
//! constant-time software for processors without any.

use super::prg::Packed;
use super::schedule::{Keys, VALUE_KEYS};
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};

/// Blocks that go through AES together.
const BATCH: usize = 128;

pub(super) struct Portable {
    sides: [Aes128Enc; 2],
    values: [Aes128Enc; VALUE_KEYS],
}

impl Portable {
    pub(super) fn new() -> Self {
        let keys = Keys::get();
        let cipher = |key: u128| Aes128Enc::new(&key.to_le_bytes().into());
        Self {
            sides: keys.sides.map(cipher),
            values: keys.values.map(cipher),
        }
    }

    pub(super) fn children(&self, seed: u128) -> [u128; 2] {
        [one(&self.sides[0], seed), one(&self.sides[1], seed)]
    }

    pub(super) fn value(&self, seed: u128, at: usize) -> u128 {
        one(&self.values[at], seed)
    }

    pub(super) fn descend(
        &self,
        states: &mut [u128],
        points: &[u64],
        shift: u32,
        levels: &[[u128; 2]],
    ) {
        for (down, level) in levels.iter().enumerate() {
            self.step(states, points, shift - down as u32, level);
        }
    }

    fn step(&self, states: &mut [u128], points: &[u64], shift: u32, level: &[u128; 2]) {
        for (states, points) in states.chunks_mut(BATCH).zip(points.chunks(BATCH)) {
            // Points are public: which cipher a state goes through may depend on them.
            let (mut blocks, mut slots) = ([Block::default(); BATCH], [0; BATCH]);
            let (mut lefts, mut rights) = (0, states.len());
            for (at, point) in points.iter().enumerate() {
                let right = point >> shift & 1 == 1;
                rights -= usize::from(right);
                let slot = if right { rights } else { lefts };
                lefts += usize::from(!right);
                slots[slot] = at;
                blocks[slot] = (states[at] & !1).to_le_bytes().into();
            }
            let (left, right) = blocks[..states.len()].split_at_mut(lefts);
            self.sides[0].encrypt_blocks(left);
            self.sides[1].encrypt_blocks(right);
            for (slot, block) in blocks[..states.len()].iter().enumerate() {
                let state = &mut states[slots[slot]];
                *state = child(*state, word(block), level[usize::from(slot >= lefts)]);
            }
        }
    }

    pub(super) fn link(&self, parents: &[u128], links: &[u8], level: &[u128; 2], out: &mut [u128]) {
        let (mut parent, mut sides) = (0, vec![0; out.len()]);
        for (at, (child, side)) in out.iter_mut().zip(&mut sides).enumerate() {
            let four = links[at / 4] >> (at % 4);
            parent += usize::from(four & 1);
            (*child, *side) = (parents[parent], u64::from(four >> 4 & 1));
        }
        self.step(out, &sides, 0, level);
    }

    pub(super) fn expand(&self, parents: &[u128], level: &[u128; 2], out: &mut [u128]) {
        let sides: Vec<u64> = (0..out.len() as u64).collect();
        for (at, child) in out.iter_mut().enumerate() {
            *child = parents[at / 2];
        }
        self.step(out, &sides, 0, level);
    }

    pub(super) fn descend_sums(
        &self,
        sums: &mut [u128],
        states: &mut [u128],
        points: &[u64],
        shift: u32,
        (levels, corrections): (&[[u128; 2]], &[u128]),
    ) {
        let mut gains = vec![0; sums.len()];
        for (down, correction) in corrections.iter().enumerate() {
            let shift = shift - down as u32;
            gains.fill(0);
            self.add_values(&mut gains, states, *correction);
            for ((sum, gain), point) in sums.iter_mut().zip(&gains).zip(points) {
                let left = u128::from(!point >> shift & 1).wrapping_neg();
                *sum = sum.wrapping_add(gain & left);
            }
            if let Some(level) = levels.get(down) {
                self.step(states, points, shift, level);
            }
        }
    }

    pub(super) fn finish(&self, states: &mut [u128], last: u128, bits: &mut [u8]) {
        for (state, bit) in states.iter_mut().zip(bits) {
            *bit = *state as u8 & 1;
            *state = *state & !1 ^ last & (*state & 1).wrapping_neg();
        }
    }

    pub(super) fn add_values(&self, sums: &mut [u128], states: &[u128], correction: u128) {
        let mut values = [0; BATCH];
        for (sums, states) in sums.chunks_mut(BATCH).zip(states.chunks(BATCH)) {
            self.values(states, 0, &mut values[..states.len()]);
            for ((sum, state), value) in sums.iter_mut().zip(states).zip(&values) {
                let corrected = correction & (state & 1).wrapping_neg();
                *sum = sum.wrapping_add(value.wrapping_add(corrected));
            }
        }
    }

    pub(super) fn closest(&self, points: &[u64]) -> u64 {
        let apart = points.windows(2).map(|pair| pair[0] ^ pair[1]);
        apart.fold(u64::MAX, u64::min)
    }

    pub(super) fn fold(&self, list: &mut [u64], count: usize, links: &mut [u8]) -> usize {
        let (mut before, mut parents) = (!list[0], 0);
        links[..count.div_ceil(4)].fill(0);
        for at in 0..count {
            let node = list[at];
            let fresh = u8::from(node >> 1 != before >> 1);
            links[at / 4] |= (fresh | (node as u8 & 1) << 4) << (at % 4);
            // A sibling finds its parent in the slot before: writing it again changes nothing.
            parents += usize::from(fresh);
            list[parents - 1] = node >> 1;
            before = node;
        }
        parents
    }

    pub(super) fn values(&self, states: &[u128], at: usize, out: &mut [u128]) {
        for (states, out) in states.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
            let mut blocks = [Block::default(); BATCH];
            for (block, state) in blocks.iter_mut().zip(states) {
                *block = (state & !1).to_le_bytes().into();
            }
            self.values[at].encrypt_blocks(&mut blocks[..states.len()]);
            for ((out, state), block) in out.iter_mut().zip(states).zip(&blocks) {
                *out = word(block) ^ (state & !1);
            }
        }
    }

    pub(super) fn packed(
        &self,
        states: &[u128],
        at: usize,
        correction: u128,
        kind: Packed,
        out: &mut [u128],
    ) {
        self.values(states, at, out);
        for (value, state) in out.iter_mut().zip(states) {
            *value = kind.corrected(*value, correction & (state & 1).wrapping_neg());
        }
    }
}

fn one(cipher: &Aes128Enc, seed: u128) -> u128 {
    let mut block = Block::from(seed.to_le_bytes());
    cipher.encrypt_block(&mut block);
    word(&block) ^ seed
}

fn word(block: &Block) -> u128 {
    u128::from_le_bytes((*block).into())
}

/// A child's state of its parent's, of what AES made of the parent's seed, and the correction.
fn child(state: u128, encrypted: u128, correction: u128) -> u128 {
    encrypted ^ (state & !1) ^ (correction & (state & 1).wrapping_neg())
}
