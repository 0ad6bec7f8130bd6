//! A flag by which one thread has long work of others end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Says that work is to end before it is done. Clones are one flag; it is never taken back.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Have the work end.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work is to end. As cheap as reading a number: what is looked at once for some
    /// thousand steps costs nothing that could be measured.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
