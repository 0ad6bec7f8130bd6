//! What changes of rows take and leave behind at the front door, beside Python: numbers of new
//! rows, and how many rows tables have more.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Numbers of rows that were given out and are not used yet, of one client.
#[pyclass(frozen, module = "louver._rust.proxy")]
#[derive(Debug, Default)]
pub(crate) struct RowNumbers(Mutex<(i64, i64)>);

#[pymethods]
impl RowNumbers {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// So many numbers from the first one on; those before are not used.
    fn begin(&self, first: i64, count: i64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (first, count);
    }

    /// How many are left.
    fn left(&self) -> i64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1
    }
}

impl RowNumbers {
    pub(crate) fn is_empty(&self) -> bool {
        self.left() == 0
    }

    pub(crate) fn take(&self) -> Option<i64> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (held.1 > 0).then_some(())?;
        let number = held.0;
        *held = (number + 1, held.1 - 1);
        Some(number)
    }
}

/// How many rows of a table one client has added or removed since Python last asked, and how many
/// more may come before the catalog must know.
#[pyclass(frozen, module = "louver._rust.proxy")]
#[derive(Clone, Debug, Default)]
pub(crate) struct Growth(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    grown: AtomicI64,
    room: AtomicI64,
}

#[pymethods]
impl Growth {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// So many more may come.
    fn begin(&self, room: i64) {
        self.0.room.store(room, Ordering::SeqCst);
    }

    /// How many have come since the last call.
    fn taken(&self) -> i64 {
        self.0.grown.swap(0, Ordering::SeqCst)
    }
}

impl Growth {
    /// Whether one more may come behind others that are not counted yet.
    pub(crate) fn has_room(&self, behind: i64) -> bool {
        self.0.room.load(Ordering::SeqCst) > behind
    }

    pub(crate) fn add(&self, count: i64) {
        self.0.grown.fetch_add(count, Ordering::SeqCst);
        self.0.room.fetch_sub(count, Ordering::SeqCst);
    }

    /// Whether it is of the same table.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
