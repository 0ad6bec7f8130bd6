//! Encrypted data skipping as a server does it: asks filters by token, knowing no key
//! (`spec/eds.md`).

pub mod sweep;
