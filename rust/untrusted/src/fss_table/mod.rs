//! What a provider computes on its tables with shares (`spec/fss-tables.md`): records that point
//! functions select, sums that intervals select, counts by prefixes of the row's number, result
//! tables of sampled rows; and the tags, hashes and digests that go with tables.
//!
//! Everything is a sum over points: parts of a table are evaluated each for itself, in any order,
//! and joined. All lengths are checked before any work. Neither time nor addresses depend on what
//! a share holds. What ends in `_until` looks at a flag every few milliseconds and fails with
//! [`Error::Stopped`](crate::Error::Stopped) once it is set.

mod check;
mod hash;
mod order;
mod sample;
mod search;
mod select;
mod sum;
mod tags;
mod xor;

pub use check::LARGEST;
pub use hash::{digest, hash_texts, Hashes};
pub use sample::{sample, sample_until, Samples};
pub use search::{search, search_until, Rows};
pub use select::{select, select_until, Records};
pub use sum::{sum, sum_until, Entries};
pub use tags::record_tags;

/// Points that a share is evaluated at before the next one's turn. What it is worth there, and
/// what is read beside it, stay in the caches; what an evaluation begins with costs little.
const STEP: usize = 64 << 10;
/// Parts of a table begin at multiples of so many points: evaluation goes by subtrees.
const ALIGN: usize = 4 << 10;
