//! What a backend must offer: arithmetic on one block of eight residues.

use crate::column::{Line, LANES};

/// Which arithmetic runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backend {
    /// 64-bit limbs, any processor.
    Portable,
    /// 52-bit limbs, eight rows at once, x86-64 processors with AVX-512 F, BW, VBMI and IFMA.
    Ifma,
}

/// The fastest backend of this processor; the environment variable `LOUVER_BACKEND=portable`
/// forces the portable one.
pub fn best_backend() -> Backend {
    let forced = std::env::var_os("LOUVER_BACKEND").is_some_and(|v| v == "portable");
    if !forced && ifma_available() {
        Backend::Ifma
    } else {
        Backend::Portable
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn ifma_available() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512ifma")
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512vbmi")
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn ifma_available() -> bool {
    false
}

/// Arithmetic on blocks of [`LANES`] residues; a block is a slice of `width()` lines.
///
/// Residues are in Montgomery form unless a method says otherwise, below the engine's own bound.
/// `live` is the number of leading rows that matter; an engine may skip the others.
pub(crate) trait Engine: Send + Sync {
    /// Lines a block takes.
    fn width(&self) -> usize;
    /// Bits of a limb: 64 or 52.
    fn limb_bits(&self) -> usize;
    /// Words of one row: limbs, least significant first.
    fn row_words(&self) -> usize;
    /// `out = a * b`.
    fn mul(&self, out: &mut [Line], a: &[Line], b: &[Line], live: usize);
    /// `x = x * b`.
    fn mul_assign(&self, x: &mut [Line], b: &[Line], live: usize);
    /// `x = x * x`.
    fn sqr_assign(&self, x: &mut [Line], live: usize);
    /// Plain values below `n` to Montgomery form.
    fn enter(&self, x: &mut [Line], live: usize);
    /// Montgomery form to plain values below `n`.
    fn leave(&self, x: &mut [Line], live: usize);
    /// `out = a + b`.
    fn add(&self, out: &mut [Line], a: &[Line], b: &[Line]);
    /// `out = a - b`.
    fn sub(&self, out: &mut [Line], a: &[Line], b: &[Line]);
    /// Writes a plain value (big-endian, at most the modulus's bytes, below `n`) into a row.
    fn put_row(&self, block: &mut [Line], lane: usize, be: &[u8]);
    /// Reads a plain row into big-endian bytes of the modulus's length.
    fn get_row(&self, block: &[Line], lane: usize, be: &mut [u8]);
    /// Brings residues below `n`, their form unchanged.
    fn normalize(&self, x: &mut [Line]);
    /// [`Engine::put_row`] for all rows; a value may be empty, which is 0.
    fn put_rows(&self, block: &mut [Line], rows: &[&[u8]; LANES]) {
        for (lane, be) in rows.iter().enumerate() {
            self.put_row(block, lane, be);
        }
    }
    /// [`Engine::get_row`] for as many leading rows as `out` has room for.
    fn get_rows(&self, block: &[Line], out: &mut [u8], row_bytes: usize) {
        for (lane, be) in out.chunks_exact_mut(row_bytes).enumerate() {
            self.get_row(block, lane, be);
        }
    }
    /// Copies one row's limbs out of a block.
    fn get_words(&self, block: &[Line], lane: usize, out: &mut [u64]);
    /// Assembles a block from the limbs of eight rows.
    fn set_words(&self, block: &mut [Line], rows: &[&[u64]; LANES]);
}
