//! Rows whose filters hold the tokens of a search.

use crate::columns::Blobs;
use crate::error::{Error, Result};
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array};
use arrow_schema::DataType;
use louver_primitives::bloom::{self, STEP_BYTES};
use rayon::prelude::*;
use std::sync::Arc;

/// The version byte of lists of trapdoors.
const SEARCH_VERSION: u8 = 1;
/// The version byte of filters that bear a salt.
const VERSION: u8 = 2;
/// That of filters of earlier releases.
const LEGACY_VERSION: u8 = 1;
/// Bytes of a salt.
const SALT: usize = 8;
/// Bytes of a trapdoor.
const TRAPDOOR: usize = 16;
/// Rows a task takes.
const CHUNK: usize = 2048;

/// Whether a row's filter (`spec/text.md`) holds all tokens whose trapdoors are given; NULL where
/// an argument is.
///
/// # Errors
/// Other types, lengths that differ, malformed filters or trapdoors.
pub fn text_match(stored: &dyn Array, row_ids: &dyn Array, tokens: &dyn Array) -> Result<ArrayRef> {
    let (filters, tokens) = (Blobs::new(stored)?, Blobs::new(tokens)?);
    if row_ids.data_type() != &DataType::Int64 {
        let text = format!(
            "row ids are BIGINT, not of Arrow type {}",
            row_ids.data_type()
        );
        return Err(Error::new(text));
    }
    let ids = row_ids.as_primitive::<Int64Type>();
    let rows = filters.len();
    if ids.len() != rows || tokens.len() != rows {
        return Err(Error::new("the columns differ in length"));
    }
    let starts: Vec<usize> = (0..rows).step_by(CHUNK).collect();
    let matches = starts.into_par_iter().map(|start| {
        let rows = start..rows.min(start + CHUNK);
        Matcher::default().run(&filters, ids, &tokens, rows)
    });
    let matches = matches.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(BooleanArray::from(matches.concat())))
}

/// Trapdoors as ciphers, and what a batch needs.
#[derive(Default)]
struct Matcher<'a> {
    wire: Option<&'a [u8]>,
    ciphers: Vec<Aes128Enc>,
    blocks: Vec<Block>,
}

impl<'a> Matcher<'a> {
    fn run(
        &mut self,
        filters: &Blobs<'a>,
        ids: &Int64Array,
        tokens: &Blobs<'a>,
        rows: std::ops::Range<usize>,
    ) -> Result<Vec<Option<bool>>> {
        let first = rows.start;
        let mut matches = vec![None; rows.len()];
        // Rows of one search; it is nearly always the same in all of them.
        let mut batch: Vec<(usize, Filter<'_>)> = Vec::with_capacity(rows.len());
        for row in rows {
            let (Some(filter), Some(wire)) = (filters.get(row), tokens.get(row)) else {
                continue;
            };
            if ids.is_null(row) {
                continue;
            }
            if self.wire != Some(wire) {
                self.test(&mut batch, first, &mut matches);
                self.ciphers = ciphers(wire)?;
                self.wire = Some(wire);
            }
            matches[row - first] = Some(true);
            // An empty filter matches every token.
            if let Some(filter) = Filter::read(filter, ids.value(row))? {
                batch.push((row, filter));
            }
        }
        self.test(&mut batch, first, &mut matches);
        Ok(matches)
    }

    /// Tests a batch token by token, each on the rows that are left.
    fn test(
        &mut self,
        batch: &mut Vec<(usize, Filter<'_>)>,
        first: usize,
        matches: &mut [Option<bool>],
    ) {
        for cipher in &self.ciphers {
            self.blocks.clear();
            let blocks = batch.iter().map(|(_, filter)| filter.block);
            self.blocks.extend(blocks.map(Block::from));
            cipher.encrypt_blocks(&mut self.blocks);
            let mut blocks = self.blocks.iter();
            batch.retain(|(row, filter)| {
                let token = blocks
                    .next()
                    .map_or(0, |b| u128::from_be_bytes((*b).into()));
                let holds = bloom::test(filter.bits, token);
                matches[row - first] = Some(holds);
                holds
            });
        }
        batch.clear();
    }
}

fn ciphers(wire: &[u8]) -> Result<Vec<Aes128Enc>> {
    let malformed = || Error::new("a list of trapdoors is malformed");
    let [SEARCH_VERSION, trapdoors @ ..] = wire else {
        return Err(malformed());
    };
    let (keys, rest) = trapdoors.as_chunks::<TRAPDOOR>();
    if keys.is_empty() || !rest.is_empty() {
        return Err(malformed());
    }
    Ok(keys.iter().map(|key| Aes128Enc::new(key.into())).collect())
}

/// A row's filter, and what its tokens were encrypted to.
struct Filter<'a> {
    block: [u8; 16],
    bits: &'a [u8],
}

impl<'a> Filter<'a> {
    /// `None` if it is empty.
    fn read(stored: &'a [u8], row_id: i64) -> Result<Option<Self>> {
        let mut block = i128::from(row_id).to_be_bytes();
        let bits = match stored {
            [VERSION | LEGACY_VERSION] => return Ok(None),
            [LEGACY_VERSION, bits @ ..] => Some(bits),
            [VERSION, rest @ ..] => rest.split_first_chunk::<SALT>().map(|(salt, bits)| {
                block[..SALT].copy_from_slice(salt);
                bits
            }),
            _ => None,
        };
        let bits = bits.filter(|bits| !bits.is_empty() && bits.len().is_multiple_of(STEP_BYTES));
        let bits = bits.ok_or_else(|| Error::new("a filter of words is malformed"))?;
        Ok(Some(Self { block, bits }))
    }
}
