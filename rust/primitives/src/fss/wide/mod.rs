//! The generator by VAES: four blocks an instruction, several instructions in flight.
//!
//! Which key a block is encrypted under depends on its side alone, which follows from the points.

mod lanes;

use super::prg::Packed;
use super::schedule::{rounds, Keys, Rounds, VALUE_KEYS};
use lanes::*;
use std::arch::x86_64::*;
use std::array::from_fn;

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

    pub(super) fn packed(
        &self,
        states: &[u128],
        at: usize,
        correction: u128,
        kind: Packed,
        out: &mut [u128],
    ) {
        // SAFETY: as above.
        unsafe { packed(&self.values[at], states, correction, kind, out) }
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

/// A walk down all levels of a comparison: a path that goes left gains the value of its node.
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
        // Writes stay behind the reads.
        store_eight(list, parents, _mm512_maskz_compress_epi64(fresh, above));
        parents += fresh.count_ones() as usize;
        last = nodes;
    }
    parents
}

/// One level of the nodes that a list of points needs. A byte of `links` describes four children,
/// in its low half which of them have another parent than the child before, in its high half
/// which of them are right ones.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn link(sides: &Sides, parents: &[u128], links: &[u8], level: &[u128; 2], out: &mut [u128]) {
    let mut seen = 0;
    for (links, out) in links.chunks(GROUP).zip(out.chunks_mut(BLOCKS)) {
        let four = match links.first_chunk::<GROUP>() {
            Some(four) => *four,
            None => from_fn(|at| links.get(at).copied().unwrap_or(0)),
        };
        let (mut group, mut right) = ([_mm512_setzero_si512(); GROUP], [0; GROUP]);
        for at in 0..GROUP {
            let fresh = four[at] & 15;
            // One slot precedes the first parent, so that nothing is below zero.
            let loaded = load_four(parents, seen + usize::from(fresh & 1));
            seen += fresh.count_ones() as usize;
            group[at] = _mm512_permutexvar_epi64(places(fresh >> 1), loaded);
            right[at] = four[at] >> 4;
        }
        let group = step(sides, group, right, level);
        store(&group, out);
    }
}

/// Both children of every parent: it is put into two lanes, the first of which has the key of left
/// children and the second that of right ones.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn expand(sides: &Sides, parents: &[u128], level: &[u128; 2], out: &mut [u128]) {
    let (keys, correction) = (row(&sides[0b1010]), alternating(level));
    for (parents, out) in parents.chunks(HALF).zip(out.chunks_mut(BLOCKS)) {
        store(&step_alike(&keys, &twice(parents), correction), out);
    }
}

/// Every block of at most half a group in two lanes.
#[inline]
#[target_feature(enable = "avx512f")]
fn twice(blocks: &[u128]) -> [Vector; GROUP] {
    let places = [
        _mm512_setr_epi64(0, 1, 0, 1, 2, 3, 2, 3),
        _mm512_setr_epi64(4, 5, 4, 5, 6, 7, 6, 7),
    ];
    let mut group = [_mm512_setzero_si512(); GROUP];
    if blocks.len() < HALF {
        group = load(blocks);
    } else {
        for (at, vector) in group.iter_mut().take(GROUP / 2).enumerate() {
            *vector = load_four(blocks, LANES * at);
        }
    }
    let half = group;
    for (at, vector) in group.iter_mut().enumerate() {
        *vector = _mm512_permutexvar_epi64(places[at % 2], half[at / 2]);
    }
    group
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn values(key: &Rounds, states: &[u128], out: &mut [u128]) {
    let key = broadcast(key);
    for (states, out) in states.chunks(BLOCKS).zip(out.chunks_mut(BLOCKS)) {
        store(&gains(&key, &load(states), 0), out);
    }
}

/// Values with their corrections, words or bits.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn packed(key: &Rounds, states: &[u128], correction: u128, kind: Packed, out: &mut [u128]) {
    let (key, correction) = (broadcast(key), broadcast_one(correction));
    for (states, out) in states.chunks(BLOCKS).zip(out.chunks_mut(BLOCKS)) {
        let states = load(states);
        let (mut group, seeds) = hash(&key, &states);
        for at in 0..GROUP {
            let corrected = _mm512_and_si512(correction, control(states[at], seeds[at]));
            let sum = _mm512_add_epi64(group[at], corrected);
            group[at] = match kind {
                Packed::Words => sum,
                Packed::NegativeWords => _mm512_sub_epi64(_mm512_setzero_si512(), sum),
                Packed::Bits => _mm512_xor_si512(group[at], corrected),
            };
        }
        store(&group, out);
    }
}

/// Parts states into their control bits and their corrected seeds.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes")]
fn finish(states: &mut [u128], last: u128, bits: &mut [u8]) {
    let last = broadcast_one(last);
    let low = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    for (states, bits) in states.chunks_mut(BLOCKS).zip(bits.chunks_mut(BLOCKS)) {
        let (mut group, mut ones) = (load(states), [0_u8; BLOCKS]);
        for at in (0..GROUP).step_by(2) {
            let words = _mm512_permutex2var_epi64(group[at], low, group[at + 1]);
            let eight = _mm512_cvtepi64_epi8(_mm512_and_si512(words, _mm512_set1_epi64(1)));
            let eight = _mm_cvtsi128_si64(eight).to_le_bytes();
            ones[LANES * at..LANES * (at + 2)].copy_from_slice(&eight);
        }
        for vector in &mut group {
            let seed = _mm512_and_si512(*vector, seed_mask());
            *vector = _mm512_ternarylogic_epi64::<XOR_AND>(seed, last, control(*vector, seed));
        }
        store(&group, states);
        match bits.first_chunk_mut() {
            Some(whole) => *whole = ones,
            None => bits.copy_from_slice(&ones[..bits.len()]),
        }
    }
}
