//! The tree's generator: fixed-key AES-128 in Matyas-Meyer-Oseas form, F_k(s) = AES_k(s) xor s.
//!
//! A *state* is 128 bits: a seed whose lowest bit is zero, and the control bit in that place. The
//! seed is what remains when the control bit is cleared; it is cleared before anything else is
//! made of the block. One AES call gives one child, or one block of the value.

use super::portable::Portable;
use super::schedule::VALUE_KEYS;
use std::sync::OnceLock;

/// What computes the generator. All give the same results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The `aes` crate: what the processor has, or constant-time software.
    Portable,
}

/// The generator, by one backend.
pub struct Prg(Kind);

enum Kind {
    Portable(Portable),
}

impl Prg {
    /// The fastest that this processor has.
    pub fn best() -> &'static Self {
        static BEST: OnceLock<&'static Prg> = OnceLock::new();
        BEST.get_or_init(|| Self::with(Backend::Portable).expect("it runs everywhere"))
    }

    /// One of a backend, if this processor has it.
    pub fn with(backend: Backend) -> Option<&'static Self> {
        static PORTABLE: OnceLock<Prg> = OnceLock::new();
        match backend {
            Backend::Portable => {
                Some(PORTABLE.get_or_init(|| Self(Kind::Portable(Portable::new()))))
            }
        }
    }

    /// Both children's blocks of one seed (its lowest bit zero), before any correction.
    pub fn children(&self, seed: u128) -> [u128; 2] {
        debug_assert_eq!(seed & 1, 0, "the control bit is cleared");
        let Kind::Portable(portable) = &self.0;
        portable.children(seed)
    }

    /// Block `at` of a seed's value, before any correction. `at` below 8.
    pub fn value(&self, seed: u128, at: usize) -> u128 {
        debug_assert!(seed & 1 == 0 && at < VALUE_KEYS);
        let Kind::Portable(portable) = &self.0;
        portable.value(seed, at)
    }

    /// Walks one level down: state `i` goes to its right child where bit `shift` of `points[i]`
    /// is set, and to its left one else. `levels[side]` is the level's correction of that side.
    pub fn descend(&self, states: &mut [u128], points: &[u64], shift: u32, level: &[u128; 2]) {
        assert_eq!(states.len(), points.len());
        let Kind::Portable(portable) = &self.0;
        portable.descend(states, points, shift, level);
    }

    /// Block `at` of the value of each state's seed, before any correction.
    pub fn values(&self, states: &[u128], at: usize, out: &mut [u128]) {
        assert_eq!(states.len(), out.len());
        let Kind::Portable(portable) = &self.0;
        portable.values(states, at, out);
    }
}
