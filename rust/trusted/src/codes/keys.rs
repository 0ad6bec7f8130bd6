//! Keys of codes.

use super::values::Domain;
use super::Onion;
use crate::epochs::EpochBits;
use crate::keyring::KeyRing;
use crate::keys::{hex, Purpose, RootSecret};
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use louver_primitives::onion::Layer;
use louver_primitives::prp::{Cmac, Prp128, Prp64, KEY};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use zeroize::{ZeroizeOnDrop, Zeroizing};

type Key = Zeroizing<[u8; KEY]>;

/// One function from values to codes: a permutation for each kind of value.
#[derive(ZeroizeOnDrop)]
pub(crate) struct Inner {
    pub(super) narrow: Prp64,
    pub(super) wide: Prp128,
    pub(super) short: Prp128,
    pub(super) long: Cmac,
}

/// The permutation over the codes of a group.
#[derive(ZeroizeOnDrop)]
pub(super) struct Outer {
    pub(super) narrow: Prp64,
    pub(super) wide: Prp128,
}

/// The functions of a column's equality codes.
#[derive(ZeroizeOnDrop)]
pub(crate) struct Column {
    pub(super) inner: Inner,
    pub(super) outer: Outer,
}

pub(super) fn eq(ring: &KeyRing, id: (u32, u32, u32)) -> Arc<Column> {
    ring.ciphers().eq.get(id, || {
        let [inner, det] = halves(&ring.root().derive(of("eq", id)));
        Column {
            inner: Inner::new(&inner),
            outer: Outer {
                narrow: Prp64::new(&det),
                wide: Prp128::new(&det),
            },
        }
    })
}

/// The key of the permutation over the codes of a group.
pub(super) fn det(root: &RootSecret, id: (u32, u32, u32)) -> Key {
    let [_, det] = halves(&root.derive(of("eq", id)));
    det
}

/// What the columns of a group have in common. Domains never share codes.
pub(super) fn eq_group(ring: &KeyRing, group: &str, domain: Domain) -> Arc<Inner> {
    ring.ciphers().joins.get((group.to_owned(), domain), || {
        let [inner, _] = halves(&group_key(ring.root(), "eq/join", group, domain));
        Inner::new(&inner)
    })
}

/// Of the codes of one epoch's rows.
pub(super) fn layer(
    ring: &KeyRing,
    id: (u32, u32, u32),
    onion: Onion,
    epoch: Option<&EpochBits>,
) -> Arc<Layer> {
    let make = || Layer::new(&layer_key(ring.root(), id, onion, epoch));
    ring.ciphers().layers.get((id, onion, epoch.copied()), make)
}

/// The key of [`layer`].
pub(super) fn layer_key(
    root: &RootSecret,
    id: (u32, u32, u32),
    onion: Onion,
    epoch: Option<&EpochBits>,
) -> Zeroizing<[u8; 32]> {
    let name = match onion {
        Onion::Eq => "layer/eq",
        Onion::Ord => "layer/ord",
    };
    root.derive_in(of(name, id), epoch)
}

fn of(name: &str, (table, column, generation): (u32, u32, u32)) -> Purpose<'_> {
    Purpose {
        name,
        table,
        column,
        generation,
    }
}

/// The label is anybody's text, so its hash stands in the purpose.
fn group_key(root: &RootSecret, name: &str, group: &str, domain: Domain) -> Zeroizing<[u8; 32]> {
    let label = hex(&Sha256::digest(group.as_bytes()));
    root.derive(Purpose::whole(&format!("{name}/{domain}/{label}")))
}

fn halves(key: &[u8; 32]) -> [Key; 2] {
    let half = |part: &[u8]| Zeroizing::new(part.try_into().expect("half of 32 bytes"));
    [half(&key[..KEY]), half(&key[KEY..])]
}

impl Inner {
    /// Each kind of value has its own key: AES of its number.
    fn new(key: &Key) -> Self {
        let cipher = Aes128Enc::new((&**key).into());
        let kind = |number: u128| -> Key {
            let mut block = Block::from(number.to_be_bytes());
            cipher.encrypt_block(&mut block);
            Zeroizing::new(block.into())
        };
        Self {
            narrow: Prp64::new(&kind(1)),
            wide: Prp128::new(&kind(2)),
            short: Prp128::new(&kind(3)),
            long: Cmac::new(&kind(4)),
        }
    }
}
