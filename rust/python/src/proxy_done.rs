//! What an open transaction remembers of its statements, to do them again.

use crate::proxy_statements::Handle;
use louver_proxy::{Outcome, Values};
use std::hash::{BuildHasher, RandomState};

/// A statement that was run, with its values and what came of it.
pub(crate) struct Done {
    pub(crate) handle: Handle,
    pub(crate) values: Values,
    pub(crate) formats: Vec<i16>,
    pub(crate) outcome: Fingerprint,
}

/// What a statement gave, without the order of its rows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    tag: String,
    rows: usize,
    sum: u64,
}

impl Fingerprint {
    pub(crate) fn of(outcome: &Outcome, hashes: &RandomState) -> Self {
        match outcome {
            Outcome::Rows {
                tag,
                messages,
                ends,
                ..
            } => {
                let (mut start, mut sum) = (0, 0_u64);
                for &end in ends {
                    let row = messages.get(start..end).unwrap_or_default();
                    sum = sum.wrapping_add(hashes.hash_one(row));
                    start = end;
                }
                Self {
                    tag: tag.clone(),
                    rows: ends.len(),
                    sum,
                }
            }
            Outcome::Done { tag } => Self {
                tag: tag.clone(),
                ..Self::default()
            },
            _ => Self::default(),
        }
    }
}
