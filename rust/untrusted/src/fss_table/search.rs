//! Counts of rows by a prefix of their number and by their code (paper 5.2.2, disjoint
//! conditions): a step of the binary search for the last row that matches.

use super::check::{additive_point, inside, one_header, pieces};
use super::order::{Block, Form, Order, ROWS};
use crate::error::{go_on, Error, Result};
use crate::fss::{evaluate_point, PointShare, Points};
use crate::Stop;
use rayon::prelude::*;

/// Rows in the order that is searched, by their codes.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// The rows' codes.
    pub codes: &'a [u64],
    /// Bits of a code, 1 to 64.
    pub code_bits: u32,
    /// Bits of a row's number, 0 to 63; together with the code's at most 64.
    pub index_bits: u32,
    /// The number of the first row.
    pub first: u64,
}

impl Rows<'_> {
    pub(super) fn check(&self) -> Result<()> {
        let bits = self.index_bits.checked_add(self.code_bits);
        if self.code_bits == 0 || bits.is_none_or(|bits| bits > 64) {
            return Err(Error::new(
                "codes have 1 to 64 bits, with the row's number at most 64",
            ));
        }
        let end = self.first.checked_add(self.codes.len() as u64);
        if end.is_none_or(|end| end > 1_u64 << self.index_bits) {
            return Err(Error::new(
                "there are more rows than the number's bits tell",
            ));
        }
        inside(self.codes.iter().copied().max(), self.code_bits)
    }

    /// How rows make points with so many bits of their number, for shares of `bits` bits.
    pub(super) fn form(&self, prefix_bits: u32, bits: u32) -> Result<Form> {
        let shift = self.index_bits.checked_sub(prefix_bits);
        let shift = shift.ok_or_else(|| Error::new("a prefix is longer than a row's number"))?;
        if prefix_bits + self.code_bits != bits {
            return Err(Error::new("a share is not over a prefix and a code"));
        }
        Ok(Form {
            code_bits: self.code_bits,
            shift,
        })
    }
}

/// For each share the sum modulo 2^128 of its values at all rows' points, 16 bytes, little endian.
/// The point of row i is `(i >> (index_bits - prefix_bits)) << code_bits | codes[i]`. Answers of
/// parts are joined by addition.
///
/// # Errors
/// Shares that are none, or not all point functions with additive values over a prefix and a
/// code; more rows than numbers; a code that is too large.
pub fn search(shares: &[&[u8]], rows: &Rows<'_>, prefix_bits: u32) -> Result<Vec<Vec<u8>>> {
    search_until(shares, rows, prefix_bits, &Stop::new())
}

/// As [`search`], until it is stopped.
///
/// # Errors
/// As for [`search`]; [`Error::Stopped`].
pub fn search_until(
    shares: &[&[u8]],
    rows: &Rows<'_>,
    prefix_bits: u32,
    stop: &Stop,
) -> Result<Vec<Vec<u8>>> {
    rows.check()?;
    let Some(header) = one_header(shares)? else {
        return Ok(Vec::new());
    };
    let form = rows.form(prefix_bits, header.bits)?;
    let read = shares.iter().map(|share| additive_point(share));
    let functions: Vec<PointShare> = read.collect::<Result<_>>()?;
    let blocks = pieces(0..rows.codes.len(), rows.codes.len().div_ceil(ROWS), ROWS);
    let parts = blocks.into_par_iter().map(|range| {
        go_on(stop)?;
        let order = Block::new(rows.codes, range, rows.first).order(form);
        let count = |function| {
            go_on(stop)?;
            count(function, &order)
        };
        functions.iter().map(count).collect::<Result<Vec<u128>>>()
    });
    let nothing = || vec![0; functions.len()];
    let whole = parts.try_reduce(nothing, |a, b| Ok(super::sum::joined(a, &b)))?;
    Ok(whole.iter().map(|sum| sum.to_le_bytes().into()).collect())
}

/// The sum of a share's values at a block's rows.
fn count(function: &PointShare, order: &Order) -> Result<u128> {
    let mut sum = 0_u128;
    let mut sink = |first: usize, _: &[u8], values: &[u128]| {
        for (pair, value) in order.starts[first..].windows(2).zip(values) {
            let rows = u128::from(pair[1] - pair[0]);
            sum = sum.wrapping_add(value.wrapping_mul(rows));
        }
    };
    let points = Points::Sorted(&order.points);
    evaluate_point(function, points, 0..order.points.len(), &mut sink)?;
    Ok(sum)
}
