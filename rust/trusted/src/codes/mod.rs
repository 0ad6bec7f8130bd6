//! Codes of values: equality codes (`spec/eq.md`), and the layer that hides them at rest
//! (`spec/onion.md`).

mod eq;
mod keys;
mod ord;
mod ore;
mod output;
mod steps;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use keys::{Column, Inner};
pub use ord::Interval;
pub(crate) use ord::{Function, Tree};
pub use steps::{EqStep, OrdStep, TagStep};
pub(crate) use values::Domain;

use crate::columns::RowIds;
use crate::epochs::{EpochBits, Epochs, PerEpoch};
use crate::error::{Error, Result};
use crate::keyring::KeyRing;
use arrow_array::{Array, ArrayRef};
use louver_primitives::onion::Layer;
use output::Codes;
use rayon::prelude::*;
use std::sync::Arc;
use values::Values;

/// Rows a task takes.
const CHUNK: usize = 8192;
/// The first byte of a key that opens a layer of codes.
const DET_VERSION: u8 = 1;

/// The layers of codes that a column stores.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Onion {
    /// Of equality codes.
    Eq,
    /// Of order codes.
    Ord,
}

impl KeyRing {
    /// Equality codes of a column: 64 bits (`Int64`) or 128 (16 bytes, big endian), by the
    /// domain; NULL for NULL. In a group, codes can be adjusted to [`KeyRing::eq_join_codes`].
    ///
    /// # Errors
    /// [`Error::Value`] for an unknown domain, values that are none of its, and a value whose
    /// code is the one that stands for NULL (one of 2^64).
    pub fn eq_codes(
        &self,
        id: (u32, u32, u32),
        group: &str,
        domain: &str,
        values: &dyn Array,
    ) -> Result<ArrayRef> {
        let domain = Domain::parse(domain)?;
        let column = keys::eq(self, id);
        let values = Values::new(domain, values)?;
        let codes = if group.is_empty() {
            eq::codes(&column.inner, &values)?
        } else {
            let inner = keys::eq_group(self, group, domain);
            eq::outer(&column.outer, eq::codes(&inner, &values)?).checked(values.nulls())?
        };
        codes.into_array(values.nulls())
    }

    /// The equality codes that all columns of a group share.
    ///
    /// # Errors
    /// As [`KeyRing::eq_codes`], and without a group.
    pub fn eq_join_codes(&self, group: &str, domain: &str, values: &dyn Array) -> Result<ArrayRef> {
        if group.is_empty() {
            return Err(Error::value("a column without a group has no join codes"));
        }
        let domain = Domain::parse(domain)?;
        let values = Values::new(domain, values)?;
        let inner = keys::eq_group(self, group, domain);
        eq::codes(&inner, &values)?.into_array(values.nulls())
    }

    /// Codes under the pads of their rows, as they are stored: no NULL, which is code 0.
    ///
    /// # Errors
    /// [`Error::Value`] for anything but codes, and for missing row ids; [`Error::Verify`] for a
    /// row of an epoch that is not known.
    pub fn close_codes(
        &self,
        id: (u32, u32, u32),
        epochs: &Epochs,
        onion: Onion,
        codes: &dyn Array,
        row_ids: &dyn Array,
    ) -> Result<ArrayRef> {
        let row_ids = RowIds::new(row_ids)?;
        if row_ids.len() != codes.len() || row_ids.has_nulls() {
            return Err(Error::value("one row id a code is needed"));
        }
        let layers = PerEpoch::new(epochs);
        let layer = |at: usize| -> Result<(i64, &Arc<Layer>)> {
            let row_id = row_ids.get(at).unwrap_or(0);
            let make = |bits: Option<&EpochBits>| keys::layer(self, id, onion, bits);
            Ok((row_id, layers.at(row_id, make)?))
        };
        let mut codes = Codes::read(codes)?;
        match &mut codes {
            Codes::Narrow(codes) => {
                let codes = codes.par_iter_mut().with_min_len(CHUNK).enumerate();
                codes.try_for_each(|(at, code)| -> Result<()> {
                    let (row_id, layer) = layer(at)?;
                    *code = layer.narrow(row_id, *code);
                    Ok(())
                })
            }
            Codes::Wide(codes) => {
                let codes = codes.par_iter_mut().with_min_len(CHUNK).enumerate();
                codes.try_for_each(|(at, code)| -> Result<()> {
                    let (row_id, layer) = layer(at)?;
                    *code = layer.wide(row_id, *code);
                    Ok(())
                })
            }
        }?;
        codes.into_array(None)
    }

    /// The key that opens the layer over a column's codes, of the rows in one row's epoch.
    ///
    /// # Errors
    /// [`Error::Verify`] if that epoch is not known.
    pub fn layer_key(
        &self,
        id: (u32, u32, u32),
        epochs: &Epochs,
        onion: Onion,
        row_id: i64,
    ) -> Result<[u8; 32]> {
        Ok(*keys::layer_key(
            self.root(),
            id,
            onion,
            epochs.bits(row_id)?,
        ))
    }

    /// The key that adjusts a column's equality codes to those of its group.
    pub fn det_key(&self, id: (u32, u32, u32)) -> [u8; 17] {
        let mut wire = [DET_VERSION; 17];
        wire[1..].copy_from_slice(&*keys::det(self.root(), id));
        wire
    }
}
