//! `louver._rust.recipe`: all stored columns of some rows in one call.

use crate::epochs::Epochs;
use crate::errors::trusted;
use crate::ffi::{batch_to_python, run, to_python, PyArray};
use crate::keyring::KeyRing;
use crate::sealed_rows::{seal_row, RowForm};
use louver_trusted::{Declared, EqStep, OrdStep, SealedStep, SumStep, TagStep, TextStep};
use pyo3::prelude::*;
use std::sync::Arc;

type Id = (u32, u32, u32);

/// What one scheme makes of the columns that it reads. Holds no key.
#[pyclass(frozen, module = "louver._rust.recipe")]
struct Step(Arc<dyn louver_trusted::Step>);

impl Step {
    fn of(step: impl louver_trusted::Step + 'static) -> Self {
        Self(Arc::new(step))
    }
}

/// Values under AES-256-GCM.
#[pyfunction]
fn sealed_step(id: Id) -> Step {
    Step::of(SealedStep(id))
}

/// Low limbs, high limbs and flags of masked numbers.
#[pyfunction]
fn sum_step(id: Id) -> Step {
    Step::of(SumStep(id))
}

/// Filters of texts.
#[pyfunction]
fn text_step(id: Id) -> Step {
    Step::of(TextStep(id))
}

/// Equality codes; `joined` are those of the group, `closed` ones lie under the rows' pads.
#[pyfunction]
fn eq_step(id: Id, group: String, domain: String, joined: bool, closed: bool) -> Step {
    Step::of(EqStep {
        id,
        group,
        domain,
        joined,
        closed,
    })
}

/// Order codes of the `2^bits` values from `low` on; `closed` ones lie under the rows' pads.
#[pyfunction]
fn ord_step(id: Id, group: String, domain: String, low: i128, bits: u32, closed: bool) -> Step {
    Step::of(OrdStep {
        id,
        group,
        domain,
        low,
        bits,
        closed,
    })
}

/// Tags of a key with a column of each domain; drawn where one is NULL.
#[pyfunction]
fn tag_step(label: String, domains: Vec<String>) -> Step {
    Step::of(TagStep { label, domains })
}

/// The tags of a key by the values of its columns; NULL where one is.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
fn key_tags<'py>(
    py: Python<'py>,
    ring: &KeyRing,
    label: &str,
    domains: Vec<String>,
    columns: Vec<PyArray>,
) -> PyResult<Bound<'py, PyAny>> {
    let columns: Vec<_> = columns.into_iter().map(|column| column.array).collect();
    let tags = run(py, &columns, || ring.0.key_tags(label, &domains, &columns));
    to_python(py, &tags.map_err(trusted)?, None)
}

/// A step, the positions of the columns that it reads, and the names of what it makes.
type Part = (Py<Step>, Vec<usize>, Vec<Option<String>>);

/// The steps of a table, in the order in which their columns are stored.
#[pyclass(frozen, module = "louver._rust.recipe")]
pub(crate) struct Recipe(pub(crate) louver_trusted::Recipe);

#[pymethods]
impl Recipe {
    /// Each step with the positions of the columns that it reads and the names of what it makes.
    #[new]
    #[allow(clippy::needless_pass_by_value)]
    fn new(row_id: String, parts: Vec<Part>) -> Self {
        let parts = parts
            .into_iter()
            .map(|(step, reads, names)| (Arc::clone(&step.get().0), reads, names));
        Self(louver_trusted::Recipe::new(row_id, parts.collect()))
    }

    /// The stored columns of some rows, behind their ids.
    fn seal<'py>(
        &self,
        py: Python<'py>,
        ring: &KeyRing,
        epochs: &Epochs,
        columns: Vec<PyArray>,
        row_ids: PyArray,
    ) -> PyResult<Bound<'py, PyAny>> {
        let columns = columns
            .into_iter()
            .map(|column| (column.field, column.array));
        let columns: Vec<Declared> = columns.collect();
        let seal = || self.0.seal(&ring.0, &epochs.0, &columns, &row_ids.array);
        let arrays = columns.iter().map(|(_, array)| array);
        let sealed = run(py, arrays.chain([&row_ids.array]), seal);
        batch_to_python(py, sealed.map_err(trusted)?)
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Step>()?;
    module.add_class::<Recipe>()?;
    module.add_function(wrap_pyfunction!(seal_row, module)?)?;
    module.add_class::<RowForm>()?;
    module.add_function(wrap_pyfunction!(sealed_step, module)?)?;
    module.add_function(wrap_pyfunction!(sum_step, module)?)?;
    module.add_function(wrap_pyfunction!(text_step, module)?)?;
    module.add_function(wrap_pyfunction!(eq_step, module)?)?;
    module.add_function(wrap_pyfunction!(ord_step, module)?)?;
    module.add_function(wrap_pyfunction!(tag_step, module)?)?;
    module.add_function(wrap_pyfunction!(key_tags, module)?)
}
