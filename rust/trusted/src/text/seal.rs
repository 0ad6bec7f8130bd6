//! Trapdoors of tokens, and filters of texts.

use super::tokens::{each, encoded};
use crate::columns::RowIds;
use crate::epochs::{EpochBits, Epochs, PerEpoch};
use crate::error::{Error, Result};
use crate::keyring::KeyRing;
use crate::keys::Purpose;
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
use zeroize::{Zeroize, ZeroizeOnDrop};

/// The version byte of filters that bear a salt.
const VERSION: u8 = 2;
/// That of filters of earlier releases.
const LEGACY_VERSION: u8 = 1;
/// Bytes of a salt.
const SALT: usize = 8;
/// Rows a task takes.
const CHUNK: usize = 8192;
/// Tokens of a value beyond which its filter is empty and matches every token.
const MOST_TOKENS: usize = 1 << 16;
/// Most ciphers of frequent tokens that a task keeps.
const KEPT: usize = 4096;
/// Ciphers that it keeps for each row, if these are fewer.
const KEPT_PER_ROW: usize = 16;

type Id = (u32, u32, u32);

fn purpose((table, column, generation): Id) -> Purpose<'static> {
    Purpose {
        name: "text",
        table,
        column,
        generation,
    }
}

fn cipher(half: &[u8]) -> Aes128Enc {
    Aes128Enc::new(half.try_into().expect("half of 32 bytes"))
}

/// A column's trapdoors.
#[derive(ZeroizeOnDrop)]
pub(crate) struct Trapdoors(Cmac);

impl Trapdoors {
    pub(super) fn of_column(ring: &KeyRing, id: Id) -> Arc<Self> {
        ring.ciphers().trapdoors.get(id, || {
            let key = ring.root().derive(purpose(id));
            Self(Cmac::new(key[..16].try_into().expect("half of 32 bytes")))
        })
    }

    /// The trapdoor of an encoded token.
    pub(super) fn of(&self, token: &[u8]) -> [u8; 16] {
        self.0.one(token).to_be_bytes()
    }
}

/// What the filters of one epoch's rows have in common.
#[derive(ZeroizeOnDrop)]
pub(crate) struct Filters {
    /// Makes the salts that filters bear; none in earlier releases.
    salts: Option<Aes128Enc>,
    /// Sets bits that belong to no token.
    padding: Aes128Enc,
}

impl Filters {
    fn of_epoch(ring: &KeyRing, id: Id, epoch: Option<&EpochBits>) -> Arc<Self> {
        ring.ciphers().filters.get((id, epoch.copied()), || {
            let key = ring.root().derive_in(purpose(id), epoch);
            Self {
                salts: epoch.map(|_| cipher(&key[..16])),
                padding: cipher(&key[16..]),
            }
        })
    }

    /// What a row's tokens are encrypted to: its id, behind its salt. Writes the filter's head.
    fn begin(&self, row_id: i64, filter: &mut Vec<u8>) -> [u8; 16] {
        let mut block = i128::from(row_id).to_be_bytes();
        let Some(salts) = &self.salts else {
            filter.push(LEGACY_VERSION);
            return block;
        };
        let salt = encrypted(salts, block).to_be_bytes();
        block[..SALT].copy_from_slice(&salt[..SALT]);
        filter.push(VERSION);
        filter.extend_from_slice(&salt[..SALT]);
        block
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
    ring: &KeyRing,
    id: Id,
    epochs: &Epochs,
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
    let (trapdoors, filters) = (Trapdoors::of_column(ring, id), PerEpoch::new(epochs));
    let starts: Vec<usize> = (0..values.len()).step_by(CHUNK).collect();
    let chunks = starts.into_par_iter().map(|start| {
        let rows = start..values.len().min(start + CHUNK);
        let mut writer = Writer::new(&trapdoors, rows.len());
        for row in rows {
            let row_id = row_ids.get(row).unwrap_or(0);
            let filters = filters.at(row_id, |epoch| Filters::of_epoch(ring, id, epoch))?;
            writer.write(texts.get(row), row_id, filters);
        }
        Ok((std::mem::take(&mut writer.bytes), writer.lengths.clone()))
    });
    let chunks = chunks.collect::<Result<Vec<(Vec<u8>, Vec<usize>)>>>()?;
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
    schedules: Vec<Option<(u128, Aes128Enc)>>,
    bounds: Vec<usize>,
    token: Vec<u8>,
    /// The 128 bits that each token of the value has in its row.
    row_tokens: Vec<u128>,
    bytes: Vec<u8>,
    lengths: Vec<usize>,
}

impl<'a> Writer<'a> {
    fn new(trapdoors: &'a Trapdoors, rows: usize) -> Self {
        let places = KEPT.min(rows * KEPT_PER_ROW).next_power_of_two();
        Self {
            trapdoors,
            schedules: std::iter::repeat_with(|| None).take(places).collect(),
            bounds: Vec::new(),
            token: Vec::new(),
            row_tokens: Vec::new(),
            bytes: Vec::new(),
            lengths: Vec::new(),
        }
    }

    fn write(&mut self, text: Option<&str>, row_id: i64, filters: &Filters) {
        let Self {
            trapdoors,
            schedules,
            bounds,
            token,
            row_tokens,
            bytes,
            lengths,
        } = self;
        row_tokens.clear();
        let start = bytes.len();
        let block = filters.begin(row_id, bytes);
        each(text.unwrap_or_default(), bounds, |kind, part| {
            encoded(kind, part, token);
            row_tokens.push(salted(trapdoors, schedules, token, block));
        });
        if text.is_none() {
            row_tokens.clear();
        }
        row_tokens.sort_unstable();
        row_tokens.dedup();
        if row_tokens.len() > MOST_TOKENS {
            bytes.truncate(start + 1);
        } else {
            let (head, steps) = (bytes.len(), row_tokens.len().div_ceil(STEP_TOKENS).max(1));
            bytes.resize(head + steps * STEP_BYTES, 0);
            let filter = &mut bytes[head..];
            row_tokens
                .iter()
                .for_each(|&token| bloom::set(filter, token));
            // So many bits are set as if the filter were full.
            for number in row_tokens.len()..steps * STEP_TOKENS {
                let mut block = i128::from(row_id).to_be_bytes();
                block[..4].copy_from_slice(&(number as u32).to_be_bytes());
                bloom::set(filter, encrypted(&filters.padding, block));
            }
        }
        lengths.push(bytes.len() - start);
    }
}

/// The 128 bits of a token in a row.
fn salted(
    trapdoors: &Trapdoors,
    schedules: &mut [Option<(u128, Aes128Enc)>],
    token: &[u8],
    block: [u8; 16],
) -> u128 {
    let cipher = || Aes128Enc::new(&trapdoors.of(token).into());
    // Short tokens, the frequent ones: a token has 15 bytes at most, so the last byte keeps
    // lengths apart.
    if token.len() > 15 {
        return encrypted(&cipher(), block);
    }
    let mut name = [0; 16];
    name[..token.len()].copy_from_slice(token);
    name[15] = token.len() as u8;
    let name = u128::from_le_bytes(name);
    let mixed = (name as u64 ^ (name >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let bucket = (mixed >> 52) as usize % schedules.len();
    let slot = &mut schedules[bucket];
    if slot.as_ref().is_none_or(|(of, _)| *of != name) {
        *slot = Some((name, cipher()));
    }
    slot.as_ref()
        .map_or(0, |(_, cipher)| encrypted(cipher, block))
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
