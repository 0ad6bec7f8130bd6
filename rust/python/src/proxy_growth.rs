//! What changes of rows take and leave behind at the front door, beside Python: numbers of new
//! rows, how many rows tables have more, and values that are new to columns of few.

use crate::raw::Raw;
use arrow_schema::DataType;
use pyo3::prelude::*;
use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    pub(crate) fn left(&self) -> i64 {
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

    /// All that are left, of which those that are not used are given back: the first one, and how
    /// many.
    pub(crate) fn take_all(&self) -> (i64, i64) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *held)
    }

    /// Those that are left of all.
    pub(crate) fn give_back(&self, first: i64, count: i64) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.1 == 0 && count > 0 {
            *held = (first, count);
        }
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
    /// Of each column; None of one that has many values.
    seen: Mutex<Vec<Option<Seen>>>,
}

/// The marks of a column's values, and those that Python does not know of.
#[derive(Debug, Default)]
struct Seen {
    known: HashSet<String>,
    new: Vec<Mark>,
}

/// The place of a column, and the mark of a value that is new to it (`Raw::mark`).
pub(crate) type Mark = (usize, String);

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

    /// The marks of each column's values; None of one that has many.
    fn know(&self, seen: Vec<Option<HashSet<String>>>) {
        let seen = seen.into_iter().map(|known| {
            known.map(|known| Seen {
                known,
                new: Vec::new(),
            })
        });
        *self.seen() = seen.collect();
    }

    /// How many have come since the last call, and the marks that are new with them.
    fn taken(&self) -> (i64, Vec<Mark>) {
        let mut seen = self.seen();
        let new = seen.iter_mut().flatten();
        let new = new.flat_map(|seen| std::mem::take(&mut seen.new)).collect();
        (self.0.grown.swap(0, Ordering::SeqCst), new)
    }
}

impl Growth {
    /// Whether one more may come behind others that are not counted yet.
    pub(crate) fn has_room(&self, behind: i64) -> bool {
        self.0.room.load(Ordering::SeqCst) > behind
    }

    /// So many have come, with marks of values that are new.
    pub(crate) fn add(&self, count: i64, marks: &[Mark]) {
        self.0.grown.fetch_add(count, Ordering::SeqCst);
        self.0.room.fetch_sub(count, Ordering::SeqCst);
        let mut seen = self.seen();
        for mark in marks {
            let column = seen.get_mut(mark.0).and_then(Option::as_mut);
            if let Some(column) = column.filter(|column| !column.known.contains(&mark.1)) {
                column.known.insert(mark.1.clone());
                column.new.push(mark.clone());
            }
        }
    }

    /// The marks of a row's values that are new to their columns; None where only Python tells.
    pub(crate) fn marks(&self, row: &[Raw], types: &[DataType]) -> Option<Vec<Mark>> {
        let (seen, mut marks) = (self.seen(), Vec::new());
        for (at, (value, type_)) in row.iter().zip(types).enumerate() {
            let column = seen.get(at)?;
            let Some(column) = column.as_ref().filter(|_| *value != Raw::Null) else {
                continue;
            };
            let mark = value.mark(type_)?;
            if !column.known.contains(&mark) {
                marks.push((at, mark));
            }
        }
        Some(marks)
    }

    fn seen(&self) -> MutexGuard<'_, Vec<Option<Seen>>> {
        self.0.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is of the same table.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
