//! Encrypted data skipping in every form of the paper (`spec/eds.md`): five kinds of filters, six
//! hashes, five ways to encrypt, and one filter a file. The product has two kinds, one hash and one
//! encryption; a form of rows of bits runs through the product's own code, by its trait
//! [`Form`](louver_primitives::eds::spec::Form).

pub mod block_token;
pub mod cbc;
pub mod hash;
pub mod kind;
pub mod secret;
pub mod server;
pub mod spec;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_forms;

use spec::Spec;

/// What a segment of any form says of itself.
pub type SegmentHeader = louver_primitives::eds::segment::Header<Spec>;
/// A segment of any form.
pub type Segment<'a> = louver_primitives::eds::segment::Segment<'a, Spec>;
/// What a token of any form says of itself.
pub type TokenHeader = louver_primitives::eds::token::Header<Spec>;
