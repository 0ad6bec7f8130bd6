//! Signed numbers of up to 128 bits as residues and back; a negative `v` is stored as `n - |v|`.

use super::numbers::Number;

/// Bytes of a number's magnitude.
const NARROW: usize = 16;

/// A modulus, its last bytes apart: all a short number changes.
pub(crate) struct Residues {
    high: Vec<u8>,
    /// `high - 1`: where the low part borrows.
    less: Vec<u8>,
    low: u128,
}

impl Residues {
    /// For a big-endian modulus without leading zeros.
    pub(crate) fn new(n: &[u8]) -> Self {
        let (high, low) = split(n);
        let mut less = high.to_vec();
        for byte in less.iter_mut().rev() {
            *byte = byte.wrapping_sub(1);
            if *byte != 0xff {
                break;
            }
        }
        Self {
            high: high.to_vec(),
            less,
            low,
        }
    }

    /// Writes a number's residue, as many bytes as the modulus has; it must fit.
    pub(crate) fn write(&self, number: Number, out: &mut [u8]) {
        let (out_high, out_low) = out.split_at_mut(self.high.len());
        let low = if number.negative {
            let (low, borrow) = self.low.overflowing_sub(number.magnitude);
            out_high.copy_from_slice(if borrow { &self.less } else { &self.high });
            low
        } else {
            out_high.fill(0);
            number.magnitude
        };
        // A modulus of fewer than 128 bits: the upper bytes are 0.
        out_low.copy_from_slice(&low.to_be_bytes()[NARROW - out_low.len()..]);
    }

    /// The number that a residue represents, if 128 bits hold its magnitude.
    pub(crate) fn read(&self, residue: &[u8]) -> Option<Number> {
        let (high, low) = split(residue);
        let positive = high.iter().all(|&b| b == 0);
        let positive = positive.then(|| Number::new(false, low));
        let (rest, borrow) = self.low.overflowing_sub(low);
        let wanted = if borrow { &self.less } else { &self.high };
        let negative = (high == wanted.as_slice()).then(|| Number::new(true, rest));
        match (positive, negative) {
            // With a modulus of 128 bits both readings may be narrow: the nearer to 0 counts.
            (Some(p), Some(q)) => Some(if p.magnitude <= q.magnitude { p } else { q }),
            (p, q) => p.or(q),
        }
    }
}

/// All but the last 16 bytes, and these as a number.
fn split(be: &[u8]) -> (&[u8], u128) {
    let (high, low) = be.split_at(be.len().saturating_sub(NARROW));
    let mut wide = [0; NARROW];
    wide[NARROW - low.len()..].copy_from_slice(low);
    (high, u128::from_be_bytes(wide))
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::{BigInt, BigUint};
    use num_traits::ToPrimitive;

    fn moduli() -> Vec<BigUint> {
        let top = |bits: u32| BigUint::from(1u8) << (bits - 1);
        let low_zeros = (top(256) >> 128u32 << 128u32) + 1u8;
        let borrows = top(136) + 3u8;
        vec![
            top(100) + 7u8,
            top(128) + 9u8,
            borrows,
            low_zeros,
            top(2048) + 5u8,
        ]
    }

    #[test]
    fn numbers_survive() {
        for n in moduli() {
            let be = n.to_bytes_be();
            let residues = Residues::new(&be);
            let half = (&n >> 1u32).to_u128().unwrap_or(u128::MAX);
            for magnitude in [0, 1, 2, 255, 1 << 64, u128::MAX / 2, u128::MAX] {
                let magnitude = magnitude.min(half);
                for negative in [false, true] {
                    let number = Number::new(negative, magnitude);
                    let mut out = vec![0xaa; be.len()];
                    residues.write(number, &mut out);
                    let signed = BigInt::from(magnitude) * if negative { -1 } else { 1 };
                    let wanted = super::super::math::residue(&signed, &n);
                    assert_eq!(BigUint::from_bytes_be(&out), wanted, "{number:?} {n:x}");
                    assert_eq!(residues.read(&out), Some(number), "{n:x}");
                }
            }
        }
    }

    #[test]
    fn wide_residues_are_not_numbers() {
        for n in moduli().into_iter().filter(|n| n.bits() > 140) {
            let be = n.to_bytes_be();
            let wide = BigUint::from(1u8) << 128u32;
            let residues = Residues::new(&be);
            for value in [wide.clone(), &n - &wide, &n >> 1u32] {
                let mut out = vec![0; be.len() - value.to_bytes_be().len()];
                out.extend(value.to_bytes_be());
                assert_eq!(residues.read(&out), None, "{value:x}");
            }
        }
    }
}
