//! Evaluation of the two-party shares (`spec/fss.md`).
//!
//! What is done, and in which order, depends on the points and on the share's length, never on
//! what the share holds.

mod domain;
mod less;
mod linked;
mod point;
mod sink;
mod sorted;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_ways;
mod words;

pub use less::{evaluate_less, evaluate_less_with};
pub use louver_primitives::fss::{
    dot, record_tag, Backend, DotSum, Group, Header, LessShare, PointShare, Prg, Scheme, ShareError,
};
pub use point::{evaluate_point, evaluate_point_with};
pub use sink::{Points, Sink, CHUNK};
pub use words::{evaluate_leaves, evaluate_less_words, evaluate_packed, Leaves};
