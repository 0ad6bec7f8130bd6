//! Powers of one fixed base with secret exponents of 128 bits.

use crate::column::{Column, Line, LANES};
use crate::engine::Engine;
use crate::error::KernelError;
use crate::kernel::Kernel;
use crate::modulus::Modulus;
use rayon::prelude::*;
use std::sync::Arc;
use zeroize::{Zeroize, Zeroizing};

/// Windows of an exponent: one a byte.
const WINDOWS: usize = 16;
/// Entries of a window.
const ENTRIES: usize = 256;
/// Blocks that pass through one window before the next: their accumulators and a window's
/// entries then fit the second-level cache together.
const BATCH: usize = 64;

/// A table for `factor * base^e mod n` with many exponents `e` of exactly 128 bits.
///
/// Sixteen windows of 256 entries each, `factor` multiplied into the first window: 1 MiB of
/// residues at 2,048 bits (1.25 MiB in the 52-bit limbs of the IFMA backend). Base and factor
/// may be secret; the table is overwritten with zeros when dropped.
///
/// Every exponent takes the same sequence of products, without a branch on a secret. Table
/// lookups are *not* constant-time: the address depends on the exponent's bytes. An adversary who
/// can watch the caches of the machine that holds the secret exponents is out of scope.
pub struct FixedBase {
    modulus: Arc<Modulus>,
    /// Entry `window * ENTRIES + byte`, `words` limbs each.
    table: Zeroizing<Vec<u64>>,
    words: usize,
}

impl FixedBase {
    /// Builds the table: about 4,300 products.
    ///
    /// # Errors
    /// If `base_be` or `factor_be` is longer than `byte_len` or not below `n` (row 0 and 1).
    pub fn new(k: &Kernel, base_be: &[u8], factor_be: &[u8]) -> Result<Self, KernelError> {
        let mut given = k.load_rows([base_be, factor_be].into_iter())?;
        let engine = k.engine();
        let (width, words) = (engine.width(), engine.row_words());
        let row = |block: &[Line], lane: usize| {
            let mut out = Zeroizing::new(vec![0; words]);
            engine.get_words(block, lane, &mut out);
            out
        };
        // base^(256^w) for every window w, one row a window.
        let mut power = given.clone();
        let mut bases = Vec::with_capacity(WINDOWS);
        for _ in 0..WINDOWS {
            bases.push(row(&power.lines, 0));
            (0..8).for_each(|_| engine.sqr_assign(&mut power.lines, 1));
        }
        let unit = k.one(1);
        let mut starts = vec![row(&unit.lines, 0); WINDOWS];
        starts[0] = row(&given.lines, 1);
        let mut step = columns_of(engine, &bases, k);
        let mut current = columns_of(engine, &starts, k);
        let mut table = Zeroizing::new(vec![0; WINDOWS * ENTRIES * words]);
        for entry in 0..ENTRIES {
            for window in 0..WINDOWS {
                let block = &current.lines[window / LANES * width..][..width];
                let at = (window * ENTRIES + entry) * words;
                engine.get_words(block, window % LANES, &mut table[at..at + words]);
            }
            let blocks = current.lines.chunks_exact_mut(width);
            for (x, by) in blocks.zip(step.lines.chunks_exact(width)) {
                engine.mul_assign(x, by, LANES);
            }
        }
        for column in [&mut given, &mut power, &mut step, &mut current] {
            column.zeroize();
        }
        Ok(Self {
            modulus: k.modulus().clone(),
            table,
            words,
        })
    }

    /// `factor * base^e mod n` for big-endian 128-bit exponents, one a row: 15 products each.
    ///
    /// # Panics
    /// Here and in [`FixedBase::pow_mul`]: if `k` has another modulus or backend than the table.
    pub fn pow(&self, k: &Kernel, exponents: &[[u8; 16]]) -> Column {
        self.run(k, exponents, None)
    }

    /// `factor * base^e * by mod n`, row by row: 16 products each.
    ///
    /// # Panics
    /// Also if `by` has not one row an exponent.
    pub fn pow_mul(&self, k: &Kernel, exponents: &[[u8; 16]], by: &Column) -> Column {
        k.check(by);
        assert_eq!(by.rows, exponents.len(), "one exponent a row");
        self.run(k, exponents, Some(by))
    }

    fn run(&self, k: &Kernel, exponents: &[[u8; 16]], by: Option<&Column>) -> Column {
        assert!(*self.modulus == **k.modulus(), "table of another modulus");
        let engine = k.engine();
        assert_eq!(self.words, engine.row_words(), "table of another backend");
        let mut out = k.zero(exponents.len());
        let batch = engine.width() * BATCH;
        let batches = out
            .lines
            .par_chunks_mut(batch)
            .zip(exponents.par_chunks(BATCH * LANES));
        batches.enumerate().for_each(|(i, (out, exponents))| {
            let by = by.map(|c| &c.lines[i * batch..][..out.len()]);
            self.run_batch(engine, exponents, by, out);
        });
        out
    }

    /// Window by window, so that one window's entries stay in cache for the whole batch.
    fn run_batch(
        &self,
        engine: &dyn Engine,
        exponents: &[[u8; 16]],
        by: Option<&[Line]>,
        out: &mut [Line],
    ) {
        let width = engine.width();
        let mut entry = vec![Line::default(); width];
        for window in 0..WINDOWS {
            let groups = exponents.chunks(LANES).zip(out.chunks_exact_mut(width));
            for (i, (group, out)) in groups.enumerate() {
                let rows = std::array::from_fn(|lane| {
                    // Lanes past the last row take entry 0, which is never read.
                    let byte = group.get(lane).map_or(0, |e| e[WINDOWS - 1 - window]);
                    let at = (window * ENTRIES + usize::from(byte)) * self.words;
                    &self.table[at..at + self.words]
                });
                engine.set_words(&mut entry, &rows);
                match (window, by) {
                    (0, None) => out.copy_from_slice(&entry),
                    (0, Some(by)) => {
                        engine.mul(out, &entry, &by[i * width..][..width], group.len());
                    }
                    _ => engine.mul_assign(out, &entry, group.len()),
                }
            }
        }
        entry.as_mut_slice().zeroize();
    }
}

/// A column of [`WINDOWS`] rows from their limbs.
fn columns_of(engine: &dyn Engine, rows: &[Zeroizing<Vec<u64>>], k: &Kernel) -> Column {
    let mut out = k.zero(rows.len());
    let blocks = out.lines.chunks_exact_mut(engine.width());
    for (block, rows) in blocks.zip(rows.chunks_exact(LANES)) {
        engine.set_words(block, &std::array::from_fn(|lane| rows[lane].as_slice()));
    }
    out
}
