//! Between bytes, rows of 52-bit limbs and blocks.

use crate::column::{Line, LANES};
use num_bigint::BigUint;
use std::arch::x86_64::*;

/// Bits of a limb.
pub(super) const LIMB_BITS: usize = 52;
/// All bits of a limb.
pub(super) const MASK: u64 = (1 << LIMB_BITS) - 1;
/// Bytes that two limbs fill.
const PAIR: usize = 13;
/// Room for 80 limbs and the overhang of a 16-byte access at the last pair.
const ROOM: usize = 80 / 2 * PAIR + 16;

/// The 52-bit limbs of `v`, least significant first; `v` must fit.
pub(super) fn limbs52(v: &BigUint, len: usize) -> Vec<u64> {
    let mut block = vec![Line::default(); len];
    put_row(&mut block, 0, &v.to_bytes_be());
    block.iter().map(|line| line.0[0]).collect()
}

/// Splits a big-endian value into limbs.
pub(super) fn put_row(block: &mut [Line], lane: usize, be: &[u8]) {
    let mut little = [0; ROOM];
    for (to, from) in little.iter_mut().zip(be.iter().rev()) {
        *to = *from;
    }
    let word = |at: usize| {
        little[at..at + 8]
            .iter()
            .rev()
            .fold(0, |w, &b| w << 8 | u64::from(b))
    };
    for (k, pair) in block.chunks_exact_mut(2).enumerate() {
        pair[0].0[lane] = word(k * PAIR) & MASK;
        // Bit 52 is in the middle of byte 6.
        pair[1].0[lane] = word(k * PAIR + 6) >> 4 & MASK;
    }
}

/// Joins limbs below 2^52 into a big-endian value of `be.len()` bytes.
pub(super) fn get_row(block: &[Line], lane: usize, be: &mut [u8]) {
    let mut little = [0; ROOM];
    for (k, pair) in block.chunks_exact(2).enumerate() {
        let bits = u128::from(pair[0].0[lane]) | u128::from(pair[1].0[lane]) << LIMB_BITS;
        // The 3 bytes past the pair are zeros that the next pair overwrites.
        little[k * PAIR..k * PAIR + 16].copy_from_slice(&bits.to_le_bytes());
    }
    for (to, from) in be.iter_mut().rev().zip(little) {
        *to = from;
    }
}

/// Bytes that eight limbs fill.
const OCTET: usize = LANES * PAIR / 2;

/// Splits eight big-endian values into limbs.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(super) fn put_rows(block: &mut [Line], rows: &[&[u8]; LANES]) {
    for (at, lines) in block.chunks_mut(LANES).enumerate() {
        let mut r = [_mm512_setzero_si512(); LANES];
        for (r, be) in r.iter_mut().zip(rows) {
            *r = unpacked(&be[..be.len().saturating_sub(at * OCTET)]);
        }
        for (line, v) in lines.iter_mut().zip(transposed(r)) {
            // SAFETY: a line is 64 bytes, aligned to 64.
            unsafe { _mm512_store_si512(line.0.as_mut_ptr().cast(), v) };
        }
    }
}

/// Joins limbs below 2^52 into big-endian values of `row_bytes` bytes, one after another.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(super) fn get_rows(block: &[Line], out: &mut [u8], row_bytes: usize) {
    for (at, lines) in block.chunks(LANES).enumerate() {
        let mut r = [_mm512_setzero_si512(); LANES];
        for (r, line) in r.iter_mut().zip(lines) {
            // SAFETY: a line is 64 bytes, aligned to 64.
            *r = unsafe { _mm512_load_si512(line.0.as_ptr().cast()) };
        }
        let end = row_bytes.saturating_sub(at * OCTET);
        for (be, limbs) in out.chunks_exact_mut(row_bytes).zip(transposed(r)) {
            let bytes = packed(limbs);
            match be[..end].last_chunk_mut::<64>() {
                // The next eight limbs overwrite the 12 zeros in front.
                Some(chunk) => *chunk = bytes,
                None => be[..end].copy_from_slice(&bytes[64 - end..]),
            }
        }
    }
}

/// Where a limb of eight starts: the byte, counted from the least significant.
const fn first_byte(limb: usize) -> usize {
    limb * PAIR / 2
}

/// The eight limbs that the last bytes of a big-endian number hold.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn unpacked(be: &[u8]) -> __m512i {
    const FROM: [u8; 64] = {
        let (mut from, mut i) = ([0; 64], 0);
        while i < 64 {
            from[i] = (63 - first_byte(i / 8) - i % 8) as u8;
            i += 1;
        }
        from
    };
    let mut padded = [0; 64];
    let chunk = be.last_chunk::<64>().unwrap_or_else(|| {
        padded[64 - be.len()..].copy_from_slice(be);
        &padded
    });
    // SAFETY: both arrays have 64 bytes; the loads need no alignment.
    let (chunk, from) = unsafe {
        let from = _mm512_loadu_si512(FROM.as_ptr().cast());
        (_mm512_loadu_si512(chunk.as_ptr().cast()), from)
    };
    let words = _mm512_permutexvar_epi8(from, chunk);
    // Odd limbs start in the middle of a byte.
    let words = _mm512_srlv_epi64(words, _mm512_set_epi64(4, 0, 4, 0, 4, 0, 4, 0));
    _mm512_and_si512(words, _mm512_set1_epi64(MASK as i64))
}

/// Eight limbs as the last 52 of 64 big-endian bytes, 12 zeros before them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn packed(limbs: __m512i) -> [u8; 64] {
    const FROM: [u8; 64] = {
        let (mut from, mut i) = ([0; 64], 0);
        while i < OCTET {
            // Thirteen bytes of every sixteen.
            from[63 - i] = (i / PAIR * 16 + i % PAIR) as u8;
            i += 1;
        }
        from
    };
    // In each pair: low | high << 52, and high >> 12. Shifts by 64 give 0.
    let swapped = _mm512_shuffle_epi32::<0x4e>(limbs);
    let down = _mm512_srlv_epi64(limbs, _mm512_set_epi64(12, 0, 12, 0, 12, 0, 12, 0));
    let up = _mm512_sllv_epi64(swapped, _mm512_set_epi64(64, 52, 64, 52, 64, 52, 64, 52));
    let pairs = _mm512_or_si512(down, up);
    let mut out = [0; 64];
    // SAFETY: the arrays have 64 bytes; the accesses need no alignment.
    unsafe {
        let from = _mm512_loadu_si512(FROM.as_ptr().cast());
        let bytes = _mm512_maskz_permutexvar_epi8(u64::MAX << 12, from, pairs);
        _mm512_storeu_si512(out.as_mut_ptr().cast(), bytes);
    }
    out
}

/// Line `i` becomes limb `i` of the eight rows.
#[target_feature(enable = "avx512f")]
pub(super) fn transpose(block: &mut [Line], rows: &[&[u64]; LANES]) {
    let mut octets = block.chunks_exact_mut(LANES);
    let mut at = 0;
    for octet in &mut octets {
        let mut r = [_mm512_setzero_si512(); LANES];
        for (r, row) in r.iter_mut().zip(rows) {
            let words: &[u64] = &row[at..at + LANES];
            // SAFETY: `words` has eight words; the load needs no alignment.
            *r = unsafe { _mm512_loadu_si512(words.as_ptr().cast()) };
        }
        for (line, v) in octet.iter_mut().zip(transposed(r)) {
            // SAFETY: a line is 64 bytes, aligned to 64.
            unsafe { _mm512_store_si512(line.0.as_mut_ptr().cast(), v) };
        }
        at += LANES;
    }
    for (i, line) in octets.into_remainder().iter_mut().enumerate() {
        *line = Line(std::array::from_fn(|lane| rows[lane][at + i]));
    }
}

/// The 8 x 8 transpose: element pairs first, then 128-bit quarters twice.
#[inline]
#[target_feature(enable = "avx512f")]
fn transposed(r: [__m512i; 8]) -> [__m512i; 8] {
    let mut out = r;
    for odd in 0..2 {
        let pair = |i: usize| match odd {
            0 => _mm512_unpacklo_epi64(r[i], r[i + 1]),
            _ => _mm512_unpackhi_epi64(r[i], r[i + 1]),
        };
        let (p0, p2, p4, p6) = (pair(0), pair(2), pair(4), pair(6));
        let even = _mm512_shuffle_i64x2::<0x88>(p0, p2);
        let even_high = _mm512_shuffle_i64x2::<0x88>(p4, p6);
        let other = _mm512_shuffle_i64x2::<0xdd>(p0, p2);
        let other_high = _mm512_shuffle_i64x2::<0xdd>(p4, p6);
        out[odd] = _mm512_shuffle_i64x2::<0x88>(even, even_high);
        out[odd + 4] = _mm512_shuffle_i64x2::<0xdd>(even, even_high);
        out[odd + 2] = _mm512_shuffle_i64x2::<0x88>(other, other_high);
        out[odd + 6] = _mm512_shuffle_i64x2::<0xdd>(other, other_high);
    }
    out
}
