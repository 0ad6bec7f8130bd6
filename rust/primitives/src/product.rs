//! Products of many rows.

use crate::column::{Column, LANES};
use crate::error::KernelError;
use crate::kernel::{Kernel, CHEAP_GRAIN};
use rayon::prelude::*;

/// Rows from which it pays to leave out the conversion of each, and to make up for it at the end.
const MANY_ROWS: usize = 128;
/// Blocks of a task.
const TASK_BLOCKS: usize = 64 * CHEAP_GRAIN;

impl Kernel {
    /// The product of some rows mod `n`, as `byte_len` big-endian bytes; 1 for no rows.
    ///
    /// # Errors
    /// As [`Kernel::load_rows`].
    pub fn product(&self, rows: &[&[u8]]) -> Result<Vec<u8>, KernelError> {
        if rows.len() < MANY_ROWS {
            let column = self.load_rows(rows.iter().copied())?;
            return Ok(self.store(&self.lanes(self.fold(&column))));
        }
        // Values as they are count as value / R; so does the product, for every row of it.
        let tasks = rows.par_chunks(TASK_BLOCKS * LANES).enumerate();
        let folded = tasks.map(|(task, rows)| {
            let column = self.load_raw(rows.iter().copied());
            let column = column.map_err(|e| e.moved(task * TASK_BLOCKS * LANES))?;
            Ok(self.fold(&column))
        });
        let folded = folded.collect::<Result<Vec<_>, KernelError>>()?;
        let all = folded.into_iter().reduce(|x, y| self.mul(&x, &y));
        let all = self.lanes(all.unwrap_or_else(|| self.one(LANES)));
        let r = self.load(&self.store_raw(&self.one(1)))?;
        let lost = self.pow(&r, &(rows.len() as u64).to_be_bytes());
        Ok(self.store(&self.mul(&all, &lost)))
    }

    /// Eight rows: row k is the product of the rows k, k + 8, k + 16 and so on.
    fn fold(&self, column: &Column) -> Column {
        let engine = self.engine();
        let mut out = self.one(LANES);
        let whole = column.rows / LANES * column.width;
        for block in column.lines[..whole].chunks_exact(column.width) {
            engine.mul_assign(&mut out.lines, block, LANES);
        }
        let live = column.rows % LANES;
        if live > 0 {
            // The other lanes are unspecified and must be ones.
            let mut block = self.one(LANES).lines;
            let mut rows = vec![vec![0; engine.row_words()]; LANES];
            for (lane, row) in rows.iter_mut().enumerate() {
                let from = if lane < live {
                    &column.lines[whole..]
                } else {
                    &block
                };
                engine.get_words(from, lane, row);
            }
            engine.set_words(
                &mut block,
                &std::array::from_fn(|lane| rows[lane].as_slice()),
            );
            engine.mul_assign(&mut out.lines, &block, LANES);
        }
        out
    }

    /// The product of eight rows as one row.
    fn lanes(&self, mut column: Column) -> Column {
        let engine = self.engine();
        let mut rows = vec![vec![0; engine.row_words()]; LANES];
        for half in [4, 2, 1] {
            for (lane, row) in rows.iter_mut().enumerate() {
                engine.get_words(&column.lines, lane % half + half, row);
            }
            let mut other = self.zero(LANES);
            let upper = std::array::from_fn(|lane| rows[lane].as_slice());
            engine.set_words(&mut other.lines, &upper);
            engine.mul_assign(&mut column.lines, &other.lines, half);
        }
        column.rows = 1;
        column
    }
}
