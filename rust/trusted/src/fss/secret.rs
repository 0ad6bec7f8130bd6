//! A question: the shares to send, and the secrets that check the answers.

use super::open::{open_record, open_sums};
use super::tree::{less_shares, point_shares, random_blocks};
use crate::error::{Error, Result};
use louver_primitives::fss::{Group, Header, Scheme, MAX_BITS};
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Shares and the factor that makes answers checkable. It never leaves this machine.
#[derive(Zeroize, ZeroizeOnDrop)]
struct Secret {
    alpha: u128,
    shares: Vec<Vec<u8>>,
}

/// One point: which record is wanted.
pub struct Point(Secret);

/// One interval: what of the records with keys in it is added.
pub struct Sum(Secret);

/// One point: what of the records with this key is added.
pub struct PointSum(Secret);

/// One end: what of the records with keys below it is added.
pub struct Below(Secret);

impl Point {
    /// Shares of the point function at `at`; with None, of no record; the shares look the same.
    ///
    /// # Errors
    /// Bits outside of 1 to 64, a point outside of the domain, or no randomness.
    pub fn new(bits: u32, at: Option<u64>) -> Result<Self> {
        let header = header(Scheme::Point, Group::Tag, bits)?;
        let blocks = random_blocks(2)?;
        let at = at.unwrap_or(blocks[1] as u64 & most(bits));
        // The payload has 127 bits: the last one is the control bit.
        let alpha = Zeroizing::new(blocks[0] & !1);
        let shares = point_shares(header, at, &[*alpha])?;
        Ok(Self(Secret::new(
            *alpha,
            shares.map(|share| share.encode()),
        )))
    }

    /// One share for each provider.
    pub fn shares(&self) -> &[Vec<u8>] {
        &self.0.shares
    }

    /// The record, or None where the table has none at this point.
    ///
    /// # Errors
    /// [`Error::Value`] for answers of another form, [`Error::Verify`] where a provider lied.
    pub fn open(&self, replies: &[&[u8]], level: u32) -> Result<Option<Vec<u8>>> {
        self.0.check(replies)?;
        open_record(self.0.alpha, replies, level)
    }
}

impl PointSum {
    /// Shares of the point function at `at`; None adds nothing and looks the same.
    ///
    /// # Errors
    /// Bits outside of 1 to 64, a point outside of the domain, or no randomness.
    pub fn new(bits: u32, at: Option<u64>) -> Result<Self> {
        let header = additive_header(bits)?;
        let alpha = random_odd()?;
        let wanted = u128::from(at.is_some()).wrapping_neg();
        let payload = Zeroizing::new([*alpha & wanted]);
        let shares = point_shares(header, at.unwrap_or(0), &*payload)?;
        Ok(Self(Secret::new(
            *alpha,
            shares.map(|share| share.encode()),
        )))
    }
}

impl Sum {
    /// Shares of the interval from the first to the second number, both included; None adds
    /// nothing and looks the same.
    ///
    /// # Errors
    /// Bits outside of 1 to 64, ends outside of the domain or swapped, or no randomness.
    pub fn new(bits: u32, interval: Option<(u64, u64)>) -> Result<Self> {
        let header = header(Scheme::Interval, Group::Wide, bits)?;
        let wanted = u128::from(interval.is_some()).wrapping_neg();
        let (low, high) = interval.unwrap_or((0, 0));
        if low > high || high > most(bits) {
            return Err(Error::value(
                "an interval outside of the domain, or with its ends swapped",
            ));
        }
        let alpha = random_odd()?;
        let payload = *alpha & wanted;
        let (end, upper, constant) = upper(bits, high, payload);
        let secret = Zeroizing::new([payload.wrapping_neg(), upper, constant]);
        let ends = [(low, &secret[..1]), (end, &secret[1..2])];
        let shares = less_shares(header, &ends, &secret[2..])?;
        Ok(Self(Secret::new(
            *alpha,
            shares.map(|share| share.encode()),
        )))
    }
}

impl Below {
    /// Shares of `[x < end]`; `end` may be 2^bits.
    ///
    /// # Errors
    /// Bits outside of 1 to 64, an end outside of the domain, or no randomness.
    pub fn new(bits: u32, end: u128) -> Result<Self> {
        let header = header(Scheme::Less, Group::Wide, bits)?;
        if end > u128::from(most(bits)) + 1 {
            return Err(Error::value("an end outside of the domain"));
        }
        let alpha = random_odd()?;
        // Below 0 there is nothing, so it is any point with payload zero.
        let wanted = u128::from(end != 0).wrapping_neg();
        let (end, upper, constant) = upper(bits, end.saturating_sub(1) as u64, *alpha & wanted);
        let secret = Zeroizing::new([upper, constant]);
        let shares = less_shares(header, &[(end, &secret[..1])], &secret[1..])?;
        Ok(Self(Secret::new(
            *alpha,
            shares.map(|share| share.encode()),
        )))
    }
}

macro_rules! additive {
    ($($kind:ident)*) => {$(
        impl $kind {
            /// One share for each provider.
            pub fn shares(&self) -> &[Vec<u8>] {
                &self.0.shares
            }

            /// The sums, each above -2^63 and below 2^63.
            ///
            /// # Errors
            /// [`Error::Value`] for answers of another form, [`Error::Verify`] where a provider
            /// lied (found but for one lie in 2^62) or a sum does not fit.
            pub fn open(&self, replies: &[&[u8]]) -> Result<Vec<i64>> {
                self.0.check(replies)?;
                open_sums(self.0.alpha, replies)
            }
        }
    )*};
}

macro_rules! redacted {
    ($($kind:ident)*) => {$(
        impl fmt::Debug for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($kind), "(redacted)"))
            }
        }
    )*};
}

additive!(PointSum Sum Below);
redacted!(Point PointSum Sum Below);

impl Secret {
    fn new(alpha: u128, shares: [Vec<u8>; 2]) -> Self {
        let shares = shares.into();
        Self { alpha, shares }
    }

    fn check(&self, replies: &[&[u8]]) -> Result<()> {
        match replies.len() == self.shares.len() {
            true => Ok(()),
            false => Err(Error::value(
                "an answer is missing, or there is one too many",
            )),
        }
    }
}

/// `payload · [x <= high]` as an end, its payload and a constant: an end behind the domain is the
/// constant. No share reveals which of the two it is.
fn upper(bits: u32, high: u64, payload: u128) -> (u64, u128, u128) {
    let all = u128::from(high == most(bits)).wrapping_neg();
    let end = high.wrapping_add(1) & !(all as u64);
    (end, payload & !all, payload & all)
}

fn header(scheme: Scheme, group: Group, bits: u32) -> Result<Header> {
    if !(1..=MAX_BITS).contains(&bits) {
        return Err(Error::value("a point has 1 to 64 bits"));
    }
    Ok(Header {
        scheme,
        group,
        bits,
        party: 0,
        parties: 2,
        words: 0,
    })
}

/// A point function with additive values.
pub(super) fn additive_header(bits: u32) -> Result<Header> {
    header(Scheme::Point, Group::Wide, bits)
}

/// The largest point.
fn most(bits: u32) -> u64 {
    u64::MAX >> (MAX_BITS - bits)
}

pub(super) fn random_odd() -> Result<Zeroizing<u128>> {
    Ok(Zeroizing::new(random_blocks(1)?[0] | 1))
}
