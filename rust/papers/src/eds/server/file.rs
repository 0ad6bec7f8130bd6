//! The paper's form: one filter a file, queried one by one (Algorithm 3). Slower than a sweep over
//! a segment; it is what a manifest's `bytes` field holds, and what others are compared with.
//!
//! Corrected: what counts are sub-tokens all of whose bits are set, not single bits.

use super::masks::{parts, Hits, Part};
use super::{error, malformed};
use crate::eds::block_token::{unit, BlockToken, Form};
use crate::eds::cbc::{self, Cbc};
use crate::eds::hash::{once, DIGEST};
use crate::eds::kind::Kind;
use crate::eds::spec::Encryption;
use aes::Block;
use louver_primitives::eds::token::SUB_TOKENS;
use louver_untrusted::Result;

/// Bytes of a file id.
pub const FILE_ID: usize = 16;

/// A token prepared for many files.
pub struct Prober {
    token: BlockToken,
    /// For every pair, the index of its unit in the token.
    indices: Vec<u16>,
    /// For kinds whose elements are in one block: of every sub-token.
    masks: Option<Vec<Part>>,
    whole: Option<Whole>,
}

struct Whole {
    cbc: Cbc,
    which: Vec<u16>,
}

/// What asking one file took.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// Bits, blocks or filters that were decrypted.
    pub decryptions: usize,
    /// How many sub-tokens had so many bits set before the first that was not: by that number.
    pub matching: [usize; 17],
}

impl Prober {
    /// Reads a token of this form.
    ///
    /// # Errors
    /// [`louver_untrusted::Error`] for other bytes.
    pub fn new(token: &[u8]) -> Result<Self> {
        let token = BlockToken::decode(token, Form::File);
        let token = token.map_err(malformed)?;
        let spec = token.header.spec;
        let unit_of = |position: &u32| {
            let number = unit(&spec, *position).unwrap_or_default();
            let unit = token
                .units
                .binary_search_by_key(&number, |unit| unit.number);
            unit.unwrap_or_default() as u16
        };
        let indices = token.positions.iter().map(unit_of).collect();
        let mut masks = None;
        if !matches!(spec.kind, Kind::Basic | Kind::CacheSectorized) {
            let all = token.sub_tokens().map(|positions| parts(&spec, positions));
            let all: Vec<Part> = all.flatten().collect();
            if all.len() != SUB_TOKENS {
                return Err(error("a sub-token of a token lies in several blocks"));
            }
            masks = Some(all);
        }
        let tweaked = spec.encryption == Encryption::Aes;
        let whole = (tweaked || spec.encryption == Encryption::AesEmptyIv).then(|| {
            let blocks = (spec.bits / 8) as usize / cbc::BLOCK;
            Whole {
                cbc: Cbc::new(&token.units[0].key, tweaked),
                which: (0..blocks).map(|block| block as u16).collect(),
            }
        });
        Ok(Self {
            token,
            indices,
            masks,
            whole,
        })
    }

    /// Whether the filter of a file may meet the token's range.
    ///
    /// # Errors
    /// [`louver_untrusted::Error`] for a filter of another size than the token's.
    pub fn matches(&self, file_id: &[u8; FILE_ID], filter: &[u8]) -> Result<bool> {
        self.matches_counted(file_id, filter, &mut Work::default())
    }

    /// [`Prober::matches`], adding up what it took.
    ///
    /// # Errors
    /// As [`Prober::matches`].
    pub fn matches_counted(
        &self,
        file_id: &[u8; FILE_ID],
        filter: &[u8],
        work: &mut Work,
    ) -> Result<bool> {
        let spec = &self.token.header.spec;
        if filter.len() != spec.bits as usize / 8 {
            return Err(error("a filter is not as long as the token says"));
        }
        if let Some(Whole { cbc, which }) = &self.whole {
            let mut plain = vec![Block::default(); which.len()];
            cbc.decrypt(file_id, filter, which, &mut plain);
            work.decryptions += 1;
            let plain = Block::slice_as_flattened(&plain);
            return Ok(self.ask(work, &mut |at, _| self.block(plain, at)));
        }
        Ok(match spec.encryption {
            Encryption::XorBit => self.ask_bits(work, &mut |pair, position, work| {
                work.decryptions += 1;
                bit(filter, position) ^ (self.stream(pair, file_id)[0] & 1 == 1)
            }),
            Encryption::XorBlock => {
                let mut opened = vec![None; self.token.units.len()];
                self.ask(work, &mut |at, work| {
                    *opened[usize::from(self.indices[at.pair])].get_or_insert_with(|| {
                        work.decryptions += 1;
                        let stream = self.stream(at.pair, file_id);
                        let mut block = self.block(filter, at);
                        for (word, stream) in block.iter_mut().zip(stream.as_chunks().0) {
                            *word ^= u64::from_le_bytes(*stream);
                        }
                        block
                    })
                })
            }
            _ => self.ask(work, &mut |at, _| self.block(filter, at)),
        })
    }

    /// The keystream of a pair's unit for one file.
    fn stream(&self, pair: usize, file_id: &[u8; FILE_ID]) -> [u8; DIGEST] {
        let unit = &self.token.units[usize::from(self.indices[pair])];
        let (key, _) = unit.key.split_first_chunk().expect("a key has 32 bytes");
        once(self.token.header.spec.hash, key, file_id)
    }

    /// A block as words; those beyond its size are of no meaning.
    fn block(&self, filter: &[u8], at: At) -> [u64; 4] {
        let bytes = self.token.header.spec.kind.block_bits() as usize / 8;
        let start = at.block as usize * bytes;
        let mut words = filter[start..start + bytes].as_chunks().0.iter();
        std::array::from_fn(|_| words.next().map_or(0, |word| u64::from_le_bytes(*word)))
    }

    /// By masks where an element is in one block, else bit by bit.
    fn ask(&self, work: &mut Work, open: Open<'_>) -> bool {
        let spec = &self.token.header.spec;
        let Some(masks) = &self.masks else {
            let width = spec.kind.block_bits();
            return self.ask_bits(work, &mut |pair, position, work| {
                let block = spec.kind.block(position);
                let words = open(At { pair, block }, work);
                let bit = position % width;
                words[bit as usize / 64] >> (bit % 64) & 1 == 1
            });
        };
        let mut hits = Hits::default();
        masks.iter().enumerate().any(|(sub, part)| {
            let pair = sub * usize::from(spec.k);
            let block = part.block;
            part.within(&open(At { pair, block }, work)) && self.hit(&mut hits, sub)
        })
    }

    fn ask_bits(&self, work: &mut Work, set: Set<'_>) -> bool {
        let mut hits = Hits::default();
        let k = usize::from(self.token.header.spec.k);
        self.token.sub_tokens().enumerate().any(|(sub, positions)| {
            let mut pairs = (sub * k..).zip(positions);
            let missing = pairs.position(|(pair, position)| !set(pair, *position, work));
            work.matching[missing.unwrap_or(k)] += 1;
            missing.is_none() && self.hit(&mut hits, sub)
        })
    }

    fn hit(&self, hits: &mut Hits, sub: usize) -> bool {
        hits.add(self.token.header.sides, sub >= SUB_TOKENS / 2)
    }
}

/// A requested block, and the first pair that needs it.
#[derive(Clone, Copy)]
struct At {
    pair: usize,
    block: u32,
}

/// Gives a block in the clear.
type Open<'a> = &'a mut dyn FnMut(At, &mut Work) -> [u64; 4];
/// Whether the bit of a pair and position is set.
type Set<'a> = &'a mut dyn FnMut(usize, u32, &mut Work) -> bool;

fn bit(filter: &[u8], position: u32) -> bool {
    filter[position as usize / 8] >> (position % 8) & 1 == 1
}
