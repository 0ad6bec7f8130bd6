//! The modulus: two primes that derive from the root secret, and the hint that finds them again.

use crate::error::{Error, Result};
use crate::keys::{Purpose, RootSecret};
use chacha20::cipher::{KeyIvInit, StreamCipher};
use chacha20::ChaCha20;
use num_bigint::BigUint;
use num_integer::Integer;
use num_traits::{One, ToPrimitive, Zero};
use zeroize::Zeroizing;

/// Bits of a modulus: fewest and most.
const BITS: std::ops::RangeInclusive<u32> = 128..=4096;
/// Candidates of one sieve.
const WINDOW: usize = 1 << 14;
/// Primes below this are sieved out.
const SIEVE_LIMIT: u32 = 1 << 14;
/// Rounds of Miller-Rabin on a number that is to be used: error below 4^-40.
const ROUNDS: usize = 40;

/// Numbers that derive from the root secret, as many as wanted: a ChaCha20 key stream.
pub(crate) struct Stream(ChaCha20);

impl Stream {
    pub(crate) fn new(root: &RootSecret, purpose: Purpose<'_>) -> Self {
        let key = root.derive(purpose);
        Self(ChaCha20::new((&*key).into(), &[0; 12].into()))
    }

    /// `bits` random bits.
    pub(crate) fn bits(&mut self, bits: u32) -> BigUint {
        let mut bytes = Zeroizing::new(vec![0; bits.div_ceil(8) as usize]);
        self.0.apply_keystream(&mut bytes);
        BigUint::from_bytes_be(&bytes) >> (bytes.len() as u64 * 8 - u64::from(bits))
    }

    /// A number below `n`, even to within 2^-128.
    pub(crate) fn below(&mut self, n: &BigUint) -> BigUint {
        self.bits(n.bits() as u32 + 128) % n
    }

    /// A number below `n` and coprime to it.
    pub(crate) fn unit(&mut self, n: &BigUint) -> BigUint {
        loop {
            let candidate = self.below(n);
            if candidate.gcd(n).is_one() {
                return candidate;
            }
        }
    }
}

/// Distances of the two primes from their starting points, in steps of 2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Steps(pub(crate) u32, pub(crate) u32);

/// The two primes, `bits/2` each, so that their product has exactly `bits` bits.
///
/// # Errors
/// [`Error::Value`] for a size out of range, [`Error::Verify`] for steps that lead to no prime.
pub(crate) fn find(
    root: &RootSecret,
    bits: u32,
    steps: Option<Steps>,
) -> Result<(BigUint, BigUint, Steps)> {
    if !BITS.contains(&bits) || !bits.is_multiple_of(2) {
        let (low, high) = (BITS.start(), BITS.end());
        let text = format!("a modulus has an even number of bits from {low} to {high}");
        return Err(Error::value(text));
    }
    let start = |which: &str| {
        let name = format!("prime-{which}/{bits}");
        let half = bits / 2;
        let drawn = Stream::new(root, Purpose::whole(&name)).bits(half);
        // The two top bits make the product's length exact; the lowest makes it odd.
        drawn | BigUint::from(3u8) << (half - 2) | BigUint::one()
    };
    let (first_start, second_start) = (start("1"), start("2"));
    let Some(steps) = steps else {
        let (first, second) = rayon::join(|| search(&first_start), || search(&second_start));
        let distances = Steps(first, second);
        return Ok((
            first_start + 2 * distances.0,
            second_start + 2 * distances.1,
            distances,
        ));
    };
    let (first, second) = (first_start + 2 * steps.0, second_start + 2 * steps.1);
    if !(probably_prime(&first, 1) && probably_prime(&second, 1)) {
        return Err(Error::verify("the SDB hint does not belong to this key"));
    }
    Ok((first, second, steps))
}

/// Steps of 2 from `start` (odd) to the next prime.
fn search(start: &BigUint) -> u32 {
    let small = small_primes();
    let mut base = 0usize;
    loop {
        let from = start + 2 * base;
        let mut composite = vec![false; WINDOW];
        for &q in &small {
            let rest = (&from % q).to_u32().unwrap_or(0);
            // from + 2k = 0 mod q, so k = -from / 2 mod q.
            let k = u64::from(q - rest) * u64::from(q.div_ceil(2)) % u64::from(q);
            composite
                .iter_mut()
                .skip(k as usize)
                .step_by(q as usize)
                .for_each(|c| *c = true);
        }
        let candidates = composite.iter().enumerate().filter(|(_, c)| !**c);
        for (k, _) in candidates {
            let candidate = &from + 2 * k;
            if probably_prime(&candidate, 1) && probably_prime(&candidate, ROUNDS) {
                return u32::try_from(base + k).expect("primes lie closer than 2^32");
            }
        }
        base += WINDOW;
    }
}

/// Odd primes below [`SIEVE_LIMIT`].
fn small_primes() -> Vec<u32> {
    let mut composite = vec![false; SIEVE_LIMIT as usize];
    let mut primes = Vec::new();
    for q in 3..SIEVE_LIMIT {
        if q % 2 == 1 && !composite[q as usize] {
            primes.push(q);
            (q * q..SIEVE_LIMIT)
                .step_by(q as usize)
                .for_each(|c| composite[c as usize] = true);
        }
    }
    primes
}

/// Miller-Rabin to base 2 and then to bases that depend on the candidate.
fn probably_prime(n: &BigUint, rounds: usize) -> bool {
    let less = n - 1u8;
    let twos = less.trailing_zeros().unwrap_or(0);
    let odd = &less >> twos;
    (0..rounds).all(|round| {
        let base = if round == 0 {
            BigUint::from(2u8)
        } else {
            base_of(n, round)
        };
        let mut power = base.modpow(&odd, n);
        if power.is_one() || power == less || base.is_zero() {
            return true;
        }
        (1..twos).any(|_| {
            power = &power * &power % n;
            power == less
        })
    })
}

/// A base that cannot be chosen: the candidate hashed with the round.
fn base_of(n: &BigUint, round: usize) -> BigUint {
    use sha2::{Digest, Sha256};
    let mut wide = Vec::new();
    for part in 0..n.bits().div_ceil(256) + 1 {
        let mut hash = Sha256::new();
        hash.update(n.to_bytes_be());
        hash.update((round as u64).to_be_bytes());
        hash.update(part.to_be_bytes());
        wide.extend_from_slice(&hash.finalize());
    }
    BigUint::from_bytes_be(&wide) % n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_primes_and_composites() {
        for (n, prime) in [
            (101u32, true),
            (65_537, true),
            (561, false),
            (65_535, false),
        ] {
            assert_eq!(probably_prime(&BigUint::from(n), 20), prime, "{n}");
        }
    }

    #[test]
    fn the_hint_finds_the_same_primes() {
        let root = RootSecret::from_bytes(&[7; 32]).unwrap();
        let (p, q, steps) = find(&root, 512, None).unwrap();
        assert_eq!((&p * &q).bits(), 512);
        let again = find(&root, 512, Some(steps)).unwrap();
        assert_eq!(again, (p, q, steps));
        assert!(find(&root, 512, Some(Steps(steps.0 + 1, steps.1))).is_err());
        assert!(find(&root, 127, None).is_err());
    }
}
