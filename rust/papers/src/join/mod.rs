//! The adjustable join of CryptDB (Popa, Redfield, Zeldovich and Balakrishnan, SOSP 2011, section
//! 3.4) on ristretto255 (`spec/join.md`): equal values of a column have equal points, and one
//! number brings the points of a column under the key of another.

pub mod secret;
pub mod server;
#[cfg(test)]
mod tests;

/// The first byte of a point and of a delta.
const VERSION: u8 = 1;
/// Bytes of a point or of a delta, its version included.
pub const WIRE: usize = 33;

/// A point or a delta as it is sent and stored.
pub type Wire = [u8; WIRE];

fn wire(encoding: [u8; 32]) -> Wire {
    let mut out = [VERSION; WIRE];
    out[1..].copy_from_slice(&encoding);
    out
}

/// The encoding within a wire form; `None` for another length or version.
fn encoding(wire: &[u8]) -> Option<[u8; 32]> {
    let (version, encoding) = wire.split_first()?;
    encoding.try_into().ok().filter(|_| *version == VERSION)
}
