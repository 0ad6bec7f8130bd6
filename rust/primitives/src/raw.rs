//! Residues that skip the conversion into Montgomery form.
//!
//! A Montgomery product is `a * b / R`, so values are kept as `a * R` to make products of them come
//! out right; each conversion costs a product. Where only a few products follow, it is cheaper to
//! compute on the values as they are, and to put the missing power of `R` into a constant that is
//! multiplied in anyway.

use crate::column::{Column, Scalar, LANES};
use crate::error::KernelError;
use crate::kernel::{Kernel, CHEAP_GRAIN};
use rayon::prelude::*;

/// Rows up to which products, sums, [`Kernel::load_raw`] and [`Kernel::store_raw_into`] run on the
/// calling thread: a task of this size keeps all its columns in the nearest caches.
pub const TASK_ROWS: usize = CHEAP_GRAIN * LANES;

impl Kernel {
    /// Reads rows as they are: what other methods see is `value / R`.
    ///
    /// A product of `c` raw columns, other columns and one [`Kernel::scalar_times_r`] with power
    /// `c - 1`, stored by [`Kernel::store_raw`], is the product of all the values. Sums need the
    /// same `c` on both sides.
    ///
    /// # Errors
    /// As [`Kernel::load_rows`].
    pub fn load_raw<'a>(
        &self,
        rows: impl ExactSizeIterator<Item = &'a [u8]>,
    ) -> Result<Column, KernelError> {
        let rows: Vec<&[u8]> = rows.collect();
        let (n, engine) = (self.modulus().be(), self.engine());
        for (row, be) in rows.iter().enumerate() {
            if be.len() > n.len() {
                let (got, row_bytes) = (be.len(), n.len());
                return Err(KernelError::RowTooLong {
                    row,
                    got,
                    row_bytes,
                });
            }
            if be.len() == n.len() && *be >= n {
                return Err(KernelError::NotReduced { row });
            }
        }
        let mut out = self.zero(rows.len());
        self.each(&mut out, CHEAP_GRAIN, |i, block, live| {
            let mut octet: [&[u8]; LANES] = [&[]; LANES];
            octet[..live].copy_from_slice(&rows[i * LANES..][..live]);
            engine.put_rows(block, &octet);
        });
        Ok(out)
    }

    /// The bytes of a column times `R`: of a raw column, its values.
    pub fn store_raw(&self, column: &Column) -> Vec<u8> {
        let mut out = vec![0; column.rows * self.modulus().byte_len()];
        self.store_raw_into(column, &mut out);
        out
    }

    /// [`Kernel::store_raw`] into `out`.
    ///
    /// # Panics
    /// If `out` has not `byte_len` bytes a row, or the column is another backend's.
    pub fn store_raw_into(&self, column: &Column, out: &mut [u8]) {
        self.check(column);
        let (engine, row_bytes) = (self.engine(), self.modulus().byte_len());
        assert_eq!(out.len(), column.rows * row_bytes, "bytes of a column");
        let store = |(out, block): (&mut [u8], &[_])| {
            let mut block = block.to_vec();
            engine.normalize(&mut block);
            engine.get_rows(&block, out, row_bytes);
        };
        let block_bytes = row_bytes * LANES;
        if column.rows <= TASK_ROWS {
            let blocks = column.lines.chunks_exact(column.width);
            out.chunks_mut(block_bytes).zip(blocks).for_each(store);
        } else {
            let blocks = column.lines.par_chunks_exact(column.width);
            let pairs = out.par_chunks_mut(block_bytes).zip(blocks);
            pairs.with_min_len(CHEAP_GRAIN).for_each(store);
        }
    }

    /// Prepares the shared constant `value * R^power`.
    ///
    /// # Errors
    /// As [`Kernel::scalar`].
    pub fn scalar_times_r(&self, be: &[u8], power: usize) -> Result<Scalar, KernelError> {
        let mut block = self.load_raw([be; LANES].into_iter())?.lines;
        // Entering the Montgomery form is a multiplication by R.
        (0..=power).for_each(|_| self.engine().enter(&mut block, LANES));
        Ok(Scalar {
            block,
            backend: self.backend(),
        })
    }
}
