//! The sweep: which files of a segment a token keeps (paper 4.3.3, on rows of all files at once).
//!
//! For every sub-token the decrypted rows of its positions are ANDed: a bit is set for the files
//! whose filters hold the element. A file is kept if two sub-tokens hit it; the count is a
//! saturating one of two bits in bit-sliced form. No step depends on what was found, so time does
//! not depend on the range.

use crate::error::{Error, Result};
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use louver_primitives::eds::segment::{Header, Segment, SEGMENT_ID};
use louver_primitives::eds::spec::{Form, FormatError, Spec};
use louver_primitives::eds::token::{self, SUB_TOKENS};

const BLOCK: usize = 16;
/// Rows fit in the first-level cache together with their results: blocks of a part.
const PART: usize = 256;

/// A token with its keys prepared, to be used on many segments.
pub struct Token<S = Spec> {
    header: token::Header<S>,
    /// For every sub-token as many rows and keys as an element has bits.
    rows: Vec<(usize, Aes128Enc)>,
}

impl<S: Form> Token<S> {
    /// Makes a token ready.
    ///
    /// # Errors
    /// Bytes that are not a token.
    pub fn new(bytes: &[u8]) -> Result<Self> {
        let token = token::Token::decode(bytes).map_err(malformed)?;
        let rows = token.pairs().map(|pair| {
            let cipher = Aes128Enc::new(pair.key.into());
            (pair.position as usize, cipher)
        });
        Ok(Self {
            header: token.header,
            rows: rows.collect(),
        })
    }

    /// What the token says of itself.
    pub fn header(&self) -> &token::Header<S> {
        &self.header
    }

    /// Which files a segment keeps: a bit for each, the first in the lowest bit of the first byte.
    ///
    /// # Errors
    /// Bytes that are not a segment, or a segment of another index.
    pub fn sweep(&self, segment: &[u8]) -> Result<Vec<u8>> {
        let read = Segment::<S>::decode(segment).map_err(malformed)?;
        let header = read.header;
        if header.index_id != self.header.index_id || header.spec != self.header.spec {
            return Err(Error::new(
                "a token and a segment do not belong to one index",
            ));
        }
        let mut hits = self.sweep_rows(&read);
        let files = header.files as usize;
        hits.truncate(files.div_ceil(8));
        if let Some(last) = hits.last_mut().filter(|_| !files.is_multiple_of(8)) {
            *last &= (1 << (files % 8)) - 1;
        }
        Ok(hits)
    }

    fn sweep_rows(&self, segment: &Segment<'_, S>) -> Vec<u8> {
        let mut hits = vec![0; segment.header.row_bytes()];
        for (part, hits) in hits.chunks_mut(PART * BLOCK).enumerate() {
            let own = Part::new(&segment.header, part * PART, hits.len());
            self.sweep_part(segment, own, hits);
        }
        hits
    }

    /// The same of a part of all rows.
    fn sweep_part(&self, segment: &Segment<'_, S>, mut part: Part, hits: &mut [u8]) {
        let k = usize::from(self.header.spec.k());
        let start = part.first * BLOCK;
        let (mut hit, mut once) = (vec![0_u8; hits.len()], vec![0_u8; hits.len()]);
        let half = SUB_TOKENS / 2;
        for (at, sub) in self.rows.chunks(k).enumerate() {
            hit.fill(u8::MAX);
            for (row, cipher) in sub {
                let row = segment.row(*row).expect("positions were checked");
                part.and(cipher, &row[start..start + hits.len()], &mut hit);
            }
            // Where the token names sides, a file needs one hit of each: first all of one side.
            if self.header.sides && at == half {
                std::mem::swap(&mut once, &mut part.least);
                once.fill(0);
            }
            count(hits, &mut once, &hit);
        }
        if self.header.sides {
            let both = part
                .least
                .iter()
                .zip(&once)
                .map(|(least, greatest)| least & greatest);
            hits.iter_mut()
                .zip(both)
                .for_each(|(hits, both)| *hits = both);
        }
    }
}

fn malformed(error: FormatError) -> Error {
    Error::new(error.0)
}

/// Counts a hit: `twice` are the files hit two times or more.
fn count(twice: &mut [u8], once: &mut [u8], hit: &[u8]) {
    for ((twice, once), hit) in twice.iter_mut().zip(once).zip(hit) {
        *twice |= *once & hit;
        *once |= hit;
    }
}

/// The keystream of some blocks of all rows.
struct Part {
    first: usize,
    counters: Vec<Block>,
    stream: Vec<Block>,
    least: Vec<u8>,
}

impl Part {
    fn new<S>(header: &Header<S>, first: usize, bytes: usize) -> Self {
        let blocks = bytes.div_ceil(BLOCK);
        let counter = |number: usize| {
            let mut block = Block::default();
            block[..SEGMENT_ID].copy_from_slice(&header.segment_id);
            block[SEGMENT_ID..].copy_from_slice(&(number as u32).to_be_bytes());
            block
        };
        Self {
            first,
            counters: (first..first + blocks).map(counter).collect(),
            stream: vec![Block::default(); blocks],
            least: vec![0; bytes],
        }
    }

    /// ANDs a decrypted row.
    fn and(&mut self, cipher: &Aes128Enc, row: &[u8], hit: &mut [u8]) {
        let encrypted = cipher.encrypt_blocks_b2b(&self.counters, &mut self.stream);
        encrypted.expect("as many blocks");
        let stream = Block::slice_as_flattened(&self.stream);
        for ((hit, bit), pad) in hit.iter_mut().zip(row).zip(stream) {
            *hit &= bit ^ pad;
        }
    }
}
