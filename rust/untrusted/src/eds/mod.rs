//! Encrypted data skipping as a server does it: queries filters by token, without a key
//! (`spec/eds.md`).

pub mod sweep;
