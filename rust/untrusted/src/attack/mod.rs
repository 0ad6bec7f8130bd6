//! What a server could do with its own state: the attacks of DESIGN section 5, re-derived from
//! "Cryptanalysis of an Encrypted Database in SIGMOD '14" (Cao, Liu, Lu, Ren, PVLDB 2021).
//!
//! Nothing here uses a key: the input is what the server holds, and its public modulus.

mod ratio;
#[cfg(test)]
mod tests;

use crate::columns::Blobs;
use crate::error::{Error, Result};
use arrow_array::Array;
use num_bigint::{BigInt, BigUint, Sign};
use num_integer::Integer;
use num_traits::{One, Signed, Zero};
use ratio::{inverses, reconstruct, signed};
use rayon::prelude::*;

/// Values of one column under one common key (SUM, GROUP BY, equi-join), up to one common factor
/// and sign; `None` where a row is NULL or resists.
///
/// # Errors
/// Values that are not residues, or a modulus that is too small.
pub fn common_key(column: &dyn Array, n: &[u8]) -> Result<Vec<Option<BigInt>>> {
    let n = modulus(n)?;
    let column = read(column, &n)?;
    let nonzero = |c: &&BigUint| !c.is_zero();
    let Some(first) = column.iter().flatten().find(nonzero) else {
        return Ok(known_zeros(&column));
    };
    let Some(inverse) = first.modinv(&n) else {
        return Err(Error::new("a value shares a factor with the modulus"));
    };
    let ratios: Vec<Option<BigUint>> = column
        .par_iter()
        .map(|c| c.as_ref().map(|c| c * &inverse % &n))
        .collect();
    // Every ratio is v_i / v_0. The denominators seen so far divide v_0; once their product
    // holds all of it (up to the common factor), one product opens every further row.
    let mut scale = BigUint::one();
    for ratio in ratios.iter().flatten() {
        let scaled = ratio * &scale % &n;
        if small(&signed(&scaled, &n), &n) {
            continue;
        }
        if let Some((_, denominator)) = reconstruct(&scaled, &n) {
            let grown = &scale * denominator;
            if grown.bits() <= n.bits() / 4 {
                scale = grown;
            }
        }
    }
    let open = |ratio: &Option<BigUint>| {
        let value = signed(&(ratio.as_ref()? * &scale % &n), &n);
        small(&value, &n).then_some(value)
    };
    let mut values: Vec<Option<BigInt>> = ratios.par_iter().map(open).collect();
    let common = values
        .iter()
        .flatten()
        .fold(BigInt::zero(), |g, v| g.gcd(v));
    if !common.is_zero() {
        values.iter_mut().flatten().for_each(|v| *v /= &common);
    }
    Ok(values)
}

/// `a/b` in lowest terms, row by row, from two columns under one key a row (a comparison or sum
/// of two columns): the values themselves, up to sign, wherever they are coprime.
///
/// # Errors
/// Values that are not residues, or a modulus that is too small.
pub fn coprime(a: &dyn Array, b: &dyn Array, n: &[u8]) -> Result<Vec<Option<(BigInt, BigInt)>>> {
    let n = modulus(n)?;
    let (a, b) = (read(a, &n)?, read(b, &n)?);
    if a.len() != b.len() {
        return Err(Error::new("the columns differ in length"));
    }
    let inverses = inverses(&b, &n);
    let candidate =
        |((a, b), inverse): ((&Option<BigUint>, &Option<BigUint>), &Option<BigUint>)| {
            let (a, b) = (a.as_ref()?, b.as_ref()?);
            if b.is_zero() {
                let known = if a.is_zero() { 0 } else { 1 };
                return Some((BigInt::from(known), BigInt::zero()));
            }
            let (a, b) = reconstruct(&(a * inverse.as_ref()? % &n), &n)?;
            Some((a, BigInt::from(b)))
        };
    let rows = a.par_iter().zip(&b).zip(&inverses);
    Ok(rows.map(candidate).collect())
}

/// The result of [`linear`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linear {
    /// The constant of the comparison or sum.
    pub constant: BigUint,
    /// The rows' values; `None` where a row is NULL or resists.
    pub values: Vec<Option<BigInt>>,
}

/// The whole column from a comparison with a non-zero constant: the last update is linear, so
/// `R*u` and `R*a` are visible separately; the gcd over the rows gives `u`, hence `R`, hence `a`.
///
/// # Errors
/// Values that are not residues, a modulus that is too small, or no row with a usable value.
pub fn linear(r_u: &dyn Array, r_a: &dyn Array, n: &[u8]) -> Result<Linear> {
    let n = modulus(n)?;
    let open = |column: &dyn Array| -> Result<Vec<Option<BigInt>>> {
        let column = read(column, &n)?;
        Ok(column
            .into_iter()
            .map(|c| c.map(|c| signed(&c, &n)))
            .collect())
    };
    let (r_u, r_a) = (open(r_u)?, open(r_a)?);
    if r_u.len() != r_a.len() {
        return Err(Error::new("the columns differ in length"));
    }
    let constant = r_u.iter().flatten().fold(BigInt::zero(), |g, v| g.gcd(v));
    if constant.is_zero() {
        return Err(Error::new("there is no row to learn from"));
    }
    let candidate = |(r_u, r_a): (&Option<BigInt>, &Option<BigInt>)| {
        let random = r_u.as_ref()?.abs() / &constant;
        if random.is_zero() {
            return None;
        }
        let (value, rest) = r_a.as_ref()?.div_rem(&random);
        rest.is_zero().then_some(value)
    };
    let rows = r_u.iter().zip(&r_a);
    Ok(Linear {
        values: rows.map(candidate).collect(),
        constant: constant.magnitude().clone(),
    })
}

fn modulus(n: &[u8]) -> Result<BigUint> {
    let n = BigUint::from_bytes_be(n);
    if n.bits() < 128 {
        return Err(Error::new("the modulus is too small"));
    }
    Ok(n)
}

fn read(column: &dyn Array, n: &BigUint) -> Result<Vec<Option<BigUint>>> {
    let blobs = Blobs::new(column)?;
    let rows = 0..blobs.len();
    rows.map(|row| {
        let value = blobs.get(row).map(BigUint::from_bytes_be);
        if value.as_ref().is_some_and(|v| v >= n) {
            let text = format!("row {row}: value is not below the modulus");
            return Err(Error::new(text));
        }
        Ok(value)
    })
    .collect()
}

fn known_zeros(column: &[Option<BigUint>]) -> Vec<Option<BigInt>> {
    let zero = |c: &Option<BigUint>| c.as_ref().map(|_| BigInt::zero());
    column.iter().map(zero).collect()
}

/// Whether a number is far shorter than chance would have it.
fn small(value: &BigInt, n: &BigUint) -> bool {
    value.sign() == Sign::NoSign || value.bits() < n.bits() * 3 / 4
}
