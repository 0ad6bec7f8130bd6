//! The server side of PostgreSQL's wire protocol, versions 3.0 and 3.2: what a client of PostgreSQL
//! meets when it connects to Louver.
//!
//! Everything that comes from a client is untrusted until it has proved a password, and bounded
//! after that: messages are refused by their announced length, memory is not taken for what is only
//! announced, and no bytes make this code panic. I/O blocks; each client has a thread.

mod addresses;
mod audit;
mod copy_rows;
mod engine;
mod error;
mod extended;
mod files;
mod greetings;
mod json;
mod leased;
mod lexing;
mod listener;
pub mod literals;
mod log;
pub mod message;
mod metrics;
mod monitor;
mod names;
mod observed;
mod observing;
mod packet;
mod pool;
mod portals;
pub mod reply;
mod scram;
mod session;
mod simple;
mod socket;
mod startup;
mod stop;
mod tls;
mod users;

pub use addresses::Address;
pub use audit::Audit;
pub use copy_rows::{CopyForm, Splitter};
pub use engine::{
    Canceller, CopyPiece, CursorUse, CursorVerb, Done, Engine, Failure, Kind, Opener, Outcome,
    Settings, Statement, Values,
};
pub use error::{Error, Result};
pub use leased::{Handle, Leased, Pool, Pooled};
pub use listener::{Counts, Server};
pub use log::{Level, Log};
pub use message::{Request, Target};
pub use metrics::Metrics;
pub use monitor::{Monitor, Monitored};
pub use observed::{Disclosed, Leak, Looks, Way};
pub use pool::{Lender, Lent, Sharing};
pub use reply::{Column, Fields};
pub use socket::{Client, Ready, Stream};
pub use startup::{greet, Greeting, Opened, Options};
pub use stop::Stop;
pub use tls::Certificate;
pub use users::{verifier, Secret, Users, Verifier};

/// What fuzz targets and tests call with bytes of anybody.
pub mod decoders {
    pub use crate::monitor::page;
    pub use crate::packet::{read as packet, take as take_packet, Packet};
    pub use crate::scram::Exchange;
}
