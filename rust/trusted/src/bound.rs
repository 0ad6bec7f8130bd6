//! Messages under AES-256-GCM that are bound to a column and to the row that they are of
//! (`spec/rnd.md`, `spec/tile.md`).

use crate::epochs::{EpochBits, Epochs, PerEpoch};
use crate::error::Result;
use crate::gcm::{Binding, Gcm, Sealed};
use crate::keyring::KeyRing;
use crate::keys::{Purpose, KEY_ID_BYTES};
use std::sync::Arc;

/// The version byte of messages of rows whose epoch bears random bits.
const VERSION: u8 = 2;
/// That of messages of earlier releases.
const LEGACY_VERSION: u8 = 1;

/// What a message holds: each kind has keys of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// One value.
    Value,
    /// The values of a range of rows.
    Tile,
}

/// Which column, under which key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnId {
    pub(crate) table: u32,
    pub(crate) column: u32,
    pub(crate) generation: u32,
    pub(crate) key_id: [u8; KEY_ID_BYTES],
}

/// A column's cipher, its key schedule computed once.
pub(crate) struct Cipher<'a> {
    id: ColumnId,
    pub(crate) gcm: Arc<Gcm>,
    bound: PerEpoch<'a, Bound>,
}

/// What the values of one epoch are bound to.
pub(crate) struct Bound {
    pub(crate) version: u8,
    pub(crate) binding: Binding,
}

impl<'a> Cipher<'a> {
    pub(crate) fn new(ring: &KeyRing, kind: Kind, id: ColumnId, epochs: &'a Epochs) -> Self {
        let (name, ready) = match kind {
            Kind::Value => ("sealed", &ring.ciphers().sealed),
            Kind::Tile => ("tile", &ring.ciphers().tiles),
        };
        let make = || {
            Gcm::new(&ring.root().derive(Purpose {
                name,
                table: id.table,
                column: id.column,
                generation: id.generation,
            }))
        };
        let key = (id.table, id.column, id.generation);
        Self {
            id,
            gcm: ready.get(key, make),
            bound: PerEpoch::new(epochs),
        }
    }

    /// What the message of a row, or of a tile that begins with it, is bound to.
    pub(crate) fn bound(&self, row_id: i64) -> Result<&Bound> {
        self.bound.at(row_id, |bits| self.bind(bits))
    }

    fn bind(&self, bits: Option<&EpochBits>) -> Bound {
        let version = if bits.is_some() {
            VERSION
        } else {
            LEGACY_VERSION
        };
        let id = &self.id;
        let mut head = vec![version];
        for number in [id.table, id.column, id.generation] {
            head.extend_from_slice(&number.to_be_bytes());
        }
        head.extend_from_slice(&id.key_id);
        head.extend_from_slice(bits.map_or(&[], |bits| bits.as_slice()));
        Bound {
            version,
            binding: self.gcm.binding(&head),
        }
    }
}

/// A stored message's parts; `None` if it has none.
pub(crate) fn parts<'a>(bound: &'a Bound, row_id: i64, stored: &'a [u8]) -> Option<Sealed<'a>> {
    let (&version, rest) = stored.split_first()?;
    let (nonce, rest) = rest.split_first_chunk()?;
    let (body, tag) = rest.split_last_chunk()?;
    (version == bound.version).then_some(Sealed {
        binding: &bound.binding,
        row_id,
        nonce,
        body,
        tag,
    })
}
