//! What statements show that run without Python: the columns that they open, and the conditions
//! that they take from reserves of the ledger.

use crate::proxy_values::{leak, GivenLeak};
use crate::reserve::Reserve;
use louver_proxy::{Disclosed, Leak};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) type GivenReserve = (Py<Reserve>, GivenLeak);

/// A reserve, what a condition of it leaks, and how many new ones were taken for one statement.
pub(crate) struct Counted {
    reserve: Py<Reserve>,
    leak: Leak,
    count: AtomicU64,
}

impl Counted {
    pub(crate) fn all(given: Vec<GivenReserve>) -> Vec<Self> {
        let own = |(reserve, given)| Self {
            reserve,
            leak: leak(given),
            count: AtomicU64::new(0),
        };
        given.into_iter().map(own).collect()
    }

    /// Takes a condition, if one is left.
    fn take(&self, condition: u64) -> bool {
        let taken = self.reserve.get().take(condition);
        self.add(taken == Some(true));
        taken.is_some()
    }

    /// Takes one that comes once.
    pub(crate) fn take_new(&self) -> bool {
        let taken = self.reserve.get().take_new();
        self.add(taken);
        taken
    }

    /// The one that was taken last did not come about.
    pub(crate) fn give_back(&self) {
        self.reserve.get().give_back();
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    fn add(&self, is_new: bool) {
        self.count.fetch_add(u64::from(is_new), Ordering::Relaxed);
    }

    /// How many new ones were taken since this was last called.
    pub(crate) fn taken(&self) -> u64 {
        self.count.swap(0, Ordering::Relaxed)
    }
}

/// What a way cannot go on without.
#[derive(Default)]
pub(crate) struct Lacking<'a> {
    empty: Vec<&'a Py<Reserve>>,
    /// Whether numbers of new rows are used up.
    pub(crate) numbers: bool,
    /// The sequences of which no numbers are left.
    pub(crate) sequences: Vec<u64>,
}

impl<'a> Lacking<'a> {
    /// Of these reserves.
    pub(crate) fn of(
        counted: impl Iterator<Item = &'a Counted>,
        numbers: bool,
        sequences: Vec<u64>,
    ) -> Self {
        let reserves = counted.map(|counted| &counted.reserve);
        Self {
            empty: reserves
                .filter(|reserve| reserve.get().is_empty())
                .collect(),
            numbers,
            sequences,
        }
    }

    pub(crate) fn is_any(&self) -> bool {
        self.numbers || !self.sequences.is_empty() || !self.empty.is_empty()
    }

    pub(crate) fn reserves(&self, py: Python<'_>) -> Vec<Py<Reserve>> {
        self.empty
            .iter()
            .map(|reserve| reserve.clone_ref(py))
            .collect()
    }
}

/// The encrypted columns that a statement opens, and whether it has.
pub(crate) struct Opens {
    names: Vec<String>,
    opened: AtomicBool,
}

impl Opens {
    pub(crate) fn new(names: Vec<String>) -> Self {
        Self {
            names,
            opened: AtomicBool::new(false),
        }
    }

    /// It has.
    pub(crate) fn opened(&self) {
        self.opened.store(true, Ordering::Relaxed);
    }

    /// Whether it has since this was last called.
    pub(crate) fn taken(&self) -> bool {
        self.opened.swap(false, Ordering::Relaxed)
    }

    /// What was opened, and what these have leaked, since this was last called.
    pub(crate) fn disclosed<'a>(&self, reserves: impl Iterator<Item = &'a Counted>) -> Disclosed {
        let mut results = Disclosed::default();
        if self.taken() {
            results.opened.clone_from(&self.names);
        }
        for reserve in reserves {
            let count = reserve.taken();
            if count > 0 {
                let mut leak = reserve.leak.clone();
                leak.count *= count;
                results.leak(leak);
            }
        }
        results
    }
}

/// A condition that no reserve had anything left for. Where Python then records what the same
/// statement shows, it is known from there on: else one that is asked for all the time, which the
/// ledger knows and so records no further ones of, would never be taken.
#[derive(Debug, Default)]
pub(crate) struct Unrecorded(Mutex<Option<u64>>);

impl Unrecorded {
    /// Whether a condition is taken from all of these.
    pub(crate) fn take(&self, condition: u64, reserves: &[Counted]) -> bool {
        let taken = reserves.iter().all(|reserve| reserve.take(condition));
        *self.held() = (!taken).then_some(condition);
        taken
    }

    /// Another statement begins.
    pub(crate) fn clear(&self) {
        *self.held() = None;
    }

    /// Python has run the statement of the last `take`.
    pub(crate) fn recorded(&self, reserves: &[Counted]) {
        if let Some(condition) = self.held().take() {
            for counted in reserves {
                counted.reserve.get().knows(condition);
            }
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
