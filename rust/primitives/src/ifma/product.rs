//! The Montgomery product of eight rows.
//!
//! Limbs are grouped in tiles of ten. A tile product adds ten limbs of one factor, held in
//! registers, times ten limbs of the other to twenty columns; ten columns then move to memory
//! and the window advances, so that about 31 of the 32 registers are in use and each factor limb
//! from memory serves twenty multiply-adds. Columns are sums of at most 4 * 80 terms below 2^52
//! and never overflow 64 bits, so carries wait for the end. Consecutive uses of a column are ten
//! instructions apart, more than the latency of four.
//!
//! All passes of a product run before those of its reduction. Measured on Zen 4 at 2,048 bits,
//! per product of eight rows: 1.84 us so, 1.87 us with each reduction pass right behind its
//! product pass; 1.6 us is what 6,400 multiply-adds take at one a cycle.

// `ten!` compares the constant indices of its copies; in some copies the answer is trivial.
#![allow(clippy::absurd_extreme_comparisons)]

use super::layout::MASK;
use super::window::{hi, lo, set1, Columns, Tile, Window, MOST, TILE};
use std::arch::x86_64::*;

/// What a reduction needs.
#[derive(Clone, Copy)]
pub(super) struct Constants<'a> {
    /// The modulus, every limb in all lanes.
    pub(super) n: &'a [Tile],
    /// `-n^-1 mod 2^52`.
    pub(super) inv: u64,
}

/// Panics unless a block has the modulus's length, on which all accesses to columns rely.
#[inline]
fn check(k: Constants<'_>, block: &[Tile]) {
    assert!(
        block.len() == k.n.len() && 2 * block.len() <= MOST,
        "length of a block"
    );
}

/// Pass `p` of a product: adds tile `p` of `a` times all of `b`. Passes run in order; pass `p`
/// leaves tiles up to `p + b.len()` stored.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn product_pass(t: &mut Columns, p: usize, a: &[Tile], b: &[Tile]) {
    let zero = [_mm512_setzero_si512(); TILE];
    let x = a[p];
    // SAFETY: pass p - 1 has stored tiles up to p - 1 + b.len().
    let mut w = Window::new(if p == 0 { zero } else { unsafe { t.load(p) } });
    for (j, y) in b.iter().enumerate() {
        if p > 0 && j + 1 < b.len() {
            // SAFETY: as above; p + j + 1 is at most p - 1 + b.len().
            w.set_high(unsafe { t.load(p + j + 1) });
        }
        add_product!(w, x, y, &mut t.0[p + j]);
    }
    t.store(p + b.len(), w.shift());
}

/// Pass `p` of a square: tile `p` of `a` times itself and all later tiles, each pair once; then
/// columns of tiles `2 p` and `2 p + 1` get no more pairs, and take doubling and squares.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn square_pass(t: &mut Columns, p: usize, a: &[Tile]) {
    let zero = [_mm512_setzero_si512(); TILE];
    let x = a[p];
    let last = a.len() - 1;
    // SAFETY: pass p - 1 has stored tiles up to p - 1 + a.len(), which is at least 2 p.
    let mut w = Window::new(if p == 0 {
        zero
    } else {
        unsafe { t.load(2 * p) }
    });
    if p > 0 && p < last {
        // SAFETY: as above; 2 p + 1 is at most p - 1 + a.len().
        w.set_high(unsafe { t.load(2 * p + 1) });
    }
    w.add_pairs(&x);
    let low = w.shift();
    for (j, y) in a.iter().enumerate().skip(p + 1) {
        if p > 0 && j < last {
            // SAFETY: as above; p + j + 1 is at most p - 1 + a.len().
            w.set_high(unsafe { t.load(p + j + 1) });
        }
        add_product!(w, x, y, &mut t.0[p + j]);
    }
    if p < last {
        t.store(p + a.len(), w.shift());
        // SAFETY: the loop has stored tile 2 p + 1.
        w = Window::new(unsafe { t.load(2 * p + 1) });
    }
    let high = w.shift();
    let mut w = Window::new(low);
    w.set_high(high);
    w.double_and_add_squares(&x);
    t.store(2 * p, w.shift());
    t.store(2 * p + 1, w.shift());
}

/// Ten quotient digits, and the carry out of the ten columns that they clear.
#[derive(Clone, Copy)]
struct Quotients {
    q: Tile,
    carry: __m512i,
}

/// The quotients of ten complete columns.
///
/// The digit of a column is its low 52 bits times `inv`; adding digit times `n` makes those bits
/// zero, so the carry is the column rounded up to a multiple of 2^52, known before the digit.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn quotients_of(mut w: Tile, k: Constants<'_>) -> Quotients {
    let (zero, mask, inv, n) = (_mm512_setzero_si512(), set1(MASK), set1(k.inv), &k.n[0]);
    let mut q = [zero; TILE];
    let mut carry = [zero; TILE];
    ten!(I, {
        carry[I] = _mm512_srli_epi64::<52>(_mm512_add_epi64(w[I], mask));
        q[I] = _mm512_madd52lo_epu64(zero, w[I], inv);
        if I + 1 < TILE {
            // Shortest path to the next digit: two independent multiply-adds, then one addition.
            let mut high = carry[I];
            hi(&mut high, q[I], n[0]);
            lo(&mut w[(I + 1) % TILE], q[I], n[1]);
            w[(I + 1) % TILE] = _mm512_add_epi64(w[(I + 1) % TILE], high);
        }
        ten!(K, {
            if K > 1 && I + K < TILE {
                lo(&mut w[(I + K) % TILE], q[I], n[K]);
            }
            if K > 0 && I + K + 1 < TILE {
                hi(&mut w[(I + K + 1) % TILE], q[I], n[K]);
            }
        });
    });
    Quotients {
        q,
        carry: carry[TILE - 1],
    }
}

/// Pass `p` of a reduction: adds the multiple of `n` that clears the columns of tile `p`, given
/// by their quotients, and returns the quotients of tile `p + 1`, if there is one. Tiles from
/// `p + 1` to `p + n.len()` must have been stored.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn reduction_pass(
    t: &mut Columns,
    p: usize,
    k: Constants<'_>,
    Quotients { q, carry }: Quotients,
) -> Quotients {
    let n = &k.n[0];
    // SAFETY: by the function's own condition, here and below.
    let mut low = unsafe { t.load(p + 1) };
    low[0] = _mm512_add_epi64(low[0], carry);
    ten!(J, {
        ten!(I, {
            if I + J >= TILE {
                lo(&mut low[(I + J) % TILE], q[I], n[J]);
            }
        });
        ten!(I, {
            if I + J + 1 >= TILE {
                hi(&mut low[(I + J + 1) % TILE], q[I], n[J]);
            }
        });
    });
    let mut w = Window::new(low);
    let mut next = Quotients { q, carry };
    for (j, y) in k.n.iter().enumerate().skip(1) {
        // SAFETY: as above.
        w.set_high(unsafe { t.load(p + j + 1) });
        add_product!(w, q, y, &mut t.0[p + j]);
        if j == 1 && p + 1 < k.n.len() {
            // SAFETY: just stored.
            next = quotients_of(unsafe { t.load(p + 1) }, k);
        }
    }
    t.store(p + k.n.len(), w.shift());
    next
}

/// All passes of a reduction. All tiles must have been stored.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn reduce_columns(t: &mut Columns, k: Constants<'_>) {
    // SAFETY: by the function's own condition, here and below.
    let mut quotients = quotients_of(unsafe { t.load(0) }, k);
    for p in 0..k.n.len() {
        // SAFETY: as above.
        quotients = unsafe { reduction_pass(t, p, k, quotients) };
    }
}

/// Carries the upper half of the columns into limbs.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn carry_out(t: &Columns, out: &mut [Tile]) {
    let mask = set1(MASK);
    let mut carry = _mm512_setzero_si512();
    let tiles = out.len();
    for (i, out) in out.iter_mut().enumerate() {
        // SAFETY: the caller has stored all 2 * out.len() tiles.
        let columns = unsafe { t.load(tiles + i) };
        for (out, column) in out.iter_mut().zip(columns) {
            let sum = _mm512_add_epi64(column, carry);
            *out = _mm512_and_si512(sum, mask);
            carry = _mm512_srli_epi64::<52>(sum);
        }
    }
}

/// `a * b / R` as columns in the upper half.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn product(t: &mut Columns, k: Constants<'_>, a: &[Tile], b: &[Tile]) {
    check(k, a);
    check(k, b);
    for p in 0..a.len() {
        product_pass(t, p, a, b);
    }
    // SAFETY: the product passes have stored all tiles.
    unsafe { reduce_columns(t, k) };
}

/// `out = a * b / R mod n`, below `2 n` if both factors are.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn mul(k: Constants<'_>, out: &mut [Tile], a: &[Tile], b: &[Tile]) {
    check(k, out);
    let mut t = Columns::new();
    product(&mut t, k, a, b);
    // SAFETY: the last pass has stored the last tile.
    unsafe { carry_out(&t, out) }
}

/// `x = x * b / R mod n`.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn mul_assign(k: Constants<'_>, x: &mut [Tile], b: &[Tile]) {
    let mut t = Columns::new();
    product(&mut t, k, x, b);
    // SAFETY: the last pass has stored the last tile.
    unsafe { carry_out(&t, x) }
}

/// `x = x * x / R mod n`.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn sqr_assign(k: Constants<'_>, x: &mut [Tile]) {
    check(k, x);
    let mut t = Columns::new();
    for p in 0..x.len() {
        square_pass(&mut t, p, x);
    }
    // SAFETY: the square passes have stored all tiles.
    unsafe { reduce_columns(&mut t, k) };
    // SAFETY: as above.
    unsafe { carry_out(&t, x) }
}

/// `x = x / R mod n`, at most `n` if `x` is below `2 n`.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn reduce(k: Constants<'_>, x: &mut [Tile]) {
    check(k, x);
    let mut t = Columns::new();
    let zero = [_mm512_setzero_si512(); TILE];
    for (i, tile) in x.iter().enumerate() {
        t.store(i, *tile);
        t.store(x.len() + i, zero);
    }
    // SAFETY: all tiles have been stored.
    unsafe { reduce_columns(&mut t, k) };
    // SAFETY: as above.
    unsafe { carry_out(&t, x) }
}
