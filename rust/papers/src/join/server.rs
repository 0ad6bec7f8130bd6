//! The keyless side of the adjustable join: points of one column brought under the key of another.

use super::{encoding, wire, Wire};
use curve25519_dalek::ristretto::CompressedRistretto;
use curve25519_dalek::Scalar;
use louver_primitives::eds::spec::FormatError;
use std::collections::HashMap;

/// Each point times the delta; `None` for NULL. Equal points are computed once.
///
/// # Errors
/// [`FormatError`] for a delta or a point of another length or version, for a delta that is 0 or
/// not below the group's order, and for bytes that do not decode as a point.
pub fn adjust(points: &[Option<&[u8]>], delta: &[u8]) -> Result<Vec<Option<Wire>>, FormatError> {
    let delta = scalar(delta).ok_or(FormatError("a join's delta is malformed"))?;
    let mut products: HashMap<&[u8], Wire> = HashMap::new();
    let mut adjusted = Vec::with_capacity(points.len());
    for point in points {
        let Some(point) = *point else {
            adjusted.push(None);
            continue;
        };
        let product = match products.get(point) {
            Some(product) => *product,
            None => multiply(point, &delta).ok_or(FormatError("a join's point is malformed"))?,
        };
        products.insert(point, product);
        adjusted.push(Some(product));
    }
    Ok(adjusted)
}

fn scalar(delta: &[u8]) -> Option<Scalar> {
    let scalar = Scalar::from_canonical_bytes(encoding(delta)?);
    Option::from(scalar).filter(|scalar| *scalar != Scalar::ZERO)
}

fn multiply(point: &[u8], delta: &Scalar) -> Option<Wire> {
    let point = CompressedRistretto(encoding(point)?).decompress()?;
    Some(wire((delta * point).compress().to_bytes()))
}
