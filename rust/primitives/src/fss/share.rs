//! The form of the two-party shares (`spec/fss.md`, "Form"), written and read.

use super::header::{Group, Header, Scheme, ShareError, HEADER_BYTES};

/// One party's part of a tree: where it begins, and what it corrects on the way down.
#[derive(Clone, PartialEq, Eq)]
pub struct Tree {
    /// The root's state: the seed, and the party as control bit.
    pub root: u128,
    /// Of each level, the correction of the left and of the right child: equal but for the
    /// control bit.
    pub levels: Vec<[u128; 2]>,
}

/// One party's share of a point function.
#[derive(Clone, PartialEq, Eq)]
pub struct PointShare {
    /// What it is a share of.
    pub header: Header,
    /// The tree, [`Header::folded`] levels shorter than the domain.
    pub tree: Tree,
    /// The correction of a leaf's value: [`Header::value_blocks`] blocks.
    pub last: Vec<u128>,
}

/// One of the comparisons of a [`LessShare`].
#[derive(Clone, PartialEq, Eq)]
pub struct Comparison {
    /// The tree, one level shorter than the domain.
    pub tree: Tree,
    /// For every level the correction of the value that going left from it adds:
    /// [`Header::value_blocks`] blocks each.
    pub values: Vec<u128>,
}

/// One party's share of one or two comparisons plus a constant.
#[derive(Clone, PartialEq, Eq)]
pub struct LessShare {
    /// What it is a share of.
    pub header: Header,
    /// One comparison, or an interval's two.
    pub parts: Vec<Comparison>,
    /// This party's share of what is added at every point.
    pub constant: Vec<u128>,
}

impl PointShare {
    /// Reads a share.
    ///
    /// # Errors
    /// Bytes that [`PointShare::encode`] does not write.
    pub fn decode(share: &[u8]) -> Result<Self, ShareError> {
        let (header, body) = Header::decode(share)?;
        if header.scheme != Scheme::Point {
            return Err(ShareError::Scheme);
        }
        let mut reader = Reader(body);
        let tree = reader.tree(&header, levels(&header))?;
        let last = reader.blocks(header.value_blocks())?;
        let spare = match header.group {
            Group::Tag => 1,
            _ => spare(&header),
        };
        check_spare(&last, header.value_blocks(), spare)?;
        reader.end()?;
        Ok(Self { header, tree, last })
    }

    /// The share's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::len(&self.header));
        out.extend(self.header.encode());
        write_tree(&mut out, &self.tree);
        write_blocks(&mut out, &self.last);
        out
    }

    /// How many bytes a share of such a header has.
    pub fn len(header: &Header) -> usize {
        HEADER_BYTES + tree_bytes(levels(header)) + 16 * header.value_blocks()
    }
}

impl LessShare {
    /// Reads a share.
    ///
    /// # Errors
    /// Bytes that [`LessShare::encode`] does not write.
    pub fn decode(share: &[u8]) -> Result<Self, ShareError> {
        let (header, body) = Header::decode(share)?;
        let count = match header.scheme {
            Scheme::Less => 1,
            Scheme::Interval => 2,
            _ => return Err(ShareError::Scheme),
        };
        let (mut reader, blocks) = (Reader(body), header.value_blocks());
        let mut parts = Vec::with_capacity(count);
        for _ in 0..count {
            let tree = reader.tree(&header, levels(&header))?;
            let values = reader.blocks(header.bits as usize * blocks)?;
            check_spare(&values, blocks, spare(&header))?;
            parts.push(Comparison { tree, values });
        }
        let constant = reader.blocks(blocks)?;
        check_spare(&constant, blocks, spare(&header))?;
        reader.end()?;
        Ok(Self {
            header,
            parts,
            constant,
        })
    }

    /// The share's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::len(&self.header));
        out.extend(self.header.encode());
        for part in &self.parts {
            write_tree(&mut out, &part.tree);
            write_blocks(&mut out, &part.values);
        }
        write_blocks(&mut out, &self.constant);
        out
    }

    /// How many bytes a share of such a header has.
    pub fn len(header: &Header) -> usize {
        let parts = if header.scheme == Scheme::Less { 1 } else { 2 };
        let values = 16 * header.value_blocks();
        let part = tree_bytes(levels(header)) + header.bits as usize * values;
        HEADER_BYTES + parts * part + values
    }
}

/// Levels of a tree that are written.
fn levels(header: &Header) -> usize {
    let short = match header.scheme {
        Scheme::Point => header.folded(),
        _ => 1,
    };
    (header.bits - short) as usize
}

fn tree_bytes(levels: usize) -> usize {
    16 + 8 + 16 * levels
}

/// The bits of a value's last block that must be zero.
fn spare(header: &Header) -> u128 {
    if header.group == Group::Words && header.words % 2 == 1 && header.folded() == 0 {
        return !u128::from(u64::MAX);
    }
    0
}

fn check_spare(values: &[u128], blocks: usize, spare: u128) -> Result<(), ShareError> {
    let lasts = values.iter().skip(blocks - 1).step_by(blocks);
    match lasts.fold(0, |seen, last| seen | last & spare) {
        0 => Ok(()),
        _ => Err(ShareError::Form),
    }
}

/// Seed | control bits of the right children, one bit a level | per level the seed's correction,
/// the left child's control bit in its lowest bit. The party is in the header.
fn write_tree(out: &mut Vec<u8>, tree: &Tree) {
    out.extend((tree.root & !1).to_le_bytes());
    let rights = tree.levels.iter().enumerate();
    let rights = rights.fold(0, |bits, (at, level)| bits | (level[1] as u64 & 1) << at);
    out.extend(rights.to_le_bytes());
    for level in &tree.levels {
        out.extend(level[0].to_le_bytes());
    }
}

fn write_blocks(out: &mut Vec<u8>, blocks: &[u128]) {
    for block in blocks {
        out.extend(block.to_le_bytes());
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], ShareError> {
        let (head, rest) = self.0.split_first_chunk().ok_or(ShareError::Length)?;
        self.0 = rest;
        Ok(*head)
    }

    fn blocks(&mut self, count: usize) -> Result<Vec<u128>, ShareError> {
        // At most 64 levels of 8 blocks: nothing is reserved that the header does not bound.
        let mut blocks = Vec::with_capacity(count);
        for _ in 0..count {
            blocks.push(u128::from_le_bytes(self.take()?));
        }
        Ok(blocks)
    }

    fn tree(&mut self, header: &Header, levels: usize) -> Result<Tree, ShareError> {
        let seed = u128::from_le_bytes(self.take()?);
        let rights = u64::from_le_bytes(self.take()?);
        if seed & 1 != 0 || rights.checked_shr(levels as u32).unwrap_or(0) != 0 {
            return Err(ShareError::Form);
        }
        let lefts = self.blocks(levels)?;
        let pair = |(at, left): (usize, &u128)| {
            let right = left & !1 | u128::from(rights >> at & 1);
            [*left, right]
        };
        Ok(Tree {
            root: seed | u128::from(header.party),
            levels: lefts.iter().enumerate().map(pair).collect(),
        })
    }

    fn end(&self) -> Result<(), ShareError> {
        match self.0 {
            [] => Ok(()),
            _ => Err(ShareError::Length),
        }
    }
}
