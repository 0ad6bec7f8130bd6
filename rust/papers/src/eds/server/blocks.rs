//! Sweeps over segments of blocks and of whole filters (`spec/eds.md`): 64 files at a time, every
//! unit that the token opens decrypted once, then every sub-token's masks over all of them.

use super::masks::{parts, Part};
use super::{error, malformed, of_rows};
use crate::eds::block_token::{self, BlockToken};
use crate::eds::cbc::{self, Cbc};
use crate::eds::spec::Encryption;
use crate::eds::{Segment, SegmentHeader as Header, TokenHeader};
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use louver_primitives::eds::segment::SEGMENT_ID;
use louver_primitives::eds::token::SUB_TOKENS;
use louver_untrusted::Result;

/// Files that are queried together: one word of answers.
const FILES: usize = 64;
const BLOCK: usize = cbc::BLOCK;

/// A token with its keys and masks prepared, to be used on many segments.
pub struct Token {
    pub(super) header: TokenHeader,
    form: Form,
}

enum Form {
    /// Blocks of one word.
    Narrow(Sweep<1>),
    /// Blocks of four.
    Wide(Sweep<4>),
}

impl Token {
    /// Makes a token ready.
    ///
    /// # Errors
    /// Bytes that are not a token of these layouts.
    pub fn new(bytes: &[u8]) -> Result<Self> {
        let token = BlockToken::decode(bytes, block_token::Form::Segment).map_err(malformed)?;
        let header = token.header;
        if of_rows(&header.spec) {
            return Err(error("a token is for rows of single bits"));
        }
        let form = match header.spec.kind.block_bits() {
            64 => Form::Narrow(Sweep::new(&token)),
            _ => Form::Wide(Sweep::new(&token)),
        };
        Ok(Self { header, form })
    }

    /// The answers of a segment of the token's index: for every 64 files a word, whose bits are
    /// set for files to keep.
    pub(super) fn sweep(&self, segment: &Segment<'_>) -> Vec<u64> {
        match &self.form {
            Form::Narrow(sweep) => sweep.all(segment),
            Form::Wide(sweep) => sweep.all(segment),
        }
    }
}

/// A sweep over filters with blocks of so many words.
struct Sweep<const WORDS: usize> {
    sides: bool,
    /// Blocks that are read, ascending.
    blocks: Vec<u32>,
    /// Of every sub-token its parts; their blocks are indexes of `blocks`.
    masks: Vec<Vec<Part>>,
    open: Cipher,
}

enum Cipher {
    /// One key for every block read.
    Xor(Vec<Aes128Enc>),
    /// One key for filters.
    Whole(Box<Whole>),
}

struct Whole {
    cbc: Cbc,
    /// The AES blocks that hold the blocks read.
    which: Vec<u16>,
    /// Where each block read begins among them, in words.
    starts: Vec<usize>,
}

/// Room for what is decrypted: of every block read, the words of 64 files.
struct Room<const WORDS: usize> {
    words: Vec<[[u64; FILES]; WORDS]>,
    inputs: Vec<Block>,
    blocks: Vec<Block>,
}

impl<const WORDS: usize> Sweep<WORDS> {
    fn new(token: &BlockToken) -> Self {
        let spec = &token.header.spec;
        let mut blocks: Vec<u32> = token
            .positions
            .iter()
            .map(|p| spec.kind.block(*p))
            .collect();
        blocks.sort_unstable();
        blocks.dedup();
        let locate = |mut part: Part| {
            part.block = blocks.binary_search(&part.block).unwrap_or_default() as u32;
            part
        };
        let sub_tokens = token.sub_tokens();
        let masks = sub_tokens.map(|positions| {
            let parts = parts(spec, positions);
            parts.into_iter().map(locate).collect()
        });
        let masks = masks.collect();
        let open = match spec.encryption {
            Encryption::Aes | Encryption::AesEmptyIv => {
                let cbc = Cbc::new(&token.units[0].key, spec.encryption == Encryption::Aes);
                let inner = blocks.iter().flat_map(|block| inner::<WORDS>(*block));
                let mut which: Vec<u16> = inner.collect();
                which.dedup();
                let start = |block: &u32| {
                    let word = *block as usize * WORDS;
                    let at = which
                        .binary_search(&((word / 2) as u16))
                        .unwrap_or_default();
                    2 * at + word % 2
                };
                let starts = blocks.iter().map(start).collect();
                Cipher::Whole(Box::new(Whole { cbc, which, starts }))
            }
            _ => Cipher::Xor(
                token
                    .units
                    .iter()
                    .map(|unit| Aes128Enc::new_from_slice(&unit.key[..16]).expect("16 bytes"))
                    .collect(),
            ),
        };
        Self {
            sides: token.header.sides,
            blocks,
            masks,
            open,
        }
    }

    fn all(&self, segment: &Segment<'_>) -> Vec<u64> {
        let mut room = self.room();
        let words = (segment.header.files as usize).div_ceil(FILES);
        (0..words)
            .map(|at| self.word(segment, at, &mut room))
            .collect()
    }

    fn room(&self) -> Room<WORDS> {
        let blocks = match &self.open {
            Cipher::Xor(_) => FILES * WORDS / 2,
            Cipher::Whole(whole) => whole.which.len(),
        };
        Room {
            words: vec![[[0; FILES]; WORDS]; self.blocks.len()],
            inputs: vec![Block::default(); blocks],
            blocks: vec![Block::default(); blocks],
        }
    }

    /// The answers of the files from 64 times `at` on.
    fn word(&self, segment: &Segment<'_>, at: usize, room: &mut Room<WORDS>) -> u64 {
        let header = &segment.header;
        let first = at * FILES;
        let count = FILES.min(header.files as usize - first);
        match &self.open {
            Cipher::Xor(keys) => self.open_blocks(segment, keys, (first, count), room),
            Cipher::Whole(whole) => {
                for file in 0..count {
                    self.open_filter(segment, whole, (first + file, file), room);
                }
            }
        }
        let live = u64::MAX >> (FILES - count);
        self.tally(&room.words) & live
    }

    fn open_blocks(
        &self,
        segment: &Segment<'_>,
        keys: &[Aes128Enc],
        (first, count): (usize, usize),
        room: &mut Room<WORDS>,
    ) {
        let header = &segment.header;
        let start = first * WORDS / 2;
        for (number, input) in (start as u32..).zip(&mut room.inputs) {
            *input = counter(header, number);
        }
        for ((block, key), out) in self.blocks.iter().zip(keys).zip(&mut room.words) {
            let done = key.encrypt_blocks_b2b(&room.inputs, &mut room.blocks);
            done.expect("as many blocks");
            let stream = Block::slice_as_flattened(&room.blocks).as_chunks::<8>().0;
            let row = segment.row(*block as usize).unwrap_or_default();
            let row = row.as_chunks::<8>().0;
            let row = row
                .get(first * WORDS..(first + count) * WORDS)
                .unwrap_or_default();
            let words = row.iter().zip(stream);
            for (at, (bytes, pad)) in words.enumerate() {
                let word = u64::from_le_bytes(*bytes) ^ u64::from_le_bytes(*pad);
                out[at % WORDS][at / WORDS] = word;
            }
        }
    }

    fn open_filter(
        &self,
        segment: &Segment<'_>,
        whole: &Whole,
        (file, own): (usize, usize),
        room: &mut Room<WORDS>,
    ) {
        let filter = segment.row(file).unwrap_or_default();
        let id = counter(&segment.header, file as u32);
        whole
            .cbc
            .decrypt(&id.into(), filter, &whole.which, &mut room.blocks);
        let words = Block::slice_as_flattened(&room.blocks).as_chunks::<8>().0;
        for (start, out) in whole.starts.iter().zip(&mut room.words) {
            for (to, word) in out.iter_mut().zip(&words[*start..]) {
                to[own] = u64::from_le_bytes(*word);
            }
        }
    }

    /// The two-hit rule over 64 files at once.
    fn tally(&self, words: &[[[u64; FILES]; WORDS]]) -> u64 {
        let (mut ones, mut twos) = (0, 0);
        let mut first = 0;
        for (sub, parts) in self.masks.iter().enumerate() {
            if self.sides && sub == SUB_TOKENS / 2 {
                first = std::mem::take(&mut ones);
            }
            let hit = parts.iter().fold(u64::MAX, |hit, part| {
                hit & test(&words[part.block as usize], part)
            });
            twos |= ones & hit;
            ones |= hit;
        }
        match self.sides {
            true => first & ones,
            false => twos,
        }
    }
}

/// Which of 64 files have all bits of a part: first those of one word, which few files have.
fn test<const WORDS: usize>(words: &[[u64; FILES]; WORDS], part: &Part) -> u64 {
    let lead = part.words.iter().position(|mask| *mask != 0);
    let lead = lead.unwrap_or_default().min(WORDS - 1);
    let (mask, mut hits) = (part.words[lead], 0);
    for (file, word) in words[lead].iter().enumerate() {
        hits |= u64::from(mask & !word == 0) << file;
    }
    let mut left = hits;
    while left != 0 {
        let file = left.trailing_zeros();
        left &= left - 1;
        let block: [u64; WORDS] = std::array::from_fn(|at| words[at][file as usize]);
        hits &= !(u64::from(!part.within(&block)) << file);
    }
    hits
}

/// The AES blocks that hold a block.
fn inner<const WORDS: usize>(block: u32) -> Vec<u16> {
    let start = block as usize * WORDS * 8 / BLOCK;
    (start..start + WORDS.div_ceil(2))
        .map(|at| at as u16)
        .collect()
}

/// A segment's id and a number: what keystreams are made of, and the file ids of its filters.
fn counter(header: &Header, number: u32) -> Block {
    let mut block = Block::default();
    block[..SEGMENT_ID].copy_from_slice(&header.segment_id);
    block[SEGMENT_ID..].copy_from_slice(&number.to_be_bytes());
    block
}
