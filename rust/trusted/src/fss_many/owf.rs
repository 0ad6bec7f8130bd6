//! Point functions for two to five parties from a one-way function.

use crate::error::{Error, Result};
use crate::fss::open_record;
use crate::keys::random;
use louver_primitives::fss::Prg;
use louver_primitives::fss_many::{OwfLayout, OwfShare};
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Blocks that go through the generator together.
const BATCH: usize = 1024;

/// One point: which record is wanted. Any number of providers but one may put their heads
/// together.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct OwfPoint {
    alpha: u128,
    shares: Vec<Vec<u8>>,
}

impl OwfPoint {
    /// Shares of the point function at `at`; with None, at a random point.
    ///
    /// # Errors
    /// Bits outside of 1 to 24, parties outside of 2 to 5, a point outside of the domain, or no
    /// randomness.
    pub fn new(bits: u32, at: Option<u64>, parties: u8) -> Result<Self> {
        let layout = OwfLayout::new(bits, parties).map_err(|_| {
            Error::value("this scheme takes points of 1 to 24 bits and 2 to 5 parties")
        })?;
        if at.is_some_and(|at| at >> bits != 0) {
            return Err(Error::value("a point outside of the domain"));
        }
        let coins = Coins::random(&layout)?;
        let at = at.unwrap_or(coins.other & ((1 << bits) - 1));
        let shares = coins.split(bits, at, parties).into_iter().map(|mut share| {
            let bytes = share.encode();
            share.seeds.zeroize();
            share.corrected.zeroize();
            bytes
        });
        Ok(Self {
            alpha: coins.alpha,
            shares: shares.collect(),
        })
    }

    /// One share for each provider.
    pub fn shares(&self) -> &[Vec<u8>] {
        &self.shares
    }

    /// The record, or None where the table has none at this point.
    ///
    /// # Errors
    /// [`Error::Value`] for answers of another form, [`Error::Verify`] where a provider lied.
    pub fn open(&self, replies: &[&[u8]], level: u32) -> Result<Option<Vec<u8>>> {
        if replies.len() != self.shares.len() {
            let text = "an answer is missing, or there is one too many";
            return Err(Error::value(text));
        }
        open_record(self.alpha, replies, level)
    }
}

impl fmt::Debug for OwfPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwfPoint(redacted)")
    }
}

/// All that is random of the shares.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(super) struct Coins {
    /// The payload; its lowest bit is 1.
    pub(super) alpha: u128,
    /// Row by row one seed for every column of its matrix; their lowest bits are 0.
    pub(super) seeds: Vec<u128>,
    /// Row by row, by what the columns of its matrix are moved.
    pub(super) shifts: Vec<u8>,
    /// A point for those who want none.
    pub(super) other: u64,
}

impl Coins {
    fn random(layout: &OwfLayout) -> Result<Self> {
        let rows = layout.rows();
        let seeds = rows * 2 * layout.held;
        let mut bytes = Zeroizing::new(vec![0; (seeds + 1) * 16 + rows + 8]);
        random(&mut bytes)?;
        let (blocks, rest) = bytes.split_at((seeds + 1) * 16);
        let (shifts, other) = rest.split_at(rows);
        let (blocks, _) = blocks.as_chunks();
        let block = |bytes: &[u8; 16]| u128::from_le_bytes(*bytes);
        let most = 2 * layout.held as u8 - 1;
        Ok(Self {
            alpha: block(&blocks[0]) | 1,
            seeds: blocks[1..].iter().map(|bytes| block(bytes) & !1).collect(),
            shifts: shifts.iter().map(|shift| shift & most).collect(),
            other: u64::from_le_bytes(other.try_into().expect("8 bytes")),
        })
    }

    /// The shares of these coins for a point of the domain.
    pub(super) fn split(&self, bits: u32, at: u64, parties: u8) -> Vec<OwfShare> {
        let layout = OwfLayout::new(bits, parties).expect("the caller has checked");
        let (row, column) = layout.place(at);
        let (correction, total) = (self.correction(&layout, row, column), 2 * layout.held);
        let share = |party: u8| {
            let mut seeds = Vec::with_capacity(layout.rows() * layout.held);
            let mut corrected = vec![0; layout.rows().div_ceil(8)];
            for (at, given) in self.seeds.chunks_exact(total).enumerate() {
                let special = equal(at, row) as u8;
                let held = |j: usize| member(j as u8 ^ self.shifts[at], party, parties, special);
                corrected[at / 8] |= held(0) << (at % 8);
                let mine = given.iter().enumerate().filter(|(j, _)| held(*j) == 1);
                seeds.extend(mine.map(|(_, seed)| seed));
            }
            OwfShare {
                header: OwfShare::header(bits, party, parties),
                layout,
                corrected,
                seeds,
                correction: correction.clone(),
            }
        };
        (0..parties).map(share).collect()
    }

    /// The XOR of what all seeds of the point's row give, and of the payload in its column.
    fn correction(&self, layout: &OwfLayout, row: usize, column: usize) -> Vec<u128> {
        let total = 2 * layout.held;
        let mut seeds = Zeroizing::new(vec![0; total]);
        // Every row is read, so that memory addresses do not reveal which one it is.
        for (at, given) in self.seeds.chunks_exact(total).enumerate() {
            let mask = equal(at, row).wrapping_neg();
            let pairs = seeds.iter_mut().zip(given);
            pairs.for_each(|(seed, given)| *seed |= given & mask);
        }
        let columns = 0..layout.columns();
        let payload = |at| self.alpha & equal(at, column).wrapping_neg();
        let mut out: Vec<u128> = columns.map(payload).collect();
        let (prg, mut blocks) = (Prg::best(), Zeroizing::new(vec![0; BATCH]));
        for (batch, out) in out.chunks_mut(BATCH).enumerate() {
            for seed in seeds.iter() {
                let state = |at| seed ^ ((batch * BATCH + at) as u128) << 1;
                let states: Zeroizing<Vec<u128>> =
                    Zeroizing::new((0..out.len()).map(state).collect());
                let blocks = &mut blocks[..out.len()];
                prg.values(&states, 0, blocks);
                out.iter_mut()
                    .zip(blocks)
                    .for_each(|(out, block)| *out ^= *block);
            }
        }
        out
    }
}

/// Whether a party holds the seed of a column of a row's matrix: a bit of the column's own number,
/// for the last party the bit that makes the column's parity that of the row.
pub(super) fn member(column: u8, party: u8, parties: u8, special: u8) -> u8 {
    if party + 1 < parties {
        return column >> party & 1;
    }
    column.count_ones() as u8 & 1 ^ special
}

/// 1 if they are equal, else 0, without a branch.
fn equal(first: usize, other: usize) -> u128 {
    let apart = (first ^ other) as u64;
    u128::from(1 ^ (apart | apart.wrapping_neg()) >> 63)
}
