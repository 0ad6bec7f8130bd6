//! One key ring's Paillier modulus.

use super::side::Side;
use super::slots::{self, Totals};
use crate::columns::Blobs;
use crate::error::{Error, Result};
use crate::keys::{Purpose, RootSecret};
use crate::sdb::primes::{self, Stream};
use crate::sdb::secret::Secret;
use crate::sdb::{read_hint, write_hint};
use crate::KeyRing;
use arrow_array::{Array, ArrayRef, BinaryArray};
use arrow_schema::Field;
use louver_primitives::Scalar;
use num_bigint::BigUint;
use num_traits::Zero;
use rayon::prelude::*;
use std::fmt;
use std::sync::Arc;
use zeroize::{Zeroize, Zeroizing};

/// What the hint is sealed for.
const HINT: &str = "paillier-hint";
/// Fewest bits of a modulus: one slot.
const LEAST_BITS: u32 = 256;
/// Most bits: the square must fit the kernel.
const MOST_BITS: u32 = 2048;
/// Rows that are sealed together.
const CHUNK: usize = 4096;

/// The secret side of one Paillier modulus.
pub struct PaillierSpace {
    n: BigUint,
    square: BigUint,
    /// The smaller prime, then the larger one.
    sides: [Side; 2],
    /// (p²)^-1 mod q², and p^-1 mod q.
    join: Scalar,
    join_plain: Secret,
    hint: Vec<u8>,
}

impl KeyRing {
    /// The Paillier modulus of this key ring; `hint` is an earlier space's [`PaillierSpace::hint`].
    ///
    /// # Errors
    /// [`Error::Value`] for an unusable size, [`Error::Verify`] for a hint that is not ours.
    pub fn paillier(&self, hint: Option<&[u8]>, bits: u32) -> Result<PaillierSpace> {
        PaillierSpace::new(self, hint, bits)
    }
}

impl PaillierSpace {
    fn new(ring: &KeyRing, hint: Option<&[u8]>, bits: u32) -> Result<Self> {
        if !(LEAST_BITS..=MOST_BITS).contains(&bits) {
            let text = format!("a modulus has {LEAST_BITS} to {MOST_BITS} bits");
            return Err(Error::value(text));
        }
        // A root of its own, so that the primes are not those of another scheme.
        let root = ring.root().derive(Purpose::whole("paillier"));
        let root = RootSecret::from_bytes(&root[..]).expect("32 bytes");
        let steps = hint
            .map(|hint| read_hint(&ring.open_blob(HINT, b"", hint)?, bits))
            .transpose()?;
        let (first, second, steps) = primes::find(&root, bits, steps)?;
        let (p, q) = if first < second {
            (first, second)
        } else {
            (second, first)
        };
        let n = &p * &q;
        let base = Stream::new(&root, Purpose::whole("base")).unit(&n);
        let base = Secret::natural(base);
        let failed = || Error::value("the two primes are the same");
        let join_plain = p.modinv(&q).ok_or_else(failed)?;
        let sides = [p, q].map(|prime| Side::new(prime, &n, base.magnitude()));
        let [p, q] = sides;
        let (p, q) = (p?, q?);
        let join = p.square.magnitude().modinv(q.square.magnitude());
        let join = Zeroizing::new(join.ok_or_else(failed)?.to_bytes_be());
        let join = q
            .kernel
            .scalar(&join)
            .map_err(|e| Error::value(e.to_string()))?;
        Ok(Self {
            square: &n * &n,
            n,
            sides: [p, q],
            join,
            join_plain: Secret::natural(join_plain),
            hint: match hint {
                Some(hint) => hint.to_vec(),
                None => ring.seal_blob(HINT, b"", &write_hint(bits, steps))?,
            },
        })
    }

    /// A sealed blob that lets the primes be recomputed without a search.
    pub fn hint(&self) -> &[u8] {
        &self.hint
    }

    /// What the server multiplies by: n², big endian.
    pub fn modulus(&self) -> Vec<u8> {
        self.square.to_bytes_be()
    }

    /// How many columns a ciphertext holds.
    pub fn slots(&self) -> usize {
        slots::count(self.n.bits() as u32)
    }

    /// One ciphertext a row, of all columns together; none of them is null.
    ///
    /// # Errors
    /// [`Error::Value`] for columns that are not integers of 64 bits, too many, or of
    /// different lengths, or for more than 2 GiB at once.
    pub fn seal(&self, columns: &[(Field, ArrayRef)], rows: usize) -> Result<ArrayRef> {
        let slots = self.slots();
        let plain = Zeroizing::new(slots::pack(columns, rows, slots)?);
        let width = self.modulus().len();
        if i32::try_from(rows * width).is_err() {
            let text = "more than 2 GiB of ciphertext at once: seal fewer rows at a time";
            return Err(Error::value(text));
        }
        let mut bytes = vec![0; rows * width];
        let chunks = plain.chunks(CHUNK * slots * 16);
        for (plain, out) in chunks.zip(bytes.chunks_mut(CHUNK * width)) {
            self.seal_chunk(plain, out, width)?;
        }
        let rows = bytes.chunks_exact(width);
        Ok(Arc::new(BinaryArray::from_iter_values(rows)))
    }

    fn seal_chunk(&self, plain: &[u8], out: &mut [u8], width: usize) -> Result<()> {
        let rows = out.len() / width;
        let [p, q] = &self.sides;
        let low = p.kernel.store(&p.seal(plain, rows)?);
        let mut high = q.seal(plain, rows)?;
        // c = low + p² ((high - low) / p² mod q²), and low is below p², so below q².
        let low_rows = low.chunks_exact(p.kernel.modulus().byte_len());
        let loaded = q.kernel.load_rows(low_rows.clone());
        let loaded = loaded.map_err(|e| Error::value(e.to_string()))?;
        let times = q.kernel.scale(&q.kernel.sub(&high, &loaded), &self.join);
        high.zeroize();
        let times = q.kernel.store(&times);
        let times = times.par_chunks_exact(q.kernel.modulus().byte_len());
        let low = low.par_chunks_exact(p.kernel.modulus().byte_len());
        let rows = out.par_chunks_exact_mut(width).zip(low.zip(times));
        rows.for_each(|(out, (low, times))| {
            let high = BigUint::from_bytes_be(times) * p.square.magnitude();
            let bytes = (high + BigUint::from_bytes_be(low)).to_bytes_be();
            out[width - bytes.len()..].copy_from_slice(&bytes);
        });
        Ok(())
    }

    /// The totals of every ciphertext, which is a product of as many rows' as `rows` says; of a
    /// NULL, zeros.
    ///
    /// # Errors
    /// [`Error::Verify`] for bytes that are not a ciphertext, or not of the sum of so many rows.
    pub fn open(&self, ciphertexts: &dyn Array, rows: &[u64]) -> Result<Vec<Totals>> {
        let blobs = Blobs::new(ciphertexts)?;
        if blobs.len() != rows.len() {
            return Err(Error::value("one number of rows a ciphertext is needed"));
        }
        let mut out = vec![vec![(0, 0); self.slots()]; rows.len()];
        let live: Vec<usize> = (0..rows.len())
            .filter(|&r| blobs.get(r).is_some())
            .collect();
        for live in live.chunks(CHUNK) {
            let numbers = live
                .iter()
                .map(|&row| self.read(blobs.get(row).unwrap_or_default()));
            let numbers = numbers.collect::<Result<Vec<_>>>()?;
            let [p, q] = &self.sides;
            let (low, high) = (p.open(&numbers)?, q.open(&numbers)?);
            for ((&row, low), high) in live.iter().zip(low).zip(high) {
                let (p, q) = (p.prime.magnitude(), q.prime.magnitude());
                let times = (high + q - &low) * self.join_plain.magnitude() % q;
                let totals = slots::unpack(&(low + times * p), rows[row], self.slots());
                let text = "a packed sum is no sum of so many rows";
                out[row] = totals.ok_or_else(|| Error::verify(text))?;
            }
        }
        Ok(out)
    }

    /// A ciphertext that has an inverse.
    fn read(&self, bytes: &[u8]) -> Result<BigUint> {
        let refused = || Error::verify("a packed sum is no ciphertext of this key");
        if bytes.len() != self.modulus().len() {
            return Err(refused());
        }
        let number = BigUint::from_bytes_be(bytes);
        let shares = |side: &Side| (&number % side.prime.magnitude()).is_zero();
        if number >= self.square || self.sides.iter().any(shares) {
            return Err(refused());
        }
        Ok(number)
    }
}

impl fmt::Debug for PaillierSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PaillierSpace({} bits)", self.n.bits())
    }
}
