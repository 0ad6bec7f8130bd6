//! Decoders behind a seal or a file, for fuzzing alone (`docs/fuzzing.md`): what is shipped is
//! built without this module.

use crate::error::{Error, Result};
use crate::keyfile;
use crate::keys::{RootSecret, KEY_BYTES};
use crate::tiles::{self, TileColumn, TileForm};
use crate::value::{plain_type, Builder, Encoder};
use crate::KeyRing;
use arrow_array::ArrayRef;
use arrow_schema::DataType;

/// The keys of a fixed secret, so that sealed inputs of a corpus open at every run.
pub fn ring() -> KeyRing {
    KeyRing::from_root(secret(&[7; KEY_BYTES]))
}

/// The secret in the text of a key file.
pub fn read_key_file(text: &str) -> Option<[u8; KEY_BYTES]> {
    keyfile::parse(text).ok().map(|root| *root.expose())
}

/// The text of a key file.
pub fn write_key_file(root: &[u8; KEY_BYTES], comment: &str) -> String {
    keyfile::format(&secret(root), comment, 0).to_string()
}

/// What a sealed column holds before it is sealed.
///
/// # Errors
/// [`Error::Value`] for a type that cannot be sealed.
pub fn encode_values(array: &ArrayRef) -> Result<Vec<Vec<u8>>> {
    let encoder = Encoder::new(array)?;
    let encode = |row| {
        let mut bytes = Vec::new();
        encoder.write(row, &mut bytes).map(|()| bytes)
    };
    (0..array.len()).map(encode).collect()
}

/// What a sealed column holds once it is opened.
///
/// # Errors
/// [`Error::Value`] for a type that cannot be sealed, [`Error::Verify`] for other bytes.
pub fn decode_values(data_type: &DataType, stored: &[&[u8]]) -> Result<ArrayRef> {
    let mut builder = Builder::new(&plain_type(data_type)?, stored.len())?;
    for bytes in stored {
        let pushed = builder.push(bytes);
        pushed.map_err(|_| Error::verify("not a value of this type"))?;
    }
    builder.finish()
}

/// What tiles of `rows` values hold before they are sealed.
///
/// # Errors
/// [`Error::Value`] and [`Error::Widen`], as [`KeyRing::seal_tiles`].
pub fn encode_tiles(form: TileForm, values: &ArrayRef, rows: usize) -> Result<Vec<Vec<u8>>> {
    tiles::seal::plaintexts(form, values, rows)
}

/// A sealed tile that holds any bytes.
///
/// # Errors
/// [`Error::Verify`] for a row of an epoch that is not known.
pub fn seal_tile(
    ring: &KeyRing,
    column: &TileColumn<'_>,
    first: i64,
    plain: &[u8],
) -> Result<Vec<u8>> {
    tiles::seal::seal_plain(ring, column, first, plain)
}

fn secret(root: &[u8; KEY_BYTES]) -> RootSecret {
    RootSecret::from_bytes(root).expect("32 bytes")
}
