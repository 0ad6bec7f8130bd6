//! Registers and memory of a product: tiles, the window of columns in work, the columns.

// `ten!` compares the constant indices of its copies; in some copies the answer is trivial.
#![allow(clippy::absurd_extreme_comparisons)]

use crate::column::Line;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

/// Limbs of a tile.
pub(super) const TILE: usize = 10;
/// Tiles of a double-width value: 2 * 80 limbs.
pub(super) const MOST: usize = 16;

/// Ten limbs of eight rows.
pub(super) type Tile = [__m512i; TILE];

/// A block as tiles; its length must be a multiple of [`TILE`].
pub(super) fn tiles(lines: &[Line]) -> &[Tile] {
    // SAFETY: `Line` and `__m512i` both are 64 bytes, aligned to 64, of any bit pattern.
    unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() / TILE) }
}

/// A block as mutable tiles.
pub(super) fn tiles_mut(lines: &mut [Line]) -> &mut [Tile] {
    // SAFETY: as in `tiles`; the exclusive borrow carries over.
    unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() / TILE) }
}

/// A word in all lanes.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn set1(word: u64) -> __m512i {
    _mm512_set1_epi64(word as i64)
}

/// Runs a body for the constants 0 to 9, spelled out: array indices must be constants for the
/// arrays to live in registers.
macro_rules! ten {
    ($i:ident, $body:block) => {
        ten!(@ $i, $body, 0 1 2 3 4 5 6 7 8 9)
    };
    (@ $i:ident, $body:block, $($v:literal)*) => {
        $({ const $i: usize = $v; $body })*
    };
}

/// Adds `a * b` to a window, writes its low columns to `out` as they become complete, and moves
/// the window up. A macro, for `#[inline]` may be ignored and `#[inline(always)]` does not go
/// with `#[target_feature]`; out of line, the window and `a` would travel through memory.
macro_rules! add_product {
    ($window:expr, $a:expr, $b:expr, $out:expr) => {{
        let (w, a, b, out) = (&mut $window.0, &$a, $b, $out);
        ten!(J, {
            let y = b[J];
            ten!(I, {
                lo(&mut w[I + J], a[I], y);
            });
            out[J].write(w[J]);
            ten!(I, {
                hi(&mut w[I + J + 1], a[I], y);
            });
        });
        $window.shift();
    }};
}

/// Low halves of `x * y` added to `acc`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn lo(acc: &mut __m512i, x: __m512i, y: __m512i) {
    *acc = _mm512_madd52lo_epu64(*acc, x, y);
}

/// High halves of `x * y` added to `acc`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn hi(acc: &mut __m512i, x: __m512i, y: __m512i) {
    *acc = _mm512_madd52hi_epu64(*acc, x, y);
}

/// Twenty columns: the ten that the next tile product completes, and the ten above.
pub(super) struct Window(pub(super) [__m512i; 2 * TILE]);

impl Window {
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn new(low: Tile) -> Self {
        let zero = _mm512_setzero_si512();
        let mut window = [zero; 2 * TILE];
        ten!(I, { window[I] = low[I] });
        Self(window)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn set_high(&mut self, high: Tile) {
        ten!(I, { self.0[TILE + I] = high[I] });
    }

    /// Takes the low columns out; the high ones become low, and zeros come in above.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn shift(&mut self) -> Tile {
        let zero = _mm512_setzero_si512();
        let mut low = [zero; TILE];
        ten!(I, {
            low[I] = self.0[I];
            self.0[I] = self.0[TILE + I];
            self.0[TILE + I] = zero;
        });
        low
    }

    /// Adds the products of all pairs of different limbs of `a`, each pair once.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn add_pairs(&mut self, a: &Tile) {
        let w = &mut self.0;
        ten!(J, {
            let y = a[J];
            ten!(I, {
                if I < J {
                    lo(&mut w[I + J], a[I], y);
                }
            });
            ten!(I, {
                if I < J {
                    hi(&mut w[I + J + 1], a[I], y);
                }
            });
        });
    }

    /// Doubles all columns and adds the squares of the limbs of `a`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn double_and_add_squares(&mut self, a: &Tile) {
        let w = &mut self.0;
        ten!(I, {
            w[2 * I] = _mm512_add_epi64(w[2 * I], w[2 * I]);
            w[2 * I + 1] = _mm512_add_epi64(w[2 * I + 1], w[2 * I + 1]);
            lo(&mut w[2 * I], a[I], a[I]);
            hi(&mut w[2 * I + 1], a[I], a[I]);
        });
    }
}

/// Unreduced columns of a double-width value, written before they are read.
pub(super) struct Columns(pub(super) [[MaybeUninit<__m512i>; TILE]; MOST]);

impl Columns {
    pub(super) fn new() -> Self {
        Self([[MaybeUninit::uninit(); TILE]; MOST])
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn store(&mut self, at: usize, tile: Tile) {
        let to = &mut self.0[at];
        ten!(I, {
            to[I].write(tile[I]);
        });
    }

    /// # Safety
    /// Tile `at` has been stored.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn load(&self, at: usize) -> Tile {
        // SAFETY: the caller has stored it; the layouts are the same.
        unsafe { self.0[at].as_ptr().cast::<Tile>().read() }
    }
}
