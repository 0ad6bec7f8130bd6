//! The secret side of the SDB scheme (SDB paper, section 3; `spec/sdb.md`).
//!
//! Keys never hold an exponent modulo phi(n), only integer offsets `t` with `x = t * x_S`: what
//! the server is sent are differences of offsets, so that nothing it sees was ever reduced.

mod items;
mod keys;
pub mod math;
mod numbers;
mod open;
pub(crate) mod primes;
mod residue;
pub(crate) mod rows;
mod seal;
pub(crate) mod secret;
mod space;
#[cfg(test)]
mod tests;

pub use keys::{SdbKey, SdbUpdate};
pub use numbers::NumberType;
pub use seal::RANDOM_BITS;
pub use space::SdbSpace;
pub(crate) use space::{read_hint, write_hint};
