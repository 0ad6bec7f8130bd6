//! Conditions of a counted fact that a session has recorded ahead in the ledger: how many more
//! there may be, and which are known again.

use pyo3::prelude::*;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// So many are known again at most.
const MOST: usize = 1 << 20;

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

    /// Takes a condition, if one is left.
    #[pyo3(name = "take")]
    fn take_text(&self, condition: &str) -> bool {
        self.take(number(condition))
    }

    /// A block was recorded: its first condition, and how many more there are.
    fn begin(&self, condition: &str, more: u64) {
        let mut state = self.state();
        remember(&mut state, number(condition));
        state.left = more;
    }
}

impl Reserve {
    /// Whether a condition was taken before, or is now.
    pub(crate) fn take(&self, condition: u64) -> bool {
        let mut state = self.state();
        if state.known.contains(&condition) {
            return true;
        }
        if state.left == 0 {
            return false;
        }
        state.left -= 1;
        remember(&mut state, condition);
        true
    }

    /// Takes a condition that comes once.
    pub(crate) fn take_new(&self) -> bool {
        let mut state = self.state();
        let left = state.left.checked_sub(1);
        state.left = left.unwrap_or(0);
        left.is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A condition that no reserve had anything left for. Where Python then records what the same
/// statement shows, it is known from there on: else one that is asked for all the time, which the
/// ledger knows and so records no further ones of, would never be taken.
#[derive(Debug, Default)]
pub(crate) struct Unrecorded(Mutex<Option<u64>>);

impl Unrecorded {
    /// Whether a condition is taken from all of these.
    pub(crate) fn take(&self, condition: u64, reserves: &[Py<Reserve>]) -> bool {
        let taken = reserves.iter().all(|r| r.get().take(condition));
        *self.held() = (!taken).then_some(condition);
        taken
    }

    /// Another statement begins.
    pub(crate) fn clear(&self) {
        *self.held() = None;
    }

    /// Python has run the statement of the last `take`.
    pub(crate) fn recorded(&self, reserves: &[Py<Reserve>]) {
        if let Some(condition) = self.held().take() {
            for reserve in reserves {
                remember(&mut reserve.get().state(), condition);
            }
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<u64>> {
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
