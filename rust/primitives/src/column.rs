//! Storage of residues in a backend's internal form.

use crate::engine::Backend;
use std::fmt;
use zeroize::Zeroize;

/// Rows that one block holds: the 64-bit lanes of a 512-bit register.
pub(crate) const LANES: usize = 8;

/// One cache line of limbs. Alignment keeps 512-bit loads from straddling cache lines.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u64; LANES]);

impl zeroize::DefaultIsZeroes for Line {}

/// A block's lines seen as plain words.
pub(crate) fn words(lines: &[Line]) -> &[u64] {
    // SAFETY: `Line` is repr(C) around [u64; LANES] with size 64, so there is no padding.
    unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * LANES) }
}

/// A block's lines seen as plain mutable words.
pub(crate) fn words_mut(lines: &mut [Line]) -> &mut [u64] {
    // SAFETY: as in `words`; the exclusive borrow carries over.
    unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() * LANES) }
}

/// A column of residues in a backend's internal (Montgomery) form.
///
/// Rows are kept in blocks of 8. The last block may hold rows past [`Column::len`]; their content
/// is unspecified and never leaves the crate. A column belongs to the modulus and backend of the
/// kernel that made it.
#[derive(Clone)]
pub struct Column {
    pub(crate) lines: Vec<Line>,
    pub(crate) rows: usize,
    /// Lines a block takes.
    pub(crate) width: usize,
    pub(crate) backend: Backend,
}

impl Column {
    pub(crate) fn zero(rows: usize, width: usize, backend: Backend) -> Self {
        let lines = vec![Line::default(); rows.div_ceil(LANES) * width];
        Self {
            lines,
            rows,
            width,
            backend,
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }
}

impl fmt::Debug for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Column")
            .field("rows", &self.rows)
            .field("backend", &self.backend)
            .finish()
    }
}

impl Zeroize for Column {
    /// Overwrites every residue with zero; the number of rows stays.
    fn zeroize(&mut self) {
        self.lines.as_mut_slice().zeroize();
    }
}

/// One constant shared by all rows, ready for [`crate::Kernel::scale`].
#[derive(Clone)]
pub struct Scalar {
    pub(crate) block: Vec<Line>,
    pub(crate) backend: Backend,
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scalar")
            .field("backend", &self.backend)
            .finish()
    }
}

impl Zeroize for Scalar {
    fn zeroize(&mut self) {
        self.block.as_mut_slice().zeroize();
    }
}
