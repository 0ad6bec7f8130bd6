//! `louver._rust.look_ups`: rows by their keys, from the values of a statement to rows of Python's.

use crate::epochs::Epochs;
use crate::errors::trusted;
use crate::ffi::{to_python, PyType};
use crate::key_values;
use crate::keyring::KeyRing;
use crate::postgres_replies::Reply;
use crate::raw_values;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Decimal128Array};
use arrow_schema::{DataType, Field};
use louver_postgres::texts::decimal;
use louver_trusted::{AnswerColumn, Key, Tag};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::fmt::Write;
use std::sync::{Arc, OnceLock};

const OTHER: &str = "an answer with other columns";
/// More rows than these are opened without the interpreter's lock.
const FEW: usize = 64;

/// What is known of the answers of one query.
#[pyclass(frozen, module = "louver._rust.look_ups")]
pub(crate) struct LookUp {
    /// The names of the row ids and of the columns.
    names: Vec<String>,
    /// The names of an answer, and where in it those are.
    order: OnceLock<(Vec<String>, Vec<usize>)>,
    fields: Vec<Field>,
    look_up: louver_trusted::LookUp,
}

/// The tags of the values that rows are asked for by, by key.
#[pyclass(frozen, module = "louver._rust.look_ups")]
struct Tags(Vec<Vec<Tag>>);

/// Opened rows.
#[pyclass(frozen, module = "louver._rust.look_ups")]
struct Opened {
    row_ids: ArrayRef,
    fields: Vec<Field>,
    columns: Vec<ArrayRef>,
}

/// A column: its name in the answer, its key where it is sealed, and its type.
type GivenColumn = (String, Option<(u32, u32, u32)>, PyType);
/// A key: its label, the domains of its columns, and their positions among the columns.
type GivenKey = (String, Vec<String>, Vec<usize>);

#[pymethods]
impl LookUp {
    /// Of a query that answers the row ids and these columns, of at most so many rows. Without keys
    /// rows are opened as they are.
    #[new]
    fn new(
        row: String,
        columns: Vec<GivenColumn>,
        keys: Vec<GivenKey>,
        most: usize,
    ) -> PyResult<Self> {
        let names = columns.iter().map(|column| column.0.clone());
        let names = std::iter::once(row).chain(names).collect();
        let fields = columns.iter().map(|column| column.2 .0.clone()).collect();
        let columns = columns.into_iter().map(|(_, sealed, kind)| AnswerColumn {
            sealed,
            data_type: kind.0.data_type().clone(),
        });
        let keys = keys.into_iter().map(|(label, domains, columns)| Key {
            label,
            domains,
            columns,
        });
        let look_up = louver_trusted::LookUp::new(columns.collect(), keys.collect(), most);
        Ok(Self {
            names,
            order: OnceLock::new(),
            fields,
            look_up: look_up.map_err(trusted)?,
        })
    }

    /// The tags of some values: of each key a list, of each a value for every column of the key.
    /// None where one is not of the kind that its domain takes as it is.
    fn tags(&self, ring: &KeyRing, values: Vec<Vec<Bound<'_, PyTuple>>>) -> PyResult<Option<Tags>> {
        if values.len() != self.look_up.keys().len() {
            return Err(PyValueError::new_err("a list of values for each key"));
        }
        let mut tags = Vec::with_capacity(values.len());
        for (key, wanted) in self.look_up.keys().iter().zip(&values) {
            let mut of_key = Vec::with_capacity(wanted.len());
            for value in wanted {
                let Some(columns) = columns_of(key, value)? else {
                    return Ok(None);
                };
                let tag = tag_of(ring, key, &columns).map_err(trusted)?;
                of_key.push(tag.ok_or_else(|| PyTypeError::new_err("tags of another width"))?);
            }
            tags.push(of_key);
        }
        Ok(Some(Tags(tags)))
    }

    /// The rows of an answer that have one of the tags of every key.
    fn open(
        &self,
        py: Python<'_>,
        ring: &KeyRing,
        epochs: &Epochs,
        reply: &Reply,
        tags: &Tags,
    ) -> PyResult<Opened> {
        let columns = self.columns(reply).map_err(PyValueError::new_err)?;
        let open = || self.opened(ring, epochs, &columns, &tags.0);
        let few = columns.first().is_none_or(|row_ids| row_ids.len() <= FEW);
        let opened = if few { open() } else { py.detach(open) };
        let mut columns = opened.map_err(trusted)?;
        Ok(Opened {
            row_ids: columns.remove(0),
            fields: self.fields.clone(),
            columns,
        })
    }
}

impl LookUp {
    /// The keys that rows are looked up by.
    pub(crate) fn keys(&self) -> &[Key] {
        self.look_up.keys()
    }

    /// Whether there are more rows than there can be.
    pub(crate) fn is_beyond(&self, rows: usize) -> bool {
        self.look_up.is_beyond(rows)
    }

    /// The row ids of an answer and behind them its columns, in the order in which they are opened.
    pub(crate) fn columns(&self, reply: &Reply) -> Result<Vec<ArrayRef>, &'static str> {
        let (row_ids, all) = self.positions(reply)?.split_first().ok_or(OTHER)?;
        let mut columns = vec![Arc::clone(&reply.columns[*row_ids])];
        for (&at, field) in all.iter().zip(&self.fields) {
            columns.push(numbers(&reply.columns[at], field.data_type()).ok_or(OTHER)?);
        }
        Ok(columns)
    }

    /// The same, opened, of the rows that have one of the tags of every key.
    pub(crate) fn opened(
        &self,
        ring: &KeyRing,
        epochs: &Epochs,
        columns: &[ArrayRef],
        tags: &[Vec<Tag>],
    ) -> louver_trusted::Result<Vec<ArrayRef>> {
        let (row_ids, answer) = columns
            .split_first()
            .ok_or_else(|| louver_trusted::Error::Value("an answer without row ids".to_owned()))?;
        self.look_up.open(&ring.0, &epochs.0, row_ids, answer, tags)
    }

    /// Where the row ids and the columns are: as in the first answer, or it is another one.
    fn positions(&self, reply: &Reply) -> Result<&[usize], &'static str> {
        if self.order.get().is_none() {
            let known: Vec<String> = reply.names().map(str::to_owned).collect();
            let of_name = |name: &String| {
                let mut all = (0..known.len()).filter(|&at| known[at] == *name);
                all.next().filter(|_| all.next().is_none()).ok_or(OTHER)
            };
            let positions = self.names.iter().map(of_name).collect::<Result<_, _>>()?;
            // Of two threads that get here at once, both know the same.
            let _ = self.order.set((known, positions));
        }
        let (known, positions) = self.order.get().ok_or(OTHER)?;
        if !reply.names().eq(known.iter().map(String::as_str)) {
            return Err(OTHER);
        }
        Ok(positions)
    }
}

/// A column, of which a server's numeric is a text still; None where one is no such number.
fn numbers(column: &ArrayRef, wanted: &DataType) -> Option<ArrayRef> {
    let (DataType::Decimal128(width, scale), Some(texts)) = (wanted, column.as_string_opt::<i32>())
    else {
        return Some(Arc::clone(column));
    };
    let digits = u8::try_from(*scale).ok()?;
    let number = |text: Option<&str>| match text {
        None => Some(None),
        Some(text) => decimal(text.as_bytes(), digits).map(Some),
    };
    let numbers = texts.iter().map(number).collect::<Option<Vec<_>>>()?;
    let numbers = Decimal128Array::from(numbers).with_precision_and_scale(*width, *scale);
    Some(Arc::new(numbers.ok()?))
}

/// The tag of a key by the values of its columns.
pub(crate) fn tag_of(
    ring: &KeyRing,
    key: &Key,
    columns: &[ArrayRef],
) -> louver_trusted::Result<Option<Tag>> {
    let tags = ring.0.key_tags(&key.label, &key.domains, columns)?;
    let first = tags.as_fixed_size_binary_opt().map(|tags| tags.value(0));
    Ok(first.and_then(|bytes| bytes.try_into().ok()))
}

#[pymethods]
impl Tags {
    /// All of them as UUIDs are written, key by key.
    fn texts(&self) -> Vec<String> {
        self.0.iter().flatten().map(uuid).collect()
    }
}

#[pymethods]
impl Opened {
    fn __len__(&self) -> usize {
        self.row_ids.len()
    }

    /// The number and the raw values of the only row; None of more rows, and of values that are
    /// not taken so.
    fn raw<'py>(&self, py: Python<'py>) -> Option<(i64, Vec<Bound<'py, PyAny>>)> {
        let number = self.row_ids.as_primitive_opt::<Int64Type>()?;
        (number.len() == 1).then_some(())?;
        let values = self.columns.iter().map(|c| raw_values::value(py, c, 0));
        Some((number.value(0), values.collect::<Option<_>>()?))
    }

    /// The numbers of the rows, as Arrow's.
    fn row_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.row_ids, None)
    }

    /// The columns as Arrow's.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let pairs = self.columns.iter().zip(&self.fields);
        pairs
            .map(|(column, field)| to_python(py, column, Some(field)))
            .collect()
    }

    /// The rows as tuples of these columns; None where one is of a type whose values Python has in
    /// several forms.
    fn rows<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<usize>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let rows = PyList::empty(py);
        for row in 0..self.__len__() {
            let mut values = Vec::with_capacity(columns.len());
            for &at in &columns {
                let pair = self.columns.get(at).zip(self.fields.get(at));
                let (column, field) =
                    pair.ok_or_else(|| PyValueError::new_err("no such column"))?;
                let plain = field.metadata().is_empty();
                let plain = plain && raw_values::is_as_in_python(column.data_type());
                let value = plain.then(|| raw_values::value(py, column, row));
                let Some(value) = value.flatten() else {
                    return Ok(None);
                };
                values.push(value);
            }
            rows.append(PyTuple::new(py, values)?)?;
        }
        Ok(Some(rows))
    }
}

/// The values of a key's columns, each as a column of one row.
fn columns_of(key: &Key, values: &Bound<'_, PyTuple>) -> PyResult<Option<Vec<ArrayRef>>> {
    if values.len() != key.domains.len() {
        return Err(PyValueError::new_err("a value for each column of a key"));
    }
    let pairs = key.domains.iter().zip(values.iter());
    let columns = pairs.map(|(domain, value)| key_values::of_python(domain, &value));
    Ok(columns.collect())
}

pub(crate) fn uuid(tag: &Tag) -> String {
    let mut text = String::with_capacity(36);
    for (position, byte) in tag.iter().enumerate() {
        if matches!(position, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let _ = write!(text, "{byte:02x}");
    }
    text
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<LookUp>()?;
    module.add_class::<Tags>()?;
    module.add_class::<Opened>()
}
