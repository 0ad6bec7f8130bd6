//! The server side of PostgreSQL's wire protocol, versions 3.0 and 3.2: what a client of PostgreSQL
//! meets when it connects to Louver.
//!
//! Everything that comes from a client is untrusted until it has proved a password, and bounded
//! after that: messages are refused by their announced length, memory is not taken for what is only
//! announced, and no bytes make this code panic. I/O blocks; each client has a thread.

mod error;
pub mod message;
pub mod reply;

pub use error::{Error, Result};
pub use message::{Request, Target};
pub use reply::{Column, Fields};
