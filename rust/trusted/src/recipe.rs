//! All that a server stores of some rows, sealed in one go: each scheme has a step.

use crate::epochs::Epochs;
use crate::error::{Error, Result};
use crate::keyring::KeyRing;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use std::collections::HashMap;
use std::sync::Arc;

/// A column as it is declared: its Arrow field and its values.
pub type Declared = (Field, ArrayRef);

/// Rows that are to be sealed, as one step sees them.
pub struct Rows<'a> {
    /// The epochs of the database.
    pub epochs: &'a Epochs,
    /// The columns that the step reads, in its order.
    pub columns: Vec<&'a Declared>,
    /// An id a row.
    pub row_ids: &'a ArrayRef,
}

impl Rows<'_> {
    /// The column of a step that reads one.
    pub(crate) fn column(&self) -> Result<&Declared> {
        match self.columns.as_slice() {
            [only] => Ok(only),
            _ => Err(Error::value("this step reads one column")),
        }
    }
}

/// What one scheme makes of the columns that it reads.
pub trait Step: Send + Sync {
    /// The stored columns of some rows, always as many.
    ///
    /// # Errors
    /// Those of the scheme.
    fn seal(&self, ring: &KeyRing, rows: &Rows<'_>) -> Result<Vec<ArrayRef>>;
}

/// A step, the positions of the columns that it reads, and the names of what it makes (`None` for
/// what is not stored).
pub type Part = (Arc<dyn Step>, Vec<usize>, Vec<Option<String>>);

/// The steps of a table. Holds no key.
pub struct Recipe {
    row_id: String,
    parts: Vec<Part>,
}

impl Recipe {
    /// Steps in the order in which their columns are stored, behind the ids under the name
    /// `row_id`.
    pub fn new(row_id: String, parts: Vec<Part>) -> Self {
        Self { row_id, parts }
    }

    /// The stored columns of some rows; those of 16 bytes are UUIDs.
    ///
    /// # Errors
    /// Those of the schemes; [`Error::Value`] for columns that the recipe does not fit.
    pub fn seal(
        &self,
        ring: &KeyRing,
        epochs: &Epochs,
        columns: &[Declared],
        row_ids: &ArrayRef,
    ) -> Result<RecordBatch> {
        let mut fields = vec![field(&self.row_id, row_ids)];
        let mut stored = vec![Arc::clone(row_ids)];
        for (step, reads, names) in &self.parts {
            let read = reads.iter().map(|&at| columns.get(at));
            let read = read.collect::<Option<Vec<&Declared>>>();
            let rows = Rows {
                epochs,
                columns: read.ok_or_else(|| Error::value("a recipe reads a missing column"))?,
                row_ids,
            };
            let arrays = step.seal(ring, &rows)?;
            if arrays.len() != names.len() {
                return Err(Error::value(
                    "a step makes other columns than its recipe names",
                ));
            }
            for (name, array) in names.iter().zip(arrays) {
                if let Some(name) = name {
                    fields.push(field(name, &array));
                    stored.push(array);
                }
            }
        }
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), stored);
        batch.map_err(|error| Error::value(error.to_string()))
    }
}

fn field(name: &str, array: &ArrayRef) -> Field {
    let field = Field::new(name, array.data_type().clone(), true);
    if array.data_type() == &DataType::FixedSizeBinary(16) {
        let extension = ("ARROW:extension:name".into(), "arrow.uuid".into());
        let none = ("ARROW:extension:metadata".into(), String::new());
        return field.with_metadata(HashMap::from([extension, none]));
    }
    field
}

/// Values under AES-256-GCM (`spec/rnd.md`): one column.
pub struct SealedStep(pub (u32, u32, u32));

impl Step for SealedStep {
    fn seal(&self, ring: &KeyRing, rows: &Rows<'_>) -> Result<Vec<ArrayRef>> {
        let (_, values) = rows.column()?;
        Ok(vec![ring.seal_column(
            self.0,
            rows.epochs,
            values,
            rows.row_ids,
        )?])
    }
}

/// Masked numbers (`spec/sum.md`): low limbs, high limbs, flags.
pub struct SumStep(pub (u32, u32, u32));

impl Step for SumStep {
    fn seal(&self, ring: &KeyRing, rows: &Rows<'_>) -> Result<Vec<ArrayRef>> {
        let (field, values) = rows.column()?;
        let arrays = ring.sum_seal(self.0, rows.epochs, field, values, rows.row_ids)?;
        Ok(arrays.to_vec())
    }
}

/// Filters of texts (`spec/text.md`): one column.
pub struct TextStep(pub (u32, u32, u32));

impl Step for TextStep {
    fn seal(&self, ring: &KeyRing, rows: &Rows<'_>) -> Result<Vec<ArrayRef>> {
        let (_, values) = rows.column()?;
        Ok(vec![ring.text_seal(
            self.0,
            rows.epochs,
            values,
            rows.row_ids,
        )?])
    }
}
