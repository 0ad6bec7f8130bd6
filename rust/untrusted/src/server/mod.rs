//! The server functions of the SDB scheme (SDB paper, section 3.3 and Table 1; `spec/sdb.md`).
//!
//! Columns of residues are binary, big endian, at most as long as the modulus. Whatever is the
//! same in every row (modulus, updates, exponents) still arrives as a column. A row with a NULL
//! anywhere gives NULL.

mod call;
mod functions;
mod hom;
mod lists;
mod onion;
mod ore;
mod residue;
mod rows;
mod signs;
mod text;
mod update;

pub use functions::{
    sdb_add, sdb_add_kept, sdb_cartprod, sdb_int_add, sdb_key_update, sdb_linear, sdb_mul,
    sdb_power,
};
pub use hom::hom_sum;
pub use lists::{sdb_powers, sdb_sum};
pub use onion::{onion_join, onion_join_wide, onion_open, onion_open_wide};
pub use ore::ore_compare;
pub use residue::sdb_residue;
pub use rows::row_set;
pub use signs::{sdb_compare, sdb_compare_kept, sdb_compare_sum, sdb_order};
pub use text::text_match;
pub use update::encode_update;
