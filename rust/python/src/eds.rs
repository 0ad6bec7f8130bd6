//! The index of a lake: `LakeKeys` and the maps of values at home, sweeps at a server's
//! (`louver._rust.server`).

use crate::errors::trusted;
use crate::ffi::{to_python, PyArray};
use crate::server::untrusted;
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt64Type, UInt8Type};
use arrow_array::Array;
use louver_primitives::eds::segment::Header as SegmentHeader;
use louver_primitives::eds::spec::{Form, FormatError, Spec};
use louver_primitives::eds::token::Header as TokenHeader;
use louver_trusted::eds::{map, Ranges};
use louver_untrusted::eds::sweep;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// The keys of one table of a lake. Python holds this handle; secrets stay in Rust.
#[pyclass(frozen, module = "louver._rust")]
pub(crate) struct LakeKeys(pub(crate) louver_trusted::eds::LakeKeys);

#[pymethods]
impl LakeKeys {
    /// The public name of an index.
    fn index_id<'py>(
        &self,
        py: Python<'py>,
        column_id: u32,
        generation: u32,
        spec: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let id = self.0.index_id(column_id, generation, spec);
        Ok(PyBytes::new(py, &id.map_err(trusted)?))
    }

    /// A new segment: the filters of some files.
    #[allow(clippy::too_many_arguments)]
    fn segment<'py>(
        &self,
        py: Python<'py>,
        column_id: u32,
        generation: u32,
        spec: &[u8],
        lows: PyArray,
        highs: PyArray,
        states: PyArray,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let wrong = || PyValueError::new_err("ranges are arrays of uint64, states of uint8");
        let arrays = [&lows.array, &highs.array, &states.array];
        if arrays.iter().any(|array| array.null_count() > 0) {
            return Err(wrong());
        }
        let ranges = Ranges {
            lows: lows
                .array
                .as_primitive_opt::<UInt64Type>()
                .ok_or_else(wrong)?
                .values(),
            highs: highs
                .array
                .as_primitive_opt::<UInt64Type>()
                .ok_or_else(wrong)?
                .values(),
            states: states
                .array
                .as_primitive_opt::<UInt8Type>()
                .ok_or_else(wrong)?
                .values(),
        };
        let output = py.detach(|| self.0.segment(column_id, generation, spec, &ranges));
        Ok(PyBytes::new(py, &output.map_err(trusted)?))
    }

    /// What shows a server one inclusive range of mapped values.
    #[pyo3(signature = (column_id, generation, spec, low, high, sides = false))]
    #[allow(clippy::too_many_arguments)]
    fn token<'py>(
        &self,
        py: Python<'py>,
        column_id: u32,
        generation: u32,
        spec: &[u8],
        low: u64,
        high: u64,
        sides: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let range = (low, high);
        let token = py.detach(|| self.0.token(column_id, generation, spec, range, sides));
        Ok(PyBytes::new(py, &token.map_err(trusted)?))
    }

    /// The positions that a token opens, ascending.
    fn opened(&self, token: &[u8]) -> PyResult<Vec<u32>> {
        self.0.opened(token).map_err(trusted)
    }

    /// Checks the tags of all rows that a token reads, or of all.
    #[pyo3(signature = (column_id, generation, segment, token = None))]
    fn check(
        &self,
        py: Python<'_>,
        column_id: u32,
        generation: u32,
        segment: PyBuffer<u8>,
        token: Option<&[u8]>,
    ) -> PyResult<()> {
        let segment = bytes_of(&segment)?;
        let check = || self.0.check(column_id, generation, segment, token);
        py.detach(check).map_err(trusted)
    }

    /// HMAC-SHA256 of context and data under a key of this table and purpose.
    fn sign<'py>(
        &self,
        py: Python<'py>,
        purpose: &str,
        context: &[u8],
        data: PyBuffer<u8>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let data = bytes_of(&data)?;
        let tag = py.detach(|| self.0.sign(purpose, context, data));
        Ok(PyBytes::new(py, &tag))
    }

    /// Checks what `sign` made.
    fn verify(
        &self,
        py: Python<'_>,
        purpose: &str,
        context: &[u8],
        data: PyBuffer<u8>,
        tag: &[u8],
    ) -> PyResult<()> {
        let data = bytes_of(&data)?;
        let verify = || self.0.verify(purpose, context, data, tag);
        py.detach(verify).map_err(trusted)
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }

    fn __reduce__(&self) -> PyResult<()> {
        let text = "LakeKeys cannot be pickled: keys do not leave this process";
        Err(pyo3::exceptions::PyTypeError::new_err(text))
    }
}

/// A token prepared for many segments.
#[pyclass(frozen, module = "louver._rust.server")]
struct Token(sweep::Token);

#[pymethods]
impl Token {
    #[new]
    fn new(py: Python<'_>, token: &[u8]) -> PyResult<Self> {
        let output = py.detach(|| sweep::Token::new(token));
        output.map(Self).map_err(untrusted)
    }

    /// The files of a segment to keep.
    fn sweep<'py>(&self, py: Python<'py>, segment: PyBuffer<u8>) -> PyResult<Bound<'py, PyBytes>> {
        let segment = bytes_of(&segment)?;
        let hits = py.detach(|| self.0.sweep(segment)).map_err(untrusted)?;
        Ok(PyBytes::new(py, &hits))
    }
}

/// The files of a segment to keep: a bit for each.
#[pyfunction]
#[pyo3(name = "sweep")]
fn sweep_once<'py>(
    py: Python<'py>,
    segment: PyBuffer<u8>,
    token: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let segment = bytes_of(&segment)?;
    let work = || sweep::Token::<Spec>::new(token)?.sweep(segment);
    Ok(PyBytes::new(py, &py.detach(work).map_err(untrusted)?))
}

/// What a segment says of itself.
#[pyfunction]
fn segment_header<'py>(py: Python<'py>, segment: PyBuffer<u8>) -> PyResult<Bound<'py, PyDict>> {
    let header = SegmentHeader::<Spec>::decode(bytes_of(&segment)?).map_err(malformed)?;
    let out = said(py, &header.spec, &header.index_id)?;
    out.set_item("segment_id", PyBytes::new(py, &header.segment_id))?;
    out.set_item("n", header.files)?;
    out.set_item("bytes", header.total())?;
    Ok(out)
}

/// What a token says of itself.
#[pyfunction]
fn token_header<'py>(py: Python<'py>, token: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    let header = TokenHeader::<Spec>::decode(token).map_err(malformed)?;
    let out = said(py, &header.spec, &header.index_id)?;
    out.set_item("sides", header.sides)?;
    Ok(out)
}

fn said<'py>(py: Python<'py>, spec: &Spec, index_id: &[u8; 16]) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("spec", PyBytes::new(py, &spec.encode()))?;
    out.set_item("index_id", PyBytes::new(py, index_id))?;
    Ok(out)
}

/// Whether files can be skipped by values of a DuckDB type.
#[pyfunction]
#[pyo3(signature = (duckdb_type, letters = false))]
fn mappable(duckdb_type: &str, letters: bool) -> bool {
    map::mappable(duckdb_type, letters)
}

/// Least and greatest mapped value, and the number of NULLs.
#[pyfunction]
#[pyo3(signature = (array, duckdb_type, letters = false))]
fn map_bounds(
    py: Python<'_>,
    array: PyArray,
    duckdb_type: &str,
    letters: bool,
) -> PyResult<(Option<u64>, Option<u64>, usize)> {
    let converted = py.detach(|| map::bounds(&array.array, duckdb_type, letters));
    let (bounds, nulls) = converted.map_err(trusted)?;
    Ok((bounds.map(|b| b.0), bounds.map(|b| b.1), nulls))
}

/// The mapped values; NULL for NULL.
#[pyfunction]
#[pyo3(signature = (array, duckdb_type, letters = false))]
fn map_values<'py>(
    py: Python<'py>,
    array: PyArray,
    duckdb_type: &str,
    letters: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let converted = py.detach(|| map::values(&array.array, duckdb_type, letters));
    to_python(py, &converted.map_err(trusted)?, None)
}

fn malformed(error: FormatError) -> PyErr {
    PyValueError::new_err(error.0)
}

/// The bytes of anything with Python's buffer protocol: bytes, a memoryview, a mapped file.
fn bytes_of(buffer: &PyBuffer<u8>) -> PyResult<&[u8]> {
    if !buffer.is_c_contiguous() {
        return Err(PyValueError::new_err(
            "the bytes of a buffer do not lie in a row",
        ));
    }
    if buffer.len_bytes() == 0 {
        return Ok(&[]);
    }
    // SAFETY: the buffer is held for as long as the slice lives, so its memory stays where it is.
    // A concurrent writer meanwhile (a mapped file can change) makes the answer wrong, and no
    // more: bytes are read once each, and nothing is indexed by what they say.
    Ok(unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast(), buffer.len_bytes()) })
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<LakeKeys>()?;
    register_server(module)?;
    module.add_function(wrap_pyfunction!(mappable, module)?)?;
    module.add_function(wrap_pyfunction!(map_bounds, module)?)?;
    module.add_function(wrap_pyfunction!(map_values, module)?)
}

pub(crate) fn register_server(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Token>()?;
    module.add_function(wrap_pyfunction!(sweep_once, module)?)?;
    module.add_function(wrap_pyfunction!(segment_header, module)?)?;
    module.add_function(wrap_pyfunction!(token_header, module)?)
}
