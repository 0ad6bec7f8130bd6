//! Segments of blocks, of whole filters and of rows in the clear, and the tokens that open them.

use crate::eds::block_token::{BlockToken, Form};
use crate::eds::cbc::{self, Cbc};
use crate::eds::spec::{Encryption, Layout, Spec};
use crate::eds::SegmentHeader as Header;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use louver_primitives::eds::segment::{HEADER, SEGMENT_ID, TAG};
use louver_primitives::eds::token::{push, Pair, PAIR_KEY};
use louver_trusted::eds::keys::{Element, IndexKeys, Scratch, ELEMENTS};
use louver_trusted::eds::{tags, tokens, Ranges};
use louver_trusted::Result;
use rayon::prelude::*;
use zeroize::{Zeroize, Zeroizing};

/// Files whose elements are hashed together.
const HASHED: usize = 16;
/// AES blocks of keystream that are made together.
const BATCH: usize = 256;

/// The bytes of a segment, whose header names one of these layouts.
pub(super) fn segment(
    keys: &IndexKeys<Spec>,
    header: &Header,
    ranges: &Ranges<'_>,
) -> Result<Vec<u8>> {
    let filters = filters(keys, ranges)?;
    let mut out = vec![0; header.total() - header.tags() * TAG];
    out[..HEADER].copy_from_slice(&header.encode());
    let payload = &mut out[HEADER..];
    match header.spec.encryption.layout() {
        Layout::BitMajor => transposed(header, &filters, payload),
        Layout::FileMajor => whole(keys, header, &filters, payload),
        Layout::BlockMajor => by_block(keys, header, &filters, payload),
    }
    let tags = tags::all(keys, header, &out[HEADER..]);
    out.extend_from_slice(tags.as_flattened());
    Ok(out)
}

/// The token of an inclusive range.
pub(super) fn token(keys: &IndexKeys<Spec>, low: u64, high: u64, sides: bool) -> Result<Vec<u8>> {
    let (header, positions) = tokens::positions(keys, low, high, sides)?;
    if header.spec.encryption == Encryption::Open {
        let mut out = header.encode().to_vec();
        for position in positions {
            let key = &[0; PAIR_KEY];
            push(&mut out, Pair { position, key });
        }
        return Ok(out);
    }
    let mut opened = match header.spec.encryption.layout() {
        Layout::FileMajor => whole_key(keys).to_vec(),
        _ => {
            let numbers = BlockToken::needed(&header.spec, &positions);
            Block::slice_as_flattened(&keys.position_keys(numbers.into_iter()).0).to_vec()
        }
    };
    let token = BlockToken::encode(&header, Form::Segment, &positions, &opened);
    opened.zeroize();
    Ok(token)
}

/// The filters of files in the clear, one after the other; wiped when dropped.
pub(crate) fn filters(keys: &IndexKeys<Spec>, ranges: &Ranges<'_>) -> Result<Zeroizing<Vec<u8>>> {
    let bytes = keys.spec.bits as usize / 8;
    let mut out = Zeroizing::new(vec![0; bytes * ranges.states.len()]);
    let groups = out.par_chunks_mut(bytes * HASHED).enumerate();
    groups.try_for_each(|(group, out)| {
        let mut elements = Vec::with_capacity(HASHED * ELEMENTS);
        let files = group * HASHED..group * HASHED + out.len() / bytes;
        files
            .into_iter()
            .try_for_each(|file| ranges.elements(file, &mut elements))?;
        let mut scratch = Scratch::default();
        insert(keys, &elements, &mut scratch, out);
        Ok::<_, louver_trusted::Error>(())
    })?;
    Ok(out)
}

/// Sets the bits of elements, [`ELEMENTS`] of each file.
fn insert(keys: &IndexKeys<Spec>, elements: &[Element], scratch: &mut Scratch, filters: &mut [u8]) {
    let spec = &keys.spec;
    keys.digests(elements, scratch);
    let files = filters.chunks_mut(spec.bits as usize / 8);
    for (filter, digests) in files.zip(scratch.0.chunks(ELEMENTS)) {
        for digest in digests {
            for &position in &*spec.kind.positions(spec.bits, spec.k, digest) {
                filter[position as usize / 8] |= 1 << (position % 8);
            }
        }
    }
}

fn whole_key(keys: &IndexKeys<Spec>) -> Zeroizing<[u8; cbc::KEY]> {
    let halves = keys.position_keys([0, 1].into_iter());
    let mut key = Zeroizing::new([0; cbc::KEY]);
    key.copy_from_slice(Block::slice_as_flattened(&halves.0));
    key
}

/// A row for every position, with a bit for every file.
fn transposed(header: &Header, filters: &[u8], payload: &mut [u8]) {
    let width = header.row_bytes();
    let filters = filters.chunks_exact(header.spec.bits as usize / 8);
    for (file, filter) in filters.enumerate() {
        for (position, row) in payload.chunks_exact_mut(width).enumerate() {
            row[file / 8] |= (filter[position / 8] >> (position % 8) & 1) << (file % 8);
        }
    }
}

/// One filter after the other, each under AES.
fn whole(keys: &IndexKeys<Spec>, header: &Header, filters: &[u8], payload: &mut [u8]) {
    let tweaked = header.spec.encryption == Encryption::Aes;
    let cbc = Cbc::new(&whole_key(keys), tweaked);
    payload.copy_from_slice(filters);
    let groups = payload.par_chunks_mut(BATCH * header.row_bytes());
    groups.enumerate().for_each(|(group, filters)| {
        let first = group * BATCH;
        let files = first..first + filters.len() / header.row_bytes();
        let ids: Vec<[u8; 16]> = files
            .map(|file| counter(header, file as u32).into())
            .collect();
        cbc.encrypt_many(&ids, header.row_bytes(), filters);
    });
}

/// A row for every block number, each under the keystream of its own key.
fn by_block(keys: &IndexKeys<Spec>, header: &Header, filters: &[u8], payload: &mut [u8]) {
    let spec = &header.spec;
    let (size, filter) = (spec.kind.block_bits() as usize / 8, spec.bits as usize / 8);
    let own = keys.position_keys(0..header.rows() as u32);
    let rows = payload.par_chunks_mut(header.row_bytes()).enumerate();
    rows.for_each(|(row, out)| {
        let blocks = filters
            .chunks_exact(filter)
            .map(|filter| &filter[row * size..]);
        for (to, block) in out.chunks_exact_mut(size).zip(blocks) {
            to.copy_from_slice(&block[..size]);
        }
        let cipher = Aes128Enc::new(&own.0[row]);
        let mut stream = [Block::default(); BATCH];
        let parts = out.chunks_mut(BATCH * cbc::BLOCK);
        for (part, out) in parts.enumerate() {
            let first = part * BATCH;
            for (number, block) in (first as u32..).zip(&mut stream) {
                *block = counter(header, number);
            }
            cipher.encrypt_blocks(&mut stream[..out.len().div_ceil(cbc::BLOCK)]);
            for (to, pad) in out.iter_mut().zip(stream.iter().flatten()) {
                *to ^= pad;
            }
        }
    });
}

/// A segment's id and a number: what keystreams are made of, and the file ids of its filters.
fn counter(header: &Header, number: u32) -> Block {
    let mut block = Block::default();
    block[..SEGMENT_ID].copy_from_slice(&header.segment_id);
    block[SEGMENT_ID..].copy_from_slice(&number.to_be_bytes());
    block
}
