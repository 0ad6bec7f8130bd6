//! The greeting, over sockets: in the open, within TLS, and with clients that want none.

mod certificate;
mod encrypted;
mod hostile;
mod peer;
mod plain;
mod session;
