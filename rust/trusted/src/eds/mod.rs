//! The secret side of encrypted data skipping (`spec/eds.md`): keys, segments, tokens, tags, and
//! the monotone maps of values to 64 bits.

mod generate;
mod keys;
mod lake;
pub mod map;
mod tags;
#[cfg(test)]
mod tests;
mod tokens;

pub use generate::{Ranges, ANY_VALUE, NO_VALUE, RANGE};
pub use lake::LakeKeys;
