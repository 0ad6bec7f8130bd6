//! `louver._rust.server`, what a provider computes with shares: its functions begin with `fss_`.

use crate::ffi::PyArray;
use crate::server::{untrusted, Stopped};
use arrow_array::Array;
use louver_untrusted::fss::{Group, Header, Scheme};
use louver_untrusted::fss_table as tables;
use louver_untrusted::Error;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList};

/// Numbers of one type, one after the other, of anything with Python's buffer protocol: bytes, a
/// memoryview, a mapped file, an array of numpy.
pub(crate) struct Buffer<T>(PyBuffer<T>);

impl<T: Element> FromPyObject<'_, '_> for Buffer<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let wrong = |error: PyErr| {
            let bits = size_of::<T>() * 8;
            PyValueError::new_err(format!("a buffer of {bits}-bit numbers is needed: {error}"))
        };
        let buffer = PyBuffer::get(&object).map_err(wrong)?;
        if buffer.is_c_contiguous() {
            return Ok(Self(buffer));
        }
        Err(PyValueError::new_err(
            "the numbers of a buffer do not lie in a row",
        ))
    }
}

impl<T: Element> Buffer<T> {
    pub(crate) fn slice(&self) -> &[T] {
        if self.0.item_count() == 0 {
            return &[];
        }
        // SAFETY: the buffer is held for as long as the slice lives, so its memory stays where it
        // is; its type, alignment and shape were checked on the way in. A concurrent writer
        // meanwhile (a mapped file can change) makes the answer wrong, and no more: what is read
        // is never trusted as an index.
        unsafe { std::slice::from_raw_parts(self.0.buf_ptr().cast(), self.0.item_count()) }
    }
}

pub(crate) fn slice<T: Element>(buffer: Option<&Buffer<T>>) -> Option<&[T]> {
    buffer.map(Buffer::slice)
}

/// Ends evaluations from another thread: each that it was given to, now and later.
#[pyclass(frozen, module = "louver._rust.server")]
#[derive(Default)]
pub(crate) struct Stop(louver_untrusted::Stop);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Have the evaluations end within milliseconds; they raise Stopped.
    fn set(&self) {
        self.0.set();
    }

    /// Whether it is set.
    fn is_set(&self) -> bool {
        self.0.is_set()
    }
}

/// The flag that was given, or one that is never set.
pub(crate) fn flag(stop: Option<&Stop>) -> louver_untrusted::Stop {
    stop.map_or_else(Default::default, |stop| stop.0.clone())
}

fn refs(shares: &[PyBackedBytes]) -> Vec<&[u8]> {
    shares.iter().map(AsRef::as_ref).collect()
}

fn give<'py>(
    py: Python<'py>,
    answers: Result<Vec<Vec<u8>>, Error>,
) -> PyResult<Bound<'py, PyList>> {
    let answers = answers.map_err(untrusted)?;
    PyList::new(py, answers.iter().map(|answer| PyBytes::new(py, answer)))
}

/// The record that each share selects, and what authenticates it.
#[pyfunction]
#[pyo3(signature = (shares, points, count, records, width, tags, first = 0, stop = None))]
#[allow(clippy::too_many_arguments)]
fn fss_select<'py>(
    py: Python<'py>,
    shares: Vec<PyBackedBytes>,
    points: Option<Buffer<u64>>,
    count: usize,
    records: Buffer<u8>,
    width: usize,
    tags: Buffer<u8>,
    first: u64,
    stop: Option<&Stop>,
) -> PyResult<Bound<'py, PyList>> {
    let table = tables::Records {
        points: slice(points.as_ref()),
        first,
        count,
        records: records.slice(),
        width,
        tags: tags.slice(),
    };
    let stop = flag(stop);
    let work = || tables::select_until(&refs(&shares), &table, &stop);
    give(py, py.detach(work))
}

/// Sums of columns by group over what each share selects.
#[pyfunction]
#[pyo3(signature = (shares, points, starts, groups, values, columns, group_count, stop = None))]
#[allow(clippy::too_many_arguments)]
fn fss_sum<'py>(
    py: Python<'py>,
    shares: Vec<PyBackedBytes>,
    points: Buffer<u64>,
    starts: Option<Buffer<u32>>,
    groups: Option<Buffer<u32>>,
    values: Option<Buffer<i64>>,
    columns: usize,
    group_count: usize,
    stop: Option<&Stop>,
) -> PyResult<Bound<'py, PyList>> {
    let entries = tables::Entries {
        points: points.slice(),
        starts: slice(starts.as_ref()),
        groups: slice(groups.as_ref()),
        values: slice(values.as_ref()),
        columns,
        group_count,
    };
    let stop = flag(stop);
    let work = || tables::sum_until(&refs(&shares), &entries, &stop);
    give(py, py.detach(work))
}

/// How many rows each share counts whose number has its prefix.
#[pyfunction]
#[pyo3(signature = (
    shares, codes, code_bits, index_bits, prefix_bits, first = 0, stop = None
))]
#[allow(clippy::too_many_arguments)]
fn fss_search<'py>(
    py: Python<'py>,
    shares: Vec<PyBackedBytes>,
    codes: Buffer<u64>,
    code_bits: u32,
    index_bits: u32,
    prefix_bits: u32,
    first: u64,
    stop: Option<&Stop>,
) -> PyResult<Bound<'py, PyList>> {
    let rows = tables::Rows {
        codes: codes.slice(),
        code_bits,
        index_bits,
        first,
    };
    let stop = flag(stop);
    let work = || tables::search_until(&refs(&shares), &rows, prefix_bits, &stop);
    give(py, py.detach(work))
}

/// The result tables of rows that any of the shares selects.
#[pyfunction]
#[pyo3(signature = (
    shares, codes, code_bits, index_bits, prefix_bits, records, width, tags, slots, seeds,
    first = 0, stop = None
))]
#[allow(clippy::too_many_arguments)]
fn fss_sample<'py>(
    py: Python<'py>,
    shares: Vec<PyBackedBytes>,
    codes: Buffer<u64>,
    code_bits: u32,
    index_bits: u32,
    prefix_bits: Vec<u32>,
    records: Buffer<u8>,
    width: usize,
    tags: Buffer<u8>,
    slots: usize,
    seeds: Vec<u64>,
    first: u64,
    stop: Option<&Stop>,
) -> PyResult<Bound<'py, PyBytes>> {
    let samples = tables::Samples {
        rows: tables::Rows {
            codes: codes.slice(),
            code_bits,
            index_bits,
            first,
        },
        records: records.slice(),
        width,
        tags: tags.slice(),
        slots,
        seeds: &seeds,
    };
    let stop = flag(stop);
    let work = || tables::sample_until(&refs(&shares), &prefix_bits, &samples, &stop);
    let output = py.detach(work).map_err(untrusted)?;
    Ok(PyBytes::new(py, &output))
}

/// The tag of each record.
#[pyfunction]
fn fss_tags<'py>(
    py: Python<'py>,
    level: u32,
    records: Buffer<u8>,
    width: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let work = || tables::record_tags(level, records.slice(), width);
    Ok(PyBytes::new(py, &py.detach(work).map_err(untrusted)?))
}

/// The high and the low words of the hashes of rows of texts.
#[pyfunction]
fn fss_hash<'py>(
    py: Python<'py>,
    salt: PyBackedBytes,
    columns: Vec<PyArray>,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let work = || {
        let columns: Vec<&dyn Array> = columns.iter().map(|c| c.array.as_ref()).collect();
        tables::hash_texts(&salt, &columns)
    };
    let output = py.detach(work).map_err(untrusted)?;
    Ok((
        PyBytes::new(py, &output.high),
        PyBytes::new(py, &output.low),
    ))
}

/// BLAKE3 over the number of buffers, their lengths and their own digests.
#[pyfunction]
fn fss_digest<'py>(py: Python<'py>, buffers: Vec<Buffer<u8>>) -> Bound<'py, PyBytes> {
    let output = py.detach(|| {
        let slices: Vec<&[u8]> = buffers.iter().map(Buffer::slice).collect();
        tables::digest(&slices)
    });
    PyBytes::new(py, &output)
}

/// All that a share says of itself.
#[pyfunction]
fn share_header(py: Python<'_>, share: PyBackedBytes) -> PyResult<Bound<'_, PyDict>> {
    let (header, _) = Header::decode(&share).map_err(|error| untrusted(error.into()))?;
    let scheme = match header.scheme {
        Scheme::Point => "point",
        Scheme::Less => "less",
        Scheme::Interval => "interval",
        Scheme::Owf => "owf",
        Scheme::Paillier => "paillier",
    };
    let group = match header.group {
        Group::Tag => "tag",
        Group::Wide => "wide",
        Group::Words => "words",
        Group::Bits => "bits",
    };
    let out = PyDict::new(py);
    out.set_item("scheme", scheme)?;
    out.set_item("group", group)?;
    out.set_item("bits", header.bits)?;
    out.set_item("party", header.party)?;
    out.set_item("parties", header.parties)?;
    out.set_item("words", header.words)?;
    out.set_item("bytes", share.len())?;
    Ok(out)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Stop>()?;
    module.add("Stopped", module.py().get_type::<Stopped>())?;
    module.add_function(wrap_pyfunction!(fss_select, module)?)?;
    module.add_function(wrap_pyfunction!(fss_sum, module)?)?;
    module.add_function(wrap_pyfunction!(fss_search, module)?)?;
    module.add_function(wrap_pyfunction!(fss_sample, module)?)?;
    module.add_function(wrap_pyfunction!(fss_tags, module)?)?;
    module.add_function(wrap_pyfunction!(fss_hash, module)?)?;
    module.add_function(wrap_pyfunction!(fss_digest, module)?)?;
    module.add_function(wrap_pyfunction!(share_header, module)?)?;
    crate::fss_many::register_server(module)
}
