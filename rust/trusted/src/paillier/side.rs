//! One of the two primes: arithmetic modulo its square.

use crate::error::{Error, Result};
use crate::keys::random;
use crate::sdb::secret::Secret;
use louver_primitives::{Column, FixedBase, Kernel, Modulus, Scalar};
use num_bigint::BigUint;
use num_traits::One;
use std::sync::OnceLock;
use zeroize::{Zeroize, Zeroizing};

/// Bytes of a random exponent that one table of powers takes.
const PART: usize = 16;

/// A prime p, and what is computed modulo p² once.
pub(super) struct Side {
    pub(super) prime: Secret,
    pub(super) square: Secret,
    pub(super) kernel: Kernel,
    /// n, for (1 + n)^m = 1 + m n.
    n: Scalar,
    /// A random n-th power: what blinds is a random power of it.
    base: Secret,
    /// Tables of base^(2^(128 i)), computed when something is first sealed.
    tables: OnceLock<Vec<FixedBase>>,
    /// (-n/p)^-1 mod p.
    unscale: Secret,
}

impl Side {
    pub(super) fn new(prime: BigUint, n: &BigUint, base: &BigUint) -> Result<Self> {
        let square = &prime * &prime;
        let modulus = Modulus::from_be_bytes(&square.to_bytes_be());
        let kernel = Kernel::new(modulus.map_err(|e| Error::value(e.to_string()))?);
        let other = n / &prime % &prime;
        let unscale = (&prime - other).modinv(&prime);
        let unscale = unscale.ok_or_else(|| Error::value("the two primes are the same"))?;
        let n_here = Zeroizing::new((n % &square).to_bytes_be());
        Ok(Self {
            n: kernel
                .scalar(&n_here)
                .map_err(|e| Error::value(e.to_string()))?,
            base: Secret::natural(base.modpow(n, &square)),
            prime: Secret::natural(prime),
            square: Secret::natural(square),
            kernel,
            tables: OnceLock::new(),
            unscale: Secret::natural(unscale),
        })
    }

    /// (1 + n)^m times a random power, for big-endian rows m below p².
    pub(super) fn seal(&self, plain: &[u8], rows: usize) -> Result<Column> {
        let k = &self.kernel;
        let numbers = plain.chunks_exact(plain.len() / rows);
        let mut numbers = k
            .load_rows(numbers)
            .map_err(|e| Error::value(e.to_string()))?;
        let mut out = k.add(&k.scale(&numbers, &self.n), &k.one(rows));
        numbers.zeroize();
        let mut exponents = Zeroizing::new(vec![[0; PART]; rows]);
        for table in self.tables()? {
            random(exponents.as_flattened_mut())?;
            out = table.pow_mul(k, &exponents, &out);
        }
        Ok(out)
    }

    /// m mod p, for ciphertexts below n² that are coprime to p.
    pub(super) fn open(&self, ciphertexts: &[BigUint]) -> Result<Vec<BigUint>> {
        let (k, p) = (&self.kernel, self.prime.magnitude());
        let less = Secret::natural(p - 1u8);
        let rows = ciphertexts
            .iter()
            .map(|c| (c % self.square.magnitude()).to_bytes_be());
        let rows: Vec<Vec<u8>> = rows.collect();
        let column = k.load_rows(rows.iter().map(Vec::as_slice));
        let column = column.map_err(|e| Error::value(e.to_string()))?;
        let powers = k.store(&k.pow(&column, &less.bytes()));
        let powers = powers.chunks_exact(k.modulus().byte_len());
        let number = |power: &[u8]| {
            // 1 modulo p, by Fermat.
            let lifted = (BigUint::from_bytes_be(power) - 1u8) / p;
            lifted * self.unscale.magnitude() % p
        };
        Ok(powers.map(number).collect())
    }

    fn tables(&self) -> Result<&[FixedBase]> {
        if let Some(tables) = self.tables.get() {
            return Ok(tables);
        }
        let parts = self.square.magnitude().bits().div_ceil(16 * PART as u64);
        let square = self.square.magnitude();
        let mut base = Secret::natural(self.base.magnitude().clone());
        let mut tables = Vec::new();
        for _ in 0..parts {
            let table = FixedBase::new(&self.kernel, &base.bytes(), &[1]);
            tables.push(table.map_err(|e| Error::value(e.to_string()))?);
            let next = base
                .magnitude()
                .modpow(&(BigUint::one() << (8 * PART)), square);
            base = Secret::natural(next);
        }
        Ok(self.tables.get_or_init(|| tables))
    }
}
