//! Trapdoors of tokens, and filters of texts.

use super::tokens::{each, encoded};
use super::VERSION;
use crate::columns::RowIds;
use crate::error::{Error, Result};
use crate::keys::{Purpose, RootSecret};
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_schema::DataType;
use louver_primitives::bloom::{self, STEP_BYTES, STEP_TOKENS};
use louver_primitives::prp::Cmac;
use rayon::prelude::*;
use std::sync::Arc;
use zeroize::Zeroize;

/// Rows a task takes.
const CHUNK: usize = 8192;
/// Tokens of a value beyond which its filter is empty and stands for every token.
const MOST_TOKENS: usize = 1 << 16;
/// Ciphers of frequent tokens that a task keeps; a power of two.
const KEPT: usize = 4096;

/// A column's trapdoors, and a cipher for bits that stand for no token.
pub(super) struct Trapdoors {
    tokens: Cmac,
    padding: Aes128Enc,
}

impl Trapdoors {
    pub(super) fn new(root: &RootSecret, (table, column, generation): (u32, u32, u32)) -> Self {
        let key = root.derive(Purpose {
            name: "text",
            table,
            column,
            generation,
        });
        let (tokens, padding) = key.split_at(16);
        Self {
            tokens: Cmac::new(tokens.try_into().expect("half of 32 bytes")),
            padding: Aes128Enc::new(padding.try_into().expect("half of 32 bytes")),
        }
    }

    /// The trapdoor of an encoded token.
    pub(super) fn of(&self, token: &[u8]) -> [u8; 16] {
        self.tokens.one(token).to_be_bytes()
    }
}

/// Texts in any of Arrow's layouts.
enum Texts<'a> {
    Small(&'a arrow_array::StringArray),
    Large(&'a arrow_array::LargeStringArray),
    View(&'a arrow_array::StringViewArray),
}

impl<'a> Texts<'a> {
    fn new(array: &'a dyn Array) -> Result<Self> {
        match array.data_type() {
            DataType::Utf8 => Ok(Self::Small(array.as_string())),
            DataType::LargeUtf8 => Ok(Self::Large(array.as_string())),
            DataType::Utf8View => Ok(Self::View(array.as_string_view())),
            other => Err(Error::value(format!("words are in text, not in {other}"))),
        }
    }

    fn get(&self, row: usize) -> Option<&'a str> {
        match self {
            Self::Small(a) => a.is_valid(row).then(|| a.value(row)),
            Self::Large(a) => a.is_valid(row).then(|| a.value(row)),
            Self::View(a) => a.is_valid(row).then(|| a.value(row)),
        }
    }
}

pub(super) fn seal(
    trapdoors: &Trapdoors,
    values: &dyn Array,
    row_ids: &dyn Array,
) -> Result<ArrayRef> {
    let (texts, row_ids) = (Texts::new(values)?, RowIds::new(row_ids)?);
    if row_ids.len() != values.len() {
        return Err(Error::value("one row id a value is needed"));
    }
    if row_ids.has_nulls() {
        return Err(Error::value("a value without row id cannot be sealed"));
    }
    let starts: Vec<usize> = (0..values.len()).step_by(CHUNK).collect();
    let chunks = starts.into_par_iter().map(|start| {
        let mut writer = Writer::new(trapdoors);
        for row in start..values.len().min(start + CHUNK) {
            writer.write(texts.get(row), row_ids.get(row).unwrap_or(0));
        }
        (std::mem::take(&mut writer.bytes), writer.lengths.clone())
    });
    let chunks: Vec<(Vec<u8>, Vec<usize>)> = chunks.collect();
    let total: usize = chunks.iter().map(|(bytes, _)| bytes.len()).sum();
    if i32::try_from(total).is_err() {
        let text = "more than 2 GiB of filters at once: seal fewer rows at a time";
        return Err(Error::value(text));
    }
    let lengths = chunks
        .iter()
        .flat_map(|(_, lengths)| lengths.iter().copied());
    let offsets = OffsetBuffer::from_lengths(lengths);
    let bytes: Vec<&[u8]> = chunks.iter().map(|(bytes, _)| bytes.as_slice()).collect();
    let bytes = Buffer::from_vec(bytes.concat());
    Ok(Arc::new(BinaryArray::new(offsets, bytes, None)))
}

/// Writes filters one after the other.
struct Writer<'a> {
    trapdoors: &'a Trapdoors,
    kept: Vec<Option<(u128, Aes128Enc)>>,
    places: Vec<usize>,
    token: Vec<u8>,
    /// The 128 bits that each token of the value has in its row.
    found: Vec<u128>,
    bytes: Vec<u8>,
    lengths: Vec<usize>,
}

impl<'a> Writer<'a> {
    fn new(trapdoors: &'a Trapdoors) -> Self {
        Self {
            trapdoors,
            kept: std::iter::repeat_with(|| None).take(KEPT).collect(),
            places: Vec::new(),
            token: Vec::new(),
            found: Vec::new(),
            bytes: Vec::new(),
            lengths: Vec::new(),
        }
    }

    fn write(&mut self, text: Option<&str>, row_id: i64) {
        let salt = i128::from(row_id).to_be_bytes();
        let Self {
            trapdoors,
            kept,
            places,
            token,
            found,
            bytes,
            lengths,
        } = self;
        found.clear();
        each(text.unwrap_or_default(), places, |kind, part| {
            encoded(kind, part, token);
            found.push(salted(trapdoors, kept, token, salt));
        });
        if text.is_none() {
            found.clear();
        }
        found.sort_unstable();
        found.dedup();
        let start = bytes.len();
        bytes.push(VERSION);
        if found.len() <= MOST_TOKENS {
            let steps = found.len().div_ceil(STEP_TOKENS).max(1);
            bytes.resize(start + 1 + steps * STEP_BYTES, 0);
            let filter = &mut bytes[start + 1..];
            found.iter().for_each(|&token| bloom::set(filter, token));
            // So many bits are set as if the filter were full.
            for number in found.len()..steps * STEP_TOKENS {
                let mut block = salt;
                block[..4].copy_from_slice(&(number as u32).to_be_bytes());
                bloom::set(filter, encrypted(&trapdoors.padding, block));
            }
        }
        lengths.push(bytes.len() - start);
    }
}

/// The 128 bits of a token in a row.
fn salted(
    trapdoors: &Trapdoors,
    kept: &mut [Option<(u128, Aes128Enc)>],
    token: &[u8],
    salt: [u8; 16],
) -> u128 {
    let cipher = || Aes128Enc::new(&trapdoors.of(token).into());
    // Short tokens, the frequent ones: a token has 15 bytes at most, so the last byte tells
    // lengths apart.
    if token.len() > 15 {
        return encrypted(&cipher(), salt);
    }
    let mut name = [0; 16];
    name[..token.len()].copy_from_slice(token);
    name[15] = token.len() as u8;
    let name = u128::from_le_bytes(name);
    let mixed = (name as u64 ^ (name >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let slot = &mut kept[(mixed >> 52) as usize % KEPT];
    if slot.as_ref().is_none_or(|(of, _)| *of != name) {
        *slot = Some((name, cipher()));
    }
    slot.as_ref()
        .map_or(0, |(_, cipher)| encrypted(cipher, salt))
}

fn encrypted(cipher: &Aes128Enc, block: [u8; 16]) -> u128 {
    let mut block = Block::from(block);
    cipher.encrypt_block(&mut block);
    u128::from_be_bytes(block.into())
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.token.zeroize();
    }
}
