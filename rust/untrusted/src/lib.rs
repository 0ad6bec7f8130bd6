//! What a machine out there computes on ciphertext, knowing nothing but the public modulus
//! ([`server`], [`eds`]), and what it could learn from its own state ([`attack`]). No keys here.

pub mod attack;
mod columns;
pub mod eds;
mod error;
pub mod fss;
pub mod fss_many;
pub mod fss_table;
pub mod server;

pub use error::{Error, Result};
pub use louver_primitives::Stop;
