//! A client of PostgreSQL's wire protocol, version 3.0, over one blocking connection.
//!
//! It knows statements by their text, values by their binary form and types by their numbers; what
//! they mean is the caller's business. Everything that comes from the server is untrusted: messages
//! are bounded before they are read, and no bytes make this code panic.

mod answer;
mod arrays;
mod binding;
mod cancel;
mod connection;
mod copied;
mod copy;
mod copy_columns;
mod copy_rows;
mod data_rows;
mod error;
mod messages;
mod numeric;
mod oid;
mod portals;
mod printed;
mod rows;
mod settings;
mod socket;
mod startup;
mod statements;
pub mod texts;
mod tls;
mod trust;
mod values;

pub use answer::{Description, Field, Relay, Relayed, Reply};
pub use cancel::Cancel;
pub use connection::{Connection, Look, State};
pub use copied::{copied, rows_end, CopyLayout};
pub use copy::CopyFormat;
pub use copy_columns::CopyColumn;
pub use copy_rows::CopyRows;
pub use data_rows::{data_rows, Form};
pub use error::{Error, Result, ServerError};
pub use oid::Oid;
pub use rows::{arrow_field, Rows};
pub use settings::{Binding, Check, Host, Identity, Roots, Secret, Settings, Tls};
pub use statements::Step;
pub use values::Value;

/// What fuzz targets and tests call with bytes of anybody.
pub mod decoders {
    pub use crate::binding::hash as certificate_hash;
    pub use crate::messages::read as messages;
    pub use crate::numeric::text as numeric_text;
    pub use crate::rows::column;
    pub use crate::tls::agreed;
}
