//! Whole numbers of several words in two's complement, the lowest word first.

use louver_primitives::fss_many::{Exponent, EXPONENT_WORDS};
use num_bigint::BigInt;

/// Adds `number` times `value` to `sum`, which is as long; what is carried out is lost.
pub(super) fn add_times(sum: &mut [u64], number: &[u64], value: i128) {
    let size = value.unsigned_abs();
    let (low, high) = (size as u64, (size >> 64) as u64);
    let step = if value < 0 { subtract } else { add };
    step(sum, number, low);
    if high != 0 {
        step(&mut sum[1..], number, high);
    }
}

fn add(sum: &mut [u64], number: &[u64], by: u64) {
    let mut carry = 0;
    for (sum, word) in sum.iter_mut().zip(number) {
        let total = u128::from(*sum) + u128::from(*word) * u128::from(by) + carry;
        *sum = total as u64;
        carry = total >> 64;
    }
}

fn subtract(sum: &mut [u64], number: &[u64], by: u64) {
    let mut carry = 0;
    for (sum, word) in sum.iter_mut().zip(number) {
        let product = u128::from(*word) * u128::from(by) + carry;
        let (rest, less) = sum.overflowing_sub(product as u64);
        *sum = rest;
        carry = (product >> 64) + u128::from(less);
    }
}

/// A number with as many words as an exponent.
pub(super) fn extended(number: &[u64]) -> Exponent {
    let negative = number.last().is_some_and(|top| top >> 63 == 1);
    let mut out = [u64::from(negative).wrapping_neg(); EXPONENT_WORDS];
    out[..number.len()].copy_from_slice(number);
    out
}

/// The number itself.
pub(super) fn signed(number: &[u64]) -> BigInt {
    let bytes: Vec<u8> = number.iter().flat_map(|word| word.to_le_bytes()).collect();
    BigInt::from_signed_bytes_le(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn products_are_those_of_big_integers(
            sum: [i64; 5],
            number: [i64; 2],
            value: i128,
            narrow: i64,
            short: bool,
        ) {
            let words = |number: &[i64]| -> Vec<u64> {
                number.iter().map(|word| *word as u64).collect()
            };
            let value = if short { i128::from(narrow) } else { value >> 24 };
            // Small enough that nothing is carried out.
            let mut sum = words(&sum);
            sum[4] = extended(&sum[..4])[4];
            let number = extended(&words(&number))[..5].to_vec();
            let expected = signed(&sum) + signed(&number) * value;
            add_times(&mut sum, &number, value);
            prop_assert_eq!(signed(&sum), expected);
        }
    }
}
