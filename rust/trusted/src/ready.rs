//! Ciphers that stay ready. Operations on few values would otherwise spend most of their time on
//! deriving keys and on key schedules.

use crate::codes::{Column, Domain, Function, Inner, Onion, Tree};
use crate::epochs::EpochBits;
use crate::gcm::Gcm;
use crate::sums::Masks;
use crate::text::{Filters, Trapdoors};
use louver_primitives::onion::Layer;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock};
use zeroize::ZeroizeOnDrop;

/// Table, column, generation.
type Id = (u32, u32, u32);

/// Entries of a [`Ready`]: more than the columns that a program uses at a time.
pub(crate) const MOST: usize = 512;

/// What a key ring has derived, by what it is for. Dropped with the key ring.
#[derive(Default)]
pub(crate) struct Ciphers {
    /// Of sealed values.
    pub(crate) sealed: Ready<Id, Gcm>,
    /// Of tiles.
    pub(crate) tiles: Ready<Id, Gcm>,
    /// Of equality codes.
    pub(crate) eq: Ready<Id, Column>,
    /// Of equality codes of groups.
    pub(crate) joins: Ready<(String, Domain), Inner>,
    /// Of order codes.
    pub(crate) orders: Ready<Function, Tree>,
    /// Of the layers over codes, by epoch.
    pub(crate) layers: Ready<(Id, Onion, Option<EpochBits>), Layer>,
    /// Of masked numbers, by epoch.
    pub(crate) masks: Ready<(Id, Option<EpochBits>), Masks>,
    /// Of tokens of texts.
    pub(crate) trapdoors: Ready<Id, Trapdoors>,
    /// Of filters, by epoch.
    pub(crate) filters: Ready<(Id, Option<EpochBits>), Filters>,
}

/// At most [`MOST`] values, each overwritten in memory when it is dropped: when one more is needed,
/// all are dropped. (Who still uses one keeps it until then.)
pub(crate) struct Ready<K, V: ZeroizeOnDrop>(RwLock<HashMap<K, Arc<V>>>);

impl<K, V: ZeroizeOnDrop> Default for Ready<K, V> {
    fn default() -> Self {
        Self(RwLock::new(HashMap::new()))
    }
}

impl<K: Eq + Hash, V: ZeroizeOnDrop> Ready<K, V> {
    /// What belongs to a key; `make` derives it if it is not there.
    pub(crate) fn get(&self, key: K, make: impl FnOnce() -> V) -> Arc<V> {
        let live = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = live.get(&key) {
            return Arc::clone(value);
        }
        drop(live);
        let value = Arc::new(make());
        let mut live = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if live.len() >= MOST {
            live.clear();
        }
        Arc::clone(live.entry(key).or_insert(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts how many are alive.
    struct Counted<'a>(&'a AtomicUsize, usize);

    impl<'a> Counted<'a> {
        fn new(alive: &'a AtomicUsize, number: usize) -> Self {
            alive.fetch_add(1, Ordering::Relaxed);
            Self(alive, number)
        }
    }

    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    impl ZeroizeOnDrop for Counted<'_> {}

    #[test]
    fn a_value_is_derived_once_and_dropped_when_there_are_too_many() {
        let alive = AtomicUsize::new(0);
        let ready = Ready::default();
        for number in 0..3 * MOST + 7 {
            let value = ready.get(number, || Counted::new(&alive, number));
            assert_eq!(value.1, number);
            let again = ready.get(number, || unreachable!("it is there"));
            assert!(Arc::ptr_eq(&value, &again));
            assert!(alive.load(Ordering::Relaxed) <= MOST);
        }
        assert_eq!(alive.load(Ordering::Relaxed), 7);
        drop(ready);
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_is_in_use_stays_until_its_user_is_done() {
        let alive = AtomicUsize::new(0);
        let ready = Ready::default();
        let used = ready.get(0, || Counted::new(&alive, 0));
        for number in 1..=MOST {
            ready.get(number, || Counted::new(&alive, number));
        }
        assert_eq!((used.1, alive.load(Ordering::Relaxed)), (0, 2));
        drop(used);
        assert_eq!(alive.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn threads_get_one_value() {
        let (alive, ready) = (AtomicUsize::new(0), Ready::default());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for number in 0..2 * MOST {
                        let value = ready.get(number, || Counted::new(&alive, number));
                        assert_eq!(value.1, number);
                    }
                });
            }
        });
        assert!(alive.load(Ordering::Relaxed) <= MOST);
    }
}
