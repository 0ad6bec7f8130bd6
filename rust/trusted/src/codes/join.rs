//! Points of the adjustable join (`spec/join.md`): Popa, Redfield, Zeldovich and Balakrishnan,
//! "CryptDB" (SOSP 2011), section 3.4, on ristretto255.

use super::values::{Data, Domain, Values};
use crate::error::Result;
use crate::keyring::KeyRing;
use crate::keys::{Purpose, RootSecret};
use arrow_array::{Array, ArrayRef, BinaryArray};
use curve25519_dalek::{RistrettoPoint, Scalar};
use hmac::{Hmac, KeyInit, Mac};
use rayon::prelude::*;
use sha2::Sha512;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The first byte of a point and of a delta.
const VERSION: u8 = 1;
/// Bytes of a point or a scalar, its version included.
const WIRE: usize = 33;

impl KeyRing {
    /// The points of a column's values; NULL for NULL. Equal values are computed once.
    ///
    /// # Errors
    /// [`Error::Value`] for an unknown domain, and values that are none of its.
    pub fn join_points(
        &self,
        id: (u32, u32, u32),
        domain: &str,
        values: &dyn Array,
    ) -> Result<ArrayRef> {
        let domain = Domain::parse(domain)?;
        let values = Values::new(domain, values)?;
        let (mut known, mut different) = (HashMap::new(), Vec::new());
        let rows: Vec<Option<usize>> = (0..values.len())
            .map(|row| {
                let message = message(&values, row)?;
                let place = *known.entry(message).or_insert_with_key(|message| {
                    different.push(message.clone());
                    different.len() - 1
                });
                Some(place)
            })
            .collect();
        let name = format!("join-point/{domain}");
        let prf = Prf::new(&self.root().derive(Purpose::whole(&name)));
        let key = column(self.root(), id);
        let point = |message: &Cow<'_, [u8]>| {
            let point = RistrettoPoint::mul_base(&(key.0 * prf.scalar(message)));
            wire(point.compress().to_bytes())
        };
        let points: Vec<[u8; WIRE]> = different.par_iter().map(point).collect();
        let found = rows.iter().map(|place| place.map(|place| points[place]));
        Ok(Arc::new(found.collect::<BinaryArray>()))
    }

    /// What the server needs to bring points of one column under the key of another.
    pub fn join_delta(&self, from: (u32, u32, u32), to: (u32, u32, u32)) -> [u8; WIRE] {
        let (from, to) = (column(self.root(), from), column(self.root(), to));
        wire((to.0 * from.0.invert()).to_bytes())
    }
}

fn wire(bytes: [u8; 32]) -> [u8; WIRE] {
    let mut out = [VERSION; WIRE];
    out[1..].copy_from_slice(&bytes);
    out
}

/// A column's scalar; wiped when dropped.
struct Key(Scalar);

impl Drop for Key {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.0);
    }
}

fn column(root: &RootSecret, (table, column, generation): (u32, u32, u32)) -> Key {
    let key = root.derive(Purpose {
        name: "join-point",
        table,
        column,
        generation,
    });
    Key(Prf::new(&key).scalar(b""))
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

/// The image of a value as bytes; `None` for NULL.
fn message<'a>(values: &Values<'a>, row: usize) -> Option<Cow<'a, [u8]>> {
    if !values.live(row) {
        return None;
    }
    Some(match &values.data {
        Data::Whole(numbers) => numbers[row].to_be_bytes().to_vec().into(),
        Data::Bits(bits) => bits[row].to_be_bytes().to_vec().into(),
        Data::Real(bits) => bits[row].to_be_bytes().to_vec().into(),
        Data::Strings(strings) => strings.get(row).unwrap_or_default().into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::{Int64Array, StringArray};
    use curve25519_dalek::ristretto::CompressedRistretto;

    fn ring() -> KeyRing {
        KeyRing::from_root(RootSecret::from_bytes(&[5; 32]).unwrap())
    }

    #[test]
    fn adjusted_points_are_the_other_columns() {
        let values = Int64Array::from(vec![Some(1), None, Some(-7), Some(1)]);
        let (a, b) = ((1, 2, 3), (4, 5, 6));
        let from = ring().join_points(a, "int", &values).unwrap();
        let to = ring().join_points(b, "int", &values).unwrap();
        let (from, to) = (from.as_binary::<i32>(), to.as_binary::<i32>());
        assert!(from.is_null(1) && from.value(0) == from.value(3));
        assert_ne!(from.value(0), to.value(0));
        let delta = ring().join_delta(a, b);
        let delta = Scalar::from_canonical_bytes(delta[1..].try_into().unwrap()).unwrap();
        for row in [0, 2] {
            let point = CompressedRistretto::from_slice(&from.value(row)[1..]).unwrap();
            let moved = (point.decompress().unwrap() * delta).compress();
            assert_eq!(wire(moved.to_bytes()), to.value(row));
        }
    }

    #[test]
    fn domains_share_nothing() {
        let values = StringArray::from(vec!["1"]);
        let text = ring().join_points((1, 1, 1), "text", &values).unwrap();
        let number = Int64Array::from(vec![1]);
        let int = ring().join_points((1, 1, 1), "int", &number).unwrap();
        assert_ne!(
            text.as_binary::<i32>().value(0),
            int.as_binary::<i32>().value(0)
        );
        assert!(ring().join_points((1, 1, 1), "int", &values).is_err());
    }
}
