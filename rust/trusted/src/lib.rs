//! Everything that holds a key. Runs on the user's machine only; knows no Python, no SQL and no
//! network.
//!
//! [`KeyRing`] is the face: it reads a key file and derives every other key from its 32-byte root
//! secret. [`sdb::SdbSpace`] holds the secret side of the SDB scheme.

mod blob;
mod bound;
mod codes;
mod columns;
pub mod eds;
mod epochs;
mod error;
pub mod fss;
pub mod fss_many;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod gcm;
mod keyfile;
mod keyring;
mod keys;
mod look_up;
mod paillier;
pub mod parquet;
mod ready;
mod recipe;
pub mod sdb;
mod sealed;
mod sums;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_epochs;
#[cfg(test)]
mod tests_of_look_ups;
#[cfg(test)]
mod tests_of_ready;
mod text;
pub mod tiles;
mod value;

pub use blob::{open_deterministic_blob, seal_deterministic_blob};
pub use codes::{EqStep, Interval, Onion, OrdStep, TagStep};
pub use epochs::{EpochBits, Epochs};
pub use error::{Error, Result};
pub use keyring::KeyRing;
pub use look_up::{AnswerColumn, Key, LookUp, Tag};
pub use paillier::{PaillierSpace, Totals};
pub use recipe::{Declared, Part, Recipe, Rows, SealedStep, Step, SumStep, TextStep};
pub use sums::{run_set, set_sizes, Opened, Sums, NARROW_BITS, WIDE_BITS};
pub use text::Search;
