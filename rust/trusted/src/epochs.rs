//! Epochs of row ids (`spec/catalog.md`): each bears 128 random bits, which enter every key and all
//! associated data that depend on a row. So rows that bear one id in two histories of a database (a
//! restored backup, a fork, a cloned machine) share no pad, and no value of one opens in the other.

use crate::error::{Error, Result};
use std::sync::OnceLock;

/// Low bits of a row id: the row's number in its epoch. Above them is the epoch's number.
const COUNTER_BITS: u32 = 36;
/// No epoch has this number or a greater one.
const LIMIT: u32 = 1 << (63 - COUNTER_BITS);

/// What an epoch bears.
pub type EpochBits = [u8; 16];

/// The epochs that one history of a database knows.
#[derive(Debug)]
pub struct Epochs {
    /// Epochs below this one that are not known were claimed by an earlier release.
    legacy_below: u32,
    /// Ascending.
    known: Vec<(u32, EpochBits)>,
}

impl Epochs {
    /// Epochs by number. Rows of any other one below `legacy_below` are derived without bits, as
    /// releases before 0.8 sealed them.
    ///
    /// # Errors
    /// [`Error::Value`] for a number that is too large or is given twice.
    pub fn new(legacy_below: u32, mut known: Vec<(u32, EpochBits)>) -> Result<Self> {
        known.sort_unstable_by_key(|(number, _)| *number);
        let twice = known.windows(2).any(|pair| pair[0].0 == pair[1].0);
        if twice || legacy_below > LIMIT || known.last().is_some_and(|last| last.0 >= LIMIT) {
            return Err(Error::value("an epoch is out of range or known twice"));
        }
        Ok(Self {
            legacy_below,
            known,
        })
    }

    /// Those of a database that no release with epochs of random bits has written to.
    pub fn legacy() -> Self {
        Self {
            legacy_below: LIMIT,
            known: Vec::new(),
        }
    }

    /// The first row id after a row's epoch.
    pub(crate) fn end(row_id: i64) -> i64 {
        ((row_id >> COUNTER_BITS) + 1) << COUNTER_BITS
    }

    /// Whether two rows are of one epoch.
    pub(crate) fn shared(first: i64, last: i64) -> bool {
        first >> COUNTER_BITS == last >> COUNTER_BITS
    }

    /// Where the epoch of a row is found: among the known ones, or behind them.
    fn slot(&self, row_id: i64) -> Result<usize> {
        let number = row_id >> COUNTER_BITS;
        let known = &self.known;
        match known.binary_search_by_key(&number, |(known, _)| i64::from(*known)) {
            Ok(slot) => Ok(slot),
            Err(_) if number < i64::from(self.legacy_below) => Ok(known.len()),
            Err(_) => Err(Error::verify(format!(
                "row id {row_id} is of an epoch that this database does not know"
            ))),
        }
    }

    /// The bits of a row's epoch; `None` for one of an earlier release.
    pub(crate) fn bits(&self, row_id: i64) -> Result<Option<&EpochBits>> {
        let slot = self.slot(row_id)?;
        Ok(self.known.get(slot).map(|(_, bits)| bits))
    }
}

/// What is derived from the bits of epochs, each once and when a row first needs it.
pub(crate) struct PerEpoch<'a, T> {
    epochs: &'a Epochs,
    /// Of the first epoch that was needed, and which: of few rows, often the only one.
    first: OnceLock<(usize, T)>,
    /// One for each known epoch, and the last for all of earlier releases.
    others: OnceLock<Vec<OnceLock<Box<T>>>>,
}

impl<'a, T> PerEpoch<'a, T> {
    pub(crate) fn new(epochs: &'a Epochs) -> Self {
        Self {
            epochs,
            first: OnceLock::new(),
            others: OnceLock::new(),
        }
    }

    /// What belongs to a row's epoch; `make` derives it from the bits, if there are any.
    ///
    /// # Errors
    /// [`Error::Verify`] for a row of an unknown epoch.
    pub(crate) fn at(&self, row_id: i64, make: impl FnOnce(Option<&EpochBits>) -> T) -> Result<&T> {
        let slot = self.epochs.slot(row_id)?;
        let bits = self.epochs.known.get(slot).map(|(_, bits)| bits);
        let mut make = Some(make);
        let mut derive = || make.take().expect("called once")(bits);
        let (first, value) = self.first.get_or_init(|| (slot, derive()));
        if *first == slot {
            return Ok(value);
        }
        let cells = || (0..=self.epochs.known.len()).map(|_| OnceLock::new());
        let others = self.others.get_or_init(|| cells().collect());
        Ok(others[slot].get_or_init(|| Box::new(derive())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_find_their_epoch() {
        let epochs = Epochs::new(3, vec![(7, [7; 16]), (2, [2; 16])]).unwrap();
        let row = |number: i64| (number << COUNTER_BITS) + 5;
        assert_eq!(epochs.bits(row(2)).unwrap(), Some(&[2; 16]));
        assert_eq!(epochs.bits(row(7)).unwrap(), Some(&[7; 16]));
        assert_eq!(epochs.bits(row(0)).unwrap(), None);
        assert_eq!(Epochs::end(row(2)), 3 << COUNTER_BITS);
        for unknown in [3, 6, 8] {
            let refused = epochs.bits(row(unknown)).unwrap_err().to_string();
            assert!(refused.contains(&row(unknown).to_string()), "{refused}");
        }
        assert!(Epochs::new(0, vec![(1, [0; 16]), (1, [1; 16])]).is_err());
        assert!(Epochs::new(0, vec![(LIMIT, [0; 16])]).is_err());
        assert!(Epochs::new(LIMIT + 1, vec![]).is_err());
        assert_eq!(Epochs::legacy().bits(i64::MAX).unwrap(), None);
    }

    #[test]
    fn what_is_derived_is_derived_once() {
        let epochs = Epochs::new(1, vec![(4, [4; 16])]).unwrap();
        let each = PerEpoch::new(&epochs);
        let row = 4 << COUNTER_BITS;
        assert_eq!(each.at(row, |bits| bits.copied()).unwrap(), &Some([4; 16]));
        assert_eq!(each.at(row + 1, |_| None).unwrap(), &Some([4; 16]));
        assert_eq!(each.at(0, |bits| bits.copied()).unwrap(), &None);
        assert!(each.at(row - 1, |bits| bits.copied()).is_err());
    }
}
