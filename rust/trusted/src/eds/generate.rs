//! Segments: the filters of many files at once, transposed and under their keystream.
//!
//! Bits are set in groups of files that fit the second-level cache; the rows are then put together
//! from the groups, each under the keystream of its own key, of which there is one a position.

use super::keys::{element, Element, IndexKeys, Scratch};
use super::keys::{ELEMENTS, GREATEST, LEAST, NOISE, SIDE};
use super::tags;
use crate::error::{Error, Result};
use crate::keys::random;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use louver_primitives::eds::hash::ELEMENT;
use louver_primitives::eds::segment::{Header, HEADER, MOST_FILES, SEGMENT_ID, TAG};
use louver_primitives::eds::spec::Form;
use louver_primitives::eds::tree::coverage_set;
use rayon::prelude::*;

/// A file has values from its low to its high.
pub const RANGE: u8 = 0;
/// A file has no value: no token finds it.
pub const NO_VALUE: u8 = 1;
/// A file may have any value: every token finds it.
pub const ANY_VALUE: u8 = 2;

/// Files of a group: a cache line of bits a position.
const GROUP: usize = 512;
/// Files whose elements are hashed together.
const HASHED: usize = 16;
/// Rows that a task puts together.
const TASK: usize = 256;
const WORD: usize = u64::BITS as usize;
const BLOCK: usize = 16;

/// What files have in a column: for each the least and the greatest mapped value, and
/// [`RANGE`], [`NO_VALUE`] or [`ANY_VALUE`], in which cases the values count for nothing.
#[derive(Clone, Copy, Debug)]
pub struct Ranges<'a> {
    /// Least values.
    pub lows: &'a [u64],
    /// Greatest values.
    pub highs: &'a [u64],
    /// What is known.
    pub states: &'a [u8],
}

impl Ranges<'_> {
    /// How many files they are, if they make sense.
    ///
    /// # Errors
    /// [`Error::Value`] if they do not.
    pub fn check(&self) -> Result<u32> {
        let files = self.states.len();
        if files != self.lows.len() || files != self.highs.len() {
            return Err(Error::value("the ranges of files differ in number"));
        }
        let fits = |files: &u32| (1..=MOST_FILES).contains(files);
        let count = u32::try_from(files).ok().filter(fits);
        let count = count.ok_or_else(|| {
            Error::value(format!(
                "a segment has 1 to {MOST_FILES} files, not {files}"
            ))
        })?;
        let right = |at: usize| match self.states[at] {
            RANGE => self.lows[at] <= self.highs[at],
            state => state <= ANY_VALUE,
        };
        match (0..files).find(|at| !right(*at)) {
            None => Ok(count),
            Some(at) => Err(Error::value(format!(
                "file {at} has an impossible range or state"
            ))),
        }
    }

    /// Appends the elements of a file; always as many.
    ///
    /// # Errors
    /// [`Error::System`] without randomness.
    pub fn elements(&self, at: usize, out: &mut Vec<Element>) -> Result<()> {
        let (low, high) = match self.states[at] {
            RANGE => (self.lows[at], self.highs[at]),
            NO_VALUE => return noise(out),
            _ => (0, u64::MAX),
        };
        out.extend(coverage_set(low).map(|node| element(node, LEAST)));
        out.extend(coverage_set(high).map(|node| element(node, GREATEST)));
        Ok(())
    }
}

/// Elements that no query contains, so that a file without a value looks like any other.
fn noise(out: &mut Vec<Element>) -> Result<()> {
    let mut bytes = [0; ELEMENT * ELEMENTS];
    random(&mut bytes)?;
    let (elements, _) = bytes.as_chunks::<ELEMENT>();
    out.extend(elements.iter().map(|random| {
        let mut element = *random;
        element[SIDE] = NOISE;
        element
    }));
    Ok(())
}

/// A segment of these files, under a fresh name.
pub(super) fn segment(keys: &IndexKeys, ranges: &Ranges<'_>) -> Result<Vec<u8>> {
    let mut segment_id = [0; SEGMENT_ID];
    random(&mut segment_id)?;
    let header = Header {
        spec: keys.spec,
        index_id: keys.id,
        segment_id,
        files: ranges.check()?,
    };
    segment_named(keys, &header, ranges)
}

/// A segment under a name that MUST be fresh.
///
/// # Errors
/// [`Error::System`] without randomness.
pub fn segment_named<S: Form>(
    keys: &IndexKeys<S>,
    header: &Header<S>,
    ranges: &Ranges<'_>,
) -> Result<Vec<u8>> {
    let files = header.files as usize;
    let groups: Vec<Group> = (0..files.div_ceil(GROUP))
        .into_par_iter()
        .map(|at| Group::new(keys, ranges, at * GROUP..files.min((at + 1) * GROUP)))
        .collect::<Result<_>>()?;
    let mut out = vec![0; header.total() - header.tags() * TAG];
    out[..HEADER].copy_from_slice(&header.encode());
    rows(keys, header, &groups, &mut out[HEADER..]);
    let tags = tags::all(keys, header, &out[HEADER..]);
    out.extend_from_slice(tags.as_flattened());
    Ok(out)
}

/// The filters of up to [`GROUP`] files: for every position the same number of words.
struct Group {
    words: usize,
    bits: Vec<u64>,
}

impl Group {
    fn new<S: Form>(
        keys: &IndexKeys<S>,
        ranges: &Ranges<'_>,
        files: std::ops::Range<usize>,
    ) -> Result<Self> {
        let spec = &keys.spec;
        let words = files.len().div_ceil(WORD);
        let mut bits = vec![0; spec.bits() as usize * words];
        let mut elements = Vec::with_capacity(HASHED * ELEMENTS);
        let mut scratch = Scratch::default();
        let first = files.start;
        for start in files.clone().step_by(HASHED) {
            elements.clear();
            for file in start..files.end.min(start + HASHED) {
                ranges.elements(file, &mut elements)?;
            }
            keys.digests(&elements, &mut scratch);
            for (own, digests) in scratch.0.chunks(ELEMENTS).enumerate() {
                let file = start - first + own;
                let (word, bit) = (file / WORD, 1 << (file % WORD));
                for digest in digests {
                    for &position in &*spec.positions(digest) {
                        bits[position as usize * words + word] |= bit;
                    }
                }
            }
        }
        Ok(Self { words, bits })
    }

    fn row(&self, position: usize) -> &[u64] {
        &self.bits[position * self.words..][..self.words]
    }
}

/// Puts rows together, each under its keystream.
fn rows<S: Form>(keys: &IndexKeys<S>, header: &Header<S>, groups: &[Group], payload: &mut [u8]) {
    let bytes = header.row_bytes();
    let blocks = bytes.div_ceil(BLOCK);
    let counters = counters(&header.segment_id, blocks);
    let tasks = payload.par_chunks_mut(TASK * bytes).enumerate();
    tasks.for_each(|(task, part)| {
        let first = task * TASK;
        let count = part.len() / bytes;
        let own = (first..first + count).map(|row| row as u32);
        let own = keys.position_keys(own);
        let mut row = vec![0; blocks * BLOCK];
        let mut stream = vec![Block::default(); blocks];
        for (at, out) in part.chunks_mut(bytes).enumerate() {
            let words = groups.iter().flat_map(|group| group.row(first + at));
            for (to, word) in row.as_chunks_mut::<8>().0.iter_mut().zip(words) {
                *to = word.to_le_bytes();
            }
            out.copy_from_slice(&row[..bytes]);
            let cipher = Aes128Enc::new(&own.0[at]);
            let encrypted = cipher.encrypt_blocks_b2b(&counters, &mut stream);
            encrypted.expect("as many blocks");
            for (to, pad) in out.iter_mut().zip(stream.iter().flatten()) {
                *to ^= pad;
            }
        }
    });
}

/// What is encrypted to a segment's keystream: its id and the number of each block.
fn counters(segment_id: &[u8; SEGMENT_ID], blocks: usize) -> Vec<Block> {
    let block = |number: u32| {
        let mut block = Block::default();
        block[..SEGMENT_ID].copy_from_slice(segment_id);
        block[SEGMENT_ID..].copy_from_slice(&number.to_be_bytes());
        block
    };
    (0..blocks as u32).map(block).collect()
}
