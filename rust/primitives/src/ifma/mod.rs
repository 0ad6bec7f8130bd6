//! Montgomery arithmetic with 52-bit limbs, eight rows at once, by AVX-512 IFMA.
//!
//! A block keeps limb `i` of its eight rows in line `i`. With `L` limbs, `R = 2^(52 L)` exceeds
//! `4 n`, so residues may stay anywhere below `2 n` through any chain of products ("almost
//! Montgomery"); only [`Engine::leave`] brings them below `n`. `L` is a multiple of
//! [`TILE`].

#[macro_use]
mod window;
mod layout;
mod linear;
mod product;

use crate::column::{Line, LANES};
use crate::engine::{ifma_available, Engine};
use crate::portable::negated_inverse;
use layout::{limbs52, LIMB_BITS, MASK};
use num_bigint::BigUint;
use product::Constants;
use window::{tiles, tiles_mut, TILE};

/// Constants of one modulus; exists only on processors with AVX-512 F, BW, VBMI and IFMA.
struct Ifma {
    /// `n`, every limb in all lanes.
    n: Vec<Line>,
    /// `2 n`.
    n2: Vec<Line>,
    /// `R^2 mod n`.
    r2: Vec<Line>,
    /// `-n^-1 mod 2^52`.
    inv: u64,
}

/// The engine for `n`; none if the processor lacks the instructions.
pub(crate) fn new_engine(n: &BigUint) -> Option<Box<dyn Engine>> {
    if !ifma_available() {
        return None;
    }
    let tile_bits = (LIMB_BITS * TILE) as u64;
    // Two bits above n keep 4 n below R.
    let limbs = (n.bits() + 2).div_ceil(tile_bits) as usize * TILE;
    let r2 = (BigUint::from(1u8) << (2 * LIMB_BITS * limbs)) % n;
    let lines = |v: &BigUint| {
        limbs52(v, limbs)
            .into_iter()
            .map(|w| Line([w; LANES]))
            .collect()
    };
    let low = n.iter_u64_digits().next().unwrap_or(1);
    Some(Box::new(Ifma {
        n: lines(n),
        n2: lines(&(n << 1)),
        r2: lines(&r2),
        inv: negated_inverse(low) & MASK,
    }))
}

impl Ifma {
    fn constants(&self) -> Constants<'_> {
        Constants {
            n: tiles(&self.n),
            inv: self.inv,
        }
    }
}

// SAFETY of every call below: `new_engine` is the only constructor and has seen all features.
impl Engine for Ifma {
    fn width(&self) -> usize {
        self.n.len()
    }

    fn limb_bits(&self) -> usize {
        LIMB_BITS
    }

    fn row_words(&self) -> usize {
        self.n.len()
    }

    fn mul(&self, out: &mut [Line], a: &[Line], b: &[Line], _live: usize) {
        // SAFETY: the processor has the features, see above.
        unsafe { product::mul(self.constants(), tiles_mut(out), tiles(a), tiles(b)) }
    }

    fn mul_assign(&self, x: &mut [Line], b: &[Line], _live: usize) {
        // SAFETY: the processor has the features, see above.
        unsafe { product::mul_assign(self.constants(), tiles_mut(x), tiles(b)) }
    }

    fn sqr_assign(&self, x: &mut [Line], _live: usize) {
        // SAFETY: the processor has the features, see above.
        unsafe { product::sqr_assign(self.constants(), tiles_mut(x)) }
    }

    fn enter(&self, x: &mut [Line], live: usize) {
        self.mul_assign(x, &self.r2, live);
    }

    fn leave(&self, x: &mut [Line], _live: usize) {
        // SAFETY: the processor has the features, see above.
        unsafe {
            product::reduce(self.constants(), tiles_mut(x));
            linear::subtract_once(tiles_mut(x), tiles(&self.n));
        }
    }

    fn add(&self, out: &mut [Line], a: &[Line], b: &[Line]) {
        // SAFETY: the processor has the features, see above.
        unsafe {
            linear::add(tiles_mut(out), tiles(a), tiles(b));
            linear::subtract_once(tiles_mut(out), tiles(&self.n2));
        }
    }

    fn sub(&self, out: &mut [Line], a: &[Line], b: &[Line]) {
        // SAFETY: the processor has the features, see above.
        unsafe { linear::sub(tiles_mut(out), tiles(a), tiles(b), tiles(&self.n2)) }
    }

    fn put_row(&self, block: &mut [Line], lane: usize, be: &[u8]) {
        layout::put_row(block, lane, be);
    }

    fn get_row(&self, block: &[Line], lane: usize, be: &mut [u8]) {
        layout::get_row(block, lane, be);
    }

    fn normalize(&self, x: &mut [Line]) {
        // SAFETY: the processor has the features, see above.
        unsafe { linear::subtract_once(tiles_mut(x), tiles(&self.n)) }
    }

    fn put_rows(&self, block: &mut [Line], rows: &[&[u8]; LANES]) {
        // SAFETY: the processor has the features, see above.
        unsafe { layout::put_rows(block, rows) }
    }

    fn get_rows(&self, block: &[Line], out: &mut [u8], row_bytes: usize) {
        // SAFETY: the processor has the features, see above.
        unsafe { layout::get_rows(block, out, row_bytes) }
    }

    fn get_words(&self, block: &[Line], lane: usize, out: &mut [u64]) {
        for (word, line) in out.iter_mut().zip(block) {
            *word = line.0[lane];
        }
    }

    fn set_words(&self, block: &mut [Line], rows: &[&[u64]; LANES]) {
        // SAFETY: the processor has the features, see above.
        unsafe { layout::transpose(block, rows) }
    }
}
