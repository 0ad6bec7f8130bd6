//! The keyless side of the order-revealing baseline: comparing.

use super::{right_bytes, sum, widths, Entry, Left, Mask, KEY};
use aes::Block;
use louver_primitives::eds::spec::FormatError;
use rayon::prelude::*;
use std::cmp::Ordering;

/// Files whose entries are opened together: two words of entries.
const FILES: usize = 256;

/// How one stored value compares with that of a left ciphertext: a value by itself, where nothing
/// is laid out for a sweep.
///
/// # Errors
/// [`FormatError`] for bytes of another length or domain.
pub fn compare(domain_bits: u32, right: &[u8], left: &Left) -> Result<Ordering, FormatError> {
    let widths = widths(domain_bits);
    check(&widths, left)?;
    let (nonce, rest) = right.split_first_chunk::<KEY>().unwrap_or((&[0; KEY], &[]));
    if right.len() != right_bytes(domain_bits) {
        return Err(FormatError(
            "a ciphertext of the baseline has another length",
        ));
    }
    let (mask, mut hash) = (Mask::default(), [Block::default()]);
    let mut first = 0;
    for ((key, slot), width) in left.0.iter().zip(&widths) {
        let slot = first + usize::from(*slot);
        let opened = mask
            .many(&[sum(key, nonce)], &mut hash)
            .next()
            .unwrap_or_default();
        let order_here = order(rest[slot / 4] >> (2 * (slot % 4)) & 3, opened);
        if order_here.is_ne() {
            return Ok(order_here);
        }
        first += 1 << width;
    }
    Ok(Ordering::Equal)
}

fn check(widths: &[u32], left: &Left) -> Result<(), FormatError> {
    let fits = |((_, slot), width): (&([u8; KEY], u16), &u32)| *slot < 1 << width;
    if left.0.len() != widths.len() || !left.0.iter().zip(widths).all(fits) {
        return Err(FormatError("a left ciphertext is of another domain"));
    }
    Ok(())
}

/// Right ciphertexts of many files, laid out for one left one: of every block and slot the
/// entries of all files side by side, so that a query reads one row and all nonces.
pub struct Column {
    nonces: Vec<[u8; KEY]>,
    widths: Vec<u32>,
    rows: Vec<u8>,
    row: usize,
}

impl Column {
    /// Lays out right ciphertexts. This needs no key, so a server can do it.
    ///
    /// # Errors
    /// [`FormatError`] for bytes of another length.
    pub fn new(domain_bits: u32, rights: &[&[u8]]) -> Result<Self, FormatError> {
        let size = right_bytes(domain_bits);
        if rights.iter().any(|right| right.len() != size) {
            return Err(FormatError(
                "a ciphertext of the baseline has another length",
            ));
        }
        let row = rights.len().div_ceil(4);
        let mut rows = vec![0; (size - KEY) * 4 * row];
        rows.par_chunks_mut(4 * row)
            .enumerate()
            .for_each(|(byte, rows)| {
                for (file, right) in rights.iter().enumerate() {
                    for slot in 0..4 {
                        let entry = right[KEY + byte] >> (2 * slot) & 3;
                        rows[slot * row + file / 4] |= entry << (2 * (file % 4));
                    }
                }
            });
        let nonce = |right: &&[u8]| *right.first_chunk().expect("checked");
        Ok(Self {
            nonces: rights.iter().map(nonce).collect(),
            widths: widths(domain_bits),
            rows,
            row,
        })
    }

    /// How each stored value compares with that of a left ciphertext.
    ///
    /// # Errors
    /// [`FormatError`] for a left ciphertext of another domain.
    pub fn compare(&self, left: &Left) -> Result<Vec<Ordering>, FormatError> {
        check(&self.widths, left)?;
        let mut out = vec![Ordering::Equal; self.nonces.len()];
        let parts = out.par_chunks_mut(FILES).enumerate().with_min_len(16);
        let rooms = || {
            (
                Mask::default(),
                [Block::default(); FILES],
                [Block::default(); FILES],
            )
        };
        parts.for_each_init(rooms, |(mask, sums, hashes), (part, out)| {
            let (mut first, start) = (0, part * FILES);
            for ((key, slot), width) in left.0.iter().zip(&self.widths) {
                let row = (first + usize::from(*slot)) * self.row;
                let entries = &self.rows[row..row + self.row];
                let nonces = &self.nonces[start..start + out.len()];
                for (to, nonce) in sums.iter_mut().zip(nonces) {
                    *to = sum(key, nonce);
                }
                let count = out.len();
                let masks = mask.many(&sums[..count], &mut hashes[..count]);
                for ((file, out), mask) in (start..).zip(out.iter_mut()).zip(masks) {
                    let hidden = entries[file / 4] >> (2 * (file % 4)) & 3;
                    *out = out.then(order(hidden, mask));
                }
                if out.iter().all(|order| order.is_ne()) {
                    break;
                }
                first += 1 << width;
            }
        });
        Ok(out)
    }
}

/// The files with values from low to high: those whose least value is not above `high` and whose
/// greatest is not below `low`.
///
/// # Errors
/// [`FormatError`] for left ciphertexts of another domain.
pub fn prune(
    least: &Column,
    greatest: &Column,
    low: &Left,
    high: &Left,
) -> Result<Vec<bool>, FormatError> {
    let (least, greatest) = (least.compare(high)?, greatest.compare(low)?);
    let both = least.iter().zip(&greatest);
    Ok(both
        .map(|(least, greatest)| least.is_le() && greatest.is_ge())
        .collect())
}

/// An opened entry says how the queried value compares with the stored one; this is the reverse.
fn order(hidden: u8, mask: u8) -> Ordering {
    match (hidden + 3 - mask) % 3 {
        entry if entry == Entry::Equal as u8 => Ordering::Equal,
        entry if entry == Entry::Less as u8 => Ordering::Greater,
        _ => Ordering::Less,
    }
}
