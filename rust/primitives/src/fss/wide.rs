//! The generator by VAES: four blocks an instruction, several instructions in flight.
//!
//! Which key a block is encrypted under depends on its side alone, which the points tell.

use super::schedule::{rounds, Keys, Rounds, VALUE_KEYS};
use std::arch::x86_64::*;

/// Blocks in a vector.
const LANES: usize = 4;
/// Vectors that are encrypted together.
const GROUP: usize = 6;
const BLOCKS: usize = LANES * GROUP;

type Vector = __m512i;

/// Exists only on processors that have what it uses.
pub(super) struct Wide {
    sides: [Rounds; 2],
    values: [Rounds; VALUE_KEYS],
}

impl Wide {
    pub(super) fn new() -> Option<Self> {
        let here = is_x86_feature_detected!("vaes")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        here.then(|| Self {
            sides: Keys::get().sides.map(rounds),
            values: Keys::get().values.map(rounds),
        })
    }

    pub(super) fn descend(
        &self,
        states: &mut [u128],
        points: &[u64],
        shift: u32,
        levels: &[[u128; 2]],
    ) {
        // SAFETY: a Wide exists, so the processor has the instructions.
        unsafe { descend(&self.sides, states, points, shift, levels) }
    }

    pub(super) fn link(&self, parents: &[u128], links: &[u8], level: &[u128; 2], out: &mut [u128]) {
        // SAFETY: as above.
        unsafe { link(&self.sides, parents, links, level, out) }
    }

    pub(super) fn expand(&self, parents: &[u128], level: &[u128; 2], out: &mut [u128]) {
        // SAFETY: as above.
        unsafe { expand(&self.sides, parents, level, out) }
    }

    pub(super) fn values(&self, states: &[u128], at: usize, out: &mut [u128]) {
        // SAFETY: as above.
        unsafe { values(&self.values[at], states, out) }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn descend(
    sides: &[Rounds; 2],
    states: &mut [u128],
    points: &[u64],
    shift: u32,
    levels: &[[u128; 2]],
) {
    let keys = [broadcast(&sides[0]), broadcast(&sides[1])];
    let doubled = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3);
    for (states, points) in states.chunks_mut(BLOCKS).zip(points.chunks(BLOCKS)) {
        let (mut padded, mut where_to) = ([0; BLOCKS], [0; BLOCKS]);
        padded[..states.len()].copy_from_slice(states);
        where_to[..points.len()].copy_from_slice(points);
        let mut group: [Vector; GROUP] = load(&padded);
        for (down, level) in levels.iter().enumerate() {
            let bit = _mm512_set1_epi64(1 << (shift - down as u32));
            let mut right = [0; GROUP];
            for at in 0..GROUP {
                let four = _mm512_castsi256_si512(load_points(&where_to, at));
                let four = _mm512_permutexvar_epi64(doubled, four);
                right[at] = _mm512_test_epi64_mask(four, bit);
            }
            group = step(&keys, group, right, level);
        }
        store(&group, &mut padded);
        states.copy_from_slice(&padded[..states.len()]);
    }
}

/// One level of the nodes that a list of points needs. A byte of `links` tells of four children,
/// in its low half which of them have another parent than the child before, in its high half
/// which of them are right ones.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn link(sides: &[Rounds; 2], parents: &[u128], links: &[u8], level: &[u128; 2], out: &mut [u128]) {
    let keys = [broadcast(&sides[0]), broadcast(&sides[1])];
    let mut seen = 0;
    for (links, out) in links.chunks(GROUP).zip(out.chunks_mut(BLOCKS)) {
        let mut four = [0; GROUP];
        four[..links.len()].copy_from_slice(links);
        let (mut group, mut right) = ([_mm512_setzero_si512(); GROUP], [0; GROUP]);
        for at in 0..GROUP {
            let fresh = four[at] & 15;
            // One slot stands before the first parent, so that nothing is below zero.
            let loaded = load_four(parents, seen + usize::from(fresh & 1));
            seen += fresh.count_ones() as usize;
            group[at] = _mm512_permutexvar_epi64(places(fresh >> 1), loaded);
            right[at] = DOUBLED[usize::from(four[at] >> 4)];
        }
        let group = step(&keys, group, right, level);
        if out.len() == BLOCKS {
            store(&group, out.try_into().expect("a whole group"));
        } else {
            let mut padded = [0; BLOCKS];
            store(&group, &mut padded);
            out.copy_from_slice(&padded[..out.len()]);
        }
    }
}

/// Both children of every parent.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn expand(sides: &[Rounds; 2], parents: &[u128], level: &[u128; 2], out: &mut [u128]) {
    let keys = [broadcast(&sides[0]), broadcast(&sides[1])];
    let lower = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    let upper = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    const HALF: usize = BLOCKS / 2;
    for (parents, out) in parents.chunks(HALF).zip(out.chunks_mut(BLOCKS)) {
        let mut padded = [0; BLOCKS];
        padded[..parents.len()].copy_from_slice(parents);
        let half: [Vector; GROUP] = load(&padded);
        // Vectors 0, 2, 4 are left children, 1, 3, 5 the right ones of the same parents.
        let (mut group, mut right) = (half, [0; GROUP]);
        for at in 0..GROUP {
            group[at] = half[at / 2];
            right[at] = if at % 2 == 0 { 0 } else { 0xff };
        }
        let children = step(&keys, group, right, level);
        let mut woven = children;
        for at in 0..GROUP {
            let (left, right) = (children[at & !1], children[at | 1]);
            let lanes = if at % 2 == 0 { lower } else { upper };
            woven[at] = _mm512_permutex2var_epi64(left, lanes, right);
        }
        store(&woven, &mut padded);
        out.copy_from_slice(&padded[..out.len()]);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn values(key: &Rounds, states: &[u128], out: &mut [u128]) {
    let key = broadcast(key);
    for (states, out) in states.chunks(BLOCKS).zip(out.chunks_mut(BLOCKS)) {
        let mut padded = [0; BLOCKS];
        padded[..states.len()].copy_from_slice(states);
        let mut seeds = load(&padded);
        let mut group = seeds;
        for at in 0..GROUP {
            seeds[at] = _mm512_and_si512(seeds[at], seed_mask());
            group[at] = _mm512_xor_si512(seeds[at], key[0]);
        }
        for round in &key[1..10] {
            for block in &mut group {
                *block = _mm512_aesenc_epi128(*block, *round);
            }
        }
        for (block, seed) in group.iter_mut().zip(seeds) {
            *block = _mm512_xor_si512(_mm512_aesenclast_epi128(*block, key[10]), seed);
        }
        store(&group, &mut padded);
        out.copy_from_slice(&padded[..out.len()]);
    }
}

/// The children's states: of the right child where `right` has a block's two bits, of the left
/// one else.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn step(
    keys: &[[Vector; 11]; 2],
    states: [Vector; GROUP],
    right: [__mmask8; GROUP],
    level: &[u128; 2],
) -> [Vector; GROUP] {
    let (mut seeds, mut group) = (states, states);
    let first = [keys[0][0], keys[1][0]];
    for at in 0..GROUP {
        seeds[at] = _mm512_and_si512(states[at], seed_mask());
        let key = _mm512_mask_blend_epi64(right[at], first[0], first[1]);
        group[at] = _mm512_xor_si512(seeds[at], key);
    }
    for round in 1..10 {
        for at in 0..GROUP {
            let key = _mm512_mask_blend_epi64(right[at], keys[0][round], keys[1][round]);
            group[at] = _mm512_aesenc_epi128(group[at], key);
        }
    }
    let corrections = [broadcast_one(level[0]), broadcast_one(level[1])];
    for at in 0..GROUP {
        let key = _mm512_mask_blend_epi64(right[at], keys[0][10], keys[1][10]);
        let block = _mm512_aesenclast_epi128(group[at], key);
        let correction = _mm512_mask_blend_epi64(right[at], corrections[0], corrections[1]);
        // A state minus its seed is the control bit; its negative is a mask of the low word.
        let negative = _mm512_sub_epi64(seeds[at], states[at]);
        let control = _mm512_unpacklo_epi64(negative, negative);
        let block = _mm512_xor_si512(block, seeds[at]);
        group[at] = _mm512_xor_si512(block, _mm512_and_si512(correction, control));
    }
    group
}

/// Four bits, each of them twice.
const DOUBLED: [u8; 16] = {
    let mut table = [0; 16];
    let mut at = 0;
    while at < 64 {
        table[at / 4] |= (at as u8 / 4 >> (at % 4) & 1) * 3 << (2 * (at % 4));
        at += 1;
    }
    table
};

/// Where the second to fourth of four children find their parents: one further at each set bit.
#[inline]
#[target_feature(enable = "avx512f")]
fn places(fresh: u8) -> Vector {
    const PLACES: [[i64; 8]; 8] = {
        let mut table = [[0; 8]; 8];
        let mut at = 0;
        while at < 64 {
            let (fresh, child) = (at as u8 / 8, at % 8 / 2);
            let before = (fresh as u16 & ((1 << child) - 1)).count_ones() as i64;
            table[at / 8][at % 8] = 2 * before + at as i64 % 2;
            at += 1;
        }
        table
    };
    let row = &PLACES[usize::from(fresh & 7)];
    // SAFETY: a row is 64 bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512(row.as_ptr().cast()) }
}

/// Clears the control bits.
#[inline]
#[target_feature(enable = "avx512f")]
fn seed_mask() -> Vector {
    _mm512_setr_epi64(!1, !0, !1, !0, !1, !0, !1, !0)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn broadcast(key: &Rounds) -> [Vector; 11] {
    let mut vectors = [_mm512_setzero_si512(); 11];
    for (vector, round) in vectors.iter_mut().zip(key) {
        *vector = broadcast_one(*round);
    }
    vectors
}

#[inline]
#[target_feature(enable = "avx512f")]
fn broadcast_one(block: u128) -> Vector {
    let (low, high) = (block as i64, (block >> 64) as i64);
    _mm512_setr_epi64(low, high, low, high, low, high, low, high)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(blocks: &[u128; BLOCKS]) -> [Vector; GROUP] {
    let mut group = [_mm512_setzero_si512(); GROUP];
    for (at, vector) in group.iter_mut().enumerate() {
        *vector = load_four(blocks, LANES * at);
    }
    group
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_four(blocks: &[u128], first: usize) -> Vector {
    let four = &blocks[first..first + LANES];
    // SAFETY: four blocks are 64 bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512(four.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_points(points: &[u64; BLOCKS], at: usize) -> __m256i {
    let four = &points[LANES * at..LANES * (at + 1)];
    // SAFETY: four points are 32 bytes; the load needs no alignment.
    unsafe { _mm256_loadu_si256(four.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(group: &[Vector; GROUP], out: &mut [u128; BLOCKS]) {
    for (vector, four) in group.iter().zip(out.chunks_exact_mut(LANES)) {
        // SAFETY: four blocks are 64 bytes; the store needs no alignment.
        unsafe { _mm512_storeu_si512(four.as_mut_ptr().cast(), *vector) }
    }
}
