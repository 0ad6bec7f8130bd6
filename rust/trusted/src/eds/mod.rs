//! The secret side of encrypted data skipping (`spec/eds.md`): keys, segments, tokens, tags, and
//! the monotone maps of values to 64 bits.

mod blocks;
mod generate;
mod keys;
mod lake;
pub mod map;
mod reference;
mod tags;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_forms;
#[cfg(test)]
mod tests_of_maps;
mod tokens;

pub use generate::{Ranges, ANY_VALUE, NO_VALUE, RANGE};
pub use lake::LakeKeys;
pub use reference::{FileIndex, FILE_ID};
