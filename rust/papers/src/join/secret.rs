//! The secret side of the adjustable join: points of values, and deltas between columns.

use super::{wire, Wire};
use crate::Root;
use curve25519_dalek::{RistrettoPoint, Scalar};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha512;
use std::collections::HashMap;
use std::fmt;
use zeroize::{Zeroize, Zeroizing};

/// The scalar of a column; wiped when dropped.
pub struct ColumnKey(Scalar);

impl Drop for ColumnKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for ColumnKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ColumnKey(redacted)")
    }
}

impl ColumnKey {
    /// The key of a table's column in a generation.
    pub fn new(root: &Root, [table, column, generation]: [u32; 3]) -> Self {
        let key = root.derive("join-point", [table, column, generation]);
        Self(Prf::new(&key).scalar(b""))
    }

    /// The points of values, given by their images (`spec/eq.md`); `None` for NULL. Equal values
    /// are computed once.
    pub fn points(&self, root: &Root, domain: &str, images: &[Option<&[u8]>]) -> Vec<Option<Wire>> {
        let prf = Prf::new(&root.derive(&format!("join-point/{domain}"), [0; 3]));
        let mut points: HashMap<&[u8], Wire> = HashMap::new();
        let mut point = |image| {
            *points.entry(image).or_insert_with(|| {
                let point = RistrettoPoint::mul_base(&(self.0 * prf.scalar(image)));
                wire(point.compress().to_bytes())
            })
        };
        images.iter().map(|image| image.map(&mut point)).collect()
    }

    /// What the server needs to bring points of this column under the key of another.
    pub fn delta_to(&self, other: &Self) -> Wire {
        wire((other.0 * self.0.invert()).to_bytes())
    }
}

/// Numbers below the group's order from strings: HMAC-SHA512, reduced.
struct Prf(Hmac<Sha512>);

impl Prf {
    fn new(key: &[u8; 32]) -> Self {
        Self(Hmac::new_from_slice(key).expect("keys of any length"))
    }

    fn scalar(&self, message: &[u8]) -> Scalar {
        let mac = self.0.clone().chain_update(message).finalize();
        let wide: Zeroizing<[u8; 64]> = Zeroizing::new(mac.into_bytes().into());
        Scalar::from_bytes_mod_order_wide(&wide)
    }
}
