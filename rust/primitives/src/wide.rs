//! Single values: key algebra on the client, where speed does not matter.
//!
//! All values are big-endian bytes of any length; results modulo `n` have the length of `n`
//! as given. The modulus may be even here (a group order, for example). The arithmetic is
//! num-bigint's and its running time depends on the values.

use num_bigint::BigUint;
use num_integer::Integer;
use num_traits::Zero;

/// `v` as exactly `len` big-endian bytes; `v` must fit.
pub(crate) fn to_fixed(v: &BigUint, len: usize) -> Vec<u8> {
    let be = v.to_bytes_be();
    let be = if v.is_zero() { &[][..] } else { &be };
    let mut out = vec![0; len.saturating_sub(be.len())];
    out.extend_from_slice(be);
    out
}

fn big(be: &[u8]) -> BigUint {
    BigUint::from_bytes_be(be)
}

fn within(v: &BigUint, n_be: &[u8]) -> Option<Vec<u8>> {
    let n = big(n_be);
    (!n.is_zero()).then(|| to_fixed(&(v % &n), n_be.len()))
}

/// `a mod n`; none if `n` is 0.
pub fn reduce(a: &[u8], n: &[u8]) -> Option<Vec<u8>> {
    within(&big(a), n)
}

/// `a + b mod n`; none if `n` is 0.
pub fn add_mod(a: &[u8], b: &[u8], n: &[u8]) -> Option<Vec<u8>> {
    within(&(big(a) + big(b)), n)
}

/// `a - b mod n`; none if `n` is 0.
pub fn sub_mod(a: &[u8], b: &[u8], n: &[u8]) -> Option<Vec<u8>> {
    let modulus = big(n);
    if modulus.is_zero() {
        return None;
    }
    let difference = big(a) % &modulus + &modulus - big(b) % &modulus;
    within(&difference, n)
}

/// `a * b mod n`; none if `n` is 0.
pub fn mul_mod(a: &[u8], b: &[u8], n: &[u8]) -> Option<Vec<u8>> {
    within(&(big(a) * big(b)), n)
}

/// `base ^ exponent mod n`; none if `n` is 0.
pub fn pow_mod(base: &[u8], exponent: &[u8], n: &[u8]) -> Option<Vec<u8>> {
    let modulus = big(n);
    if modulus.is_zero() {
        return None;
    }
    Some(to_fixed(
        &big(base).modpow(&big(exponent), &modulus),
        n.len(),
    ))
}

/// The inverse of `a` mod `n`; none if `a` and `n` share a factor or `n` is 0.
pub fn inverse_mod(a: &[u8], n: &[u8]) -> Option<Vec<u8>> {
    let modulus = big(n);
    if modulus.is_zero() {
        return None;
    }
    big(a).modinv(&modulus).map(|v| to_fixed(&v, n.len()))
}

/// Greatest common divisor, without leading zero bytes; empty if both are 0.
pub fn gcd(a: &[u8], b: &[u8]) -> Vec<u8> {
    to_fixed(&big(a).gcd(&big(b)), 0)
}

/// The product as plain integers, without leading zero bytes.
pub fn mul(a: &[u8], b: &[u8]) -> Vec<u8> {
    to_fixed(&(big(a) * big(b)), 0)
}
