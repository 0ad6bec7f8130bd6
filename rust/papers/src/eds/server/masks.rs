//! Sub-tokens as masks over the words of blocks: a block holds a sub-token's bits if it is equal
//! to itself under the mask.

use crate::eds::spec::Spec;

/// Bits that an element has in one block; the words that a block lacks are zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    /// The block's number.
    pub(super) block: u32,
    /// One word for every 64 bits of a block.
    pub(super) words: [u64; 4],
}

impl Part {
    /// Whether all bits are set.
    pub(super) fn within<const W: usize>(&self, block: &[u64; W]) -> bool {
        let words = block.iter().zip(&self.words);
        words.fold(0, |missing, (word, mask)| missing | (mask & !word)) == 0
    }
}

/// The bits of one sub-token, block by block.
pub(super) fn parts(spec: &Spec, positions: &[u32]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for position in positions {
        let block = spec.kind.block(*position);
        let at = parts.iter().position(|part| part.block == block);
        let at = at.unwrap_or_else(|| {
            let words = [0; 4];
            parts.push(Part { block, words });
            parts.len() - 1
        });
        let bit = position % spec.kind.block_bits();
        parts[at].words[bit as usize / 64] |= 1 << (bit % 64);
    }
    parts
}

/// The rule that returns a file: two sub-tokens hit, or one of either side where tokens name sides.
#[derive(Default)]
pub(super) struct Hits([u8; 2]);

impl Hits {
    /// Counts a hit of a sub-token; whether the file is returned.
    pub(super) fn add(&mut self, sides: bool, second_half: bool) -> bool {
        if !sides {
            self.0[0] += 1;
            return self.0[0] == 2;
        }
        self.0[usize::from(second_half)] = 1;
        self.0 == [1, 1]
    }
}
