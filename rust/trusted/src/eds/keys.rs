//! The keys of one index: of a column of a table, in one generation and with one spec.

use crate::keys::hex;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use louver_primitives::eds::hash::{KeyedHash, DIGEST, ELEMENT};
use louver_primitives::eds::spec::{Form, Spec};
use louver_primitives::eds::tree::PATH;
use zeroize::{Zeroize, Zeroizing};

/// Elements of a file: the nodes over its least value, and those over its greatest.
pub const ELEMENTS: usize = 2 * PATH;
/// The side byte of nodes over a least value, and of those that must be over one.
pub(super) const LEAST: u8 = b'*';
/// The same of greatest values.
pub(super) const GREATEST: u8 = b'+';
/// The side byte of what fills up tokens.
pub(super) const DUMMY: u8 = 0xff;
/// The side byte of what stands in the filter of a file without a value.
pub(super) const NOISE: u8 = 0xfd;
/// Where the side byte is; all bytes between a node's number and it are zeros.
pub(super) const SIDE: usize = ELEMENT - 1;
/// What comes first in a block that becomes the key of a position.
const POSITION: u8 = 1;

/// What is put into filters and looked up in them.
pub type Element = [u8; ELEMENT];

/// The keys of one index.
pub struct IndexKeys<S = Spec> {
    /// What the index is made of.
    pub spec: S,
    /// Its public name.
    pub id: [u8; 16],
    /// H of elements (k1).
    hash: Box<dyn KeyedHash>,
    /// F1: the keys of positions (k2).
    positions: Aes128Enc,
    /// What fills up tokens, and their order (k3).
    pub(super) dummies: Aes128Enc,
    /// Of tags.
    pub(super) tags: Zeroizing<[u8; 32]>,
}

impl<S: Form> IndexKeys<S> {
    /// From what derives a key for a purpose.
    pub fn new(spec: S, derive: impl Fn(&str) -> Zeroizing<[u8; 32]>) -> Self {
        let spec_text = hex(&spec.encode());
        let key = |part: &str| derive(&format!("lake/eds/{spec_text}/{part}"));
        let cipher = |part: &str| Aes128Enc::new_from_slice(&key(part)[..16]).expect("16 bytes");
        let mut id = [0; 16];
        id.copy_from_slice(&key("id")[..16]);
        Self {
            spec,
            id,
            hash: spec.hash(&key("hash")),
            positions: cipher("positions"),
            dummies: cipher("dummies"),
            tags: key("tags"),
        }
    }

    /// The digests of elements.
    pub fn digests(&self, elements: &[Element], scratch: &mut Scratch) {
        scratch.0.clear();
        scratch.0.resize(elements.len(), [0; DIGEST]);
        self.hash.digest_many(elements, &mut scratch.0);
    }

    /// The keys of positions: F1 of each.
    pub fn position_keys(&self, positions: impl Iterator<Item = u32>) -> Secrets {
        let mut blocks = Secrets(
            positions
                .map(|position| numbered(POSITION, position))
                .collect(),
        );
        self.positions.encrypt_blocks(&mut blocks.0);
        blocks
    }
}

/// A block of a byte that says what for, zeros, and a number, big endian.
pub fn numbered(domain: u8, number: u32) -> Block {
    let mut block = Block::default();
    block[0] = domain;
    block[12..].copy_from_slice(&number.to_be_bytes());
    block
}

/// The element of a node.
pub(super) fn element(node: u128, side: u8) -> Element {
    let mut element = node.to_le_bytes();
    element[SIDE] = side;
    element
}

/// Room for digests, kept between calls; wiped when dropped.
#[derive(Default)]
pub struct Scratch(pub Vec<[u8; DIGEST]>);

impl Drop for Scratch {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Blocks that are keys; wiped when dropped.
pub struct Secrets(pub Vec<Block>);

impl Drop for Secrets {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

pub(super) fn wipe(blocks: &mut [Block]) {
    blocks.iter_mut().for_each(|b| b.as_mut_slice().zeroize());
}
