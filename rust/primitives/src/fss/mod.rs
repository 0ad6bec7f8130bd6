//! Function secret sharing for two parties (`spec/fss.md`): what the client and the side
//! that answers have in common. The tree's generator ([`Prg`]), the form of a share
//! ([`PointShare`], [`LessShare`]), and the authentication of records ([`record_tag`], [`dot`]).
//!
//! Nothing here is secret: the generator's keys are public constants.

mod field;
mod header;
mod portable;
mod prg;
mod schedule;
mod share;
mod slot;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod wide;

pub use field::{dot, record_tag, DotSum};
pub use header::{Group, Header, Scheme, ShareError, HEADER_BYTES, MAX_BITS, MAX_WORDS, VERSION};
pub use prg::{Backend, Packed, Prg};
pub use share::{Comparison, LessShare, PointShare, Tree};
pub use slot::sample_slot;
