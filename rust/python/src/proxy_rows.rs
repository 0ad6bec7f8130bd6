//! The rows that a change at the front door finds by keys, and the one that it puts in their place.

use crate::epochs::Epochs;
use crate::ffi::PyType;
use crate::keyring::KeyRing;
use crate::look_ups::{uuid, LookUp};
use crate::postgres_replies::Reply;
use crate::proxy_growth::{Growth, Mark, RowNumbers};
use crate::proxy_sequences::SequenceNumbers;
use crate::proxy_shown::{Counted, GivenReserve, Opens, Unrecorded};
use crate::proxy_sources::{GivenSource, Sources};
use crate::proxy_terms::{changed, take, GivenTerm, Term};
use crate::raw::Raw;
use crate::raw_messages::Given;
use crate::reserve::number;
use crate::sealed_rows::{RowForm, SealedRow};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::DataType;
use louver_postgres::Value;
use louver_proxy::Disclosed;
use louver_trusted::Tag;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// How a change finds the rows that have certain keys, and what that shows the server.
#[pyclass(frozen, module = "louver._rust.proxy")]
pub(crate) struct Chosen {
    look_up: Py<LookUp>,
    pub(crate) sql: String,
    sources: Sources,
    /// Of each declared column its place among those that are opened.
    places: Vec<usize>,
    /// What conditions are taken from: of those that come again, and of those that do not.
    reserves: (Vec<Counted>, Vec<Counted>),
    unrecorded: Unrecorded,
    /// Of the rows that are changed.
    touched: Vec<Counted>,
    opens: Opens,
}

/// One row that was found: its number and its values.
pub(crate) type Old = (i64, Vec<Raw>);

#[pymethods]
impl Chosen {
    #[new]
    fn new(
        look_up: Py<LookUp>,
        sql: String,
        sources: Vec<Vec<Vec<GivenSource>>>,
        places: Vec<usize>,
        reserves: (Vec<GivenReserve>, Vec<GivenReserve>),
        touched: Vec<GivenReserve>,
        opens: Vec<String>,
    ) -> PyResult<Self> {
        let sources = Sources::new(sources, look_up.get())?;
        Ok(Self {
            look_up,
            sql,
            sources,
            places,
            reserves: (Counted::all(reserves.0), Counted::all(reserves.1)),
            unrecorded: Unrecorded::default(),
            touched: Counted::all(touched),
            opens: Opens::new(opens),
        })
    }
}

impl Chosen {
    /// The tags of the values of a statement, and what they are to the server.
    pub(crate) fn tags(
        &self,
        ring: &KeyRing,
        given: &Given<'_>,
    ) -> Option<(Vec<Vec<Tag>>, Vec<Value>)> {
        self.unrecorded.clear();
        let tags = self.sources.tags(ring, self.look_up.get(), given)?;
        let texts = tags.iter().flatten().map(|tag| Value::Text(uuid(tag)));
        let texts = texts.collect();
        Some((tags, texts))
    }

    /// Whether what a look-up by these shows is in the ledger. `text` tells statements apart.
    pub(crate) fn records(&self, text: u64, tags: &[Vec<Tag>]) -> bool {
        let condition = number((text, tags));
        let (again, once) = &self.reserves;
        self.unrecorded.take(condition, again) && once.iter().all(Counted::take_new)
    }

    /// Python has run the statement that was not recorded.
    pub(crate) fn recorded(&self) {
        self.unrecorded.recorded(&self.reserves.0);
    }

    /// The same of the change of a row.
    pub(crate) fn records_touched(&self) -> bool {
        self.touched.iter().all(Counted::take_new)
    }

    /// None was changed after all.
    pub(crate) fn nothing_touched(&self) {
        self.touched.iter().for_each(Counted::give_back);
    }

    /// Whether it has opened something, and how many new conditions of each reserve were taken,
    /// since this was last called.
    pub(crate) fn taken(&self) -> (bool, Vec<u64>) {
        (self.opens.taken(), self.all().map(Counted::taken).collect())
    }

    /// The same as the audit has it.
    pub(crate) fn disclosed(&self) -> Disclosed {
        self.opens.disclosed(self.all())
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Counted> {
        let (again, once) = &self.reserves;
        again.iter().chain(once).chain(&self.touched)
    }

    /// The only row of an answer, or none; None where Python is to look at it.
    pub(crate) fn row(
        &self,
        ring: &KeyRing,
        epochs: &Epochs,
        reply: &Reply,
        tags: &[Vec<Tag>],
    ) -> Option<Option<Old>> {
        let look_up = self.look_up.get();
        let answer = look_up.columns(reply).ok()?;
        let opened = look_up.opened(ring, epochs, &answer, tags).ok()?;
        self.opens.opened();
        let (row_ids, columns) = opened.split_first()?;
        let row_ids = row_ids.as_primitive_opt::<Int64Type>()?;
        match row_ids.len() {
            0 => Some(None),
            1 => {
                let values = self.places.iter().map(|&at| Raw::of(columns.get(at)?, 0));
                Some(Some((row_ids.value(0), values.collect::<Option<_>>()?)))
            }
            _ => None,
        }
    }
}

/// What is known of a column's values: whether NULL is among them, least and largest.
type Bounds = (bool, Option<(i128, i128)>);

/// The values of a row, and the marks of those that are new to their columns.
pub(crate) type MadeRow = (Vec<Raw>, Vec<Mark>);

/// How a new row is made and sealed.
#[pyclass(frozen, module = "louver._rust.proxy")]
pub(crate) struct NewRow {
    terms: Vec<Term>,
    types: Vec<DataType>,
    bounds: Vec<Bounds>,
    form: Py<RowForm>,
    /// The places of the columns that are sealed, and of those that are stored as they are.
    places: (Vec<usize>, Vec<usize>),
    numbers: Py<RowNumbers>,
}

#[pymethods]
impl NewRow {
    /// What columns are set to, the types and the bounds of all declared columns, how a row is
    /// sealed with the places of the columns, and its numbers.
    #[new]
    fn new(
        terms: Vec<GivenTerm<'_>>,
        types: Vec<PyType>,
        bounds: Vec<Bounds>,
        form: Py<RowForm>,
        places: (Vec<usize>, Vec<usize>),
        numbers: Py<RowNumbers>,
    ) -> PyResult<Self> {
        let width = types.len();
        let known = types.iter().all(|kind| Raw::has(kind.0.data_type()));
        let inside = places.0.iter().chain(&places.1).all(|&at| at < width);
        if bounds.len() != width || !known || !inside || !form.get().fits(&places) {
            return Err(PyValueError::new_err("columns that are not taken so"));
        }
        let terms = terms.into_iter().map(|term| Term::new(term, width));
        Ok(Self {
            terms: terms.collect::<PyResult<_>>()?,
            types: types.iter().map(|t| t.0.data_type().clone()).collect(),
            bounds,
            form,
            places,
            numbers,
        })
    }
}

/// Why no row was made.
pub(crate) enum Unmade {
    /// Its values are not taken as they are.
    Values,
    /// No numbers are left.
    Numbers,
}

impl NewRow {
    /// Whether no numbers are left.
    pub(crate) fn lacks_numbers(&self) -> bool {
        self.numbers.get().is_empty()
    }

    /// The sequences that it draws from.
    pub(crate) fn sequences(&self) -> impl Iterator<Item = &SequenceNumbers> {
        self.terms.iter().flat_map(Term::sequences)
    }

    /// Whether all values that came are of the columns' types.
    pub(crate) fn takes(&self, given: &Given<'_>) -> bool {
        take(&self.terms, &self.types, given)
    }

    /// The row that replaces an old one, or a new one, of a table of which this much is known.
    pub(crate) fn row(
        &self,
        old: Option<&[Raw]>,
        given: &Given<'_>,
        growth: &Growth,
    ) -> Result<MadeRow, Unmade> {
        let nothing = vec![Raw::Null; self.bounds.len()];
        let row = changed(&self.terms, old.unwrap_or(&nothing), given);
        let row = row.filter(|row| row.len() == self.bounds.len());
        let row = row.ok_or(Unmade::Values)?;
        let mut known = row.iter().zip(&self.bounds);
        let fits = known.all(|(value, bounds)| is_within(value, bounds));
        let marks = growth.marks(&row, &self.types).filter(|_| fits);
        Ok((row, marks.ok_or(Unmade::Values)?))
    }

    /// The same as it is sent.
    pub(crate) fn sealed(
        &self,
        ring: &KeyRing,
        epochs: &Epochs,
        row: &[Raw],
    ) -> Result<SealedRow, Unmade> {
        let of = |places: &[usize]| {
            places
                .iter()
                .filter_map(|&at| row.get(at))
                .collect::<Vec<_>>()
        };
        let number = self.numbers.get().take().ok_or(Unmade::Numbers)?;
        let (reads, plain) = (of(&self.places.0), of(&self.places.1));
        let sealed = self.form.get().sealed(ring, epochs, &reads, &plain, number);
        sealed.ok_or(Unmade::Values)
    }
}

fn is_within(value: &Raw, (has_null, limits): &Bounds) -> bool {
    if *value == Raw::Null {
        return *has_null;
    }
    match (value, limits) {
        (Raw::Whole(value), Some((least, most))) => (least..=most).contains(&value),
        (_, Some(_)) => false,
        (_, None) => true,
    }
}
