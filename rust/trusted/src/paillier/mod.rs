//! Packed sums under Paillier's encryption (`spec/hom.md`): several columns a ciphertext.

mod side;
mod slots;
mod space;
#[cfg(test)]
mod tests;

pub use slots::Totals;
pub use space::PaillierSpace;
