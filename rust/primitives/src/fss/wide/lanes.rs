//! Vectors of four blocks: how they are read, written, encrypted and added.

use super::super::schedule::Rounds;
use std::arch::x86_64::*;

/// Blocks in a vector.
pub(super) const LANES: usize = 4;
/// Vectors that are encrypted together.
pub(super) const GROUP: usize = 6;
pub(super) const BLOCKS: usize = LANES * GROUP;

/// Parents whose children are a group.
pub(super) const HALF: usize = BLOCKS / 2;
/// `a ^ (b & c)` as a table of three inputs.
pub(super) const XOR_AND: i32 = 0x78;

pub(super) type Vector = __m512i;

/// A round key for each lane.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct RoundKey(pub(super) [u128; LANES]);

/// Round keys for each choice of sides: bit `lane` of the index is set where that lane is a right
/// child. To read them from here is faster than to blend two keys, which AES units would do.
pub(super) type Sides = [[RoundKey; 11]; 1 << LANES];

/// The corrected values of some states.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
pub(super) fn gains(
    key: &[Vector; 11],
    states: &[Vector; GROUP],
    correction: u128,
) -> [Vector; GROUP] {
    let (mut group, seeds) = hash(key, states);
    let correction = broadcast_one(correction);
    for at in 0..GROUP {
        let corrected = _mm512_and_si512(correction, control(states[at], seeds[at]));
        group[at] = add(group[at], corrected);
    }
    group
}

/// What one key makes of the seeds of some states, and the seeds.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
pub(super) fn hash(
    key: &[Vector; 11],
    states: &[Vector; GROUP],
) -> ([Vector; GROUP], [Vector; GROUP]) {
    let (mut seeds, mut group) = (*states, *states);
    for at in 0..GROUP {
        seeds[at] = _mm512_and_si512(states[at], seed_mask());
        group[at] = _mm512_xor_si512(seeds[at], key[0]);
    }
    for round in &key[1..10] {
        for block in &mut group {
            *block = _mm512_aesenc_epi128(*block, *round);
        }
    }
    for at in 0..GROUP {
        let block = _mm512_aesenclast_epi128(group[at], key[10]);
        group[at] = _mm512_xor_si512(block, seeds[at]);
    }
    (group, seeds)
}

/// The round keys of one choice of sides.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn row(keys: &[RoundKey; 11]) -> [Vector; 11] {
    let mut vectors = [_mm512_setzero_si512(); 11];
    for (vector, round) in vectors.iter_mut().zip(keys) {
        *vector = key(round);
    }
    vectors
}

/// Sums modulo 2^128.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
pub(super) fn add(left: Vector, right: Vector) -> Vector {
    let sum = _mm512_add_epi64(left, right);
    let carry = _mm512_cmplt_epu64_mask(sum, right) & 0x55;
    _mm512_mask_sub_epi64(sum, carry << 1, sum, _mm512_set1_epi64(-1))
}

/// All ones where a state's control bit is set: it is what a state is more than its seed.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
pub(super) fn control(state: Vector, seed: Vector) -> Vector {
    let negative = _mm512_sub_epi64(seed, state);
    _mm512_unpacklo_epi64(negative, negative)
}

/// Which of four points each go right at a bit.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
pub(super) fn turns(points: &[__m256i; GROUP], shift: u32) -> [u8; GROUP] {
    let bit = _mm256_set1_epi64x(1 << shift);
    let mut right = [0; GROUP];
    for at in 0..GROUP {
        right[at] = _mm256_test_epi64_mask(points[at], bit);
    }
    right
}

/// The children's states: of the right child where a lane's bit in `right` is set.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
pub(super) fn step(
    sides: &Sides,
    states: [Vector; GROUP],
    right: [u8; GROUP],
    level: &[u128; 2],
) -> [Vector; GROUP] {
    let (mut group, mut lasts) = (states, states);
    let mut keys = [&sides[0]; GROUP];
    let corrections = [broadcast_one(level[0]), broadcast_one(level[1])];
    for at in 0..GROUP {
        keys[at] = &sides[usize::from(right[at] & 15)];
        let seed = _mm512_and_si512(states[at], seed_mask());
        group[at] = _mm512_xor_si512(seed, key(&keys[at][0]));
        let right = doubled(right[at]);
        let correction = _mm512_mask_blend_epi64(right, corrections[0], corrections[1]);
        lasts[at] = last(states[at], seed, key(&keys[at][10]), correction);
    }
    for round in 1..10 {
        if round % 4 == 0 {
            // Some keys are blended: reading all of them would keep the loads busy longer than AES.
            let pair = [key(&sides[0][round]), key(&sides[15][round])];
            for at in 0..GROUP {
                let key = _mm512_mask_blend_epi64(doubled(right[at]), pair[0], pair[1]);
                group[at] = _mm512_aesenc_epi128(group[at], key);
            }
            continue;
        }
        for (block, keys) in group.iter_mut().zip(keys) {
            *block = _mm512_aesenc_epi128(*block, key(&keys[round]));
        }
    }
    for at in 0..GROUP {
        group[at] = _mm512_aesenclast_epi128(group[at], lasts[at]);
    }
    group
}

/// The children's states where each lane's key and correction are those of all vectors.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
pub(super) fn step_alike(
    keys: &[Vector; 11],
    states: &[Vector; GROUP],
    correction: Vector,
) -> [Vector; GROUP] {
    let (mut group, mut lasts) = (*states, *states);
    for at in 0..GROUP {
        let seed = _mm512_and_si512(states[at], seed_mask());
        group[at] = _mm512_xor_si512(seed, keys[0]);
        lasts[at] = last(states[at], seed, keys[10], correction);
    }
    for round in &keys[1..10] {
        for block in &mut group {
            *block = _mm512_aesenc_epi128(*block, *round);
        }
    }
    for at in 0..GROUP {
        group[at] = _mm512_aesenclast_epi128(group[at], lasts[at]);
    }
    group
}

/// The key of the last round of AES, and with it what is added to its result: the seed, and the
/// correction where the control bit is set.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn last(state: Vector, seed: Vector, key: Vector, correction: Vector) -> Vector {
    let key = _mm512_xor_si512(seed, key);
    _mm512_ternarylogic_epi64::<XOR_AND>(key, correction, control(state, seed))
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn key(key: &RoundKey) -> Vector {
    // SAFETY: a key is 64 bytes, at a multiple of 64.
    unsafe { _mm512_load_si512(key.0.as_ptr().cast()) }
}

/// A mask of words of a mask of blocks.
#[inline]
pub(super) fn doubled(lanes: u8) -> __mmask8 {
    DOUBLED[usize::from(lanes & 15)]
}

/// Four bits, each of them twice.
pub(super) static DOUBLED: [u8; 16] = {
    let mut table = [0; 16];
    let mut at = 0;
    while at < 64 {
        let set = (at as u8 / 4) & (1 << (at % 4)) != 0;
        table[at / 4] |= if set { 3 << (2 * (at % 4)) } else { 0 };
        at += 1;
    }
    table
};

/// Where the second to fourth of four children find their parents: one further at each set bit.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn places(fresh: u8) -> Vector {
    static PLACES: [[i64; 8]; 8] = {
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
pub(super) fn seed_mask() -> Vector {
    _mm512_setr_epi64(!1, !0, !1, !0, !1, !0, !1, !0)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn broadcast(key: &Rounds) -> [Vector; 11] {
    let mut vectors = [_mm512_setzero_si512(); 11];
    for (vector, round) in vectors.iter_mut().zip(key) {
        *vector = broadcast_one(*round);
    }
    vectors
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn broadcast_one(block: u128) -> Vector {
    let (low, high) = (block as i64, (block >> 64) as i64);
    _mm512_setr_epi64(low, high, low, high, low, high, low, high)
}

/// Lanes of which one holds the first block, the next one the second.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn alternating(pair: &[u128; 2]) -> Vector {
    let [(a, b), (c, d)] = pair.map(|block| (block as i64, (block >> 64) as i64));
    _mm512_setr_epi64(a, b, c, d, a, b, c, d)
}

/// Up to a whole group of blocks; what is missing is zero.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load(blocks: &[u128]) -> [Vector; GROUP] {
    let mut group = [_mm512_setzero_si512(); GROUP];
    for (at, vector) in group.iter_mut().enumerate() {
        let from = blocks.as_ptr().wrapping_add(LANES * at);
        *vector = if blocks.len() < BLOCKS {
            // SAFETY: only words of blocks that there are are read.
            unsafe { _mm512_maskz_loadu_epi64(words(blocks.len(), at), from.cast()) }
        } else {
            // SAFETY: there is a whole group; the load needs no alignment.
            unsafe { _mm512_loadu_si512(from.cast()) }
        };
    }
    group
}

/// Which words of a vector belong to so many blocks of a group.
#[inline]
fn words(blocks: usize, vector: usize) -> __mmask8 {
    let here = blocks.saturating_sub(LANES * vector).min(LANES);
    ((1_u32 << (2 * here)) - 1) as u8
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load_four(blocks: &[u128], first: usize) -> Vector {
    let four = &blocks[first..first + LANES];
    // SAFETY: four blocks are 64 bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512(four.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load_points(points: &[u64]) -> [__m256i; GROUP] {
    let mut padded = [0; BLOCKS];
    let padded = points.first_chunk().unwrap_or_else(|| {
        padded[..points.len()].copy_from_slice(points);
        &padded
    });
    let mut group = [_mm256_setzero_si256(); GROUP];
    for (vector, four) in group.iter_mut().zip(padded.chunks_exact(LANES)) {
        // SAFETY: four points are 32 bytes; the load needs no alignment.
        *vector = unsafe { _mm256_loadu_si256(four.as_ptr().cast()) };
    }
    group
}

/// Writes as many blocks as there is room for, up to a whole group.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store(group: &[Vector; GROUP], out: &mut [u128]) {
    for (at, vector) in group.iter().enumerate() {
        let to = out.as_mut_ptr().wrapping_add(LANES * at);
        if out.len() < BLOCKS {
            // SAFETY: only words of blocks that there are are written.
            unsafe { _mm512_mask_storeu_epi64(to.cast(), words(out.len(), at), *vector) }
        } else {
            // SAFETY: there is a whole group; the store needs no alignment.
            unsafe { _mm512_storeu_si512(to.cast(), *vector) }
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load_eight(list: &[u64], first: usize) -> Vector {
    let eight = &list[first..first + 8];
    // SAFETY: eight words are 64 bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store_eight(list: &mut [u64], first: usize, words: Vector) {
    let eight = &mut list[first..first + 8];
    // SAFETY: eight words are 64 bytes; the store needs no alignment.
    unsafe { _mm512_storeu_si512(eight.as_mut_ptr().cast(), words) }
}
