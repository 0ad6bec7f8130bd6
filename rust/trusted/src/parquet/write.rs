//! Writing a data file.

use super::forms::{stored, stored_field};
use super::keys::{FileKeys, FILE_ID};
use super::{column_ids, guarded, ROW_GROUP_ROWS};
use crate::error::{Error, Result};
use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::encryption::encrypt::FileEncryptionProperties;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StructArray};
use arrow_schema::{DataType, Schema, SchemaRef};
use std::sync::Arc;

/// Most bytes of a row group before it is closed early: bounds what a reader must hold.
const ROW_GROUP_BYTES: usize = 512 << 20;

/// A file, ready to be stored.
pub struct Written {
    /// The whole file.
    pub bytes: Vec<u8>,
    /// The data key, wrapped; kept beside the file's name in the table's metadata.
    pub key_metadata: Vec<u8>,
    /// Rows in it.
    pub rows: usize,
}

/// Writes rows as one encrypted Parquet file.
///
/// Columns are named `c<id>`. `level` is zstd's, 1 to 22. No statistics are kept.
///
/// # Errors
/// [`Error::Value`] for other names, types that Parquet cannot hold in any form, or a wrong level.
pub fn write(
    keys: &FileKeys,
    file_id: &[u8; FILE_ID],
    schema: &Schema,
    batches: &[StructArray],
    level: i32,
) -> Result<Written> {
    column_ids(schema)?;
    let fields: Result<Vec<_>> = schema.fields().iter().map(|f| stored_field(f)).collect();
    let target = Arc::new(Schema::new(fields?));
    let (data_key, key_metadata) = keys.fresh(file_id)?;
    let cipher = FileEncryptionProperties::builder(data_key.to_vec())
        .with_aad_prefix(keys.context(file_id).to_vec())
        .build()
        .map_err(refused)?;
    let properties = properties(level)?
        .with_file_encryption_properties(cipher)
        .build();
    let work = || {
        let mut writer =
            ArrowWriter::try_new(Vec::new(), target.clone(), Some(properties)).map_err(refused)?;
        let mut rows = 0;
        let mut words = Vec::new();
        for batch in batches {
            rows += batch.len();
            check_words(batch, &mut 0, &mut words)?;
            writer.write(&held(&target, batch)?).map_err(refused)?;
        }
        Ok((writer.into_inner().map_err(refused)?, rows))
    };
    let failed = || Error::value("these rows cannot be written as Parquet");
    let (bytes, rows) = guarded(work, failed)?;
    Ok(Written {
        bytes,
        key_metadata,
        rows,
    })
}

fn properties(level: i32) -> Result<::parquet::file::properties::WriterPropertiesBuilder> {
    let level = ZstdLevel::try_new(level).map_err(refused)?;
    Ok(WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_write_path_in_schema(false)
        .set_created_by("louver".to_owned())
        .set_data_page_row_count_limit(ROW_GROUP_ROWS)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_max_row_group_bytes(Some(ROW_GROUP_BYTES)))
}

/// A batch in the form in which Parquet holds it.
fn held(target: &SchemaRef, batch: &StructArray) -> Result<RecordBatch> {
    if batch.null_count() > 0 || batch.columns().len() != target.fields().len() {
        return Err(Error::value("rows to be written are a table's"));
    }
    let columns: Result<Vec<ArrayRef>> = batch.columns().iter().map(stored).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.len()));
    RecordBatch::try_new_with_options(target.clone(), columns?, &options)
        .map_err(|_| Error::value("a column's values do not have the type of its column"))
}

/// The dictionaries seen of one column, at any depth: the last one, and the words of all.
type Words = (ArrayRef, usize);

/// Refuses dictionaries of one column that together may have more words than its indexes can name:
/// a reader that meets them in one row group could not build the column again.
fn check_words(array: &dyn Array, dictionary: &mut usize, seen: &mut Vec<Words>) -> Result<()> {
    if let DataType::Dictionary(index, _) = array.data_type() {
        let words = array.as_any_dictionary().values();
        match seen.get_mut(*dictionary) {
            None => seen.push((words.clone(), words.len())),
            Some((last, _)) if Arc::ptr_eq(last, words) || last == words => (),
            Some((last, count)) => {
                *last = words.clone();
                *count += words.len();
                let bits = 8 * index.primitive_width().unwrap_or(0) as u32;
                let bits = bits - u32::from(index.is_signed_integer());
                if bits < 32 && *count > 1 << bits {
                    let text = "dictionaries of one column differ: make one of them, or values";
                    return Err(Error::value(text));
                }
            }
        }
        *dictionary += 1;
    }
    let children: Vec<ArrayRef> = match array.data_type() {
        DataType::Struct(_) => array.as_struct().columns().to_vec(),
        DataType::List(_) => vec![array.as_list::<i32>().values().clone()],
        DataType::LargeList(_) => vec![array.as_list::<i64>().values().clone()],
        DataType::FixedSizeList(..) => vec![array.as_fixed_size_list().values().clone()],
        DataType::Map(..) => array.as_map().entries().columns().to_vec(),
        DataType::Union(members, _) => {
            let child = |(id, _)| array.as_union().child(id).clone();
            members.iter().map(child).collect()
        }
        _ => Vec::new(),
    };
    children
        .iter()
        .try_for_each(|child| check_words(child, dictionary, seen))
}

/// Names types and no values: what the crate says of a schema.
fn refused(error: ::parquet::errors::ParquetError) -> Error {
    Error::value(format!("these rows cannot be written as Parquet: {error}"))
}
