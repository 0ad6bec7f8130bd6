//! What a share is evaluated at, and where its values go.

/// Most points that a [`Sink`] takes at a time.
pub const CHUNK: usize = 1024;

/// The points of an evaluation. Ranges of them are ranges of indices.
#[derive(Clone, Copy, Debug)]
pub enum Points<'a> {
    /// Distinct, in rising order: shared prefixes are walked once.
    Sorted(&'a [u64]),
    /// In any order, repeated or not: each is walked by itself.
    Loose(&'a [u64]),
    /// The points from zero up to this number, without it; up to the whole domain.
    All(u64),
}

impl Points<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Sorted(points) | Self::Loose(points) => points.len(),
            Self::All(count) => *count as usize,
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Takes what a share is worth at the points, in order.
pub trait Sink {
    /// Shares at the points `first..first + values.len()`, at most [`CHUNK`] of them. `bits` are
    /// the control bits' shares (0 or 1; empty for comparisons), `values` the values' shares: in
    /// GF(2^128), modulo 2^128, or two words modulo 2^64.
    fn take(&mut self, first: usize, bits: &[u8], values: &[u128]);
}

impl<F: FnMut(usize, &[u8], &[u128])> Sink for F {
    fn take(&mut self, first: usize, bits: &[u8], values: &[u128]) {
        self(first, bits, values);
    }
}
