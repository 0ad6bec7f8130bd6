//! Rational reconstruction: small `a`, `b` with `a/b = ratio mod n`.

use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_traits::{One, Signed, Zero};

/// The short fraction that a residue represents, in lowest terms with a positive denominator;
/// `None` if there is none that chance would not give.
///
/// Euclid's algorithm on `n` and the ratio; numerator and denominator together are at least as
/// long as `n` at every step, but for the wanted fraction, where they are shorter by far.
pub(crate) fn reconstruct(ratio: &BigUint, n: &BigUint) -> Option<(BigInt, BigUint)> {
    let margin = (n.bits() / 8).min(64);
    let (mut high, mut low) = (BigInt::from(n.clone()), BigInt::from(ratio.clone()));
    let (mut before, mut now) = (BigInt::zero(), BigInt::one());
    while now.bits() < n.bits() / 2 + 1 {
        if low.bits() + now.bits() + margin < n.bits() {
            let divisor = low.gcd(&now);
            let sign = if now.is_negative() { -1 } else { 1 };
            let (a, b) = (low / &divisor * sign, now / divisor);
            return Some((a, b.magnitude().clone()));
        }
        if low.is_zero() {
            return None;
        }
        let (quotient, rest) = high.div_rem(&low);
        let next = before - quotient * &now;
        (high, low) = (low, rest);
        (before, now) = (now, next);
    }
    None
}

/// The inverses of all residues that have one, at the price of one: `None` for NULL and 0.
pub(crate) fn inverses(column: &[Option<BigUint>], n: &BigUint) -> Vec<Option<BigUint>> {
    let mut products = Vec::with_capacity(column.len());
    let mut product = BigUint::one();
    for value in column {
        products.push(product.clone());
        if let Some(value) = value.as_ref().filter(|v| !v.is_zero()) {
            product = product * value % n;
        }
    }
    let Some(mut rest) = product.modinv(n) else {
        // Some value shares a factor with n, which no honest server meets.
        let invert = |v: &Option<BigUint>| v.as_ref().and_then(|v| v.modinv(n));
        return column.iter().map(invert).collect();
    };
    let mut out = vec![None; column.len()];
    for (row, value) in column.iter().enumerate().rev() {
        if let Some(value) = value.as_ref().filter(|v| !v.is_zero()) {
            out[row] = Some(&rest * &products[row] % n);
            rest = rest * value % n;
        }
    }
    out
}

/// The signed number that a residue represents.
pub(crate) fn signed(residue: &BigUint, n: &BigUint) -> BigInt {
    if residue > &(n >> 1u32) {
        BigInt::from(residue.clone()) - BigInt::from(n.clone())
    } else {
        BigInt::from(residue.clone())
    }
}
