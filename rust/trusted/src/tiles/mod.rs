//! Tiles: up to 1,024 values of one column in one message (`spec/tile.md`).
//!
//! A tile is sealed as a value is (`spec/rnd.md`), under a key of its own purpose, and bound to the
//! id of its first row. [`TileForm`] says how its values lie in it.

mod fixed;
mod form;
mod frame;
mod open;
mod output;
mod rows;
pub(crate) mod seal;
mod strings;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_plaintexts;
#[cfg(test)]
mod tests_of_strings;
#[cfg(test)]
mod tests_of_vectors;
mod unstring;

pub use form::TileForm;
pub use open::Slots;
pub use rows::are_all;

use crate::epochs::Epochs;
use crate::error::Result;
use crate::keyring::KeyRing;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use louver_primitives::packed::Lanes;

/// Most values of a tile.
pub const TILE_ROWS: usize = louver_primitives::packed::ROWS;

/// Which column, in which form, and where its tiles begin.
#[derive(Clone, Copy, Debug)]
pub struct TileColumn<'a> {
    /// Table, column and generation.
    pub id: (u32, u32, u32),
    /// The epochs of the database.
    pub epochs: &'a Epochs,
    /// The column's form.
    pub form: TileForm,
}

impl KeyRing {
    /// Seals the values of consecutive rows from `first` on in tiles of `rows` values; the last one
    /// has the rest.
    ///
    /// # Errors
    /// [`crate::Error::Widen`] for a value outside of the form; [`crate::Error::Value`] for a type
    /// that the form does not fit, a number of rows that is not 1 to 1,024, rows of several
    /// epochs, or more than 2 GiB of ciphertext; [`crate::Error::Verify`] for an epoch that is not
    /// known.
    pub fn seal_tiles(
        &self,
        column: &TileColumn<'_>,
        values: &ArrayRef,
        first: i64,
        rows: usize,
    ) -> Result<ArrayRef> {
        seal::seal(self, column, values, first, rows)
    }

    /// Opens tiles as one column, and says how many rows each of them has. With `slots` only these
    /// rows come out: row `r` of tile `t` is `1024 * t + r`, ascending.
    ///
    /// # Errors
    /// [`crate::Error::Verify`], naming the tile, for one that was altered, cut, moved, is missing,
    /// or was sealed in another form, and for a slot that its tile does not have.
    pub fn open_tiles(
        &self,
        column: &TileColumn<'_>,
        sealed: &dyn Array,
        firsts: &dyn Array,
        data_type: &DataType,
        slots: Option<Slots<'_>>,
    ) -> Result<(ArrayRef, Vec<u16>)> {
        open::open(
            self,
            column,
            sealed,
            firsts,
            data_type,
            slots,
            Lanes::best(),
        )
    }
}

/// A unit for byte strings like these, `rows` of them in a tile: (nearly) all of their tiles take
/// one.
///
/// # Errors
/// As [`KeyRing::seal_tiles`].
pub fn tile_unit(values: &ArrayRef, limit: u32, rows: usize) -> Result<u32> {
    seal::unit(values, limit, rows)
}
