//! Keys of codes.

use super::values::Domain;
use super::Onion;
use crate::epochs::EpochBits;
use crate::keys::{hex, Purpose, RootSecret};
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use louver_primitives::prp::{Cmac, Prp128, Prp64, KEY};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

type Key = Zeroizing<[u8; KEY]>;

/// One function from values to codes: a permutation for each kind of value.
pub(super) struct Inner {
    pub(super) narrow: Prp64,
    pub(super) wide: Prp128,
    pub(super) short: Prp128,
    pub(super) long: Cmac,
}

/// The keys of a column's equality codes.
pub(super) struct Column {
    pub(super) inner: Inner,
    /// Of the permutation over the codes of a group.
    pub(super) det: Key,
}

pub(super) fn eq(root: &RootSecret, id: (u32, u32, u32)) -> Column {
    let [inner, det] = halves(&root.derive(of("eq", id)));
    Column {
        inner: Inner::new(&inner),
        det,
    }
}

/// What the columns of a group have in common. Domains never share codes.
pub(super) fn eq_group(root: &RootSecret, group: &str, domain: Domain) -> Inner {
    let [inner, _] = halves(&group_key(root, "eq/join", group, domain));
    Inner::new(&inner)
}

/// Of the codes of one epoch's rows.
pub(super) fn layer(
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
