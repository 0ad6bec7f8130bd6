//! Key updates as they cross the wire, and their application.

use super::call::Call;
use crate::error::{Error, Result};
use louver_primitives::{Column, Kernel, Scalar};

/// The version byte of a wire-form update.
const VERSION: u8 = 1;

/// `<p, q>`: raise the helper to `p`, multiply by `q`. Both big endian without leading zeros.
pub(crate) struct Update<'a> {
    pub(crate) power: &'a [u8],
    pub(crate) factor: &'a [u8],
}

/// The wire form of an update: version byte, then p and q, each after its length in two bytes.
///
/// # Errors
/// If a number has more than 65,535 bytes.
pub fn encode_update(power: &[u8], factor: &[u8]) -> Result<Vec<u8>> {
    let mut out = vec![VERSION];
    for number in [power, factor] {
        let number = trim(number);
        let length = u16::try_from(number.len());
        let length = length.map_err(|_| Error::new("a key update's number is too long"))?;
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(number);
    }
    Ok(out)
}

impl<'a> Update<'a> {
    pub(crate) fn decode(wire: &'a [u8]) -> Result<Self> {
        let malformed = || Error::new("a key update is malformed");
        let (&version, rest) = wire.split_first().ok_or_else(malformed)?;
        if version != VERSION {
            return Err(Error::new("a key update of an unknown version"));
        }
        let (power, rest) = number(rest).ok_or_else(malformed)?;
        let (factor, rest) = number(rest).ok_or_else(malformed)?;
        if !rest.is_empty() {
            return Err(malformed());
        }
        Ok(Self { power, factor })
    }
}

/// A column, its helper column and its update `<p, q>`, prepared once a call.
pub(crate) struct Operand<'a> {
    value: usize,
    helper: usize,
    power: &'a [u8],
    factor: Option<Scalar>,
}

impl<'a> Operand<'a> {
    /// Prepares an update of the call's column `value` by `helper`. `outside` is the number of raw
    /// columns with which the result will be multiplied.
    pub(crate) fn new(
        call: &Call<'_>,
        (value, helper): (usize, usize),
        update: &Update<'a>,
        outside: usize,
    ) -> Result<Self> {
        let Update { power, factor } = *update;
        // Besides the value itself: a kept power, too, is multiplied in as stored.
        let raw = outside + usize::from(power == [1]);
        let needless = raw == 0 && factor == [1];
        let factor = (!needless).then(|| call.kernel.scalar_times_r(factor, raw));
        Ok(Self {
            value,
            helper,
            power,
            factor: factor.transpose()?,
        })
    }

    /// `q * a * s^p` in some rows, raw.
    pub(crate) fn apply(&self, call: &Call<'_>, rows: &[usize]) -> Result<Column> {
        let powered = if hard(self.power) {
            let helper = call.load(self.helper, rows)?;
            Some(call.kernel.pow(&helper, self.power))
        } else {
            None
        };
        self.apply_to(call, rows, powered)
    }

    /// The same where the helper may have been raised to `p` before.
    fn apply_to(&self, call: &Call<'_>, rows: &[usize], powered: Option<Column>) -> Result<Column> {
        let k = &call.kernel;
        let a = call.load_raw(self.value, rows)?;
        let a = match (powered, self.power) {
            (Some(powered), _) => k.mul(&a, &powered),
            (None, []) => a,
            (None, _) => k.mul(&a, &call.load_raw(self.helper, rows)?),
        };
        Ok(match &self.factor {
            Some(factor) => k.scale(&a, factor),
            None => a,
        })
    }

    /// The sum of two updated columns. What they share of squarings is done once.
    pub(crate) fn sum(&self, other: &Self, call: &Call<'_>, rows: &[usize]) -> Result<Column> {
        let k = &call.kernel;
        let both = hard(self.power) && hard(other.power);
        if !(both && call.same(self.helper, other.helper, rows)) {
            let (x, y) = (self.apply(call, rows)?, other.apply(call, rows)?);
            return Ok(k.add(&x, &y));
        }
        let helper = call.load(self.helper, rows)?;
        let mut raised = k.pow_many(&helper, &[self.power, other.power]).into_iter();
        let x = self.apply_to(call, rows, raised.next())?;
        let y = other.apply_to(call, rows, raised.next())?;
        Ok(k.add(&x, &y))
    }
}

fn number(from: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = from.split_first_chunk::<2>()?;
    let (number, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    Some((trim(number), rest))
}

/// Without leading zeros.
pub(crate) fn trim(number: &[u8]) -> &[u8] {
    let start = number.iter().position(|&b| b != 0);
    &number[start.unwrap_or(number.len())..]
}

/// `s` to each of some powers (trimmed), the squarings shared; `None` for power 0.
pub(crate) fn powers(k: &Kernel, s: &Column, powers: &[&[u8]]) -> Vec<Option<Column>> {
    let hard: Vec<&[u8]> = powers.iter().copied().filter(|p| hard(p)).collect();
    let mut raised = match hard.as_slice() {
        [] => Vec::new(),
        [only] => vec![k.pow(s, only)],
        many => k.pow_many(s, many),
    }
    .into_iter();
    let column_update = |p: &&[u8]| match *p {
        [] => None,
        [1] => Some(s.clone()),
        _ => raised.next(),
    };
    powers.iter().map(column_update).collect()
}

fn hard(power: &[u8]) -> bool {
    !matches!(power, [] | [1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn updates_survive_the_wire(p in any::<Vec<u8>>(), q in any::<Vec<u8>>()) {
            let wire = encode_update(&p, &q).unwrap();
            let update = Update::decode(&wire).unwrap();
            prop_assert_eq!((update.power, update.factor), (trim(&p), trim(&q)));
        }

        #[test]
        fn no_bytes_make_it_panic(wire in any::<Vec<u8>>()) {
            let _ = Update::decode(&wire);
        }
    }
}
