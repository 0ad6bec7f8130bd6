//! One key ring's modulus, helper exponent and column keys.

use super::keys::SdbKey;
use super::primes::{self, Steps, Stream};
use super::secret::Secret;
use crate::error::{Error, Result};
use crate::keys::{Purpose, RootSecret};
use crate::KeyRing;
use louver_primitives::{Backend, FixedBase, Kernel, Modulus};
use num_bigint::{BigInt, BigUint};
use num_traits::{One, Signed};
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// What the hint is sealed for.
const HINT: &str = "sdb-hint";
/// Bits of a column's offset.
const OFFSET_BITS: u32 = 256;
/// Tables of powers that are cached: 1.25 MiB each at 2,048 bits.
const TABLES: usize = 16;
/// Inverses that are cached: a statement's updates share their targets.
const INVERSES: usize = 64;

/// The secret side of one SDB modulus. Keeps `g^x_S` and its inverse; primes, phi(n), `g` and
/// `x_S` themselves are forgotten once these are computed.
pub struct SdbSpace {
    pub(crate) root: RootSecret,
    pub(crate) kernel: Kernel,
    n: BigUint,
    /// `g^x_S mod n`, and its inverse.
    ones_base: Secret,
    ones_base_inverse: Secret,
    hint: Vec<u8>,
    tables: Mutex<Vec<([u8; 32], Arc<FixedBase>)>>,
    /// Pairs of a number and its inverse, looked up by either.
    inverses: Mutex<Vec<[Secret; 2]>>,
}

/// The numbers from which a space is built.
pub(crate) struct Parts {
    pub(crate) n: BigUint,
    pub(crate) ones_base: BigUint,
}

impl SdbSpace {
    pub(crate) fn new(ring: &KeyRing, hint: Option<&[u8]>, bits: u32) -> Result<Self> {
        let root = ring.root().derive(Purpose::whole("sdb"));
        let root = RootSecret::from_bytes(&root[..]).expect("32 bytes");
        let steps = hint
            .map(|hint| read_hint(&ring.open_blob(HINT, b"", hint)?, bits))
            .transpose()?;
        let (p1, p2, steps) = primes::find(&root, bits, steps)?;
        let (p1, p2) = (Secret::natural(p1), Secret::natural(p2));
        let n = p1.magnitude() * p2.magnitude();
        let phi = Secret::natural((p1.magnitude() - 1u8) * (p2.magnitude() - 1u8));
        let g = Secret::natural(Stream::new(&root, Purpose::whole("generator")).unit(&n));
        let mut stream = Stream::new(&root, Purpose::whole("ones-exponent"));
        let x = Secret::natural(stream.unit(phi.magnitude()));
        let ones_base = g.magnitude().modpow(x.magnitude(), &n);
        let hint = match hint {
            Some(hint) => hint.to_vec(),
            None => ring.seal_blob(HINT, b"", &write_hint(bits, steps))?,
        };
        Self::from_parts(root, Parts { n, ones_base }, hint)
    }

    pub(crate) fn from_parts(root: RootSecret, parts: Parts, hint: Vec<u8>) -> Result<Self> {
        let Parts { n, ones_base } = parts;
        let modulus = Modulus::from_be_bytes(&n.to_bytes_be());
        let modulus = modulus.map_err(|e| Error::value(e.to_string()))?;
        let inverse = ones_base
            .modinv(&n)
            .ok_or_else(|| Error::value("the generator has no inverse"))?;
        Ok(Self {
            root,
            kernel: Kernel::new(modulus),
            n,
            ones_base: Secret::natural(ones_base),
            ones_base_inverse: Secret::natural(inverse),
            hint,
            tables: Mutex::new(Vec::new()),
            inverses: Mutex::new(Vec::new()),
        })
    }

    /// A sealed blob that lets the primes be recomputed without a search.
    pub fn hint(&self) -> &[u8] {
        &self.hint
    }

    /// The public modulus n, big endian.
    pub fn modulus(&self) -> Vec<u8> {
        self.n.to_bytes_be()
    }

    /// The key of a column at a slot: `m` and a negative 256-bit `t` derive from its ids.
    pub fn column_key(&self, table: u32, column: u32, generation: u32, slot: u32) -> SdbKey {
        self.derived("column", (table, column, generation), slot)
    }

    /// The key of a table's helper column S of ones: offset 1. It depends on the table alone, so
    /// that the columns of every generation can be moved by it.
    pub fn ones_key(&self, table: u32, slot: u32) -> SdbKey {
        SdbKey::new(self.ones_m(table), [(slot, table, BigInt::one())])
    }

    /// The key of a table's helper column R of random numbers.
    pub fn random_key(&self, table: u32, generation: u32, slot: u32) -> SdbKey {
        self.derived("random", (table, 0, generation), slot)
    }

    fn derived(
        &self,
        name: &str,
        (table, column, generation): (u32, u32, u32),
        slot: u32,
    ) -> SdbKey {
        let purpose = Purpose {
            name,
            table,
            column,
            generation,
        };
        let mut stream = Stream::new(&self.root, purpose);
        let m = stream.unit(&self.n);
        // The top bit is set, so that no offset is small by chance.
        let offset = stream.bits(OFFSET_BITS) | BigUint::one() << (OFFSET_BITS - 1);
        SdbKey::new(m, [(slot, table, -BigInt::from(offset))])
    }

    pub(crate) fn n(&self) -> &BigUint {
        &self.n
    }

    /// `m_S` of a table.
    pub(crate) fn ones_m(&self, table: u32) -> BigUint {
        let purpose = Purpose {
            name: "ones",
            table,
            column: 0,
            generation: 0,
        };
        Stream::new(&self.root, purpose).unit(&self.n)
    }

    /// An `m` that a label names.
    pub(crate) fn label_m(&self, label: &[u8]) -> BigUint {
        let name = format!("label/{}", crate::keys::hex(&Sha256::digest(label)));
        Stream::new(&self.root, Purpose::whole(&name)).unit(&self.n)
    }

    /// `m^-1 mod n`, cached.
    pub(crate) fn invert(&self, m: &BigUint) -> BigUint {
        if m.is_one() {
            return m.clone();
        }
        // A poisoned lock only means that another thread died between two whole states.
        let lock = || self.inverses.lock().unwrap_or_else(PoisonError::into_inner);
        for [left, right] in lock().iter() {
            if left.magnitude() == m {
                return right.magnitude().clone();
            }
            if right.magnitude() == m {
                return left.magnitude().clone();
            }
        }
        let inverse = m.modinv(&self.n).expect("every m is coprime to n");
        let mut pairs = lock();
        if pairs.len() >= INVERSES {
            pairs.remove(0);
        }
        pairs.push([m, &inverse].map(|v| Secret::natural(v.clone())));
        inverse
    }

    /// `base^exponent mod n` for an exponent that the server gets to see.
    pub(crate) fn power(&self, base: &BigUint, exponent: &BigUint) -> BigUint {
        // For a single row the eight lanes of the other backend do not pay.
        let kernel = Kernel::with_backend(self.kernel.modulus().clone(), Backend::Portable);
        let base = kernel.load(&self.fixed(base)).expect("below n");
        let power = kernel.pow(&base, &exponent.to_bytes_be());
        BigUint::from_bytes_be(&kernel.store(&power))
    }

    /// `g^(t * x_S) mod n`.
    pub(crate) fn base(&self, offset: &BigInt) -> Secret {
        let base = if offset.is_negative() {
            &self.ones_base_inverse
        } else {
            &self.ones_base
        };
        Secret::natural(base.magnitude().modpow(offset.magnitude(), &self.n))
    }

    /// As many bytes as the modulus has.
    pub(crate) fn fixed(&self, value: &BigUint) -> Vec<u8> {
        let bytes = value.to_bytes_be();
        let mut out = vec![0; self.kernel.modulus().byte_len()];
        let start = out.len() - bytes.len();
        out[start..].copy_from_slice(&bytes);
        out
    }

    /// The table of `factor * (g^(t x_S))^r` if there are enough rows; `None` otherwise.
    pub(crate) fn table(
        &self,
        factor: &Secret,
        offset: &BigInt,
        rows: usize,
    ) -> Option<Arc<FixedBase>> {
        /// Rows from which a table costs less than single powers.
        const WORTH: usize = 16;
        let mut hash = Sha256::new();
        hash.update(offset.to_signed_bytes_be());
        hash.update([0xff; 8]);
        hash.update(factor.bytes());
        let id: [u8; 32] = hash.finalize().into();
        // A poisoned lock only means that another thread died between two whole states.
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = tables.iter().position(|(of, _)| *of == id) {
            let hit = tables.remove(at);
            let table = hit.1.clone();
            tables.push(hit);
            return Some(table);
        }
        drop(tables);
        if rows < WORTH {
            return None;
        }
        let base = self.base(offset).bytes();
        let table = FixedBase::new(&self.kernel, &base, &factor.bytes());
        let table = Arc::new(table.expect("both are below n"));
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if tables.len() >= TABLES {
            tables.remove(0);
        }
        tables.push((id, table.clone()));
        Some(table)
    }
}

impl fmt::Debug for SdbSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SdbSpace({} bits)", self.n.bits())
    }
}

/// The hint's plain form: version, bits, steps.
pub(crate) fn write_hint(bits: u32, steps: Steps) -> Vec<u8> {
    let mut out = vec![1];
    for number in [bits, steps.0, steps.1] {
        out.extend_from_slice(&number.to_be_bytes());
    }
    out
}

pub(crate) fn read_hint(plain: &[u8], bits: u32) -> Result<Steps> {
    let numbers: Vec<u32> = match plain.split_first() {
        Some((1, rest)) if rest.len() == 12 => rest
            .chunks_exact(4)
            .map(|b| u32::from_be_bytes(b.try_into().expect("4 bytes")))
            .collect(),
        _ => return Err(Error::verify("the hint of a modulus has an unknown form")),
    };
    if numbers[0] != bits {
        let (is, wanted) = (numbers[0], bits);
        let text = format!("the hint of a modulus is for {is} bits, not for {wanted}");
        return Err(Error::value(text));
    }
    Ok(Steps(numbers[1], numbers[2]))
}
