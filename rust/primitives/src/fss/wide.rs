//! The generator by VAES: four blocks an instruction, several instructions in flight.
//!
//! Which key a block is encrypted under depends on its side alone, which the points tell.

use super::schedule::{rounds, Keys, Rounds, VALUE_KEYS};
use std::arch::x86_64::*;
use std::array::from_fn;

/// Blocks in a vector.
const LANES: usize = 4;
/// Vectors that are encrypted together.
const GROUP: usize = 6;
const BLOCKS: usize = LANES * GROUP;

type Vector = __m512i;

/// A round key for each lane.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct RoundKey([u128; LANES]);

/// Round keys for each choice of sides: bit `lane` of the index is set where that lane is a right
/// child. To read them from here is faster than to blend two keys, which AES units would do.
type Sides = [[RoundKey; 11]; 1 << LANES];

/// Exists only on processors that have what it uses.
pub(super) struct Wide {
    sides: Box<Sides>,
    values: [Rounds; VALUE_KEYS],
}

impl Wide {
    pub(super) fn new() -> Option<Self> {
        let here = is_x86_feature_detected!("vaes")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        let sides = Keys::get().sides.map(rounds);
        here.then(|| Self {
            sides: Box::new(from_fn(|choice| {
                from_fn(|round| RoundKey(from_fn(|lane| sides[choice >> lane & 1][round])))
            })),
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

    pub(super) fn descend_sums(
        &self,
        sums: &mut [u128],
        states: &mut [u128],
        points: &[u64],
        shift: u32,
        walk: (&[[u128; 2]], &[u128]),
    ) {
        let keys = (&*self.sides, &self.values[0]);
        // SAFETY: as above.
        unsafe { descend_sums(keys, sums, states, points, shift, walk) }
    }

    pub(super) fn finish(&self, states: &mut [u128], last: u128, bits: &mut [u8]) {
        // SAFETY: as above.
        unsafe { finish(states, last, bits) }
    }

    pub(super) fn add_values(&self, sums: &mut [u128], states: &[u128], correction: u128) {
        // SAFETY: as above.
        unsafe { add_values(&self.values[0], sums, states, correction) }
    }

    pub(super) fn closest(&self, points: &[u64]) -> u64 {
        // SAFETY: as above.
        unsafe { closest(points) }
    }

    pub(super) fn fold(&self, list: &mut [u64], count: usize, links: &mut [u8]) -> usize {
        // SAFETY: as above.
        unsafe { fold(list, count, links) }
    }

    pub(super) fn values(&self, states: &[u128], at: usize, out: &mut [u128]) {
        // SAFETY: as above.
        unsafe { values(&self.values[at], states, out) }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn descend(sides: &Sides, states: &mut [u128], points: &[u64], shift: u32, levels: &[[u128; 2]]) {
    for (states, points) in states.chunks_mut(BLOCKS).zip(points.chunks(BLOCKS)) {
        let mut group = load(states);
        let points = load_points(points);
        for (down, level) in levels.iter().enumerate() {
            let right = turns(&points, shift - down as u32);
            group = step(sides, group, right, level);
        }
        store(&group, states);
    }
}

/// A walk down all levels of a comparison: whoever goes left gains the value of its node.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn descend_sums(
    (sides, value): (&Sides, &Rounds),
    sums: &mut [u128],
    states: &mut [u128],
    points: &[u64],
    shift: u32,
    (levels, corrections): (&[[u128; 2]], &[u128]),
) {
    let value = broadcast(value);
    let groups = sums.chunks_mut(BLOCKS).zip(states.chunks_mut(BLOCKS));
    for ((sums, states), points) in groups.zip(points.chunks(BLOCKS)) {
        let (mut total, mut group) = (load(sums), load(states));
        let points = load_points(points);
        for (down, correction) in corrections.iter().enumerate() {
            let right = turns(&points, shift - down as u32);
            let gains = gains(&value, &group, *correction);
            for at in 0..GROUP {
                let gain = _mm512_maskz_mov_epi64(!doubled(right[at]), gains[at]);
                total[at] = add(total[at], gain);
            }
            if let Some(level) = levels.get(down) {
                group = step(sides, group, right, level);
            }
        }
        store(&total, sums);
        store(&group, states);
    }
}

/// Adds to each sum the corrected value of its state.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn add_values(key: &Rounds, sums: &mut [u128], states: &[u128], correction: u128) {
    let key = broadcast(key);
    for (sums, states) in sums.chunks_mut(BLOCKS).zip(states.chunks(BLOCKS)) {
        let mut total = load(sums);
        let gains = gains(&key, &load(states), correction);
        for at in 0..GROUP {
            total[at] = add(total[at], gains[at]);
        }
        store(&total, sums);
    }
}

/// The least difference (XOR) of two neighbours; all ones of fewer than two.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn closest(points: &[u64]) -> u64 {
    let mut least = _mm512_set1_epi64(-1);
    let mut at = 0;
    while at + 9 <= points.len() {
        let apart = _mm512_xor_si512(load_eight(points, at), load_eight(points, at + 1));
        least = _mm512_min_epu64(least, apart);
        at += 8;
    }
    let rest = points[at..].windows(2).map(|pair| pair[0] ^ pair[1]);
    rest.fold(_mm512_reduce_min_epu64(least), u64::min)
}

/// One level up: the parents of a rising list of nodes, and how these hang on them.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn fold(list: &mut [u64], count: usize, links: &mut [u8]) -> usize {
    // Nothing is a sibling of the first node.
    let mut last = _mm512_set1_epi64(!list[0] as i64);
    let mut parents = 0;
    for (eight, links) in links[..count.div_ceil(4)].chunks_mut(2).enumerate() {
        let nodes = load_eight(list, 8 * eight);
        let before = _mm512_alignr_epi64::<7>(nodes, last);
        let above = _mm512_srli_epi64::<1>(nodes);
        let valid = (0xff_u32 >> (8 * (eight + 1)).saturating_sub(count)) as u8;
        let fresh = _mm512_cmpneq_epi64_mask(above, _mm512_srli_epi64::<1>(before)) & valid;
        let right = _mm512_test_epi64_mask(nodes, _mm512_set1_epi64(1)) & valid;
        links[0] = fresh & 15 | right << 4;
        if let Some(second) = links.get_mut(1) {
            *second = fresh >> 4 | right & 0xf0;
        }
        // What is written lies before what is still to be read.
        store_eight(list, parents, _mm512_maskz_compress_epi64(fresh, above));
        parents += fresh.count_ones() as usize;
        last = nodes;
    }
    parents
}

/// One level of the nodes that a list of points needs. A byte of `links` tells of four children,
/// in its low half which of them have another parent than the child before, in its high half
/// which of them are right ones.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn link(sides: &Sides, parents: &[u128], links: &[u8], level: &[u128; 2], out: &mut [u128]) {
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
            right[at] = four[at] >> 4;
        }
        let group = step(sides, group, right, level);
        store(&group, out);
    }
}

/// Both children of every parent.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn expand(sides: &Sides, parents: &[u128], level: &[u128; 2], out: &mut [u128]) {
    let lower = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    let upper = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    const HALF: usize = BLOCKS / 2;
    for (parents, out) in parents.chunks(HALF).zip(out.chunks_mut(BLOCKS)) {
        let half = load(parents);
        // Vectors 0, 2, 4 are left children, 1, 3, 5 the right ones of the same parents.
        let (mut group, mut right) = (half, [0; GROUP]);
        for at in 0..GROUP {
            group[at] = half[at / 2];
            right[at] = if at % 2 == 0 { 0 } else { 0xf };
        }
        let children = step(sides, group, right, level);
        let mut woven = children;
        for at in 0..GROUP {
            let (left, right) = (children[at & !1], children[at | 1]);
            let lanes = if at % 2 == 0 { lower } else { upper };
            woven[at] = _mm512_permutex2var_epi64(left, lanes, right);
        }
        store(&woven, out);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn values(key: &Rounds, states: &[u128], out: &mut [u128]) {
    let key = broadcast(key);
    for (states, out) in states.chunks(BLOCKS).zip(out.chunks_mut(BLOCKS)) {
        store(&gains(&key, &load(states), 0), out);
    }
}

/// Parts states into their control bits and their corrected seeds.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn finish(states: &mut [u128], last: u128, bits: &mut [u8]) {
    let last = broadcast_one(last);
    let lowest = _mm512_setr_epi64(1, 0, 1, 0, 1, 0, 1, 0);
    for (states, bits) in states.chunks_mut(BLOCKS).zip(bits.chunks_mut(BLOCKS)) {
        let (mut group, mut ones) = (load(states), [0_u8; BLOCKS]);
        for at in 0..GROUP {
            let mask = u32::from(_mm512_test_epi64_mask(group[at], lowest));
            let four = mask & 1 | (mask & 4) << 6 | (mask & 16) << 12 | (mask & 64) << 18;
            ones[LANES * at..LANES * (at + 1)].copy_from_slice(&four.to_le_bytes());
            let seed = _mm512_and_si512(group[at], seed_mask());
            let corrected = _mm512_and_si512(last, control(group[at], seed));
            group[at] = _mm512_xor_si512(seed, corrected);
        }
        store(&group, states);
        bits.copy_from_slice(&ones[..bits.len()]);
    }
}

/// The corrected values of some states.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn gains(key: &[Vector; 11], states: &[Vector; GROUP], correction: u128) -> [Vector; GROUP] {
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
    let correction = broadcast_one(correction);
    for at in 0..GROUP {
        let block = _mm512_aesenclast_epi128(group[at], key[10]);
        let value = _mm512_xor_si512(block, seeds[at]);
        let corrected = _mm512_and_si512(correction, control(states[at], seeds[at]));
        group[at] = add(value, corrected);
    }
    group
}

/// Sums modulo 2^128.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn add(left: Vector, right: Vector) -> Vector {
    let sum = _mm512_add_epi64(left, right);
    let carry = _mm512_cmplt_epu64_mask(sum, right) & 0x55;
    _mm512_mask_sub_epi64(sum, carry << 1, sum, _mm512_set1_epi64(-1))
}

/// All ones where a state's control bit is set: it is what a state is more than its seed.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn control(state: Vector, seed: Vector) -> Vector {
    let negative = _mm512_sub_epi64(seed, state);
    _mm512_unpacklo_epi64(negative, negative)
}

/// Which of four points each go right at a bit.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn turns(points: &[__m256i; GROUP], shift: u32) -> [u8; GROUP] {
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
fn step(
    sides: &Sides,
    states: [Vector; GROUP],
    right: [u8; GROUP],
    level: &[u128; 2],
) -> [Vector; GROUP] {
    let (mut seeds, mut group) = (states, states);
    let mut keys = [&sides[0]; GROUP];
    for at in 0..GROUP {
        keys[at] = &sides[usize::from(right[at] & 15)];
        seeds[at] = _mm512_and_si512(states[at], seed_mask());
        group[at] = _mm512_xor_si512(seeds[at], key(&keys[at][0]));
    }
    for round in 1..10 {
        for at in 0..GROUP {
            group[at] = _mm512_aesenc_epi128(group[at], key(&keys[at][round]));
        }
    }
    let corrections = [broadcast_one(level[0]), broadcast_one(level[1])];
    for at in 0..GROUP {
        let block = _mm512_aesenclast_epi128(group[at], key(&keys[at][10]));
        let right = doubled(right[at]);
        let correction = _mm512_mask_blend_epi64(right, corrections[0], corrections[1]);
        let corrected = _mm512_and_si512(correction, control(states[at], seeds[at]));
        group[at] = _mm512_xor_si512(_mm512_xor_si512(block, seeds[at]), corrected);
    }
    group
}

#[inline]
#[target_feature(enable = "avx512f")]
fn key(key: &RoundKey) -> Vector {
    // SAFETY: a key is 64 bytes, at a multiple of 64.
    unsafe { _mm512_load_si512(key.0.as_ptr().cast()) }
}

/// A mask of words of a mask of blocks.
#[inline]
fn doubled(lanes: u8) -> __mmask8 {
    DOUBLED[usize::from(lanes & 15)]
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

/// Up to a whole group of blocks; what is missing is zero.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(blocks: &[u128]) -> [Vector; GROUP] {
    let mut padded = [0; BLOCKS];
    let blocks = if blocks.len() < BLOCKS {
        padded[..blocks.len()].copy_from_slice(blocks);
        &padded
    } else {
        &blocks[..BLOCKS]
    };
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
fn load_points(points: &[u64]) -> [__m256i; GROUP] {
    let mut padded = [0; BLOCKS];
    padded[..points.len()].copy_from_slice(points);
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
fn store(group: &[Vector; GROUP], out: &mut [u128]) {
    if out.len() < BLOCKS {
        let mut padded = [0; BLOCKS];
        store(group, &mut padded);
        out.copy_from_slice(&padded[..out.len()]);
        return;
    }
    for (vector, four) in group.iter().zip(out.chunks_exact_mut(LANES)) {
        // SAFETY: four blocks are 64 bytes; the store needs no alignment.
        unsafe { _mm512_storeu_si512(four.as_mut_ptr().cast(), *vector) }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_eight(list: &[u64], first: usize) -> Vector {
    let eight = &list[first..first + 8];
    // SAFETY: eight words are 64 bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_eight(list: &mut [u64], first: usize, words: Vector) {
    let eight = &mut list[first..first + 8];
    // SAFETY: eight words are 64 bytes; the store needs no alignment.
    unsafe { _mm512_storeu_si512(eight.as_mut_ptr().cast(), words) }
}
