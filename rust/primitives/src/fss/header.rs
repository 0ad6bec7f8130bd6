//! The eight bytes that every share begins with.

use std::fmt;

/// The first byte of every share.
pub const VERSION: u8 = 1;
/// Length of a share's header.
pub const HEADER_BYTES: usize = 8;
/// Most bits of a point.
pub const MAX_BITS: u32 = 64;
/// Most 64-bit words of a value.
pub const MAX_WORDS: u16 = 16;

/// What a share is a share of, and how it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Scheme {
    /// A point function of two parties, as a tree.
    Point = 1,
    /// `[x < end]` of two parties, as a tree.
    Less = 2,
    /// An interval of two parties: two comparisons.
    Interval = 3,
    /// A point function of any number of parties, by a one-way function.
    Owf = 4,
    /// A point function of any number of parties, over Paillier.
    Paillier = 5,
}

/// Where the values are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Group {
    /// A bit, XOR, and a payload in GF(2^128).
    Tag = 1,
    /// Whole numbers modulo 2^128.
    Wide = 2,
    /// Vectors of whole numbers modulo 2^64.
    Words = 3,
    /// A bit, XOR, without a payload.
    Bits = 4,
}

/// The first eight bytes of a share: all that is public of it except its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The construction.
    pub scheme: Scheme,
    /// The values.
    pub group: Group,
    /// Bits of a point, 1 to 64.
    pub bits: u32,
    /// Whose share it is, from 0.
    pub party: u8,
    /// How many shares there are, at least 2.
    pub parties: u8,
    /// 64-bit words of a value in [`Group::Words`], else 0.
    pub words: u16,
}

/// Why bytes are not a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareError {
    /// Of a version that this release does not know.
    Version,
    /// The header names what there is not.
    Header,
    /// Shorter or longer than its header says.
    Length,
    /// A bit is set that must be zero.
    Form,
    /// Of another construction than the one that is requested.
    Scheme,
}

impl Header {
    /// The header's bytes: version, scheme, group, bits, party, parties, words (little endian).
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let [low, high] = self.words.to_le_bytes();
        let (scheme, group) = (self.scheme as u8, self.group as u8);
        let bits = self.bits as u8;
        [
            VERSION,
            scheme,
            group,
            bits,
            self.party,
            self.parties,
            low,
            high,
        ]
    }

    /// Splits a share into header and body.
    ///
    /// # Errors
    /// Fewer than eight bytes, another version, or what no share has.
    pub fn decode(share: &[u8]) -> Result<(Self, &[u8]), ShareError> {
        let Some((head, body)) = share.split_first_chunk::<HEADER_BYTES>() else {
            return Err(ShareError::Length);
        };
        let [version, scheme, group, bits, party, parties, low, high] = *head;
        if version != VERSION {
            return Err(ShareError::Version);
        }
        let header = Self {
            scheme: scheme_of(scheme).ok_or(ShareError::Header)?,
            group: group_of(group).ok_or(ShareError::Header)?,
            bits: u32::from(bits),
            party,
            parties,
            words: u16::from_le_bytes([low, high]),
        };
        header.check()?;
        Ok((header, body))
    }

    fn check(&self) -> Result<(), ShareError> {
        let words = match self.group {
            Group::Words => (1..=MAX_WORDS).contains(&self.words),
            _ => self.words == 0,
        };
        let tree = matches!(self.scheme, Scheme::Point | Scheme::Less | Scheme::Interval);
        let parties = if tree {
            self.parties == 2
        } else {
            self.parties >= 2
        };
        let compared = matches!(self.scheme, Scheme::Less | Scheme::Interval);
        let group = !compared || matches!(self.group, Group::Wide | Group::Words);
        let bits = (1..=MAX_BITS).contains(&self.bits);
        if words && parties && group && bits && self.party < self.parties {
            return Ok(());
        }
        Err(ShareError::Header)
    }

    /// 128-bit blocks of a value.
    pub fn value_blocks(&self) -> usize {
        match self.group {
            Group::Words => usize::from(self.words).div_ceil(2),
            _ => 1,
        }
    }

    /// Levels of the tree that are not walked, because one block holds the leaves below.
    pub fn folded(&self) -> u32 {
        match (self.scheme, self.group, self.words) {
            (Scheme::Point, Group::Bits, _) => self.bits.min(7),
            (Scheme::Point, Group::Words, 1) => 1,
            _ => 0,
        }
    }
}

fn scheme_of(byte: u8) -> Option<Scheme> {
    use Scheme::{Interval, Less, Owf, Paillier, Point};
    let all = [Point, Less, Interval, Owf, Paillier];
    all.into_iter().find(|scheme| *scheme as u8 == byte)
}

fn group_of(byte: u8) -> Option<Group> {
    let all = [Group::Tag, Group::Wide, Group::Words, Group::Bits];
    all.into_iter().find(|group| *group as u8 == byte)
}

impl fmt::Display for ShareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version => "the share is of a version that is not known here",
            Self::Header => "the share's header names what there is not",
            Self::Length => "the share is shorter or longer than its header says",
            Self::Form => "the share has a bit set that must be zero",
            Self::Scheme => "the share is of another construction than is asked for",
        })
    }
}

impl std::error::Error for ShareError {}
