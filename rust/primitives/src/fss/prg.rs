//! The tree's generator: fixed-key AES-128 in Matyas-Meyer-Oseas form, F_k(s) = AES_k(s) xor s.
//!
//! A *state* is 128 bits: a seed whose lowest bit is zero, and the control bit in its position. The
//! seed is what remains when the control bit is cleared; it is cleared before anything else is
//! made of the block. One AES call gives one child, or one block of the value.

use super::portable::Portable;
use super::schedule::VALUE_KEYS;
#[cfg(target_arch = "x86_64")]
use super::wide::Wide;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

/// What computes the generator. All give the same results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The `aes` crate: what the processor has (AES-NI, ARMv8), or constant-time software.
    Portable,
    /// AVX-512 with VAES.
    Wide,
}

/// What a corrected value is, of those that are not numbers modulo 2^128.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packed {
    /// Two words modulo 2^64.
    Words,
    /// The same, each negatively.
    NegativeWords,
    /// Bits, which are added by XOR.
    Bits,
}

impl Packed {
    /// A value with its correction, or with zero.
    pub(super) fn corrected(self, value: u128, correction: u128) -> u128 {
        let words = |block: u128| [block as u64, (block >> 64) as u64];
        let block = |[low, high]: [u64; 2]| u128::from(low) | u128::from(high) << 64;
        let [value_words, correction_words] = [words(value), words(correction)];
        let sum = [0, 1].map(|at| value_words[at].wrapping_add(correction_words[at]));
        match self {
            Self::Words => block(sum),
            Self::NegativeWords => block(sum.map(u64::wrapping_neg)),
            Self::Bits => value ^ correction,
        }
    }
}

/// The generator, by one backend.
pub struct Prg {
    portable: Portable,
    #[cfg(target_arch = "x86_64")]
    wide: Option<Wide>,
    counter: Option<AtomicUsize>,
}

/// Does what the wide form does if there is one, else what the portable form does.
macro_rules! either {
    ($prg:ident.$name:ident($($argument:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        if let Some(wide) = &$prg.wide {
            return wide.$name($($argument),*);
        }
        $prg.portable.$name($($argument),*)
    }};
}

impl Prg {
    /// The fastest that this processor has.
    pub fn best() -> &'static Self {
        Self::with(Backend::Wide)
            .or_else(|| Self::with(Backend::Portable))
            .expect("it runs everywhere")
    }

    /// One of a backend, if this processor has it.
    pub fn with(backend: Backend) -> Option<&'static Self> {
        static PORTABLE: OnceLock<Option<Prg>> = OnceLock::new();
        static WIDE: OnceLock<Option<Prg>> = OnceLock::new();
        let engine = match backend {
            Backend::Portable => &PORTABLE,
            Backend::Wide => &WIDE,
        };
        engine.get_or_init(|| Self::new(backend, None)).as_ref()
    }

    /// One that counts its AES calls, for tests; it is never freed.
    pub fn counting(backend: Backend) -> Option<&'static Self> {
        let prg = Self::new(backend, Some(AtomicUsize::new(0)))?;
        Some(Box::leak(Box::new(prg)))
    }

    /// AES calls of one that counts them, since the last call.
    pub fn counted(&self) -> usize {
        let counter = self.counter.as_ref();
        counter.map_or(0, |counter| counter.swap(0, Ordering::Relaxed))
    }

    fn new(backend: Backend, counter: Option<AtomicUsize>) -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        let wide = match backend {
            Backend::Portable => None,
            Backend::Wide => Some(Wide::new()?),
        };
        #[cfg(not(target_arch = "x86_64"))]
        if backend == Backend::Wide {
            return None;
        }
        Some(Self {
            portable: Portable::new(),
            #[cfg(target_arch = "x86_64")]
            wide,
            counter,
        })
    }

    fn count(&self, calls: usize) {
        if let Some(counter) = &self.counter {
            counter.fetch_add(calls, Ordering::Relaxed);
        }
    }

    /// Both children's blocks of one seed (its lowest bit zero), before any correction.
    pub fn children(&self, seed: u128) -> [u128; 2] {
        debug_assert_eq!(seed & 1, 0, "the control bit is cleared");
        self.count(2);
        self.portable.children(seed)
    }

    /// Block `at` of a seed's value, before any correction. `at` below 8.
    pub fn value(&self, seed: u128, at: usize) -> u128 {
        debug_assert!(seed & 1 == 0 && at < VALUE_KEYS);
        self.count(1);
        self.portable.value(seed, at)
    }

    /// Walks down some levels: on the first, state `i` goes to its right child where bit `shift`
    /// of `points[i]` is set, and to its left one else; on the next, by the bit below.
    /// `levels[..][side]` is a level's correction of that side.
    ///
    /// # Panics
    /// Lengths that differ, or more levels than bits.
    pub fn descend(&self, states: &mut [u128], points: &[u64], shift: u32, levels: &[[u128; 2]]) {
        assert_eq!(states.len(), points.len());
        assert!(shift < 64 && levels.len() <= shift as usize + 1);
        self.count(states.len() * levels.len());
        either!(self.descend(states, points, shift, levels))
    }

    /// One level of those nodes only that a list of points needs. A byte of `links` describes four
    /// children: its low half which of them have another parent than the child before, its high
    /// half which are right children. `parents` has one slot before the first parent that is
    /// not used, and four behind the last.
    ///
    /// # Panics
    /// Fewer parents than the links describe, or another number of children.
    pub fn link(&self, parents: &[u128], links: &[u8], level: &[u128; 2], out: &mut [u128]) {
        assert_eq!(links.len(), out.len().div_ceil(4));
        self.count(out.len());
        either!(self.link(parents, links, level, out))
    }

    /// Both children of every parent, left before right.
    ///
    /// # Panics
    /// `out` is not twice as long.
    pub fn expand(&self, parents: &[u128], level: &[u128; 2], out: &mut [u128]) {
        assert_eq!(2 * parents.len(), out.len());
        self.count(out.len());
        either!(self.expand(parents, level, out))
    }

    /// Walks down a comparison: a path that goes left at a level adds that node's value to its sum,
    /// corrected by the second part of `walk`; the first part corrects the children. The domain's
    /// last level has no children.
    ///
    /// # Panics
    /// Lengths that differ, or more levels than bits.
    pub fn descend_sums(
        &self,
        sums: &mut [u128],
        states: &mut [u128],
        points: &[u64],
        shift: u32,
        walk: (&[[u128; 2]], &[u128]),
    ) {
        assert!(states.len() == points.len() && states.len() == sums.len());
        assert!(shift < 64 && walk.1.len() <= shift as usize + 1);
        let children = walk.0.len().min(walk.1.len());
        self.count(states.len() * (children + walk.1.len()));
        either!(self.descend_sums(sums, states, points, shift, walk))
    }

    /// Parts states into control bits, and seeds to which `last` is added (XOR) where those are
    /// set.
    ///
    /// # Panics
    /// Lengths that differ.
    pub fn finish(&self, states: &mut [u128], last: u128, bits: &mut [u8]) {
        assert_eq!(states.len(), bits.len());
        either!(self.finish(states, last, bits))
    }

    /// Adds the value of each state (its block 0), corrected, to its sum modulo 2^128.
    ///
    /// # Panics
    /// Lengths that differ.
    pub fn add_values(&self, sums: &mut [u128], states: &[u128], correction: u128) {
        assert_eq!(states.len(), sums.len());
        self.count(states.len());
        either!(self.add_values(sums, states, correction))
    }

    /// The least difference (XOR) of two neighbours; all ones of fewer than two points.
    pub fn closest(&self, points: &[u64]) -> u64 {
        either!(self.closest(points))
    }

    /// One level up: puts the parents of the first `count` nodes of a rising list in their place,
    /// and says how the nodes hang on them (see [`Prg::link`]). Gives the number of parents.
    ///
    /// # Panics
    /// Eight places behind the nodes are missing, or links for them, or there is no node.
    pub fn fold(&self, list: &mut [u64], count: usize, links: &mut [u8]) -> usize {
        assert!(count > 0 && count + 8 <= list.len() && count.div_ceil(4) <= links.len());
        either!(self.fold(list, count, links))
    }

    /// Block `at` of the value of each state's seed, with the correction where the control bit is
    /// set.
    ///
    /// # Panics
    /// Lengths that differ, or `at` above 7.
    pub fn packed(
        &self,
        states: &[u128],
        at: usize,
        correction: u128,
        kind: Packed,
        out: &mut [u128],
    ) {
        assert_eq!(states.len(), out.len());
        self.count(states.len());
        either!(self.packed(states, at, correction, kind, out))
    }

    /// Block `at` of the value of each state's seed, before any correction.
    ///
    /// # Panics
    /// Lengths that differ, or `at` above 7.
    pub fn values(&self, states: &[u128], at: usize, out: &mut [u128]) {
        assert_eq!(states.len(), out.len());
        self.count(states.len());
        either!(self.values(states, at, out))
    }
}
