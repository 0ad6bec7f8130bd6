//! Points of one column brought under the key of another (`spec/join.md`).

use crate::columns::Blobs;
use crate::error::{Error, Result};
use arrow_array::{Array, ArrayRef, BinaryArray};
use curve25519_dalek::ristretto::CompressedRistretto;
use curve25519_dalek::Scalar;
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// The first byte of a point and of a delta.
const VERSION: u8 = 1;

/// Each point times the delta; NULL where one is NULL. Equal points are computed once a call.
///
/// # Errors
/// Other types, lengths that differ, what is no point, a delta that is none or differs by row.
pub fn join_adjust(points: &dyn Array, delta: &dyn Array) -> Result<ArrayRef> {
    let (points, deltas) = (Blobs::new(points)?, Blobs::new(delta)?);
    if deltas.len() != points.len() {
        return Err(Error::new("the columns differ in length"));
    }
    let Some(delta) = deltas.constant("delta")? else {
        return Ok(Arc::new(BinaryArray::new_null(points.len())));
    };
    let delta = scalar(delta).ok_or_else(|| Error::new("a join's delta is malformed"))?;
    let (mut known, mut different) = (HashMap::new(), Vec::new());
    let rows: Vec<Option<usize>> = (0..points.len())
        .map(|row| {
            let point = points.get(row).filter(|_| deltas.get(row).is_some())?;
            Some(*known.entry(point).or_insert_with(|| {
                different.push(point);
                different.len() - 1
            }))
        })
        .collect();
    let moved = different.par_iter().map(|point| adjusted(point, &delta));
    let moved: Option<Vec<[u8; 33]>> = moved.collect();
    let moved = moved.ok_or_else(|| Error::new("a join's point is malformed"))?;
    let found = rows.iter().map(|place| place.map(|place| moved[place]));
    Ok(Arc::new(found.collect::<BinaryArray>()))
}

fn scalar(wire: &[u8]) -> Option<Scalar> {
    let [VERSION, bytes @ ..] = wire else {
        return None;
    };
    let scalar = Scalar::from_canonical_bytes(bytes.try_into().ok()?);
    Option::from(scalar).filter(|scalar| *scalar != Scalar::ZERO)
}

fn adjusted(wire: &[u8], delta: &Scalar) -> Option<[u8; 33]> {
    let [VERSION, bytes @ ..] = wire else {
        return None;
    };
    let point = CompressedRistretto::from_slice(bytes).ok()?.decompress()?;
    let mut out = [VERSION; 33];
    out[1..].copy_from_slice((delta * point).compress().as_bytes());
    Some(out)
}
