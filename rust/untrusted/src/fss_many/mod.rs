//! Evaluation of shares of more than two parties (`spec/fss-many.md`).
//!
//! What is done, and in which order, is a function of the points and of the share itself, which by
//! itself reveals nothing.

mod limbs;
mod owf;
mod paillier;
#[cfg(test)]
mod tests;

pub use louver_primitives::fss_many::{OwfLayout, OwfShare};
pub use owf::evaluate_owf;
pub use paillier::{paillier_join, paillier_sum, paillier_sum_until};
