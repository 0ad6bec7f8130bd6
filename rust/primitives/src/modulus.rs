//! The modulus and the constants that every backend derives from it.

use crate::engine::{Backend, Engine};
use crate::error::ModulusError;
use crate::portable::Portable;
use num_bigint::BigUint;
use std::fmt;
use std::sync::Arc;

/// Fewest and most bits of a modulus.
const BITS: std::ops::RangeInclusive<u64> = 64..=4096;

/// An odd public modulus `n` of 64 to 4,096 bits with the constants of all backends.
pub struct Modulus {
    be: Vec<u8>,
    bits: u32,
    value: BigUint,
    portable: Portable,
    ifma: Option<Box<dyn Engine>>,
}

impl Modulus {
    /// Reads `n` from big-endian bytes; leading zero bytes are dropped.
    ///
    /// # Errors
    /// If `n` is even, has fewer than 64 bits or more than 4,096.
    pub fn from_be_bytes(n: &[u8]) -> Result<Arc<Self>, ModulusError> {
        let start = n.iter().position(|&b| b != 0).unwrap_or(n.len());
        let be = n[start..].to_vec();
        let top = be.first().map_or(0, |b| u64::from(b.leading_zeros()));
        let bits = be.len() as u64 * 8 - top;
        if bits > *BITS.end() {
            return Err(ModulusError::TooLarge { bits });
        }
        if bits < *BITS.start() {
            return Err(ModulusError::TooSmall { bits });
        }
        if be.last().is_some_and(|b| b & 1 == 0) {
            return Err(ModulusError::Even);
        }
        let value = BigUint::from_bytes_be(&be);
        let portable = Portable::new(&value);
        let ifma = new_ifma(&value);
        Ok(Arc::new(Self {
            be,
            bits: bits as u32,
            value,
            portable,
            ifma,
        }))
    }

    /// Bytes of a row: the length of `n` without leading zero bytes.
    pub fn byte_len(&self) -> usize {
        self.be.len()
    }

    /// Bit length of `n`.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// `n` as `byte_len()` big-endian bytes.
    pub fn to_be_bytes(&self) -> Vec<u8> {
        self.be.clone()
    }

    pub(crate) fn be(&self) -> &[u8] {
        &self.be
    }

    pub(crate) fn value(&self) -> &BigUint {
        &self.value
    }

    /// The engine of a backend, and the backend it belongs to: the portable one if the processor
    /// lacks the other.
    pub(crate) fn resolve(&self, backend: Backend) -> Backend {
        match (&self.ifma, backend) {
            (Some(_), Backend::Ifma) => Backend::Ifma,
            _ => Backend::Portable,
        }
    }

    pub(crate) fn engine(&self, backend: Backend) -> &dyn Engine {
        match (&self.ifma, backend) {
            (Some(engine), Backend::Ifma) => engine.as_ref(),
            _ => &self.portable,
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn new_ifma(n: &BigUint) -> Option<Box<dyn Engine>> {
    crate::ifma::new_engine(n)
}

#[cfg(not(target_arch = "x86_64"))]
fn new_ifma(_: &BigUint) -> Option<Box<dyn Engine>> {
    None
}

impl PartialEq for Modulus {
    fn eq(&self, other: &Self) -> bool {
        self.be == other.be
    }
}

impl Eq for Modulus {}

impl fmt::Debug for Modulus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Modulus").field("bits", &self.bits).finish()
    }
}
