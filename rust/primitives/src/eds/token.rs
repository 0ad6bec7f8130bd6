//! Tokens: what a client shows for one range of one column (`spec/eds.md`, "Token").
//!
//! Reading never trusts the bytes: every size is checked against their number and nothing panics.

use super::segment::INDEX_ID;
use super::spec::{Form, FormatError, Spec, SPEC};

/// Sub-tokens of every token: 64 levels on either side.
pub const SUB_TOKENS: usize = 128;
/// Bytes of the key of a position.
pub const PAIR_KEY: usize = 16;
/// Bytes of a position and its key.
pub const PAIR: usize = 4 + PAIR_KEY;
/// Bytes before the first sub-token.
pub const HEADER: usize = 32;
/// What every token of segments begins with.
pub const MAGIC: &[u8; 4] = b"LVTK";
const VERSION: u8 = 1;
/// The flag of a token that names sides.
const SIDES: u8 = 1;

/// What a token says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header<S = Spec> {
    /// The spec of its index.
    pub spec: S,
    /// For which index it is.
    pub index_id: [u8; INDEX_ID],
    /// Whether the first half of its sub-tokens is for lower bounds and the rest for upper ones.
    pub sides: bool,
}

impl<S: Form> Header<S> {
    /// Reads the first [`HEADER`] bytes of a token.
    ///
    /// # Errors
    /// [`FormatError`] for fewer bytes, another magic or version, a bad spec, and unknown flags.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let bad = FormatError("a token is malformed");
        let bytes: &[u8; HEADER] = bytes.first_chunk().ok_or(bad)?;
        let (magic, rest) = bytes.split_at(MAGIC.len());
        let ([version], rest) = rest.split_first_chunk().ok_or(bad)?;
        let (spec, rest) = rest.split_at(SPEC);
        let (index_id, rest) = rest.split_first_chunk().ok_or(bad)?;
        let [flags, rest @ ..] = rest else {
            return Err(bad);
        };
        let right = magic == MAGIC && *version == VERSION && *flags <= SIDES && rest == [0, 0];
        let header = Self {
            spec: S::decode(spec)?,
            index_id: *index_id,
            sides: *flags == SIDES,
        };
        right.then_some(header).ok_or(bad)
    }

    /// Its bytes.
    pub fn encode(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[..4].copy_from_slice(MAGIC);
        out[4] = VERSION;
        out[5..13].copy_from_slice(&self.spec.encode());
        out[13..29].copy_from_slice(&self.index_id);
        out[29] = u8::from(self.sides);
        out
    }

    /// Bytes of a token over rows of single bits.
    pub fn total(&self) -> usize {
        HEADER + SUB_TOKENS * usize::from(self.spec.k()) * PAIR
    }
}

/// A position and the key of its row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair<'a> {
    /// Which row.
    pub position: u32,
    /// The key of the row.
    pub key: &'a [u8; PAIR_KEY],
}

/// A token over rows of single bits, in place.
#[derive(Clone, Copy, Debug)]
pub struct Token<'a, S = Spec> {
    /// What it says of itself.
    pub header: Header<S>,
    pairs: &'a [[u8; PAIR]],
}

impl<'a, S: Form> Token<'a, S> {
    /// Reads a token.
    ///
    /// # Errors
    /// As [`Header::decode`]; for another length, and positions beyond the filter.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let header = Header::<S>::decode(bytes)?;
        if bytes.len() != header.total() {
            return Err(FormatError("a token was cut or has grown"));
        }
        let (pairs, _) = bytes[HEADER..].as_chunks();
        let token = Self { header, pairs };
        if token
            .pairs()
            .any(|pair| pair.position >= header.spec.bits())
        {
            return Err(FormatError("a token has positions beyond its filters"));
        }
        Ok(token)
    }

    /// All pairs: [`SUB_TOKENS`] times as many as an element has bits.
    pub fn pairs(&self) -> impl ExactSizeIterator<Item = Pair<'a>> {
        self.pairs.iter().map(|pair| {
            let (position, key) = pair.split_first_chunk().expect("a pair is longer");
            Pair {
                position: u32::from_le_bytes(*position),
                key: key.try_into().expect("the rest of a pair"),
            }
        })
    }
}

/// Appends a pair to a token that is being written.
pub fn push(out: &mut Vec<u8>, pair: Pair<'_>) {
    out.extend_from_slice(&pair.position.to_le_bytes());
    out.extend_from_slice(pair.key);
}

#[cfg(test)]
mod tests {
    use super::super::kind::Kind;
    use super::*;
    use proptest::prelude::*;

    fn token(kind: Kind, sides: bool) -> Vec<u8> {
        let spec = Spec {
            kind,
            k: 8,
            bits: 1024,
        };
        let header = Header {
            spec,
            index_id: [3; INDEX_ID],
            sides,
        };
        let mut out = header.encode().to_vec();
        for at in 0..SUB_TOKENS * 8 {
            let key = &[at as u8; PAIR_KEY];
            push(
                &mut out,
                Pair {
                    position: at as u32 % 1024,
                    key,
                },
            );
        }
        out
    }

    proptest! {
        #[test]
        fn tokens_and_hostile_bytes(
            kind in prop::sample::select(&Kind::ALL[..]),
            sides: bool,
            at: prop::sample::Index,
            flip in 1..=255_u8,
            noise: Vec<u8>,
        ) {
            let mut bytes = token(kind, sides);
            let read = Token::<Spec>::decode(&bytes).unwrap();
            prop_assert_eq!(read.header.sides, sides);
            prop_assert_eq!(&read.header.encode()[..], &bytes[..HEADER]);
            prop_assert_eq!(read.pairs().len(), SUB_TOKENS * 8);
            bytes[at.index(HEADER)] ^= flip;
            let _ = Token::<Spec>::decode(&bytes).map(|token| token.pairs().count());
            bytes.pop();
            prop_assert!(Token::<Spec>::decode(&bytes).is_err());
            prop_assert!(Token::<Spec>::decode(&noise).is_err());
        }
    }

    #[test]
    fn positions_are_below_the_filters_size() {
        let mut bytes = token(Kind::Basic, false);
        bytes[HEADER..][..4].copy_from_slice(&1024_u32.to_le_bytes());
        assert!(Token::<Spec>::decode(&bytes).is_err());
        let mut other = token(Kind::SplitBlock64, false);
        other[7] = 2;
        assert!(Token::<Spec>::decode(&other).is_err(), "a layout of blocks");
    }
}
