//! What a change at the front door gives back of its row (RETURNING): columns of the new row, or of
//! the one that is deleted.

use crate::ffi::PyType;
use crate::proxy_growth::Mark;
use crate::proxy_passes::in_formats;
use crate::proxy_values::{described, Described};
use crate::raw::Raw;
use crate::raw_messages::Given;
use arrow_schema::DataType;
use bytes::BytesMut;
use louver_postgres::{data_rows, Form, Value};
use louver_proxy::{Column, Outcome};
use pyo3::prelude::*;

/// The columns that are given back.
#[pyclass(frozen, module = "louver._rust.proxy")]
pub(crate) struct Returning {
    /// The places of the columns among the row's values, and their types there.
    places: Vec<usize>,
    types: Vec<DataType>,
    columns: Vec<Column>,
    /// Those of which text is printed.
    firm: Vec<bool>,
}

/// A row as it is sent, and where it ends.
pub(crate) type Printed = (Vec<u8>, Vec<usize>);

/// A change with its values, and the columns that are given back of its row.
pub(crate) struct Job<'a> {
    pub(crate) given: Given<'a>,
    pub(crate) columns: Option<Vec<Column>>,
}

/// What a change did: of how many rows, and what is given back of one.
#[derive(Default)]
pub(crate) struct Changed {
    pub(crate) count: usize,
    pub(crate) row: Option<Printed>,
}

/// What a change is to do: the values of its statement, what is given back of its row, and marks of
/// values that are new to their columns.
pub(crate) struct Decided {
    pub(crate) values: Vec<Value>,
    pub(crate) row: Option<Printed>,
    pub(crate) marks: Vec<Mark>,
}

#[pymethods]
impl Returning {
    /// Of each column its place in the row and its type there, what clients learn of it, and
    /// whether its text is printed here.
    #[new]
    fn new(shown: Vec<(usize, PyType, Described, bool)>) -> Self {
        Self {
            places: shown.iter().map(|item| item.0).collect(),
            types: shown
                .iter()
                .map(|item| item.1 .0.data_type().clone())
                .collect(),
            firm: shown.iter().map(|item| item.3).collect(),
            columns: shown.into_iter().map(|item| described(item.2)).collect(),
        }
    }
}

impl Returning {
    /// The columns in the formats that a client wants; None where Python prints one.
    pub(crate) fn columns(&self, formats: &[i16]) -> Option<Vec<Column>> {
        in_formats(&self.columns, &self.firm, formats)
    }

    /// The values of a row as they are sent; None where one is not of its column's type.
    pub(crate) fn printed(&self, row: &[Raw], columns: &[Column]) -> Option<Printed> {
        let mut parts = Vec::with_capacity(columns.len());
        for ((&at, type_), column) in self.places.iter().zip(&self.types).zip(columns) {
            let form = if column.format == 1 {
                Form::Binary
            } else {
                Form::Text
            };
            parts.push((row.get(at)?.array(type_)?, column.type_, form));
        }
        data_rows(&parts, 1).ok()
    }
}

/// The answer with a row that was changed, or without any.
pub(crate) fn outcome(tag: String, columns: Vec<Column>, row: Option<Printed>) -> Outcome {
    let (messages, ends) = row.unwrap_or_default();
    Outcome::Rows {
        tag,
        columns,
        messages: BytesMut::from(bytes::Bytes::from(messages)),
        ends,
    }
}
