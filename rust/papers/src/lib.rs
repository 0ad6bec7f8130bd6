//! Forms that are kept for comparison with a paper. The product does not depend on this crate;
//! tests and benchmarks use it.

pub mod eds;
pub mod join;
pub mod ore;
mod root;

pub use root::Root;
