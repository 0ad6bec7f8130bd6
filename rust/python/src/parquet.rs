//! `louver._rust.parquet`: encrypted data files.

use crate::eds::LakeKeys;
use crate::errors::{trusted, VerifyError};
use crate::ffi::{batches_to_python, PyChunks};
use arrow_array::cast::AsArray;
use arrow_array::StructArray;
use arrow_schema::{DataType, Schema};
use louver_trusted::parquet::{self, FileKeys, OpenFile, SealedFile, Tail, FILE_ID};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::sync::OnceLock;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("ROW_GROUP_ROWS", parquet::ROW_GROUP_ROWS)?;
    module.add_class::<ParquetFile>()?;
    module.add_function(wrap_pyfunction!(write_parquet, module)?)
}

/// Writes a table as one encrypted file: (bytes, key metadata, rows).
#[pyfunction]
#[pyo3(signature = (keys, file_id, table, level = 1))]
fn write_parquet<'py>(
    py: Python<'py>,
    keys: &LakeKeys,
    file_id: [u8; FILE_ID],
    table: PyChunks,
    level: i32,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>, usize)> {
    let DataType::Struct(fields) = table.field.data_type() else {
        return Err(PyValueError::new_err("rows to be written are a table's"));
    };
    let schema = Schema::new(fields.clone());
    let chunks = table.chunks.iter().map(|c| c.as_struct().clone());
    let batches: Vec<StructArray> = chunks.collect();
    let keys = FileKeys::of(&keys.0);
    let work = || parquet::write(&keys, &file_id, &schema, &batches, level);
    let file = py.detach(work).map_err(trusted)?;
    let bytes = PyBytes::new(py, &file.bytes);
    Ok((bytes, PyBytes::new(py, &file.key_metadata), file.rows))
}

/// One encrypted file to be read: its footer first, then what is needed of it.
#[pyclass(frozen, module = "louver._rust.parquet")]
struct ParquetFile {
    sealed: SealedFile,
    open: OnceLock<Box<OpenFile>>,
}

#[pymethods]
impl ParquetFile {
    #[new]
    fn new(
        keys: &LakeKeys,
        file_id: [u8; FILE_ID],
        key_metadata: &[u8],
        size: u64,
    ) -> PyResult<Self> {
        let keys = FileKeys::of(&keys.0);
        let sealed = SealedFile::new(&keys, &file_id, key_metadata, size).map_err(trusted)?;
        let open = OnceLock::new();
        Ok(Self { sealed, open })
    }

    /// How many last bytes of the file to read at first.
    fn tail_length(&self) -> u64 {
        self.sealed.tail_length()
    }

    /// Reads the footer; gives the number of last bytes that it needs if these are too few, else 0.
    fn open(&self, py: Python<'_>, tail: PyBackedBytes) -> PyResult<u64> {
        match py.detach(|| self.sealed.open(&tail)).map_err(trusted)? {
            Tail::More(length) => Ok(length),
            Tail::Open(open) => {
                // A second call read the same footer.
                let _ = self.open.set(open);
                Ok(0)
            }
        }
    }

    /// Ids of the file's columns.
    #[getter]
    fn columns(&self) -> PyResult<Vec<u32>> {
        Ok(self.opened()?.columns().to_vec())
    }

    /// Rows of each row group.
    #[getter]
    fn row_groups(&self) -> PyResult<Vec<usize>> {
        Ok(self.opened()?.row_groups().to_vec())
    }

    /// Offsets and lengths of what `read` needs; of all row groups if None.
    #[pyo3(signature = (columns, row_groups = None))]
    fn ranges(
        &self,
        columns: Vec<u32>,
        row_groups: Option<Vec<usize>>,
    ) -> PyResult<Vec<(u64, u64)>> {
        let open = self.opened()?;
        let ranges = open.ranges(&columns, row_groups.as_deref());
        ranges.map_err(trusted)
    }

    /// The rows as a `pyarrow.RecordBatchReader`; columns that the file lacks are left out.
    #[pyo3(signature = (columns, parts, row_groups = None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<u32>,
        parts: Vec<(u64, PyBackedBytes)>,
        row_groups: Option<Vec<usize>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let open = self.opened()?;
        let work = || open.read(&columns, parts, row_groups.as_deref());
        let (schema, batches) = py.detach(work).map_err(trusted)?;
        batches_to_python(py, schema, batches)
    }

    fn __repr__(&self) -> &'static str {
        "ParquetFile(redacted)"
    }
}

impl ParquetFile {
    fn opened(&self) -> PyResult<&OpenFile> {
        let closed = || VerifyError::new_err("the whole footer of a data file was not given");
        self.open.get().map(AsRef::as_ref).ok_or_else(closed)
    }
}
