//! Rows gathered in tables of slots, taken apart again (Splinter, appendix A).

use super::open::{inverse, joined_sums};
use super::secret::{additive_header, random_odd};
use super::tree::point_shares;
use crate::error::{Error, Result};
use ctutils::CtEq;
use louver_primitives::fss::{record_tag, sample_slot};
use std::collections::BTreeSet;
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

const BLOCK: usize = 16;
/// Records of a search stand at this level.
const LEVEL: u32 = 0;

/// Several point functions of one payload, which together select rows.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Sample {
    alpha: u128,
    shares: Vec<[Vec<u8>; 2]>,
}

impl fmt::Debug for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sample(redacted)")
    }
}

impl Sample {
    /// Shares of a function for each pair of bits and point; None selects nothing and looks the
    /// same.
    ///
    /// # Errors
    /// Bits outside of 1 to 64, a point outside of the domain, or no randomness.
    pub fn new(functions: &[(u32, Option<u64>)]) -> Result<Self> {
        let alpha = random_odd()?;
        let mut shares = Vec::with_capacity(functions.len());
        for (bits, at) in functions {
            let header = additive_header(*bits)?;
            let wanted = u128::from(at.is_some()).wrapping_neg();
            let payload = Zeroizing::new([*alpha & wanted]);
            let pair = point_shares(header, at.unwrap_or(0), &*payload)?;
            shares.push(pair.map(|share| share.encode()));
        }
        Ok(Self {
            alpha: *alpha,
            shares,
        })
    }

    /// Of each function, one share for each of two providers.
    pub fn shares(&self) -> &[[Vec<u8>; 2]] {
        &self.shares
    }

    /// The records of all rows that were selected, each checked by its tag; None where some hide
    /// behind each other in every table.
    ///
    /// # Errors
    /// [`Error::Value`] for answers of another form, [`Error::Verify`] where a provider lied.
    pub fn open(
        &self,
        replies: &[&[u8]],
        width: usize,
        slots: usize,
        seeds: &[u64],
    ) -> Result<Option<Vec<Vec<u8>>>> {
        let mut tables = Tables::join(self.alpha, replies, width, slots, seeds)?;
        let mut waiting: BTreeSet<usize> = (0..tables.counts.len()).collect();
        let mut records = Vec::new();
        while let Some(slot) = waiting.pop_first() {
            if tables.counts[slot] != 1 {
                continue;
            }
            let record = tables.records[slot].clone();
            let tag = record_tag(LEVEL, &record);
            let sum = tables.tags[slot].to_le_bytes();
            if !sum.ct_eq(&tag.to_le_bytes()).to_bool() {
                return Err(lied());
            }
            waiting.extend(tables.take_out(&record, tag)?);
            records.push(record);
        }
        tables.finish().map(|all| all.then_some(records))
    }
}

/// The joined tables: of every slot how many rows it has, the sum of their tags, and the XOR of
/// their records.
struct Tables<'a> {
    seeds: &'a [u64],
    slots: usize,
    counts: Vec<u64>,
    tags: Vec<u128>,
    records: Vec<Vec<u8>>,
}

impl<'a> Tables<'a> {
    fn join(
        alpha: u128,
        replies: &[&[u8]],
        width: usize,
        slots: usize,
        seeds: &'a [u64],
    ) -> Result<Self> {
        let slot_bytes = width + 2 * BLOCK;
        let bytes = slots
            .checked_mul(seeds.len())
            .and_then(|count| count.checked_mul(slot_bytes));
        if replies.len() != 2 || replies.iter().any(|reply| Some(reply.len()) != bytes) {
            return Err(Error::value("an answer of another form"));
        }
        let inverse = inverse(alpha);
        let mut tables = Self {
            seeds,
            slots,
            counts: Vec::new(),
            tags: Vec::new(),
            records: Vec::new(),
        };
        let pairs = replies[0]
            .chunks_exact(slot_bytes)
            .zip(replies[1].chunks_exact(slot_bytes));
        for (first, other) in pairs {
            let record = first[..width].iter().zip(&other[..width]);
            tables.records.push(record.map(|(a, b)| a ^ b).collect());
            let sums = joined_sums(&[&first[width..], &other[width..]]);
            let count = sums[0].wrapping_mul(inverse);
            tables
                .counts
                .push(u64::try_from(count).map_err(|_| lied())?);
            tables.tags.push(sums[1].wrapping_mul(inverse));
        }
        Ok(tables)
    }

    /// Takes a row out of every table; the slots that it was in.
    fn take_out(&mut self, record: &[u8], tag: u128) -> Result<Vec<usize>> {
        let mut touched = Vec::with_capacity(self.seeds.len());
        for (table, seed) in self.seeds.iter().enumerate() {
            let slot = table * self.slots + sample_slot(tag, *seed, self.slots);
            self.counts[slot] = self.counts[slot].checked_sub(1).ok_or_else(lied)?;
            self.tags[slot] = self.tags[slot].wrapping_sub(tag);
            for (sum, byte) in self.records[slot].iter_mut().zip(record) {
                *sum ^= byte;
            }
            touched.push(slot);
        }
        Ok(touched)
    }

    /// Whether nothing is left; what is empty must be empty in all of its parts.
    fn finish(&self) -> Result<bool> {
        let mut all = true;
        for ((count, tag), record) in self.counts.iter().zip(&self.tags).zip(&self.records) {
            if *count == 0 && (*tag != 0 || record.iter().any(|byte| *byte != 0)) {
                return Err(lied());
            }
            all &= *count == 0;
        }
        Ok(all)
    }
}

fn lied() -> Error {
    Error::verify("the providers' answers do not verify")
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: usize = 16;

    /// Two answers that join to tables with these rows.
    fn answers(sample: &Sample, rows: &[Vec<u8>], slots: usize, seeds: &[u64]) -> [Vec<u8>; 2] {
        let mut whole = vec![0; slots * seeds.len() * (WIDTH + 2 * BLOCK)];
        for (table, seed) in seeds.iter().enumerate() {
            for row in rows {
                let tag = record_tag(LEVEL, row);
                let slot = table * slots + sample_slot(tag, *seed, slots);
                let cell = &mut whole[slot * (WIDTH + 2 * BLOCK)..][..WIDTH + 2 * BLOCK];
                cell[..WIDTH].iter_mut().zip(row).for_each(|(a, b)| *a ^= b);
                for (at, value) in [(WIDTH, 1), (WIDTH + BLOCK, tag)] {
                    let sum = u128::from_le_bytes(cell[at..at + BLOCK].try_into().unwrap());
                    let sum = sum.wrapping_add(sample.alpha.wrapping_mul(value));
                    cell[at..at + BLOCK].copy_from_slice(&sum.to_le_bytes());
                }
            }
        }
        let nothing = vec![0; whole.len()];
        [whole, nothing]
    }

    fn rows(count: u8) -> Vec<Vec<u8>> {
        (0..count).map(|row| vec![row + 1; WIDTH]).collect()
    }

    #[test]
    fn colliding_rows_are_recovered() {
        let sample = Sample::new(&[(5, Some(3)), (7, None)]).unwrap();
        assert_eq!(sample.shares().len(), 2);
        for count in [0, 1, 2, 30] {
            let [first, other] = answers(&sample, &rows(count), 24, &[1, 2, 3, 4]);
            let opened = sample.open(&[&first, &other], WIDTH, 24, &[1, 2, 3, 4]);
            let mut records = opened.unwrap().expect("they do not hide");
            records.sort();
            assert_eq!(records, rows(count));
        }
        let [first, other] = answers(&sample, &rows(3), 1, &[1]);
        assert_eq!(
            sample.open(&[&first, &other], WIDTH, 1, &[1]).unwrap(),
            None
        );
    }

    #[test]
    fn a_false_reply_is_detected() {
        let sample = Sample::new(&[(5, Some(3))]).unwrap();
        let [first, other] = answers(&sample, &rows(4), 8, &[5, 6]);
        for at in 0..first.len() {
            let mut lie = first.clone();
            lie[at] ^= 1 << (at % 8);
            let opened = sample.open(&[&lie, &other], WIDTH, 8, &[5, 6]);
            assert!(!matches!(opened, Ok(Some(_))), "byte {at}");
        }
        assert!(sample
            .open(&[&first[1..], &other], WIDTH, 8, &[5, 6])
            .is_err());
        assert!(sample.open(&[&first], WIDTH, 8, &[5, 6]).is_err());
    }
}
