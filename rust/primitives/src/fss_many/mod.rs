//! Function secret sharing for any number of parties (`spec/fss-many.md`): what the client
//! and the side that answers have in common. The form of shares ([`OwfShare`], [`PaillierShare`])
//! and simultaneous powers ([`Bases`]).
//!
//! Nothing here is secret by itself: one share reveals nothing to its holder.

mod owf;
mod paillier;
mod power;
#[cfg(test)]
mod tests;

pub use owf::{OwfLayout, OwfShare, OWF_MAX_BITS, OWF_MAX_PARTIES};
pub use paillier::{
    generators, join_replies, read_reply, sums_of_ciphertext, uniform_rows, write_reply,
    PaillierLayout, PaillierShare, Rows, LAST_ROW_BYTES, MODULUS_BYTES, PAILLIER_MAX_BITS,
    PAILLIER_MAX_PARTIES, PART_BYTES, ROW_BYTES, ROW_KEY, SUM_BITS,
};
pub use power::{Bases, Exponent, EXPONENT_WORDS};
