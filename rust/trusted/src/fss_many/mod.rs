//! Private questions to any number of providers, the side that asks (`spec/fss-many.md`): point
//! functions by a one-way function, intervals with additive shares over Paillier's group.

mod modulus;
mod owf;
mod paillier;
#[cfg(test)]
mod tests_of_coalitions;
#[cfg(test)]
mod tests_of_owf;
#[cfg(test)]
mod tests_of_paillier;

pub use modulus::PaillierModulus;
pub use owf::OwfPoint;
pub use paillier::PaillierSum;
