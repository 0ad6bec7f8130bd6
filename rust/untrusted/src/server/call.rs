//! What all functions share: the modulus's cache, and rows without NULL.

use crate::columns::Blobs;
use crate::error::{Error, Result};
use arrow_array::Array;
use louver_primitives::{Column, Kernel, Modulus};
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
        let whole = |&row: &usize| {
            modulus.get(row).is_some() && columns.iter().all(|c| c.get(row).is_some())
        };
        let live: Vec<usize> = (0..rows).filter(whole).collect();
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

    /// A column's residues in the live rows.
    pub(crate) fn load(&self, column: usize) -> Result<Column> {
        let values = self.live.iter().map(|&row| self.value(column, row));
        Ok(self.kernel.load_rows(values)?)
    }

    /// The bytes of a column in a live row.
    pub(crate) fn value(&self, column: usize, row: usize) -> &'a [u8] {
        self.columns[column].get(row).unwrap_or_default()
    }

    /// What a column holds in every row.
    pub(crate) fn constant(&self, column: usize, name: &str) -> Result<&'a [u8]> {
        Ok(self.columns[column].constant(name)?.unwrap_or_default())
    }

    /// Whether two columns hold the same values.
    pub(crate) fn same(&self, a: usize, b: usize) -> bool {
        let mut rows = self.live.iter();
        rows.all(|&row| self.value(a, row) == self.value(b, row))
    }
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
