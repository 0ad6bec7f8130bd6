//! The client's side of private questions to any number of providers (`spec/fss-many.md`): point
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
