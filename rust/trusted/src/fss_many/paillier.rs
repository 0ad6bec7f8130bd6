//! Intervals for any number of parties with additive shares.

use super::modulus::{PaillierModulus, Wanted};
use crate::error::{Error, Result};
use crate::keys::{random, RootSecret};
use crate::sdb::primes;
use crate::sdb::secret::Secret;
use louver_primitives::fss::ShareError;
use louver_primitives::fss_many::{
    join_replies, read_reply, sums_of_ciphertext, uniform_rows, PaillierLayout, PaillierShare,
    Rows, LAST_ROW_BYTES, PAILLIER_MAX_PARTIES, PART_BYTES, ROW_BYTES, ROW_KEY, SUM_BITS,
};
use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_traits::{One, Signed, Zero};
use std::fmt;
use std::sync::Arc;
use zeroize::{Zeroize, Zeroizing};

/// Bits of the factor that makes answers checkable: half a modulus of the least size.
const ALPHA_BITS: u32 = 128;
/// Words of the seeds σ and τ, and of a row's numbers.
const SEED_WORDS: usize = 4;
const WORDS: usize = 8;

/// One interval: what of the rows with keys in it is added. Any number of providers but one may
/// put their heads together.
pub struct PaillierSum {
    modulus: Arc<PaillierModulus>,
    alpha: Secret,
    shares: Vec<Vec<u8>>,
}

/// What is shared, and what is random of it.
struct Function {
    layout: PaillierLayout,
    /// Row and column of either end, and whether anything is wanted.
    low: (usize, usize),
    high: (usize, usize),
    wanted: u64,
    seeds: [Zeroizing<[u64; SEED_WORDS]>; 2],
}

impl PaillierSum {
    /// Shares of the interval from the first to the second number, both included; None adds
    /// nothing and looks the same.
    ///
    /// # Errors
    /// Bits outside of 1 to 32, parties outside of 2 to 64, ends outside of the domain or swapped,
    /// or no randomness.
    pub fn new(
        modulus: &Arc<PaillierModulus>,
        bits: u32,
        interval: Option<(u64, u64)>,
        parties: u8,
    ) -> Result<Self> {
        let layout = PaillierLayout::new(bits).ok();
        let layout = layout.filter(|_| (2..=PAILLIER_MAX_PARTIES).contains(&parties));
        let layout = layout.ok_or_else(|| {
            Error::value("this scheme takes points of 1 to 32 bits and 2 to 64 parties")
        })?;
        let (low, high) = interval.unwrap_or((0, 0));
        if low > high || high >> bits != 0 {
            let text = "an interval outside of the domain, or with its ends swapped";
            return Err(Error::value(text));
        }
        let function = Function {
            layout,
            low: layout.place(low),
            high: layout.place(high),
            wanted: u64::from(interval.is_some()).wrapping_neg(),
            seeds: [seed()?, seed()?],
        };
        let (alpha, _, _) = primes::find(&RootSecret::random()?, 2 * ALPHA_BITS, None)?;
        let alpha = Secret::natural(alpha);
        let bases = function.bases(modulus, alpha.magnitude())?;
        let keys = (1..parties).map(|_| {
            let mut key = [0; ROW_KEY];
            random(&mut key).map(|()| Zeroizing::new(key))
        });
        let keys: Vec<Zeroizing<[u8; ROW_KEY]>> = keys.collect::<Result<_>>()?;
        let last = function.last_rows(alpha.magnitude(), &keys);
        let rows = keys.iter().map(|key| Rows::Key(**key));
        let share = |(rows, party)| {
            let mut share = PaillierShare {
                header: PaillierShare::header(bits, party, parties),
                layout,
                modulus: modulus.n.to_bytes_be(),
                bases: bases.clone(),
                rows,
            };
            let bytes = share.encode();
            match &mut share.rows {
                Rows::Key(key) => key.zeroize(),
                Rows::Parts(parts) => parts.zeroize(),
            }
            bytes
        };
        let shares = rows.chain([Rows::Parts(last)]).zip(0..).map(share);
        Ok(Self {
            shares: shares.collect(),
            modulus: modulus.clone(),
            alpha,
        })
    }

    /// One share for each provider; the last one's is longer.
    pub fn shares(&self) -> &[Vec<u8>] {
        &self.shares
    }

    /// The sums, each at least -2^95 and below 2^95.
    ///
    /// # Errors
    /// [`Error::Value`] for answers of another form, [`Error::Verify`] where a provider lied (found
    /// but for one lie in 2^100) or a sum does not fit.
    pub fn open(&self, replies: &[&[u8]]) -> Result<Vec<i128>> {
        if replies.len() != self.shares.len() {
            let text = "an answer is missing, or there is one too many";
            return Err(Error::value(text));
        }
        let n = &self.modulus.n;
        let bytes = n.to_bytes_be().len();
        let form = |error: ShareError| Error::value(format!("an answer is none: {error}"));
        let joined = join_replies(&self.modulus.square, bytes, replies).map_err(form)?;
        let (count, ciphertexts) = read_reply(&joined, bytes).map_err(form)?;
        let slots = sums_of_ciphertext(bytes);
        let mut sums = Vec::with_capacity(count);
        for (which, ciphertext) in ciphertexts.chunks_exact(2 * bytes).enumerate() {
            let here = slots.min(count - which * slots);
            let opened = self.open_one(&BigUint::from_bytes_be(ciphertext), here);
            let lied = || Error::verify("the providers' answers do not verify");
            sums.extend(opened.ok_or_else(lied)?);
        }
        Ok(sums)
    }

    /// The sums of one product of ciphertexts.
    fn open_one(&self, product: &BigUint, count: usize) -> Option<Vec<i128>> {
        let n = &self.modulus.n;
        let (mut number, remainder) = product.div_rem(n);
        if !remainder.is_one() {
            return None;
        }
        let negative = &number + &number > *n;
        if negative {
            number = n - number;
        }
        let (total, rest) = number.div_rem(self.alpha.magnitude());
        if !rest.is_zero() {
            return None;
        }
        let total = if negative {
            -BigInt::from(total)
        } else {
            total.into()
        };
        // Every sum moved up by half of what a slot holds: none is negative.
        let half = BigInt::one() << (SUM_BITS - 1);
        let offset = (0..count as u32).fold(BigInt::zero(), |all, slot| {
            all + (&half << (slot * SUM_BITS))
        });
        let moved = total + offset;
        if moved.is_negative() || moved.bits() > u64::from(SUM_BITS) * count as u64 {
            return None;
        }
        let digits = moved.magnitude().to_u32_digits();
        let sum = |slot: usize| {
            let words = (0..3)
                .rev()
                .map(|word| digits.get(3 * slot + word).unwrap_or(&0));
            let slot = words.fold(0, |all, word| all << 32 | i128::from(*word));
            slot - (1 << (SUM_BITS - 1))
        };
        Some((0..count).map(sum).collect())
    }
}

impl Function {
    /// V and W of every column, as a share has them.
    fn bases(&self, modulus: &PaillierModulus, alpha: &BigUint) -> Result<Vec<u8>> {
        let (n, columns) = (&modulus.n, 0..self.layout.columns());
        let side = |which: &dyn Fn(usize) -> bool| -> Zeroizing<Vec<bool>> {
            Zeroizing::new(columns.clone().map(which).collect())
        };
        let (up, down) = (side(&|c| c <= self.high.1), side(&|c| c < self.low.1));
        let unit = BigUint::one();
        let (plus, minus) = (alpha * n + 1u8, (n - alpha) * n + 1u8);
        let [sigma, tau] = [0, 1].map(|which: usize| {
            let words = self.seeds[which].iter().rev();
            Zeroizing::new(
                words
                    .flat_map(|word| word.to_be_bytes())
                    .collect::<Vec<u8>>(),
            )
        });
        let wanted = [
            Wanted {
                exponent: &sigma,
                factors: [&unit, &plus],
                which: &up,
            },
            Wanted {
                exponent: &tau,
                factors: [&unit, &minus],
                which: &down,
            },
        ];
        let stored = modulus.powers(columns.len(), &wanted)?;
        let bytes = modulus.square.byte_len();
        let rows = stored[0]
            .chunks_exact(bytes)
            .zip(stored[1].chunks_exact(bytes));
        Ok(rows.flat_map(|(v, w)| [v, w]).flatten().copied().collect())
    }

    /// What the last party gets: with all uniform parts it makes the rows' numbers.
    fn last_rows(&self, alpha: &BigUint, keys: &[Zeroizing<[u8; ROW_KEY]>]) -> Vec<u8> {
        let rows = self.layout.rows();
        let uniform = keys
            .iter()
            .map(|key| Zeroizing::new(uniform_rows(key, rows)));
        let uniform: Vec<Zeroizing<Vec<u8>>> = uniform.collect();
        let mut alpha_words = Zeroizing::new([0; WORDS]);
        let digits = Zeroizing::new(alpha.to_u64_digits());
        alpha_words[..digits.len()].copy_from_slice(&digits);
        let mut out = Vec::with_capacity(rows * LAST_ROW_BYTES);
        for row in 0..rows {
            let mut numbers = Zeroizing::new(self.row(row, &alpha_words));
            let mut first = row * ROW_BYTES;
            for (number, bytes) in numbers.iter_mut().zip(PART_BYTES) {
                for uniform in &uniform {
                    subtract(number, &words(&uniform[first..first + bytes]));
                }
                let stored = number.iter().flat_map(|word| word.to_le_bytes());
                out.extend(stored.take(bytes + 1));
                first += bytes;
            }
        }
        out
    }

    /// x, y, t and w of a row, without a branch on the interval.
    fn row(&self, row: usize, alpha: &[u64; WORDS]) -> [[u64; WORDS]; 4] {
        let at_high = equal(row, self.high.0) & self.wanted;
        let at_low = equal(row, self.low.0) & self.wanted;
        let between = !below(row, self.low.0) & below(row, self.high.0) & self.wanted;
        let mut out = [[0; WORDS]; 4];
        out[0][0] = at_high & 1;
        out[1][0] = at_low & 1;
        for (seed, mask) in self.seeds.iter().zip([at_high, at_low]) {
            let mut masked = Zeroizing::new([0; WORDS]);
            let pairs = masked.iter_mut().zip(seed.iter());
            pairs.for_each(|(masked, word)| *masked = word & mask);
            subtract(&mut out[2], &masked);
        }
        let pairs = out[3].iter_mut().zip(alpha);
        pairs.for_each(|(w, word)| *w = word & between);
        out
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        let ends = [
            &mut self.low.0,
            &mut self.low.1,
            &mut self.high.0,
            &mut self.high.1,
        ];
        ends.into_iter().for_each(Zeroize::zeroize);
    }
}

fn seed() -> Result<Zeroizing<[u64; SEED_WORDS]>> {
    let mut bytes = Zeroizing::new([0; 8 * SEED_WORDS]);
    random(&mut *bytes)?;
    let word = |at: usize| std::array::from_fn(|byte| bytes[8 * at + byte]);
    Ok(Zeroizing::new(std::array::from_fn(|at| {
        u64::from_le_bytes(word(at))
    })))
}

fn words(bytes: &[u8]) -> [u64; WORDS] {
    let mut out = [[0; 8]; WORDS];
    out.as_flattened_mut()[..bytes.len()].copy_from_slice(bytes);
    out.map(u64::from_le_bytes)
}

/// Two's complement; what is borrowed out is lost.
fn subtract(number: &mut [u64; WORDS], less: &[u64; WORDS]) {
    let mut borrow = 0;
    for (word, less) in number.iter_mut().zip(less) {
        let (rest, first) = word.overflowing_sub(*less);
        let (rest, second) = rest.overflowing_sub(borrow);
        *word = rest;
        borrow = u64::from(first | second);
    }
}

/// All ones if they are equal, else 0.
fn equal(first: usize, second: usize) -> u64 {
    let apart = (first ^ second) as u64;
    ((apart | apart.wrapping_neg()) >> 63).wrapping_sub(1)
}

/// All ones if the first is smaller, else 0; both have less than 63 bits.
fn below(first: usize, second: usize) -> u64 {
    ((first as u64).wrapping_sub(second as u64) >> 63).wrapping_neg()
}

impl Drop for PaillierSum {
    fn drop(&mut self) {
        self.shares.zeroize();
    }
}

impl fmt::Debug for PaillierSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PaillierSum(redacted)")
    }
}
