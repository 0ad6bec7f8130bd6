//! Function secret sharing for any number of parties (`spec/fss-many.md`): what the side that asks
//! and the side that answers have in common. The form of shares ([`OwfShare`]).
//!
//! Nothing here is secret by itself: one share tells its holder nothing.

mod owf;

pub use owf::{OwfLayout, OwfShare, OWF_MAX_BITS, OWF_MAX_PARTIES};
