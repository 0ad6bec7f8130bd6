//! The client's modulus N = p·q: it makes powers modulo N² cheap for the client alone.

use crate::error::{Error, Result};
use crate::keys::RootSecret;
use crate::sdb::primes;
use crate::sdb::secret::Secret;
use louver_primitives::fss_many::generators;
use louver_primitives::{Kernel, Modulus, Scalar};
use num_bigint::BigUint;
use num_integer::Integer;
use rayon::prelude::*;
use std::fmt;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Bits of N.
const BITS: u32 = 2048;

/// A modulus of Paillier's group and its factors, generated anew. It may serve any number of
/// questions of one client; its factors never leave this machine.
pub struct PaillierModulus {
    pub(super) n: BigUint,
    /// N², public.
    pub(super) square: Arc<Modulus>,
    /// p², then q², the smaller one first.
    sides: [Side; 2],
    /// (p²)^-1 mod q².
    join: Scalar,
}

struct Side {
    square: Secret,
    kernel: Kernel,
}

/// Powers of the generators times powers of 1 + N: one row a column of the domain.
pub(super) struct Wanted<'a> {
    /// Big endian.
    pub(super) exponent: &'a [u8],
    /// Modulo N² and not secret in itself: 1 + N·m for the two possible m.
    pub(super) factors: [&'a BigUint; 2],
    /// Which of them, column by column.
    pub(super) which: &'a [bool],
}

impl PaillierModulus {
    /// A fresh modulus of 2,048 bits. Takes about a second.
    ///
    /// # Errors
    /// No randomness.
    pub fn new() -> Result<Self> {
        Self::of_bits(BITS)
    }

    /// A modulus of other than 2,048 bits, for tests.
    pub(super) fn of_bits(bits: u32) -> Result<Self> {
        let (p, q) = loop {
            let (first, second, _) = primes::find(&RootSecret::random()?, bits, None)?;
            // Then the squares of N-th residues are powers of one of them.
            if (&first - 1u8).gcd(&(&second - 1u8)) == BigUint::from(2u8) {
                break if first < second {
                    (first, second)
                } else {
                    (second, first)
                };
            }
        };
        let n = &p * &q;
        let square = Modulus::from_be_bytes(&(&n * &n).to_bytes_be()).map_err(unusable)?;
        let (p, q) = (Side::new(&p)?, Side::new(&q)?);
        let join = p.square.magnitude().modinv(q.square.magnitude());
        let join = join.ok_or_else(|| Error::value("the two primes are the same"))?;
        let join = Zeroizing::new(join.to_bytes_be());
        Ok(Self {
            join: q.kernel.scalar(&join).map_err(unusable)?,
            sides: [p, q],
            square,
            n,
        })
    }

    /// For each of what is wanted the rows modulo N², big endian, as long as N² each.
    pub(super) fn powers(&self, columns: usize, wanted: &[Wanted<'_>]) -> Result<Vec<Vec<u8>>> {
        let kernel = Kernel::new(self.square.clone());
        let output = generators(&kernel, &self.n.to_bytes_be(), columns).map_err(unusable)?;
        let bases = output.chunks_exact(self.square.byte_len());
        let bases: Vec<BigUint> = bases.map(BigUint::from_bytes_be).collect();
        let [low, high] = &self.sides;
        let rows = low.powers(&bases, wanted)?.into_iter();
        let rows = rows.zip(high.powers(&bases, wanted)?);
        rows.map(|(low, high)| self.joined(&low, &high)).collect()
    }

    /// Numbers modulo N² of their remainders.
    fn joined(&self, low: &[u8], high: &[u8]) -> Result<Vec<u8>> {
        let [p, q] = &self.sides;
        let low = low.chunks_exact(p.kernel.modulus().byte_len());
        // Remainders modulo p² are below p², so below q².
        let loaded = q.kernel.load_rows(low.clone()).map_err(unusable)?;
        let high = q.kernel.load(high).map_err(unusable)?;
        let times = q.kernel.scale(&q.kernel.sub(&high, &loaded), &self.join);
        let times = q.kernel.store(&times);
        let times = times.par_chunks_exact(q.kernel.modulus().byte_len());
        let low: Vec<&[u8]> = low.collect();
        let mut out = vec![0; low.len() * self.square.byte_len()];
        let rows = out.par_chunks_exact_mut(self.square.byte_len());
        rows.zip(low).zip(times).for_each(|((out, low), times)| {
            let number = BigUint::from_bytes_be(times) * p.square.magnitude();
            let bytes = (number + BigUint::from_bytes_be(low)).to_bytes_be();
            let start = out.len() - bytes.len();
            out[start..].copy_from_slice(&bytes);
        });
        Ok(out)
    }
}

impl Side {
    fn new(prime: &BigUint) -> Result<Self> {
        let square = prime * prime;
        let modulus = Modulus::from_be_bytes(&square.to_bytes_be()).map_err(unusable)?;
        Ok(Self {
            square: Secret::natural(square),
            kernel: Kernel::new(modulus),
        })
    }

    /// For each of what is wanted the rows modulo this side's square.
    ///
    /// The order of products depends on the exponents, which are drawn afresh for every question
    /// and whose length is fixed: it reveals nothing of the question.
    fn powers(&self, bases: &[BigUint], wanted: &[Wanted<'_>]) -> Result<Vec<Zeroizing<Vec<u8>>>> {
        let (k, square) = (&self.kernel, self.square.magnitude());
        let rows: Vec<Vec<u8>> = bases
            .par_iter()
            .map(|b| (b % square).to_bytes_be())
            .collect();
        let column = k
            .load_rows(rows.iter().map(Vec::as_slice))
            .map_err(unusable)?;
        let exponents: Vec<&[u8]> = wanted.iter().map(|wanted| wanted.exponent).collect();
        let powers = k.pow_many(&column, &exponents);
        let output = wanted.iter().zip(powers).map(|(wanted, power)| {
            let factors = wanted.factors.map(|factor| {
                let bytes = (factor % square).to_bytes_be();
                let mut row = vec![0; k.modulus().byte_len() - bytes.len()];
                row.extend(bytes);
                Zeroizing::new(row)
            });
            let rows = wanted
                .which
                .iter()
                .map(|which| factors[usize::from(*which)].as_slice());
            let factors = k.load_rows(rows).map_err(unusable)?;
            Ok(Zeroizing::new(k.store(&k.mul(&power, &factors))))
        });
        output.collect()
    }
}

fn unusable(error: impl fmt::Display) -> Error {
    Error::value(error.to_string())
}

impl fmt::Debug for PaillierModulus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PaillierModulus({} bits)", self.n.bits())
    }
}
