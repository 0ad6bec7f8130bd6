//! The secret side of encrypted data skipping (`spec/eds.md`): keys, segments, tokens, tags, and
//! the monotone maps of values to 64 bits.

pub mod generate;
pub mod keys;
mod lake;
pub mod map;
pub mod tags;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_maps;
pub mod tokens;

pub use generate::{Ranges, ANY_VALUE, NO_VALUE, RANGE};
pub use lake::LakeKeys;
