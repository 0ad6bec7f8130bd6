//! Answers of queries for the rows that have certain keys: opened, verified and decided again in
//! one call, without a copy in between.

use crate::epochs::Epochs;
use crate::error::{Error, Result};
use crate::keyring::KeyRing;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_schema::DataType;
use arrow_select::filter::filter;
use std::collections::HashSet;

/// A key's tag (`spec/key.md`).
pub type Tag = [u8; 16];

/// A column of an answer.
pub struct AnswerColumn {
    /// Table, column and generation of a sealed one.
    pub sealed: Option<(u32, u32, u32)>,
    /// What its values are.
    pub data_type: DataType,
}

/// A key that rows were asked for by.
pub struct Key {
    /// Of which key: see [`KeyRing::key_tags`].
    pub label: String,
    /// The domains of its columns.
    pub domains: Vec<String>,
    /// The positions of its columns among those of the answer.
    pub columns: Vec<usize>,
}

/// What is known of the answers of one query.
pub struct LookUp {
    columns: Vec<AnswerColumn>,
    keys: Vec<Key>,
    most: usize,
}

impl LookUp {
    /// Of a query that answers these columns of the rows that have one of some tags of every key,
    /// at most so many rows. Without keys it is for the caller to decide which rows fit.
    ///
    /// # Errors
    /// [`Error::Value`] for a key without columns, or of columns that are not answered.
    pub fn new(columns: Vec<AnswerColumn>, keys: Vec<Key>, most: usize) -> Result<Self> {
        let fits = |key: &Key| {
            let known = key.columns.iter().all(|&column| column < columns.len());
            known && !key.columns.is_empty() && key.columns.len() == key.domains.len()
        };
        if !keys.iter().all(fits) {
            return Err(Error::value(
                "a look-up is by keys of columns that it reads",
            ));
        }
        Ok(Self {
            columns,
            keys,
            most,
        })
    }

    /// The keys that rows are asked for by.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Whether there are more rows than there can be.
    pub fn is_beyond(&self, rows: usize) -> bool {
        rows > self.most
    }

    /// The row ids and behind them the opened columns, of the rows that have one of the `tags` of
    /// every key. Whatever the server answers, no row comes twice.
    ///
    /// # Errors
    /// [`Error::Verify`] for a value that was altered or moved, a row without its number or that is
    /// there twice, and more rows than there can be; [`Error::Value`] for another form of answer.
    pub fn open(
        &self,
        ring: &KeyRing,
        epochs: &Epochs,
        row_ids: &ArrayRef,
        answer: &[ArrayRef],
        tags: &[Vec<Tag>],
    ) -> Result<Vec<ArrayRef>> {
        if answer.len() != self.columns.len() || tags.len() != self.keys.len() {
            return Err(Error::value("an answer of another query"));
        }
        self.require_once(row_ids)?;
        let pairs = self.columns.iter().zip(answer);
        let opened = pairs.map(|(column, values)| match column.sealed {
            Some(id) => ring.open_column(id, epochs, values, row_ids, &column.data_type),
            None if *values.data_type() == column.data_type => Ok(values.clone()),
            None => Err(Error::value("a plain column of another type")),
        });
        let opened = opened.collect::<Result<Vec<ArrayRef>>>()?;
        let mut fits = vec![true; row_ids.len()];
        for (key, wanted) in self.keys.iter().zip(tags) {
            let columns = key.columns.iter().map(|&column| opened[column].clone());
            let columns: Vec<ArrayRef> = columns.collect();
            let has = ring.key_tags(&key.label, &key.domains, &columns)?;
            let has = has
                .as_fixed_size_binary_opt()
                .ok_or_else(|| Error::value("tags of another width"))?;
            for (row, fit) in fits.iter_mut().enumerate() {
                let known = has.is_valid(row).then(|| has.value(row));
                *fit &= known.is_some_and(|known| wanted.iter().any(|tag| known == tag.as_slice()));
            }
        }
        let all = std::iter::once(row_ids.clone()).chain(opened);
        if fits.iter().all(|&fit| fit) {
            return Ok(all.collect());
        }
        let fits = BooleanArray::from(fits);
        let chosen = all.collect::<Vec<_>>();
        let chosen = chosen.iter().map(|column| filter(column.as_ref(), &fits));
        let chosen = chosen.collect::<std::result::Result<_, _>>();
        chosen.map_err(|error| Error::value(error.to_string()))
    }

    fn require_once(&self, row_ids: &ArrayRef) -> Result<()> {
        let ids = row_ids
            .as_primitive_opt::<Int64Type>()
            .ok_or_else(|| Error::value("row ids are 64-bit integers"))?;
        let different: HashSet<i64> = ids.values().iter().copied().collect();
        if ids.null_count() > 0 || different.len() < ids.len() || self.is_beyond(ids.len()) {
            return Err(Error::verify("a row that is there twice, or has no number"));
        }
        Ok(())
    }
}
