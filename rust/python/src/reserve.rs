//! Conditions of a counted fact that a session has recorded ahead in the ledger: how many more
//! there may be, and which are known again.

use pyo3::prelude::*;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// So many are known again at most.
const MOST: usize = 1 << 20;

/// Of all reserves of the process.
static BLOCKS: AtomicU64 = AtomicU64::new(0);
static CONDITIONS: AtomicU64 = AtomicU64::new(0);

/// How many blocks were recorded, and how many conditions were taken from them.
pub(crate) fn counts() -> (u64, u64) {
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    (read(&BLOCKS), read(&CONDITIONS))
}

#[derive(Debug, Default)]
struct State {
    left: u64,
    known: HashSet<u64>,
}

/// Shared by the ledger and by what reads rows without it.
#[pyclass(frozen, module = "louver._rust.proxy")]
#[derive(Debug, Default)]
pub(crate) struct Reserve(Mutex<State>);

#[pymethods]
impl Reserve {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Whether a condition is among those that were taken.
    fn has(&self, condition: &str) -> bool {
        self.state().known.contains(&number(condition))
    }

    /// Takes a condition: whether it is a new one; None where none is left.
    #[pyo3(name = "take")]
    fn take_text(&self, condition: &str) -> Option<bool> {
        self.take(number(condition))
    }

    /// A block was recorded: its first condition, and how many more there are.
    fn begin(&self, condition: &str, more: u64) {
        let mut state = self.state();
        remember(&mut state, number(condition));
        state.left = more;
        BLOCKS.fetch_add(1, Ordering::Relaxed);
    }

    /// A block of so many conditions was recorded, of which none is known yet.
    fn extend(&self, more: u64) {
        self.state().left += more;
        BLOCKS.fetch_add(1, Ordering::Relaxed);
    }
}

impl Reserve {
    /// Whether none is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.state().left == 0
    }

    /// Takes a condition: whether it was not taken before; None where none is left.
    pub(crate) fn take(&self, condition: u64) -> Option<bool> {
        let mut state = self.state();
        if state.known.contains(&condition) {
            return Some(false);
        }
        if state.left == 0 {
            return None;
        }
        state.left -= 1;
        CONDITIONS.fetch_add(1, Ordering::Relaxed);
        remember(&mut state, condition);
        Some(true)
    }

    /// Takes a condition that comes once.
    pub(crate) fn take_new(&self) -> bool {
        let mut state = self.state();
        let left = state.left.checked_sub(1);
        state.left = left.unwrap_or(0);
        CONDITIONS.fetch_add(u64::from(left.is_some()), Ordering::Relaxed);
        left.is_some()
    }

    /// A condition that was taken did not come about.
    pub(crate) fn give_back(&self) {
        self.state().left += 1;
        CONDITIONS.fetch_sub(1, Ordering::Relaxed);
    }

    /// A condition is known again, which the ledger has.
    pub(crate) fn knows(&self, condition: u64) {
        remember(&mut self.state(), condition);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn remember(state: &mut State, condition: u64) {
    if state.known.len() < MOST {
        state.known.insert(condition);
    }
}

/// A condition's number: of equal conditions the same, in one process.
pub(crate) fn number(condition: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    condition.hash(&mut hasher);
    hasher.finish()
}
