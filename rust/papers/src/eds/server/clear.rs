//! Sweeps over rows of bits that are not encrypted.

use super::malformed;
use crate::eds::spec::Spec;
use crate::eds::{Segment, TokenHeader};
use louver_primitives::eds::token::{self, SUB_TOKENS};
use louver_untrusted::Result;

/// A token of positions.
pub struct Token {
    pub(super) header: TokenHeader,
    rows: Vec<usize>,
}

impl Token {
    pub(super) fn new(bytes: &[u8]) -> Result<Self> {
        let token = token::Token::<Spec>::decode(bytes).map_err(malformed)?;
        Ok(Self {
            header: token.header,
            rows: token.pairs().map(|pair| pair.position as usize).collect(),
        })
    }

    /// The files that two sub-tokens hit, or one of either half where tokens name sides.
    pub(super) fn sweep(&self, segment: &Segment<'_>) -> Vec<u8> {
        let bytes = segment.header.row_bytes();
        let (mut hit, mut first) = (vec![0; bytes], vec![0; bytes]);
        let (mut once, mut twice) = (vec![0; bytes], vec![0; bytes]);
        for (at, rows) in self
            .rows
            .chunks(usize::from(self.header.spec.k))
            .enumerate()
        {
            hit.fill(u8::MAX);
            for row in rows {
                let row = segment.row(*row).expect("positions were checked");
                hit.iter_mut().zip(row).for_each(|(hit, bit)| *hit &= bit);
            }
            if self.header.sides && at == SUB_TOKENS / 2 {
                std::mem::swap(&mut once, &mut first);
            }
            for ((twice, once), hit) in twice.iter_mut().zip(&mut once).zip(&hit) {
                *twice |= *once & hit;
                *once |= hit;
            }
        }
        if self.header.sides {
            let both = first.iter().zip(&once);
            return both.map(|(first, second)| first & second).collect();
        }
        twice
    }
}
