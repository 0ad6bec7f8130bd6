//! What both sides of encrypted data skipping agree on (`spec/eds.md`).

pub mod hash;
pub mod kind;
pub mod segment;
pub mod spec;
pub mod token;
pub mod tree;
