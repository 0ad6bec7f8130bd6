//! Encrypted data skipping as a server does it: asks filters by token, knowing no key
//! (`spec/eds.md`).

pub mod blocks;
mod masks;
pub mod reference;
pub mod sweep;
