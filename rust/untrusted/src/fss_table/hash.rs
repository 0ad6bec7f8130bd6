//! Hashes of text columns, and digests of buffers.

use super::check::answer;
use crate::error::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::Array;
use arrow_schema::DataType;
use blake3::Hasher;
use rayon::prelude::*;

const KEYS: &str = "louver 2026-11 fss key hash v1";

/// The high and the low 64 bits of each row's hash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hashes {
    /// The first eight bytes of the digests, as little-endian words.
    pub high: Vec<u8>,
    /// The next eight.
    pub low: Vec<u8>,
}

/// Bytes of rows, of any Arrow type.
enum Texts<'a> {
    Short(&'a arrow_array::StringArray),
    Long(&'a arrow_array::LargeStringArray),
    View(&'a arrow_array::StringViewArray),
    Bytes(&'a arrow_array::BinaryArray),
    LongBytes(&'a arrow_array::LargeBinaryArray),
}

impl<'a> Texts<'a> {
    fn new(column: &'a dyn Array) -> Result<Self> {
        if column.null_count() > 0 {
            return Err(Error::new("a text that is hashed is NULL"));
        }
        match column.data_type() {
            DataType::Utf8 => Ok(Self::Short(column.as_string())),
            DataType::LargeUtf8 => Ok(Self::Long(column.as_string())),
            DataType::Utf8View => Ok(Self::View(column.as_string_view())),
            DataType::Binary => Ok(Self::Bytes(column.as_binary())),
            DataType::LargeBinary => Ok(Self::LongBytes(column.as_binary())),
            _ => Err(Error::new("what is hashed is text or bytes")),
        }
    }

    fn at(&self, row: usize) -> &[u8] {
        match self {
            Self::Short(texts) => texts.value(row).as_bytes(),
            Self::Long(texts) => texts.value(row).as_bytes(),
            Self::View(texts) => texts.value(row).as_bytes(),
            Self::Bytes(texts) => texts.value(row),
            Self::LongBytes(texts) => texts.value(row),
        }
    }
}

fn prefixed(hasher: &mut Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

/// BLAKE3's key derivation over the salt and each column's text, before each its length (u64,
/// little endian), row by row.
///
/// # Errors
/// No columns, columns of several lengths, of another type than text or bytes, or with NULL.
pub fn hash_texts(salt: &[u8], columns: &[&dyn Array]) -> Result<Hashes> {
    let rows = columns.first().map(|column| column.len());
    let rows = rows.ok_or_else(|| Error::new("there is no column to hash"))?;
    if columns.iter().any(|column| column.len() != rows) {
        return Err(Error::new("columns that are hashed have one length"));
    }
    let texts: Vec<Texts<'_>> = columns
        .iter()
        .map(|column| Texts::new(*column))
        .collect::<Result<_>>()?;
    let mut begun = Hasher::new_derive_key(KEYS);
    prefixed(&mut begun, salt);
    let bytes = answer(&[rows, 8])?;
    let (mut high, mut low) = (vec![0; bytes], vec![0; bytes]);
    let words = high
        .par_chunks_exact_mut(8)
        .zip(low.par_chunks_exact_mut(8))
        .enumerate();
    words.with_min_len(256).for_each(|(row, (high, low))| {
        let mut hasher = begun.clone();
        for column in &texts {
            prefixed(&mut hasher, column.at(row));
        }
        let digest = hasher.finalize();
        high.copy_from_slice(&digest.as_bytes()[..8]);
        low.copy_from_slice(&digest.as_bytes()[8..16]);
    });
    Ok(Hashes { high, low })
}

/// BLAKE3 of the number of buffers (u64, little endian), then of each one's length and BLAKE3.
pub fn digest(buffers: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Hasher::new();
    hasher.update(&(buffers.len() as u64).to_le_bytes());
    for buffer in buffers {
        let mut each = Hasher::new();
        each.update_rayon(buffer);
        hasher.update(&(buffer.len() as u64).to_le_bytes());
        hasher.update(each.finalize().as_bytes());
    }
    hasher.finalize().into()
}
