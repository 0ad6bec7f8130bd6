//! Arrow arrays across the Python boundary by the Arrow PyCapsule interface: no copy, no pyarrow
//! at build time.

use arrow_array::ffi::{from_ffi, to_ffi, FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    make_array, new_empty_array, Array, ArrayRef, RecordBatch, RecordBatchIterator, StructArray,
};
use arrow_schema::{Field, SchemaRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::marker::Ungil;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyTuple};
use std::ffi::{c_char, c_int, c_void, CStr};

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// Work on so many rows and bytes or more is done without Python's lock.
const MANY_ROWS: usize = 64;
const MANY_BYTES: usize = 1 << 16;

/// Runs what needs no Python, without its lock. With the lock if the arrays are so small that to
/// give it away and wait for it again, behind all other threads, would take longer than the work.
pub(crate) fn run<'a, T: Ungil>(
    py: Python<'_>,
    arrays: impl IntoIterator<Item = &'a ArrayRef>,
    work: impl FnOnce() -> T + Ungil,
) -> T {
    let mut bytes = 0;
    let small = arrays.into_iter().all(|array| {
        bytes += array.get_buffer_memory_size();
        array.len() < MANY_ROWS && bytes < MANY_BYTES
    });
    run_on(py, if small { bytes } else { MANY_BYTES }, work)
}

/// [`run`] with so many bytes.
pub(crate) fn run_on<T: Ungil>(
    py: Python<'_>,
    bytes: usize,
    work: impl FnOnce() -> T + Ungil,
) -> T {
    if bytes < MANY_BYTES {
        work()
    } else {
        py.detach(work)
    }
}

/// Any object with `__arrow_c_array__` or `__arrow_c_stream__`, as one array.
pub(crate) struct PyArray {
    pub(crate) array: ArrayRef,
    /// Its type with the metadata that names an extension type.
    pub(crate) field: Field,
}

impl FromPyObject<'_, '_> for PyArray {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let py = object.py();
        if let Some(export) = object.getattr_opt(intern!(py, "__arrow_c_array__"))? {
            from_array(&export)
        } else if object.hasattr(intern!(py, "__arrow_c_stream__"))? {
            from_stream(&object)
        } else {
            Err(PyTypeError::new_err("an Arrow array is needed"))
        }
    }
}

fn from_array(export: &Bound<'_, PyAny>) -> PyResult<PyArray> {
    let pair = export.call0()?;
    let pair = pair.cast::<PyTuple>()?;
    let schema = take::<FFI_ArrowSchema>(&pair.get_item(0)?, SCHEMA, FFI_ArrowSchema::empty())?;
    let array = take::<FFI_ArrowArray>(&pair.get_item(1)?, ARRAY, FFI_ArrowArray::empty())?;
    Ok(PyArray {
        array: import(array, &schema)?,
        field: Field::try_from(&schema).map_err(arrow_error)?,
    })
}

fn from_stream(object: &Bound<'_, PyAny>) -> PyResult<PyArray> {
    let PyChunks { chunks, field } = read_stream(object)?;
    let array = match chunks.as_slice() {
        [] => new_empty_array(field.data_type()),
        [only] => only.clone(),
        many => {
            let many: Vec<&dyn Array> = many.iter().map(AsRef::as_ref).collect();
            arrow_select::concat::concat(&many).map_err(arrow_error)?
        }
    };
    Ok(PyArray { array, field })
}

/// Any object with `__arrow_c_stream__`, in the pieces in which it comes: a table is one of
/// structs.
pub(crate) struct PyChunks {
    pub(crate) chunks: Vec<ArrayRef>,
    pub(crate) field: Field,
}

impl FromPyObject<'_, '_> for PyChunks {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        read_stream(&object)
    }
}

fn read_stream(object: &Bound<'_, PyAny>) -> PyResult<PyChunks> {
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let mut stream = take::<Stream>(&capsule, STREAM, Stream::released())?;
    let failed = || PyValueError::new_err("the Arrow stream failed");
    let (get_schema, get_next) = (stream.get_schema, stream.get_next);
    let (get_schema, get_next) = (get_schema.ok_or_else(failed)?, get_next.ok_or_else(failed)?);
    let mut schema = FFI_ArrowSchema::empty();
    // SAFETY: the stream came out of a capsule of the right name and is ours now; both structs
    // are valid places for its producer to fill, as the C stream interface requires.
    if unsafe { get_schema(&mut stream, &mut schema) } != 0 {
        return Err(failed());
    }
    let mut chunks = Vec::new();
    loop {
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: as above.
        if unsafe { get_next(&mut stream, &mut array) } != 0 {
            return Err(failed());
        }
        if array.is_released() {
            break;
        }
        chunks.push(import(array, &schema)?);
    }
    let field = Field::try_from(&schema).map_err(arrow_error)?;
    Ok(PyChunks { chunks, field })
}

/// `struct ArrowArrayStream` of the Arrow C stream interface. (arrow-rs has it with private fields
/// and reads record batches only; a chunked array is a stream of plain arrays.)
#[repr(C)]
struct Stream {
    get_schema: Option<unsafe extern "C" fn(*mut Stream, *mut FFI_ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Stream, *mut FFI_ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Stream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Stream)>,
    private_data: *mut c_void,
}

impl Stream {
    fn released() -> Self {
        Self {
            get_schema: None,
            get_next: None,
            get_last_error: None,
            release: None,
            private_data: std::ptr::null_mut(),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: a stream that was not released yet is released once, by its owner.
            unsafe { release(self) }
        }
    }
}

fn import(array: FFI_ArrowArray, schema: &FFI_ArrowSchema) -> PyResult<ArrayRef> {
    // SAFETY: array and schema come from one producer of the C data interface, moved out of
    // their capsules, so nothing else releases them.
    let mut data = unsafe { from_ffi(array, schema) }.map_err(arrow_error)?;
    data.align_buffers();
    Ok(make_array(data))
}

/// Moves a C struct out of its capsule; `empty` (released) stays behind.
fn take<T>(capsule: &Bound<'_, PyAny>, name: &CStr, empty: T) -> PyResult<T> {
    let capsule = capsule.cast::<PyCapsule>()?;
    let at = capsule.pointer_checked(Some(name))?.cast::<T>();
    // SAFETY: a capsule of this name holds a valid pointer to this C struct (PyCapsule
    // interface), and leaving a released struct behind is how a consumer takes ownership.
    Ok(unsafe { at.as_ptr().replace(empty) })
}

/// A `pyarrow.DataType` (or anything with `__arrow_c_schema__`), with its metadata.
pub(crate) struct PyType(pub(crate) Field);

impl FromPyObject<'_, '_> for PyType {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let capsule = object.call_method0(intern!(object.py(), "__arrow_c_schema__"))?;
        let schema = take::<FFI_ArrowSchema>(&capsule, SCHEMA, FFI_ArrowSchema::empty())?;
        Field::try_from(&schema).map(Self).map_err(arrow_error)
    }
}

/// Hands batches to Python as a `pyarrow.RecordBatchReader`; they have one schema.
pub(crate) fn batches_to_python<'py>(
    py: Python<'py>,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
) -> PyResult<Bound<'py, PyAny>> {
    let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
    let stream = FFI_ArrowArrayStream::new(Box::new(reader));
    let capsule = PyCapsule::new_with_value(py, stream, STREAM)?;
    py.import("pyarrow")?
        .getattr("RecordBatchReader")?
        .call_method1("_import_from_c_capsule", (capsule,))
}

/// Hands an array to Python as a `pyarrow.Array`; `like` adds its extension metadata.
pub(crate) fn to_python<'py>(
    py: Python<'py>,
    array: &dyn Array,
    like: Option<&Field>,
) -> PyResult<Bound<'py, PyAny>> {
    let (ffi_array, mut schema) = to_ffi(&array.to_data()).map_err(arrow_error)?;
    if let Some(like) = like {
        let field = Field::new("", array.data_type().clone(), true);
        let field = field.with_metadata(like.metadata().clone());
        schema = FFI_ArrowSchema::try_from(&field).map_err(arrow_error)?;
    }
    let schema = PyCapsule::new_with_value(py, schema, SCHEMA)?;
    let array = PyCapsule::new_with_value(py, ffi_array, ARRAY)?;
    static IMPORT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    importer(py, &IMPORT, "Array")?.call1((schema, array))
}

/// Hands one batch to Python as a `pyarrow.RecordBatch`.
pub(crate) fn batch_to_python(py: Python<'_>, batch: RecordBatch) -> PyResult<Bound<'_, PyAny>> {
    let schema = FFI_ArrowSchema::try_from(batch.schema().as_ref()).map_err(arrow_error)?;
    let array = FFI_ArrowArray::new(&StructArray::from(batch).into_data());
    let schema = PyCapsule::new_with_value(py, schema, SCHEMA)?;
    let array = PyCapsule::new_with_value(py, array, ARRAY)?;
    static IMPORT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    importer(py, &IMPORT, "RecordBatch")?.call1((schema, array))
}

/// What makes a class of pyarrow of capsules.
fn importer<'a, 'py>(
    py: Python<'py>,
    cell: &'a PyOnceLock<Py<PyAny>>,
    class: &str,
) -> PyResult<&'a Bound<'py, PyAny>> {
    let import = || -> PyResult<Py<PyAny>> {
        let class = py.import("pyarrow")?.getattr(class)?;
        Ok(class.getattr("_import_from_c_capsule")?.unbind())
    };
    Ok(cell.get_or_try_init(py, import)?.bind(py))
}

pub(crate) fn arrow_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}
