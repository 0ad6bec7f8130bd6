//! `louver._rust.tiles`: columns in tiles (`spec/tile.md`).

use crate::epochs::Epochs;
use crate::errors::trusted;
use crate::ffi::{run, to_python, PyArray, PyType};
use crate::keyring::KeyRing;
use louver_trusted::tiles::{are_all, tile_unit, TileColumn, TileForm, TILE_ROWS};
use pyo3::prelude::*;

type Id = (u32, u32, u32);

/// How the tiles of a column are sealed.
#[pyclass(frozen, module = "louver._rust.tiles")]
struct Form(TileForm);

#[pymethods]
impl Form {
    /// Numbers from `base` on in so many bits.
    #[staticmethod]
    fn packed(base: i128, bits: u32, nulls: bool) -> Self {
        Self(TileForm::Packed { base, bits, nulls })
    }

    /// Numbers from `low` to `high`.
    #[staticmethod]
    fn bounds(low: i128, high: i128, nulls: bool) -> PyResult<Self> {
        TileForm::of_bounds(low, high, nulls)
            .map(Self)
            .map_err(trusted)
    }

    /// Byte strings, at most `limit` bytes of them in a tile.
    #[staticmethod]
    fn units(unit: u32, limit: u32) -> Self {
        Self(TileForm::Units { unit, limit })
    }

    /// `(base, bits, nulls)` of a packed form.
    #[getter]
    fn packing(&self) -> Option<(i128, u32, bool)> {
        match self.0 {
            TileForm::Packed { base, bits, nulls } => Some((base, bits, nulls)),
            TileForm::Units { .. } => None,
        }
    }

    /// `(unit, limit)` of byte strings.
    #[getter]
    fn sizes(&self) -> Option<(u32, u32)> {
        match self.0 {
            TileForm::Packed { .. } => None,
            TileForm::Units { unit, limit } => Some((unit, limit)),
        }
    }
}

/// A unit that (nearly) all tiles of values like these fit.
#[pyfunction]
#[pyo3(signature = (values, limit, rows = 1024))]
fn unit(py: Python<'_>, values: PyArray, limit: u32, rows: usize) -> PyResult<u32> {
    let unit = run(py, [&values.array], || {
        tile_unit(&values.array, limit, rows)
    });
    unit.map_err(trusted)
}

/// Seals the values of consecutive rows, `rows` of them in a tile.
#[pyfunction]
#[pyo3(signature = (ring, id, epochs, form, values, first, rows = 1024))]
#[allow(clippy::too_many_arguments)]
fn seal<'py>(
    py: Python<'py>,
    ring: &KeyRing,
    id: Id,
    epochs: &Epochs,
    form: &Form,
    values: PyArray,
    first: i64,
    rows: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let column = TileColumn {
        id,
        epochs: &epochs.0,
        form: form.0,
    };
    let seal = || ring.0.seal_tiles(&column, &values.array, first, rows);
    let sealed = run(py, [&values.array], seal);
    to_python(py, &sealed.map_err(trusted)?, None)
}

/// Opens tiles as one column of `type`, and says how many rows each of them has; `slots` chooses
/// rows: row `r` of tile `t` is `1024 * t + r`, ascending.
#[pyfunction]
#[pyo3(signature = (ring, id, epochs, form, sealed, firsts, r#type, slots = None))]
#[allow(clippy::too_many_arguments)]
fn open<'py>(
    py: Python<'py>,
    ring: &KeyRing,
    id: Id,
    epochs: &Epochs,
    form: &Form,
    sealed: PyArray,
    firsts: PyArray,
    r#type: PyType,
    slots: Option<Vec<u64>>,
) -> PyResult<(Bound<'py, PyAny>, Vec<u16>)> {
    let column = TileColumn {
        id,
        epochs: &epochs.0,
        form: form.0,
    };
    let open = || {
        let (sealed, firsts) = (&sealed.array, &firsts.array);
        let data_type = r#type.0.data_type();
        ring.0
            .open_tiles(&column, sealed, firsts, data_type, slots.as_deref())
    };
    let opened = run(py, [&sealed.array, &firsts.array], open);
    let (array, rows) = opened.map_err(trusted)?;
    Ok((to_python(py, &array, Some(&r#type.0))?, rows))
}

/// Whether ids are those of all rows of tiles, in order: so many from each of `firsts` on.
#[pyfunction]
fn all_rows(py: Python<'_>, ids: PyArray, firsts: PyArray, counts: Vec<u16>) -> bool {
    let compare = || are_all(&ids.array, &firsts.array, &counts);
    run(py, [&ids.array], compare)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("ROWS", TILE_ROWS)?;
    module.add_class::<Form>()?;
    module.add_function(wrap_pyfunction!(unit, module)?)?;
    module.add_function(wrap_pyfunction!(all_rows, module)?)?;
    module.add_function(wrap_pyfunction!(seal, module)?)?;
    module.add_function(wrap_pyfunction!(open, module)?)
}
