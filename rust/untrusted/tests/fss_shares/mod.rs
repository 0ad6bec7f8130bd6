//! Shares of the right form, of nothing in particular, and numbers to make them of.

#![allow(dead_code, unreachable_pub)]

use louver_primitives::fss::{Comparison, Tree};
use louver_primitives::fss_many::{OwfLayout, OwfShare};
use louver_untrusted::fss::{Group, Header, LessShare, PointShare, Scheme};

/// Numbers from a seed.
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    /// Two of them.
    pub fn block(&mut self) -> u128 {
        u128::from(self.word()) << 64 | u128::from(self.word())
    }

    /// Less than `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.word() % end as u64) as usize
    }

    /// Bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.word() as u8).collect()
    }

    fn tree(&mut self, levels: u32, party: u8) -> Tree {
        let level = |left: u128, right: u128| [left, left & !1 | right & 1];
        Tree {
            root: self.block() & !1 | u128::from(party),
            levels: (0..levels)
                .map(|_| level(self.block(), self.block()))
                .collect(),
        }
    }

    fn header(&mut self, scheme: Scheme, group: Group, bits: u32) -> Header {
        Header {
            scheme,
            group,
            bits,
            party: self.word() as u8 & 1,
            parties: 2,
            words: 0,
        }
    }

    /// A share of a point function.
    pub fn point(&mut self, group: Group, bits: u32) -> PointShare {
        let header = self.header(Scheme::Point, group, bits);
        let last = match group {
            Group::Tag => self.block() & !1,
            _ => self.block(),
        };
        PointShare {
            header,
            tree: self.tree(bits, header.party),
            last: vec![last],
        }
    }

    /// A share of an interval.
    pub fn interval(&mut self, bits: u32) -> LessShare {
        let header = self.header(Scheme::Interval, Group::Wide, bits);
        let parts = (0..2).map(|_| Comparison {
            tree: self.tree(bits - 1, header.party),
            values: (0..bits).map(|_| self.block()).collect(),
        });
        LessShare {
            header,
            parts: parts.collect(),
            constant: vec![self.block()],
        }
    }

    /// A share for three parties.
    pub fn owf(&mut self, bits: u32) -> OwfShare {
        let layout = OwfLayout::new(bits, 3).unwrap();
        OwfShare {
            header: OwfShare::header(bits, 1, 3),
            layout,
            corrected: vec![0; layout.rows().div_ceil(8)],
            seeds: (0..layout.rows() * layout.held)
                .map(|_| self.block() & !1)
                .collect(),
            correction: (0..layout.columns()).map(|_| self.block()).collect(),
        }
    }

    /// Distinct rising points below 2^bits, at most `most` of them.
    pub fn points(&mut self, bits: u32, most: usize) -> Vec<u64> {
        let mask = u64::MAX >> (64 - bits);
        let mut points: Vec<u64> = (0..most).map(|_| self.word() & mask).collect();
        points.sort_unstable();
        points.dedup();
        points
    }
}
