//! Batched modular arithmetic: many independent residues modulo one odd `n`.
//!
//! Values cross this crate's boundary as fixed-width big-endian byte strings of
//! [`Modulus::byte_len`] bytes, concatenated row after row. Inside, a [`Column`] keeps them in
//! Montgomery form in the layout of the chosen [`Backend`], so that a chain of products pays the
//! conversion once on [`Kernel::load`] and once on [`Kernel::store`].
//!
//! [`Kernel::load_raw`] and [`Kernel::store_raw`] leave the conversion out where few products
//! follow.
//!
//! Batch functions split their rows over the current rayon pool; results do not depend on the
//! number of threads. To measure one core, call them inside a pool of one thread.
//!
//! Exponents given to [`Kernel::pow`] and [`Kernel::pow_many`] are public: the sequence of
//! products depends on them. Secret 128-bit exponents belong in [`FixedBase`].

pub mod bloom;
mod column;
pub mod eds;
mod engine;
mod error;
mod fixed;
pub mod fss;
pub mod fss_many;
pub mod ghash;
#[cfg(target_arch = "x86_64")]
mod ifma;
mod kernel;
mod modulus;
pub mod onion;
pub mod ore;
pub mod packed;
mod plan;
mod portable;
mod product;
pub mod prp;
mod raw;
pub mod rowset;
mod stop;
pub mod wide;

pub use column::{Column, Scalar};
pub use engine::{best_backend, Backend};
pub use error::{KernelError, ModulusError, RowSetError};
pub use fixed::FixedBase;
pub use kernel::Kernel;
pub use modulus::Modulus;
pub use raw::TASK_ROWS;
pub use stop::Stop;
