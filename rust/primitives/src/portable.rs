//! Montgomery arithmetic with 64-bit limbs, one row after another.
//!
//! A block keeps its eight rows one after another, `k` words each, so it takes `k` lines.
//! Residues are always below `n`; the closing subtraction is masked, never branched on.

use crate::column::{words, words_mut, Line, LANES};
use crate::engine::Engine;
use num_bigint::BigUint;

/// Most words of a row: 4,096 bits.
const MAX: usize = 64;

/// Montgomery constants for `R = 2^(64 k)`.
pub(crate) struct Portable {
    n: Vec<u64>,
    /// `R^2 mod n`.
    r2: Vec<u64>,
    /// `-n^-1 mod 2^64`.
    inv: u64,
}

/// Least significant first limbs of `v`, `len` of them.
fn limbs(v: &BigUint, len: usize) -> Vec<u64> {
    let mut out = v.to_u64_digits();
    out.resize(len, 0);
    out
}

/// `-n^-1 mod 2^64` for odd `n`, by Newton's doubling of correct low bits.
pub(crate) fn negated_inverse(n: u64) -> u64 {
    let mut x = n; // correct to 3 bits
    for _ in 0..5 {
        x = x.wrapping_mul(2u64.wrapping_sub(n.wrapping_mul(x)));
    }
    x.wrapping_neg()
}

/// `acc + x * y + carry` as (low word, high word); it cannot overflow 128 bits.
#[inline(always)]
fn mac(acc: u64, x: u64, y: u64, carry: u64) -> (u64, u64) {
    let t = u128::from(acc) + u128::from(x) * u128::from(y) + u128::from(carry);
    (t as u64, (t >> 64) as u64)
}

impl Portable {
    pub(crate) fn new(n: &BigUint) -> Self {
        let words = n.to_u64_digits();
        let k = words.len();
        let r2 = (BigUint::from(1u8) << (128 * k)) % n;
        Self {
            r2: limbs(&r2, k),
            inv: negated_inverse(words[0]),
            n: words,
        }
    }

    /// Coarsely integrated operand scanning: `t[..k] = a * b / R mod n`, below `n`.
    #[inline(always)]
    fn product(&self, t: &mut [u64; MAX], a: &[u64], b: &[u64]) {
        let k = self.n.len();
        let (n, a) = (&self.n[..k], &a[..k]);
        let acc = &mut t[..k];
        acc.fill(0);
        let mut top = 0u64;
        for &bi in b {
            let (low, mut c1) = mac(acc[0], a[0], bi, 0);
            let q = low.wrapping_mul(self.inv);
            let (_, mut c2) = mac(low, q, n[0], 0);
            for j in 1..k {
                let (s, c) = mac(acc[j], a[j], bi, c1);
                c1 = c;
                let (s, c) = mac(s, q, n[j], c2);
                c2 = c;
                acc[j - 1] = s;
            }
            let s = u128::from(top) + u128::from(c1) + u128::from(c2);
            acc[k - 1] = s as u64;
            top = (s >> 64) as u64;
        }
        reduce_once(acc, top, n);
    }

    fn rows_mul(&self, out: &mut [Line], a: &[Line], b: &[Line], live: usize) {
        let k = self.n.len();
        let mut t = [0; MAX];
        let rows = words_mut(out)
            .chunks_exact_mut(k)
            .zip(words(a).chunks_exact(k));
        for ((out, a), b) in rows.zip(words(b).chunks_exact(k)).take(live) {
            self.product(&mut t, a, b);
            out.copy_from_slice(&t[..k]);
        }
    }

    /// Every live row times the same words.
    fn rows_times(&self, x: &mut [Line], by: &[u64], live: usize) {
        let k = self.n.len();
        let mut t = [0; MAX];
        for row in words_mut(x).chunks_exact_mut(k).take(live) {
            self.product(&mut t, row, by);
            row.copy_from_slice(&t[..k]);
        }
    }
}

/// Subtracts `n` from `top:x` (below `2 n`) unless that would go below zero, without branching.
fn reduce_once(x: &mut [u64], top: u64, n: &[u64]) {
    let borrow = x.iter().zip(n).fold(0u64, |borrow, (&x, &n)| {
        let (d, b1) = x.overflowing_sub(n);
        let (_, b2) = d.overflowing_sub(borrow);
        u64::from(b1 | b2)
    });
    // Subtract when the value reached 2^(64 k) or did not borrow.
    let mask = (top | (borrow ^ 1)).wrapping_neg();
    let mut borrow = 0u64;
    for (x, &n) in x.iter_mut().zip(n) {
        let (d, b1) = x.overflowing_sub(n & mask);
        let (d, b2) = d.overflowing_sub(borrow);
        *x = d;
        borrow = u64::from(b1 | b2);
    }
}

impl Engine for Portable {
    fn width(&self) -> usize {
        self.n.len()
    }

    fn limb_bits(&self) -> usize {
        64
    }

    fn row_words(&self) -> usize {
        self.n.len()
    }

    fn mul(&self, out: &mut [Line], a: &[Line], b: &[Line], live: usize) {
        self.rows_mul(out, a, b, live);
    }

    fn mul_assign(&self, x: &mut [Line], b: &[Line], live: usize) {
        let k = self.n.len();
        let mut t = [0; MAX];
        let rows = words_mut(x)
            .chunks_exact_mut(k)
            .zip(words(b).chunks_exact(k));
        for (x, b) in rows.take(live) {
            self.product(&mut t, x, b);
            x.copy_from_slice(&t[..k]);
        }
    }

    fn sqr_assign(&self, x: &mut [Line], live: usize) {
        let k = self.n.len();
        let mut t = [0; MAX];
        for row in words_mut(x).chunks_exact_mut(k).take(live) {
            self.product(&mut t, row, row);
            row.copy_from_slice(&t[..k]);
        }
    }

    fn enter(&self, x: &mut [Line], live: usize) {
        self.rows_times(x, &self.r2, live);
    }

    fn leave(&self, x: &mut [Line], live: usize) {
        let mut unit = [0; MAX];
        unit[0] = 1;
        self.rows_times(x, &unit[..self.n.len()], live);
    }

    fn add(&self, out: &mut [Line], a: &[Line], b: &[Line]) {
        let k = self.n.len();
        let rows = words_mut(out)
            .chunks_exact_mut(k)
            .zip(words(a).chunks_exact(k));
        for ((out, a), b) in rows.zip(words(b).chunks_exact(k)) {
            let mut carry = 0u64;
            for ((o, &a), &b) in out.iter_mut().zip(a).zip(b) {
                let s = u128::from(a) + u128::from(b) + u128::from(carry);
                *o = s as u64;
                carry = (s >> 64) as u64;
            }
            reduce_once(out, carry, &self.n);
        }
    }

    fn sub(&self, out: &mut [Line], a: &[Line], b: &[Line]) {
        let k = self.n.len();
        let rows = words_mut(out)
            .chunks_exact_mut(k)
            .zip(words(a).chunks_exact(k));
        for ((out, a), b) in rows.zip(words(b).chunks_exact(k)) {
            let mut borrow = 0u64;
            for ((o, &a), &b) in out.iter_mut().zip(a).zip(b) {
                let (d, b1) = a.overflowing_sub(b);
                let (d, b2) = d.overflowing_sub(borrow);
                *o = d;
                borrow = u64::from(b1 | b2);
            }
            let mask = borrow.wrapping_neg();
            let mut carry = 0u64;
            for (o, &n) in out.iter_mut().zip(&self.n) {
                let s = u128::from(*o) + u128::from(n & mask) + u128::from(carry);
                *o = s as u64;
                carry = (s >> 64) as u64;
            }
        }
    }

    fn normalize(&self, _x: &mut [Line]) {}

    fn put_row(&self, block: &mut [Line], lane: usize, be: &[u8]) {
        let k = self.n.len();
        let row = &mut words_mut(block)[lane * k..][..k];
        row.fill(0);
        for (word, bytes) in row.iter_mut().zip(be.rchunks(8)) {
            *word = bytes.iter().fold(0, |w, &b| w << 8 | u64::from(b));
        }
    }

    fn get_row(&self, block: &[Line], lane: usize, be: &mut [u8]) {
        let k = self.n.len();
        let row = &words(block)[lane * k..][..k];
        for (word, bytes) in row.iter().zip(be.rchunks_mut(8)) {
            bytes.copy_from_slice(&word.to_be_bytes()[8 - bytes.len()..]);
        }
    }

    fn get_words(&self, block: &[Line], lane: usize, out: &mut [u64]) {
        let k = self.n.len();
        out.copy_from_slice(&words(block)[lane * k..][..k]);
    }

    fn set_words(&self, block: &mut [Line], rows: &[&[u64]; LANES]) {
        for (row, from) in words_mut(block).chunks_exact_mut(self.n.len()).zip(rows) {
            row.copy_from_slice(from);
        }
    }
}
