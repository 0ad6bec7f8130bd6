//! The scheme's identities on explicit numbers (SDB paper, sections 3.1 to 3.3). No key ring here:
//! callers have the numbers already.

use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_traits::{One, Signed, Zero};

/// `m * g^(r*x mod phi) mod n`: the item key of row `r` under column key `<m, x>`.
pub fn item_key(
    m: &BigUint,
    x: &BigUint,
    r: &BigUint,
    g: &BigUint,
    phi: &BigUint,
    n: &BigUint,
) -> BigUint {
    m * g.modpow(&(r * x % phi), n) % n
}

/// `value * item_key^-1 mod n`; a negative value is stored as `n - |value|`. `None` if the item key
/// has no inverse.
pub fn seal(value: &BigInt, item_key: &BigUint, n: &BigUint) -> Option<BigUint> {
    Some(residue(value, n) * item_key.modinv(n)? % n)
}

/// `ciphertext * item_key mod n`, read as a signed number.
pub fn open(ciphertext: &BigUint, item_key: &BigUint, n: &BigUint) -> BigInt {
    signed(&(ciphertext * item_key % n), n)
}

/// A residue for a signed number.
pub fn residue(value: &BigInt, n: &BigUint) -> BigUint {
    let n = BigInt::from(n.clone());
    value.mod_floor(&n).magnitude().clone()
}

/// The signed number that a residue represents: above n/2 it is negative.
pub fn signed(residue: &BigUint, n: &BigUint) -> BigInt {
    if residue > &(n >> 1u32) {
        BigInt::from(residue.clone()) - BigInt::from(n.clone())
    } else {
        BigInt::from(residue.clone())
    }
}

/// The update of the paper (section 3.3.2): `(p, q)` with `p = x_S^-1 (x_C - x_A) mod phi` and
/// `q = m_A * m_S^p * m_C^-1 mod n`. For known answers only: such a `p` must never be sent.
pub fn paper_update(
    source: (&BigUint, &BigUint),
    target: (&BigUint, &BigUint),
    ones: (&BigUint, &BigUint),
    phi: &BigUint,
    n: &BigUint,
) -> Option<(BigUint, BigUint)> {
    let difference = BigInt::from(target.1.clone()) - BigInt::from(source.1.clone());
    let p = residue(&difference, phi) * ones.1.modinv(phi)? % phi;
    let q = factor(source.0, target.0, &[(ones.0.clone(), p.clone())], n)?;
    Some((p, q))
}

/// The power that an update by offsets raises a helper column to: `t_C - t_A` as a plain integer.
/// `None` if it is negative.
pub fn power(source: &BigInt, target: &BigInt) -> Option<BigUint> {
    let difference = target - source;
    (!difference.is_negative()).then(|| difference.magnitude().clone())
}

/// `m_source * prod m_S^p * m_target^-1 mod n`.
pub fn factor(
    source: &BigUint,
    target: &BigUint,
    ones: &[(BigUint, BigUint)],
    n: &BigUint,
) -> Option<BigUint> {
    let inverse = if target.is_one() {
        BigUint::one()
    } else {
        target.modinv(n)?
    };
    let start = source * inverse % n;
    let powers = ones.iter().filter(|(_, p)| !p.is_zero());
    Some(powers.fold(start, |q, (m, p)| q * m.modpow(p, n) % n))
}
