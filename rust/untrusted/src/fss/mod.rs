//! Evaluation of the two-party shares (`spec/fss.md`).
//!
//! What is done, and in which order, depends on the points and on the share's length, never on
//! what the share holds.

mod less;
mod point;
mod sink;

pub use less::evaluate_less;
pub use louver_primitives::fss::{
    dot, record_tag, DotSum, Group, Header, LessShare, PointShare, Scheme, ShareError,
};
pub use point::evaluate_point;
pub use sink::{Points, Sink, CHUNK};
