//! Answers of the providers, joined and checked.

use crate::error::{Error, Result};
use ctutils::CtEq;
use louver_primitives::fss::{dot, record_tag};

/// Bytes of a MAC, and of an additive share.
const BLOCK: usize = 16;

/// Joins answers of XOR shares, each a record and a share of its MAC. Gives the record, or None
/// where the table has none.
///
/// # Errors
/// [`Error::Value`] for answers of another form, [`Error::Verify`] where a provider lied.
pub(crate) fn open_record(alpha: u128, replies: &[&[u8]], level: u32) -> Result<Option<Vec<u8>>> {
    let bytes = same_length(replies)?;
    if bytes < BLOCK {
        return Err(Error::value("an answer is shorter than its MAC"));
    }
    let mut joined = vec![0; bytes];
    for reply in replies {
        for (sum, byte) in joined.iter_mut().zip(*reply) {
            *sum ^= byte;
        }
    }
    let mac = joined.split_off(bytes - BLOCK);
    let present = joined.iter().fold(0, |seen, byte| seen | byte) != 0;
    let expected = dot(alpha, record_tag(level, &joined)) & u128::from(present).wrapping_neg();
    if mac.ct_eq(expected.to_le_bytes().as_slice()).to_bool() {
        return Ok(present.then_some(joined));
    }
    Err(Error::verify("the providers' answers do not verify"))
}

/// Joins answers of additive shares: whole numbers modulo 2^128, little endian, each a value
/// times `alpha`, which is odd.
///
/// # Errors
/// [`Error::Value`] for answers of another form, [`Error::Verify`] where a provider lied.
pub(super) fn open_sums(alpha: u128, replies: &[&[u8]]) -> Result<Vec<i64>> {
    let bytes = same_length(replies)?;
    if bytes % BLOCK != 0 {
        return Err(Error::value(
            "an answer is not a whole number of 16-byte sums",
        ));
    }
    let inverse = inverse(alpha);
    let sums = joined_sums(replies);
    // All are checked before any is returned: time reveals no more than the error does.
    let (mut values, mut honest) = (Vec::with_capacity(sums.len()), true);
    for sum in sums {
        let value = sum.wrapping_mul(inverse) as i128;
        honest &= value > i128::from(i64::MIN) && value <= i128::from(i64::MAX);
        values.push(value as i64);
    }
    match honest {
        true => Ok(values),
        false => Err(Error::verify("the providers' answers do not verify")),
    }
}

/// The sums of the replies' blocks, which are of one length.
pub(super) fn joined_sums(replies: &[&[u8]]) -> Vec<u128> {
    let mut sums = vec![0_u128; replies.first().map_or(0, |reply| reply.len() / BLOCK)];
    for reply in replies {
        for (sum, block) in sums.iter_mut().zip(reply.as_chunks().0) {
            *sum = sum.wrapping_add(u128::from_le_bytes(*block));
        }
    }
    sums
}

/// The inverse of an odd number modulo 2^128, by Newton's iteration.
pub(super) fn inverse(odd: u128) -> u128 {
    // Right in three bits; each step doubles them.
    (0..6).fold(odd, |inverse, _| {
        inverse.wrapping_mul(2_u128.wrapping_sub(odd.wrapping_mul(inverse)))
    })
}

fn same_length(replies: &[&[u8]]) -> Result<usize> {
    match replies {
        [first, others @ ..] if !others.is_empty() => {
            let same = others.iter().all(|reply| reply.len() == first.len());
            same.then_some(first.len())
        }
        _ => None,
    }
    .ok_or_else(|| Error::value("answers of different lengths, or fewer than two"))
}
