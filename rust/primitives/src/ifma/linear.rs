//! Additions and subtractions of eight rows, carries in full, no branches on values.

use super::layout::MASK;
use super::window::{set1, Tile};
use std::arch::x86_64::*;

/// `out = a + b`, limbs below 2^52; the sum must fit.
#[target_feature(enable = "avx512f")]
pub(super) fn add(out: &mut [Tile], a: &[Tile], b: &[Tile]) {
    let mask = set1(MASK);
    let mut carry = _mm512_setzero_si512();
    let limbs = a.as_flattened().iter().zip(b.as_flattened());
    for (o, (a, b)) in out.as_flattened_mut().iter_mut().zip(limbs) {
        let s = _mm512_add_epi64(_mm512_add_epi64(*a, *b), carry);
        *o = _mm512_and_si512(s, mask);
        carry = _mm512_srli_epi64::<52>(s);
    }
}

/// `x = x - n` in the lanes where `x >= n`.
#[target_feature(enable = "avx512f")]
pub(super) fn subtract_once(x: &mut [Tile], n: &[Tile]) {
    let mask = set1(MASK);
    let mut borrow = _mm512_setzero_si512();
    for (x, n) in x.as_flattened().iter().zip(n.as_flattened()) {
        let d = _mm512_add_epi64(_mm512_sub_epi64(*x, *n), borrow);
        borrow = _mm512_srai_epi64::<63>(d);
    }
    let below = borrow;
    borrow = _mm512_setzero_si512();
    for (x, n) in x.as_flattened_mut().iter_mut().zip(n.as_flattened()) {
        let by = _mm512_andnot_si512(below, *n);
        let d = _mm512_add_epi64(_mm512_sub_epi64(*x, by), borrow);
        *x = _mm512_and_si512(d, mask);
        borrow = _mm512_srai_epi64::<63>(d);
    }
}

/// `out = a - b`, plus `bound` in the lanes where that is negative.
#[target_feature(enable = "avx512f")]
pub(super) fn sub(out: &mut [Tile], a: &[Tile], b: &[Tile], bound: &[Tile]) {
    let mask = set1(MASK);
    let mut borrow = _mm512_setzero_si512();
    let limbs = a.as_flattened().iter().zip(b.as_flattened());
    for (o, (a, b)) in out.as_flattened_mut().iter_mut().zip(limbs) {
        let d = _mm512_add_epi64(_mm512_sub_epi64(*a, *b), borrow);
        *o = _mm512_and_si512(d, mask);
        borrow = _mm512_srai_epi64::<63>(d);
    }
    let (negative, mut carry) = (borrow, _mm512_setzero_si512());
    for (o, n) in out.as_flattened_mut().iter_mut().zip(bound.as_flattened()) {
        let by = _mm512_and_si512(negative, *n);
        let s = _mm512_add_epi64(_mm512_add_epi64(*o, by), carry);
        *o = _mm512_and_si512(s, mask);
        carry = _mm512_srli_epi64::<52>(s);
    }
}
