//! Keys `<m, {slot: t}>` and their algebra (SDB paper, section 3.3, Rules 1 to 14).

use super::math;
use super::secret::Secret;
use super::space::SdbSpace;
use crate::error::{Error, Result};
use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_traits::{One, Signed, Zero};
use std::collections::BTreeMap;
use std::fmt;

/// The key of an expression: `m`, and for every table occurrence (slot) in the query an integer
/// offset `t`; the slot's exponent is `t * x_S`.
pub struct SdbKey {
    pub(crate) m: Secret,
    pub(crate) slots: BTreeMap<u32, Slot>,
}

/// A slot's offset, and the table whose helper column S moves it.
pub(crate) struct Slot {
    pub(crate) table: u32,
    pub(crate) offset: Secret,
}

impl Slot {
    fn new(table: u32, offset: BigInt) -> Self {
        Self {
            table,
            offset: Secret::new(offset),
        }
    }
}

/// What the server is sent to move a column to another key.
#[derive(Debug)]
pub struct SdbUpdate {
    /// `q`: big endian, as many bytes as the modulus has.
    pub factor: Vec<u8>,
    /// Slot to `p`: the power of the slot's helper column S, big endian, never 0.
    pub powers: BTreeMap<u32, Vec<u8>>,
}

impl SdbKey {
    pub(crate) fn new(m: BigUint, slots: impl IntoIterator<Item = (u32, u32, BigInt)>) -> Self {
        let slots = slots
            .into_iter()
            .filter(|(_, _, offset)| !offset.is_zero())
            .map(|(slot, table, offset)| (slot, Slot::new(table, offset)));
        Self {
            m: Secret::natural(m),
            slots: slots.collect(),
        }
    }

    /// The slots on which the key depends.
    pub fn slots(&self) -> Vec<u32> {
        self.slots.keys().copied().collect()
    }
}

impl fmt::Debug for SdbKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SdbKey(slots {:?})", self.slots())
    }
}

/// All slots of some keys with their tables.
fn tables<'a>(keys: impl IntoIterator<Item = &'a SdbKey>) -> Result<BTreeMap<u32, u32>> {
    let mut by_table = BTreeMap::new();
    for key in keys {
        for (&slot, of) in &key.slots {
            if *by_table.entry(slot).or_insert(of.table) != of.table {
                let text = format!("slot {slot} stands for two different tables");
                return Err(Error::value(text));
            }
        }
    }
    Ok(by_table)
}

fn offset(key: &SdbKey, slot: u32) -> BigInt {
    key.slots
        .get(&slot)
        .map_or_else(BigInt::zero, |s| s.offset.expose().clone())
}

impl SdbSpace {
    /// The key of a plain column or a plain constant: `<1, 0>`.
    pub fn plain_key(&self) -> SdbKey {
        SdbKey::new(BigUint::one(), [])
    }

    /// The key of a product of two columns: `<m_A * m_B, t_A + t_B>` (EE mode).
    ///
    /// # Errors
    /// [`Error::Value`] if one slot belongs to two tables.
    pub fn multiply(&self, a: &SdbKey, b: &SdbKey) -> Result<SdbKey> {
        let m = a.m.magnitude() * b.m.magnitude() % self.n();
        let slots = tables([a, b])?;
        let slots = slots.into_iter();
        Ok(SdbKey::new(
            m,
            slots.map(|(slot, table)| (slot, table, offset(a, slot) + offset(b, slot))),
        ))
    }

    /// The key under which the same ciphertexts mean `constant` times as much: `<u * m, t>` (EC
    /// mode). With -1 it is the key of a negated column.
    ///
    /// # Errors
    /// [`Error::Value`] for 0 (fold it away), or a constant that shares a factor with `n`.
    pub fn scale(&self, a: &SdbKey, constant: &BigInt) -> Result<SdbKey> {
        let constant = math::residue(constant, self.n());
        if constant.is_zero() {
            let text = "a column times 0 is the constant 0, and has no key";
            return Err(Error::value(text));
        }
        if !constant.gcd(self.n()).is_one() {
            return Err(Error::value("the constant has no inverse modulo n"));
        }
        let m = a.m.magnitude() * constant % self.n();
        let slots = a.slots.iter();
        Ok(SdbKey::new(
            m,
            slots.map(|(&slot, s)| (slot, s.table, s.offset.expose().clone())),
        ))
    }

    /// A key that all operands of a sum can be moved to: `m` from the label, the largest offset of
    /// each slot, 0 where some operand does not depend on it.
    ///
    /// # Errors
    /// [`Error::Value`] without keys, or if one slot belongs to two tables.
    pub fn sum_target(&self, keys: &[&SdbKey], label: &[u8]) -> Result<SdbKey> {
        if keys.is_empty() {
            return Err(Error::value("a sum has at least one operand"));
        }
        let largest = |(slot, table)| {
            let offsets = keys.iter().map(|key| offset(key, slot));
            (slot, table, offsets.max().unwrap_or_default())
        };
        let slots = tables(keys.iter().copied())?.into_iter().map(largest);
        Ok(SdbKey::new(self.label_m(label), slots.collect::<Vec<_>>()))
    }

    /// One common key for all rows, `<m, 0>` with `m` from the label: for SUM, GROUP BY and
    /// equi-join. A column under it shows the server the ratios of its values.
    pub fn common_target(&self, label: &[u8]) -> SdbKey {
        SdbKey::new(self.label_m(label), [])
    }

    /// The key to which A - B goes so that the product with the random column is visible:
    /// `<m_R^-1, -t_R>`.
    pub fn compare_target(&self, random: &SdbKey) -> SdbKey {
        let slots = random.slots.iter();
        SdbKey::new(
            self.invert(random.m.magnitude()),
            slots.map(|(&slot, s)| (slot, s.table, -s.offset.expose())),
        )
    }

    /// What moves a column from one key to another: `p = t_target - t_source` for every slot, as
    /// the plain integer, and `q = m_source * prod m_S^p * m_target^-1 mod n`.
    ///
    /// # Errors
    /// [`Error::Value`] if a power would be negative, or if one slot belongs to two tables.
    pub fn update(&self, source: &SdbKey, target: &SdbKey) -> Result<SdbUpdate> {
        let (mut powers, mut ones) = (BTreeMap::new(), Vec::new());
        for (slot, table) in tables([source, target])? {
            let power = math::power(&offset(source, slot), &offset(target, slot));
            let power = power.ok_or_else(|| {
                let text = "a key update must raise the offset: choose the larger one as target";
                Error::value(text)
            })?;
            if power.is_zero() {
                continue;
            }
            powers.insert(slot, power.to_bytes_be());
            ones.push((self.ones_m(table), power));
        }
        let start = source.m.magnitude() * self.invert(target.m.magnitude()) % self.n();
        let q = ones
            .iter()
            .fold(start, |q, (m, power)| q * self.power(m, power) % self.n());
        Ok(SdbUpdate {
            factor: self.fixed(&q),
            powers,
        })
    }

    /// A constant's ciphertext under a key that depends on no row.
    ///
    /// # Errors
    /// [`Error::Value`] if the key depends on rows, or the constant is not below n/2.
    pub fn literal(&self, key: &SdbKey, value: &BigInt) -> Result<Vec<u8>> {
        if !key.slots.is_empty() {
            return Err(Error::value(
                "a constant needs a key that depends on no row",
            ));
        }
        if value.abs().magnitude() > &(self.n() >> 1u32) {
            return Err(Error::value("the constant is too large for the modulus"));
        }
        let sealed = math::seal(value, key.m.magnitude(), self.n());
        let sealed = sealed.ok_or_else(|| Error::value("the key has no inverse"))?;
        Ok(self.fixed(&sealed))
    }
}
