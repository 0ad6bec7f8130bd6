//! The order-preserving function of Boldyreva, Chenette, Lee and O'Neill (Eurocrypt 2009), sampled
//! lazily: a binary search over the ciphertexts, in which every half draws how many plaintexts fall
//! into it (`spec/ord.md`).

use super::normal::quantile;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use std::sync::Mutex;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Up to so many plaintexts are drawn one by one, or as the number of ones among random bits.
const FEW: u64 = 128;
/// Where a node has so many times as many ciphertexts as plaintexts, draws count as independent.
const SPARSE_BITS: u32 = 12;

/// The function of one key, from `[0, 2^bits)` into `[1, 2^range_bits)`.
pub(crate) struct Tree {
    nodes: Aes128Enc,
    draws: Aes128Enc,
    bits: u32,
    range_bits: u32,
    path: Mutex<Path>,
}

impl ZeroizeOnDrop for Tree {}

/// The nodes of the search for the last plaintext that was alone, from the root. The values of a
/// column are near each other among all that its type has, and so share most of the way.
struct Path(Vec<Node>);

/// Ciphertexts with one prefix, and the plaintexts that have them.
#[derive(Clone, Copy)]
struct Node {
    prefix: u128,
    first: u64,
    last: u64,
    /// Which of the requested plaintexts are in this node.
    start: u32,
    end: u32,
}

/// All nodes of one depth have as many ciphertexts, but that 0 is none.
struct Level {
    depth: u32,
    /// Bits of a ciphertext below the prefix.
    rest: u32,
    /// Ciphertexts of a node.
    size: f64,
}

impl Tree {
    pub(super) fn new(key: &[u8; 32], bits: u32, range_bits: u32) -> Self {
        let (nodes, draws) = key.split_at(16);
        let cipher = |half: &[u8]| Aes128Enc::new(half.try_into().expect("half of 32 bytes"));
        Self {
            nodes: cipher(nodes),
            draws: cipher(draws),
            bits,
            range_bits,
            // Never longer, so that no copy of it is left behind where it was.
            path: Mutex::new(Path(Vec::with_capacity(range_bits as usize + 1))),
        }
    }

    fn root(&self, requested: u32) -> Node {
        Node {
            prefix: 0,
            first: 0,
            last: u64::MAX >> (64 - self.bits),
            start: 0,
            end: requested,
        }
    }

    /// The ciphertext of one plaintext, as [`Tree::encrypt`] gives it.
    fn one(&self, plain: u64, Path(path): &mut Path) -> u128 {
        let holds = |node: &Node| (node.first..=node.last).contains(&plain);
        path.truncate(path.partition_point(holds));
        let mut node = path.pop().unwrap_or_else(|| self.root(1));
        let mut coins = Coins::default();
        loop {
            let level = Level::new(path.len() as u32, self.range_bits);
            path.push(node);
            self.toss(&level, &[node], &mut coins);
            let coin = u128::from_be_bytes(coins.0[0].into());
            if node.first == node.last {
                return level.leaf(&node, coin);
            }
            let left = self.left(&level, &node, coin);
            node = if u128::from(plain - node.first) < left {
                node.left(left)
            } else {
                node.right(left)
            };
        }
    }

    /// The ciphertexts of plaintexts, which must rise strictly and be below 2^bits.
    pub(super) fn encrypt(&self, plain: &[u64]) -> Vec<u128> {
        if let [plain] = plain {
            if let Ok(mut path) = self.path.try_lock() {
                return vec![self.one(*plain, &mut path)];
            }
        }
        let mut out = vec![0; plain.len()];
        let mut nodes = vec![self.root(plain.len() as u32)];
        let (mut next, mut coins) = (Vec::new(), Coins::default());
        for depth in 0..=self.range_bits {
            let level = Level::new(depth, self.range_bits);
            self.toss(&level, &nodes, &mut coins);
            next.clear();
            for (node, coin) in nodes.iter().zip(&coins.0) {
                let coin = u128::from_be_bytes((*coin).into());
                if node.first == node.last {
                    out[node.start as usize..node.end as usize].fill(level.leaf(node, coin));
                } else {
                    let left = self.left(&level, node, coin);
                    split(node, left, plain, &mut next);
                }
            }
            std::mem::swap(&mut nodes, &mut next);
        }
        nodes.zeroize();
        next.zeroize();
        out
    }

    #[cfg(test)]
    pub(super) fn drawn_at_root(&self) -> u128 {
        let node = self.root(1);
        let level = Level::new(0, self.range_bits);
        let mut coins = Coins::default();
        self.toss(&level, &[node], &mut coins);
        self.left(&level, &node, u128::from_be_bytes(coins.0[0].into()))
    }

    /// One block a node: its prefix after a one.
    fn toss(&self, level: &Level, nodes: &[Node], coins: &mut Coins) {
        let block_of = |node: &Node| Block::from((1 << level.depth | node.prefix).to_be_bytes());
        coins.0.clear();
        coins.0.extend(nodes.iter().map(block_of));
        self.nodes.encrypt_blocks(&mut coins.0);
    }

    /// How many of a node's plaintexts, of which there are at least two, are in its left half.
    fn left(&self, level: &Level, node: &Node, coin: u128) -> u128 {
        let count = u128::from(node.last - node.first) + 1;
        let half = 1 << (level.rest - 1);
        let (left, right) = (half - u128::from(node.prefix == 0), half);
        let drawn = if node.last - node.first >= FEW {
            level.normal(count, coin)
        } else if level.rest >= SPARSE_BITS && count <= (2 * half) >> SPARSE_BITS {
            u128::from((coin & (u128::MAX >> (128 - count as u32))).count_ones())
        } else {
            self.one_by_one(count, left, right, coin)
        };
        // Each half has room for what falls into it, for every draw: the order is strict.
        drawn.clamp(count.saturating_sub(right), count.min(left))
    }

    /// Draws without replacement.
    fn one_by_one(&self, count: u128, mut left: u128, right: u128, coin: u128) -> u128 {
        let mut total = left + right;
        let (had, mut block) = (left, Block::default());
        for i in 0..count {
            if i % 2 == 0 {
                block = coin.wrapping_add(i / 2).to_be_bytes().into();
                self.draws.encrypt_block(&mut block);
            }
            let word = u128::from_be_bytes(block.into()) >> (64 * ((i + 1) % 2)) as u64;
            let word = word & u128::from(u64::MAX);
            // Dense nodes have fewer than 2^19 ciphertexts.
            left -= u128::from((word * total) >> 64 < left);
            total -= 1;
        }
        block.as_mut_slice().zeroize();
        had - left
    }
}

impl Level {
    fn new(depth: u32, range_bits: u32) -> Self {
        let rest = range_bits - depth;
        let size = f64::from_bits((1023 + u64::from(rest)) << 52);
        Self { depth, rest, size }
    }

    /// The ciphertext of a node's only plaintext.
    fn leaf(&self, node: &Node, coin: u128) -> u128 {
        let mask = (1 << self.rest) - 1;
        if node.prefix == 0 {
            return 1 + coin % mask;
        }
        node.prefix << self.rest | coin & mask
    }

    /// The hypergeometric distribution by the normal one with its variance and, to the first order,
    /// its kurtosis (Cornish and Fisher).
    fn normal(&self, count: u128, coin: u128) -> u128 {
        let uniform = ((coin >> 75) as f64 + 0.5) / (1_u64 << 53) as f64;
        let z = quantile(uniform);
        let m = count as f64;
        let deviation = (m * 0.25 * ((self.size - m) / (self.size - 1.0))).sqrt();
        let z = z - (z * z * z - 3.0 * z) / (12.0 * m);
        let odd = if count % 2 == 1 { 0.5 } else { 0.0 };
        let shift = (deviation * z + odd + 0.5).floor() as i64;
        (count / 2).saturating_add_signed(i128::from(shift))
    }
}

impl Node {
    /// The half of the smaller ciphertexts, into which so many plaintexts fall: one at least, and
    /// perhaps all of 2^64.
    fn left(&self, left: u128) -> Self {
        Self {
            prefix: self.prefix << 1,
            last: self.first + (left - 1) as u64,
            ..*self
        }
    }

    /// The other half, which holds a plaintext at least.
    fn right(&self, left: u128) -> Self {
        Self {
            prefix: self.prefix << 1 | 1,
            first: self.first + left as u64,
            ..*self
        }
    }
}

fn split(node: &Node, left: u128, plain: &[u64], next: &mut Vec<Node>) {
    let below = |rank: &u64| u128::from(rank - node.first) < left;
    let own = &plain[node.start as usize..node.end as usize];
    let middle = node.start + own.partition_point(below) as u32;
    // A side without requested plaintexts is skipped.
    if middle > node.start {
        next.push(Node {
            end: middle,
            ..node.left(left)
        });
    }
    if middle < node.end {
        next.push(Node {
            start: middle,
            ..node.right(left)
        });
    }
}

impl Zeroize for Node {
    fn zeroize(&mut self) {
        self.prefix.zeroize();
        self.first.zeroize();
        self.last.zeroize();
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// A level's coins, wiped when dropped.
#[derive(Default)]
struct Coins(Vec<Block>);

impl Drop for Coins {
    fn drop(&mut self) {
        let blocks = self.0.iter_mut();
        blocks.for_each(|block| block.as_mut_slice().zeroize());
    }
}
