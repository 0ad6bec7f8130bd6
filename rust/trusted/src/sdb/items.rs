//! Products with item keys, row by row.

use super::rows::RowCiphers;
use super::secret::Secret;
use super::space::SdbSpace;
use crate::epochs::Epochs;
use crate::error::Result;
use louver_primitives::{Column, FixedBase};
use num_bigint::{BigInt, BigUint};
use std::sync::Arc;
use zeroize::Zeroize;

/// `factor * (g^(t x_S))^r` for the row exponents `r` of one table, prepared once a column.
pub(crate) struct ItemKeys<'a> {
    ciphers: RowCiphers<'a>,
    powers: Powers,
}

enum Powers {
    Table(Arc<FixedBase>),
    /// For a few rows.
    Single {
        base: Secret,
        factor: Secret,
    },
}

impl<'a> ItemKeys<'a> {
    /// Prepares `rows` products.
    pub(crate) fn new(
        space: &'a SdbSpace,
        (table, epochs): (u32, &'a Epochs),
        factor: &Secret,
        offset: &BigInt,
        rows: usize,
    ) -> Self {
        let powers = match space.table(factor, offset, rows) {
            Some(table) => Powers::Table(table),
            None => Powers::Single {
                base: space.base(offset),
                factor: Secret::new(factor.expose().clone()),
            },
        };
        Self {
            ciphers: RowCiphers::new(&space.root, table, epochs),
            powers,
        }
    }

    /// `column` times the item keys of some rows. A column loaded raw gives a raw column.
    ///
    /// # Errors
    /// [`crate::Error::Verify`] for a row of an unknown epoch.
    pub(crate) fn times(
        &self,
        space: &SdbSpace,
        row_ids: &[i64],
        column: &Column,
    ) -> Result<Column> {
        let mut exponents = self.ciphers.exponents(row_ids)?;
        let out = match &self.powers {
            Powers::Table(table) => table.pow_mul(&space.kernel, &exponents, column),
            Powers::Single { base, factor } => {
                let item = |r: &[u8; 16]| {
                    let power = BigUint::from_bytes_be(r);
                    let power = base.magnitude().modpow(&power, space.n());
                    space.fixed(&(power * factor.magnitude() % space.n()))
                };
                let items: Vec<Vec<u8>> = exponents.iter().map(item).collect();
                let items = space.kernel.load_rows(items.iter().map(Vec::as_slice));
                space.kernel.mul(column, &items.expect("below n"))
            }
        };
        exponents.zeroize();
        Ok(out)
    }
}
