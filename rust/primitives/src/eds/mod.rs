//! What both sides of encrypted data skipping agree on (`spec/eds.md`).

pub mod kind;
pub mod tree;
