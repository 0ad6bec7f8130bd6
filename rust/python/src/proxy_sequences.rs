//! Numbers of sequences that a session has claimed, which changes at the front door draw without
//! Python: each is given out once, by whoever of the two draws it.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Fewer numbers than these are few, and a quarter of a block.
const FEW: u64 = 8;
static SEQUENCES: AtomicU64 = AtomicU64::new(1);
static DRAWS: AtomicU64 = AtomicU64::new(1);

/// What one session may draw of one sequence.
#[pyclass(frozen, module = "louver._rust.proxy")]
#[derive(Clone, Debug)]
pub(crate) struct SequenceNumbers {
    id: u64,
    block: Arc<Mutex<Block>>,
}

/// Numbers that are left, and the last one that was drawn since Python last took over, behind the
/// number of that draw among all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Block {
    next: i64,
    step: i64,
    left: u64,
    count: u64,
    last: Option<(u64, i64)>,
}

#[pymethods]
impl SequenceNumbers {
    #[new]
    fn new() -> Self {
        Self {
            id: SEQUENCES.fetch_add(1, Ordering::Relaxed),
            block: Arc::default(),
        }
    }

    /// Tells sequences apart.
    #[getter]
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// So many numbers from the next one on, each a step behind the one before.
    fn begin(&self, next: i64, step: i64, count: u64) {
        let mut block = self.held();
        let last = block.last;
        *block = Block {
            next,
            step,
            left: count,
            count,
            last,
        };
    }

    /// The last number that was drawn, behind the number of its draw; Python draws from here on.
    /// None where nothing was drawn since the last call.
    fn taken(&self) -> Option<(u64, i64)> {
        let mut block = self.held();
        block.left = 0;
        block.last.take()
    }

    /// The last number that was drawn since Python last took over.
    fn last(&self) -> Option<i64> {
        self.held().last.map(|(_, number)| number)
    }
}

impl SequenceNumbers {
    /// Whether no number is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.held().left == 0
    }

    /// Whether few numbers are left of those that there were.
    pub(crate) fn is_low(&self) -> bool {
        let block = self.held();
        block.left < FEW.max(block.count / 4)
    }

    /// The next number.
    pub(crate) fn draw(&self) -> Option<i64> {
        let mut block = self.held();
        block.left = block.left.checked_sub(1)?;
        let number = block.next;
        block.next = number.wrapping_add(block.step);
        block.last = Some((DRAWS.fetch_add(1, Ordering::Relaxed), number));
        Some(number)
    }

    /// Where it stands.
    pub(crate) fn mark(&self) -> Block {
        *self.held()
    }

    /// What was drawn since then was seen by no one.
    pub(crate) fn restore(&self, mark: Block) {
        *self.held() = mark;
    }

    /// Python is to draw what was drawn since then, and all behind that.
    pub(crate) fn return_to(&self, mark: Block) {
        let mut block = self.held();
        block.last = mark.last;
        block.left = 0;
    }

    fn held(&self) -> MutexGuard<'_, Block> {
        self.block.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
