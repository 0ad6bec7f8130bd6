//! What all functions share: the modulus's cache, and rows without NULL.

use crate::columns::Blobs;
use crate::error::{Error, Result};
use arrow_array::Array;
use louver_primitives::{Column, Kernel, KernelError, Modulus, TASK_ROWS};
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Moduli whose constants are kept.
const KERNELS: usize = 8;

static CACHE: Mutex<Vec<(Vec<u8>, Kernel)>> = Mutex::new(Vec::new());

/// One call: its columns, its modulus, and the rows in which nothing is NULL.
pub(crate) struct Call<'a> {
    pub(crate) kernel: Kernel,
    pub(crate) rows: usize,
    pub(crate) live: Vec<usize>,
    columns: Vec<Blobs<'a>>,
}

impl<'a> Call<'a> {
    /// Prepares a call on some columns and the modulus; `None` if every row is NULL.
    pub(crate) fn new(columns: &[&'a dyn Array], n: &'a dyn Array) -> Result<Option<Self>> {
        let modulus = Blobs::new(n)?;
        let columns = columns.iter().map(|c| Blobs::new(*c));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let rows = modulus.len();
        if columns.iter().any(|c| c.len() != rows) {
            return Err(Error::new("the columns differ in length"));
        }
        let mut live: Vec<usize> = (0..rows).collect();
        for column in columns.iter().chain([&modulus]).filter(|c| c.has_nulls()) {
            live.retain(|&row| column.get(row).is_some());
        }
        let Some(n) = modulus.constant("n")?.filter(|_| !live.is_empty()) else {
            return Ok(None);
        };
        Ok(Some(Self {
            kernel: kernel(n)?,
            rows,
            live,
            columns,
        }))
    }

    /// A column's residues in some rows.
    pub(crate) fn load(&self, column: usize, rows: &[usize]) -> Result<Column> {
        let values = rows.iter().map(|&row| self.value(column, row));
        let loaded = self.kernel.load_rows(values);
        loaded.map_err(|e| in_row(e, rows))
    }

    /// The same as they are ([`Kernel::load_raw`]).
    pub(crate) fn load_raw(&self, column: usize, rows: &[usize]) -> Result<Column> {
        let values = rows.iter().map(|&row| self.value(column, row));
        let loaded = self.kernel.load_raw(values);
        loaded.map_err(|e| in_row(e, rows))
    }

    /// What `f` gives for the live rows, task by task, as stored ([`Kernel::store_raw`]).
    pub(crate) fn residues(
        &self,
        f: impl Fn(&[usize]) -> Result<Column> + Sync,
    ) -> Result<Vec<u8>> {
        let width = self.kernel.modulus().byte_len();
        let mut out = vec![0; self.live.len() * width];
        self.tasks(&mut out, width, |rows, out| {
            self.kernel.store_raw_into(&f(rows)?, out);
            Ok(())
        })?;
        Ok(out)
    }

    /// What `read` makes of each residue that `f` gives, likewise.
    pub(crate) fn map<T: Clone + Default + Send>(
        &self,
        f: impl Fn(&[usize]) -> Result<Column> + Sync,
        read: impl Fn(&[u8]) -> T + Sync,
    ) -> Result<Vec<T>> {
        let width = self.kernel.modulus().byte_len();
        let mut out = vec![T::default(); self.live.len()];
        self.tasks(&mut out, 1, |rows, out| {
            let bytes = self.kernel.store_raw(&f(rows)?);
            let values = out.iter_mut().zip(bytes.chunks_exact(width));
            values.for_each(|(out, value)| *out = read(value));
            Ok(())
        })?;
        Ok(out)
    }

    /// Splits the live rows and `out`, which has `each` items a row. Reports the first error.
    fn tasks<T: Send>(
        &self,
        out: &mut [T],
        each: usize,
        f: impl Fn(&[usize], &mut [T]) -> Result<()> + Sync,
    ) -> Result<()> {
        let tasks = self.live.par_chunks(TASK_ROWS);
        let tasks = tasks.zip(out.par_chunks_mut(TASK_ROWS * each));
        let done: Vec<Result<()>> = tasks.map(|(rows, out)| f(rows, out)).collect();
        done.into_iter().collect()
    }

    /// The bytes of a column in a live row.
    pub(crate) fn value(&self, column: usize, row: usize) -> &'a [u8] {
        self.columns[column].get(row).unwrap_or_default()
    }

    /// What a column holds in every row.
    pub(crate) fn constant(&self, column: usize, name: &str) -> Result<&'a [u8]> {
        Ok(self.columns[column].constant(name)?.unwrap_or_default())
    }

    /// Whether two columns hold the same values in some rows.
    pub(crate) fn same(&self, a: usize, b: usize, rows: &[usize]) -> bool {
        a == b || {
            let mut rows = rows.iter();
            rows.all(|&row| self.value(a, row) == self.value(b, row))
        }
    }
}

/// An error with the row of the call instead of the row of a task.
fn in_row(error: KernelError, rows: &[usize]) -> Error {
    let error = match error {
        KernelError::NotReduced { row } => KernelError::NotReduced { row: rows[row] },
        KernelError::RowTooLong {
            row,
            got,
            row_bytes,
        } => KernelError::RowTooLong {
            row: rows[row],
            got,
            row_bytes,
        },
        other => other,
    };
    error.into()
}

/// The kernel of a modulus, its constants computed once.
pub(crate) fn kernel(n: &[u8]) -> Result<Kernel> {
    // A poisoned lock only means that another thread died between two whole states.
    let lock = || CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, kernel)) = lock().iter().find(|(of, _)| of == n) {
        return Ok(kernel.clone());
    }
    let modulus = Modulus::from_be_bytes(n).map_err(|e| Error::new(e.to_string()))?;
    let kernel = Kernel::new(modulus);
    let mut cache = lock();
    if cache.len() >= KERNELS {
        cache.remove(0);
    }
    cache.push((n.to_vec(), kernel.clone()));
    Ok(kernel)
}
