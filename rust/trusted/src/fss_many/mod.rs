//! Private questions to any number of providers, the side that asks (`spec/fss-many.md`): point
//! functions by a one-way function, intervals with additive shares over Paillier's group.

mod owf;
#[cfg(test)]
mod tests_of_owf;

pub use owf::OwfPoint;
