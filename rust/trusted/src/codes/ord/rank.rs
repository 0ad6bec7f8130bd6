//! Ranks: values as unsigned numbers in their own order (`spec/ord.md`, "Ranks").

use crate::codes::values::{Data, Domain, Values};
use crate::error::{Error, Result};
use arrow_array::Array;
use arrow_buffer::NullBuffer;
use zeroize::Zeroize;

/// Bytes of a string that its rank is made of.
const HEAD: usize = 8;

/// The values that a column's order codes are for: `low` and the 2^bits − 1 above it.
#[derive(Clone, Copy, Debug)]
pub struct Interval<'a> {
    /// The name of the domain: `int`, for instance.
    pub domain: &'a str,
    /// The image of the lowest value; 0 for strings and floating-point numbers.
    pub low: i128,
    /// 1 to 64.
    pub bits: u32,
}

/// The rank of every value; 0 for NULL. Wiped when dropped.
pub(crate) struct Ranks {
    pub(crate) ranks: Vec<u64>,
    pub(crate) nulls: Option<NullBuffer>,
}

impl Ranks {
    /// # Errors
    /// [`Error::Value`]: a type that is not the domain's, or a value outside of the interval.
    pub(crate) fn new(interval: Interval<'_>, array: &dyn Array) -> Result<Self> {
        if !(1..=64).contains(&interval.bits) {
            return Err(Error::value("an order domain has 1 to 64 bits"));
        }
        let domain = Domain::parse(interval.domain)?;
        let values = Values::new(domain, array)?;
        let rank = |row: usize| -> Result<u64> {
            if !values.live(row) {
                return Ok(0);
            }
            let rank = match &values.data {
                Data::Whole(numbers) => above(numbers[row], interval),
                Data::Bits(bits) if domain == Domain::Uuid => {
                    above(i128::from((bits[row] >> 64) as u64), interval)
                }
                Data::Bits(bits) => {
                    let low = u128::try_from(interval.low).ok();
                    let rank = low.and_then(|low| bits[row].checked_sub(low));
                    rank.and_then(|rank| within(rank, interval))
                }
                Data::Real(bits) => above(ordered(bits[row], domain), interval),
                Data::Strings(strings) => {
                    let string = strings.get(row).unwrap_or_default();
                    let mut head = [0; HEAD];
                    let taken = string.len().min(HEAD);
                    head[..taken].copy_from_slice(&string[..taken]);
                    above(i128::from(u64::from_be_bytes(head)), interval)
                }
            };
            rank.ok_or_else(outside)
        };
        let ranks = (0..array.len()).map(rank).collect::<Result<_>>()?;
        let nulls = values.nulls().filter(|nulls| nulls.null_count() > 0);
        Ok(Self {
            ranks,
            nulls: nulls.cloned(),
        })
    }

    pub(crate) fn live(&self, row: usize) -> bool {
        self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row))
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        self.ranks.zeroize();
    }
}

fn above(image: i128, interval: Interval<'_>) -> Option<u64> {
    let rank = image.checked_sub(interval.low)?;
    within(u128::try_from(rank).ok()?, interval)
}

fn within(rank: u128, interval: Interval<'_>) -> Option<u64> {
    let last = u64::MAX >> (64 - interval.bits);
    u64::try_from(rank).ok().filter(|rank| *rank <= last)
}

/// The bits of a floating-point number as a number in its order; the one NaN comes last.
fn ordered(bits: u64, domain: Domain) -> i128 {
    let sign = if domain == Domain::Float {
        1 << 31
    } else {
        1 << 63
    };
    i128::from(if bits & sign == 0 {
        bits | sign
    } else {
        !bits & (sign << 1_u32).wrapping_sub(1)
    })
}

fn outside() -> Error {
    Error::value("a value lies outside of the interval that the column's order codes are for")
}
