//! Exponentiation by public exponents: right to left, odd windows, shared squarings.
//!
//! For each exponent, a window whose lowest (set) bit is bit `i` and whose value is the odd `d`
//! multiplies the bucket of `d` by `base^(2^i)`. The chain of squarings that produces
//! `base^(2^i)` does not depend on the exponent, so any number of exponents share it. At the end
//! the buckets are combined as the product of `bucket_d ^ d` with running products.

use crate::column::Line;
use crate::engine::Engine;

/// `base^(2^position)` goes into a bucket.
struct Step {
    position: usize,
    bucket: usize,
}

/// The products that a list of exponents takes, the same for every row.
pub(crate) struct Plan {
    steps: Vec<Step>,
    exponents: usize,
    /// Buckets of one exponent; bucket `k` is for the window value `2 k + 1`.
    buckets: usize,
}

/// Big-endian bytes seen as bits from the least significant one.
struct Bits<'a>(&'a [u8]);

impl Bits<'_> {
    fn len(&self) -> usize {
        match self.0.iter().position(|&b| b != 0) {
            Some(i) => (self.0.len() - i) * 8 - self.0[i].leading_zeros() as usize,
            None => 0,
        }
    }

    fn get(&self, i: usize) -> usize {
        let from_end = i / 8 + 1;
        if from_end > self.0.len() {
            return 0;
        }
        usize::from(self.0[self.0.len() - from_end] >> (i % 8) & 1)
    }
}

/// The window width with the fewest products for exponents of `bits` bits: about
/// `bits / (width + 1)` products into buckets, and one more for each bucket.
fn window(bits: usize) -> usize {
    let cost = |w: &usize| bits / (w + 1) + (1 << (w - 1));
    (1..=7).min_by_key(cost).unwrap_or(1)
}

impl Plan {
    /// Plans big-endian exponents of any length, zero included.
    pub(crate) fn new(exponents: &[&[u8]]) -> Self {
        let most = exponents.iter().map(|e| Bits(e).len()).max().unwrap_or(0);
        let width = window(most);
        let buckets = 1 << (width - 1);
        let mut steps = Vec::new();
        for (which, exponent) in exponents.iter().enumerate() {
            let bits = Bits(exponent);
            let (len, mut i) = (bits.len(), 0);
            while i < len {
                if bits.get(i) == 0 {
                    i += 1;
                    continue;
                }
                let odd = (1..width).fold(0, |d, j| d | bits.get(i + j) << (j - 1));
                steps.push(Step {
                    position: i,
                    bucket: which * buckets + odd,
                });
                i += width;
            }
        }
        steps.sort_by_key(|s| s.position);
        Self {
            steps,
            exponents: exponents.len(),
            buckets,
        }
    }

    /// Raises one block to every exponent: `out` takes one block an exponent, in order.
    pub(crate) fn run(
        &self,
        engine: &dyn Engine,
        base: &[Line],
        unit: &[Line],
        out: &mut [Line],
        live: usize,
    ) {
        let width = engine.width();
        let mut power = base.to_vec();
        let mut store = vec![Line::default(); self.exponents * self.buckets * width];
        let mut filled = vec![false; self.exponents * self.buckets];
        let mut position = 0;
        for step in &self.steps {
            while position < step.position {
                engine.sqr_assign(&mut power, live);
                position += 1;
            }
            let bucket = &mut store[step.bucket * width..][..width];
            multiply_into(engine, bucket, &mut filled[step.bucket], &power, live);
        }
        let buckets = store.chunks_exact(width * self.buckets);
        let filled = filled.chunks_exact(self.buckets);
        for ((out, buckets), filled) in out.chunks_exact_mut(width).zip(buckets).zip(filled) {
            combine(engine, buckets, filled, unit, out, live);
        }
    }
}

/// `x *= by`, where `x` counts as one until it is filled.
fn multiply_into(engine: &dyn Engine, x: &mut [Line], filled: &mut bool, by: &[Line], live: usize) {
    if *filled {
        engine.mul_assign(x, by, live);
    } else {
        x.copy_from_slice(by);
        *filled = true;
    }
}

/// `out` = product of `bucket_k ^ (2 k + 1)`: the square of the product of all suffix products
/// down to bucket 1, times the product of all buckets.
fn combine(
    engine: &dyn Engine,
    buckets: &[Line],
    filled: &[bool],
    unit: &[Line],
    out: &mut [Line],
    live: usize,
) {
    let width = engine.width();
    let mut suffix = vec![Line::default(); width];
    let (mut has_suffix, mut has_out) = (false, false);
    for (k, bucket) in buckets.chunks_exact(width).enumerate().rev() {
        if filled[k] {
            multiply_into(engine, &mut suffix, &mut has_suffix, bucket, live);
        }
        if k > 0 && has_suffix {
            multiply_into(engine, out, &mut has_out, &suffix, live);
        }
    }
    if has_out {
        engine.sqr_assign(out, live);
    }
    if has_suffix {
        multiply_into(engine, out, &mut has_out, &suffix, live);
    }
    if !has_out {
        out.copy_from_slice(unit);
    }
}
