//! The batch functions: one [`Kernel`] computes on whole columns.

use crate::column::{words, Column, Line, Scalar, LANES};
use crate::engine::{best_backend, Backend, Engine};
use crate::error::KernelError;
use crate::modulus::Modulus;
use crate::plan::Plan;
use num_bigint::BigUint;
use rayon::prelude::*;
use std::sync::Arc;

/// Blocks that one task takes when a block costs about one product (64 rows).
pub(crate) const CHEAP_GRAIN: usize = 8;

/// Smallest modulus for which [`Kernel::new`] takes the IFMA backend: its shortest row has
/// 1,040 bits, so below this the portable backend does less work.
const IFMA_MIN_BITS: u32 = 384;

/// A modulus with the arithmetic that runs on it.
#[derive(Clone, Debug)]
pub struct Kernel {
    modulus: Arc<Modulus>,
    backend: Backend,
}

impl Kernel {
    /// A kernel with the fastest backend for this processor and this modulus.
    pub fn new(modulus: Arc<Modulus>) -> Self {
        let small = modulus.bits() < IFMA_MIN_BITS;
        let backend = if small {
            Backend::Portable
        } else {
            best_backend()
        };
        Self::with_backend(modulus, backend)
    }

    /// A kernel with a given backend; where the processor lacks IFMA, the portable one.
    pub fn with_backend(modulus: Arc<Modulus>, backend: Backend) -> Self {
        let backend = modulus.resolve(backend);
        Self { modulus, backend }
    }

    /// The modulus.
    pub fn modulus(&self) -> &Arc<Modulus> {
        &self.modulus
    }

    /// The backend that runs.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    pub(crate) fn engine(&self) -> &dyn Engine {
        self.modulus.engine(self.backend)
    }

    pub(crate) fn zero(&self, rows: usize) -> Column {
        Column::zero(rows, self.engine().width(), self.backend)
    }

    /// Reads `rows * byte_len` bytes into a column of `rows` rows.
    ///
    /// # Errors
    /// If the bytes are not a whole number of rows, or a value is not below `n`; of several such
    /// rows the error names the first.
    pub fn load(&self, be: &[u8]) -> Result<Column, KernelError> {
        let row_bytes = self.modulus.byte_len();
        if !be.len().is_multiple_of(row_bytes) {
            return Err(KernelError::Length {
                got: be.len(),
                row_bytes,
            });
        }
        self.load_rows(be.chunks_exact(row_bytes))
    }

    /// Reads rows of at most `byte_len` bytes each; a shorter row counts as left-padded by zeros.
    ///
    /// # Errors
    /// If a row is longer than `byte_len`, or its value is not below `n`; of several such rows
    /// the error names the first.
    pub fn load_rows<'a>(
        &self,
        rows: impl ExactSizeIterator<Item = &'a [u8]>,
    ) -> Result<Column, KernelError> {
        let mut out = self.load_raw(rows)?;
        let engine = self.engine();
        self.each(&mut out, CHEAP_GRAIN, |_, block, live| {
            engine.enter(block, live);
        });
        Ok(out)
    }

    /// The column as `rows * byte_len` big-endian bytes, every value below `n`.
    pub fn store(&self, column: &Column) -> Vec<u8> {
        self.check(column);
        let (engine, row_bytes) = (self.engine(), self.modulus.byte_len());
        let mut out = vec![0; column.rows * row_bytes];
        let block_bytes = row_bytes * LANES;
        let pairs = out
            .par_chunks_mut(block_bytes)
            .zip(column.lines.par_chunks(column.width));
        pairs.with_min_len(CHEAP_GRAIN).for_each(|(out, block)| {
            let mut plain = block.to_vec();
            engine.leave(&mut plain, out.len() / row_bytes);
            engine.get_rows(&plain, out, row_bytes);
        });
        out
    }

    /// A column of ones.
    pub fn one(&self, rows: usize) -> Column {
        self.repeat(&self.one_block(), rows)
    }

    /// A column that holds one value in every row.
    ///
    /// # Errors
    /// As [`Kernel::scalar`].
    pub fn broadcast(&self, value_be: &[u8], rows: usize) -> Result<Column, KernelError> {
        Ok(self.repeat(&self.scalar(value_be)?.block, rows))
    }

    /// Prepares one shared constant of at most `byte_len` bytes.
    ///
    /// # Errors
    /// If it is longer, or not below `n`; the error speaks of row 0.
    pub fn scalar(&self, be: &[u8]) -> Result<Scalar, KernelError> {
        self.scalar_times_r(be, 0)
    }

    /// `a * b mod n`, row by row.
    ///
    /// # Panics
    /// Here and below: if the columns differ in length or come from another backend.
    pub fn mul(&self, a: &Column, b: &Column) -> Column {
        let engine = self.engine();
        self.zip(a, b, |out, a, b, live| engine.mul(out, a, b, live))
    }

    /// Every row times one shared constant.
    pub fn scale(&self, a: &Column, q: &Scalar) -> Column {
        self.check(a);
        assert_eq!(q.backend, self.backend, "scalar of another backend");
        let engine = self.engine();
        let mut out = self.zero(a.rows);
        self.each(&mut out, CHEAP_GRAIN, |i, out, live| {
            engine.mul(out, &a.lines[i * a.width..][..a.width], &q.block, live);
        });
        out
    }

    /// `a + b mod n`, row by row.
    pub fn add(&self, a: &Column, b: &Column) -> Column {
        let engine = self.engine();
        self.zip(a, b, |out, a, b, _| engine.add(out, a, b))
    }

    /// `a - b mod n`, row by row.
    pub fn sub(&self, a: &Column, b: &Column) -> Column {
        let engine = self.engine();
        self.zip(a, b, |out, a, b, _| engine.sub(out, a, b))
    }

    /// `-a mod n`, row by row.
    pub fn neg(&self, a: &Column) -> Column {
        self.sub(&self.zero(a.rows), a)
    }

    /// Every row's square.
    pub fn square(&self, a: &Column) -> Column {
        self.check(a);
        let engine = self.engine();
        let mut out = a.clone();
        self.each(&mut out, CHEAP_GRAIN, |_, block, live| {
            engine.sqr_assign(block, live)
        });
        out
    }

    /// Every row to one shared public exponent (big-endian, any length); exponent 0 gives 1.
    pub fn pow(&self, base: &Column, exponent_be: &[u8]) -> Column {
        self.check(base);
        let (plan, unit) = (Plan::new(&[exponent_be]), self.one_block());
        let engine = self.engine();
        let mut out = self.zero(base.rows);
        self.each(&mut out, 1, |i, out, live| {
            plan.run(
                engine,
                &base.lines[i * base.width..][..base.width],
                &unit,
                out,
                live,
            );
        });
        out
    }

    /// Every row to each of several public exponents, one column an exponent, in order. The
    /// squarings are shared, so further exponents cost little.
    pub fn pow_many(&self, base: &Column, exponents: &[&[u8]]) -> Vec<Column> {
        self.check(base);
        let (plan, unit) = (Plan::new(exponents), self.one_block());
        let (engine, width, count) = (self.engine(), base.width, exponents.len());
        if count == 0 || base.is_empty() {
            return exponents.iter().map(|_| self.zero(base.rows)).collect();
        }
        let mut joint = vec![Line::default(); base.lines.len() * count];
        joint
            .par_chunks_mut(width * count)
            .enumerate()
            .for_each(|(i, out)| {
                let live = LANES.min(base.rows - i * LANES);
                plan.run(engine, &base.lines[i * width..][..width], &unit, out, live);
            });
        let column = |which: usize| {
            let mut out = self.zero(base.rows);
            let from = joint.chunks_exact(width).skip(which).step_by(count);
            for (to, from) in out.lines.chunks_exact_mut(width).zip(from) {
                to.copy_from_slice(from);
            }
            out
        };
        (0..count).map(column).collect()
    }

    /// The sum of all rows mod `n`, as `byte_len` big-endian bytes; 0 for no rows.
    pub fn sum(&self, a: &Column) -> Vec<u8> {
        self.check(a);
        let engine = self.engine();
        let blocks = a
            .lines
            .par_chunks(a.width)
            .enumerate()
            .with_min_len(CHEAP_GRAIN);
        let zero = || vec![0u128; engine.row_words()];
        // Exact limb-wise integer sums do not depend on how the rows were split.
        let limbs = blocks
            .fold(zero, |mut sums, (i, block)| {
                add_limbs(engine, &mut sums, block, LANES.min(a.rows - i * LANES));
                sums
            })
            .reduce(zero, |mut x, y| {
                x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
                x
            });
        let total = limbs.iter().rev().fold(BigUint::ZERO, |total, &limb| {
            (total << engine.limb_bits()) + BigUint::from(limb)
        });
        let reduced = crate::wide::to_fixed(&(total % self.modulus.value()), self.row_bytes());
        let mut block = vec![Line::default(); engine.width()];
        engine.put_row(&mut block, 0, &reduced);
        // The sum of Montgomery forms is the Montgomery form of the sum.
        engine.leave(&mut block, 1);
        let mut out = vec![0; self.row_bytes()];
        engine.get_row(&block, 0, &mut out);
        out
    }

    fn row_bytes(&self) -> usize {
        self.modulus.byte_len()
    }

    fn one_block(&self) -> Vec<Line> {
        let engine = self.engine();
        let mut block = vec![Line::default(); engine.width()];
        (0..LANES).for_each(|lane| engine.put_row(&mut block, lane, &[1]));
        engine.enter(&mut block, LANES);
        block
    }

    fn repeat(&self, block: &[Line], rows: usize) -> Column {
        let lines = block.repeat(rows.div_ceil(LANES));
        Column {
            lines,
            rows,
            width: block.len(),
            backend: self.backend,
        }
    }

    pub(crate) fn check(&self, a: &Column) {
        assert_eq!(a.backend, self.backend, "column of another backend");
        assert_eq!(a.width, self.engine().width(), "column of another modulus");
    }

    /// Runs `f(block index, block, live rows)` on all blocks, at least `grain` blocks a task.
    pub(crate) fn each(
        &self,
        out: &mut Column,
        grain: usize,
        f: impl Fn(usize, &mut [Line], usize) + Sync,
    ) {
        let (rows, width) = (out.rows, out.width);
        let run = |(i, block): (usize, &mut [Line])| f(i, block, LANES.min(rows - i * LANES));
        if rows <= grain * LANES {
            out.lines.chunks_exact_mut(width).enumerate().for_each(run);
        } else {
            let blocks = out.lines.par_chunks_exact_mut(width).enumerate();
            blocks.with_min_len(grain).for_each(run);
        }
    }

    fn zip(
        &self,
        a: &Column,
        b: &Column,
        f: impl Fn(&mut [Line], &[Line], &[Line], usize) + Sync,
    ) -> Column {
        self.check(a);
        self.check(b);
        assert_eq!(a.rows, b.rows, "columns of different lengths");
        let mut out = self.zero(a.rows);
        self.each(&mut out, CHEAP_GRAIN, |i, out, live| {
            let at = i * a.width..(i + 1) * a.width;
            f(out, &a.lines[at.clone()], &b.lines[at], live);
        });
        out
    }
}

/// Adds the limbs of a block's live rows to `sums`.
fn add_limbs(engine: &dyn Engine, sums: &mut [u128], block: &[Line], live: usize) {
    if engine.limb_bits() == 64 {
        for row in words(block).chunks_exact(engine.row_words()).take(live) {
            sums.iter_mut()
                .zip(row)
                .for_each(|(s, &w)| *s += u128::from(w));
        }
    } else {
        // Limb-major; eight 52-bit limbs fit a word.
        for (s, line) in sums.iter_mut().zip(block) {
            *s += u128::from(line.0[..live].iter().sum::<u64>());
        }
    }
}
