//! The client's side of private questions: what it wants to know is split into shares, one for each
//! provider, and their answers are joined and checked (`spec/fss.md`).

mod open;
mod sample;
mod secret;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_opening;
#[cfg(test)]
mod tests_of_privacy;
mod tree;

pub(crate) use open::open_record;
pub use sample::Sample;
pub use secret::{Below, Point, PointSum, Sum};
pub use tree::{less_shares, point_shares};
