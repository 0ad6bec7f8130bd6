//! Figure 6.9: false positives of the ways to use a digest in split blocks. Two of them are none
//! of ours: eight words of the digest without multiplication. In the paper's, the word that
//! chooses the block also chooses the bit of a lane, by the same high bits: within a block all
//! elements have the same bit in that lane, which reveals nothing. With other bits for the block
//! the multiplication makes no difference.

use super::{Dice, Run};
use louver_papers::eds::hash::{keyed, DIGEST};
use louver_papers::eds::kind::Kind;
use louver_papers::eds::spec::Hash;
use louver_primitives::eds::tree::{coverage_set, prefix_cover, suffix_cover};

type Digest = [u8; DIGEST];
const BLOCKS: u32 = 64;
const BITS: u32 = BLOCKS * 256;

fn split(digest: &Digest, block: impl Fn(&[u32; 8]) -> u32) -> Vec<u32> {
    let words: [u32; 8] = std::array::from_fn(|at| u32::from_le_bytes(digest.as_chunks().0[at]));
    let block = block(&words);
    (0..8)
        .map(|lane| block * 256 + lane * 32 + (words[lane as usize] >> 27))
        .collect()
}

fn bit_positions(variant: usize, digest: &Digest) -> Vec<u32> {
    match variant {
        0 => Kind::SplitBlock64.positions(BITS, 8, digest).to_vec(),
        1 => Kind::SplitBlock256.positions(BITS, 8, digest).to_vec(),
        2 => split(digest, |words| words[1] >> 26),
        _ => split(digest, |words| words[1] % BLOCKS),
    }
}

const VARIANTS: [&str; 4] = [
    "64 bits, multiplied",
    "256 bits, multiplied",
    "256 bits, split only (paper)",
    "256 bits, split only, block from other bits",
];

fn element(side: u8, node: u128) -> [u8; 16] {
    let mut element = node.to_le_bytes();
    element[15] = side;
    element
}

/// Digests of all elements, in order.
fn digests(elements: &[[u8; 16]]) -> Vec<Digest> {
    let mut out = vec![[0; DIGEST]; elements.len()];
    keyed(Hash::Aes128, b"a key for figures, thirty-two by").digest_many(elements, &mut out);
    out
}

/// All digests of a token; what fills it up is random.
fn token(dice: &mut Dice) -> Vec<Digest> {
    let (low, high) = dice.range(63);
    let (low, high) = (low | 1 << 63, high | 1 << 63);
    let mut elements: Vec<_> = prefix_cover(high).map(|node| element(b'*', node)).collect();
    elements.extend(suffix_cover(low).map(|node| element(b'+', node)));
    elements.resize_with(128, || element(0xff, u128::from(dice.roll())));
    digests(&elements)
}

/// Files are in the lower half of all values, ranges in the upper: every file that is kept is
/// false.
pub(super) fn variants(run: &Run) {
    let (files, tokens) = (run.pick(10_000, 100_000), run.pick(10, 40));
    let mut dice = Dice(9);
    let tokens: Vec<Vec<Digest>> = (0..tokens).map(|_| token(&mut dice)).collect();
    let queries: Vec<Vec<Vec<Vec<u32>>>> = (0..VARIANTS.len())
        .map(|v| {
            tokens
                .iter()
                .map(|t| t.iter().map(|d| bit_positions(v, d)).collect())
                .collect()
        })
        .collect();
    let mut counts = vec![vec![0_u32; tokens.len()]; VARIANTS.len()];
    for _ in 0..files {
        let (low, high) = dice.range(63);
        let mut elements = coverage_set(low).map(|node| element(b'*', node)).to_vec();
        elements.extend(coverage_set(high).map(|node| element(b'+', node)));
        let digests = digests(&elements);
        for (variant, (queries, counts)) in queries.iter().zip(&mut counts).enumerate() {
            let mut filter = [0_u64; BITS as usize / 64];
            for position in digests
                .iter()
                .flat_map(|digest| bit_positions(variant, digest))
            {
                filter[position as usize / 64] |= 1 << (position % 64);
            }
            let set = |position: &u32| filter[*position as usize / 64] >> (position % 64) & 1 == 1;
            for (token, counts) in queries.iter().zip(counts) {
                let hits = token.iter().filter(|sub| sub.iter().all(set)).count();
                *counts += u32::from(hits > 1);
            }
        }
    }
    for (name, mut counts) in VARIANTS.into_iter().zip(counts) {
        counts.sort_unstable();
        let million = |count: f64| count * 1e6 / f64::from(files);
        let mean = counts.iter().sum::<u32>() as f64 / counts.len() as f64;
        run.line("6.9", name, "mean", million(mean), "files of 1,000,000");
        for (x, at) in [("lower quartile", 1), ("median", 2), ("upper quartile", 3)] {
            let count = f64::from(counts[(counts.len() - 1) * at / 4]);
            run.line("6.9", name, x, million(count), "files of 1,000,000");
        }
    }
}
