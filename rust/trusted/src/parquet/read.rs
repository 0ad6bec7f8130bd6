//! Reading a data file: its footer, then the column chunks that are needed.

use super::forms::{restored, restored_field};
use super::keys::{bad, DataKey, FileKeys, CONTEXT, FILE_ID};
use super::{column_ids, frame, guarded};
use crate::error::{Error, Result};
use ::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use ::parquet::arrow::push_decoder::ParquetPushDecoderBuilder;
use ::parquet::arrow::ProjectionMask;
use ::parquet::encryption::decrypt::FileDecryptionProperties;
use ::parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataPushDecoder};
use ::parquet::DecodeResult;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// What is read of a file's end at first: the footer of most files.
const FIRST_TAIL: u64 = 32 << 10;
/// Ranges at most this far apart are read as one.
const GAP: u64 = 64 << 10;

/// A file whose data key was unwrapped, and of which nothing was read yet.
pub struct SealedFile {
    file_id: [u8; FILE_ID],
    context: [u8; CONTEXT],
    data_key: DataKey,
    size: u64,
}

/// What came of a file's end.
pub enum Tail {
    /// So many last bytes of the file are needed.
    More(u64),
    /// The footer is right.
    Open(Box<OpenFile>),
}

/// A file whose footer was read.
pub struct OpenFile {
    file_id: [u8; FILE_ID],
    metadata: ArrowReaderMetadata,
    /// In the file's order.
    columns: Vec<u32>,
    rows: Vec<usize>,
}

impl SealedFile {
    /// Unwraps the data key of a file of `size` bytes.
    ///
    /// # Errors
    /// [`Error::Verify`] if the key metadata is not this file's, or no file is so short.
    pub fn new(
        keys: &FileKeys,
        file_id: &[u8; FILE_ID],
        key_metadata: &[u8],
        size: u64,
    ) -> Result<Self> {
        if size < frame::LEAST_FILE {
            return Err(bad(file_id, "its size"));
        }
        Ok(Self {
            file_id: *file_id,
            context: keys.context(file_id),
            data_key: keys.unwrap(file_id, key_metadata)?,
            size,
        })
    }

    /// How many last bytes of the file to read at first.
    pub fn tail_length(&self) -> u64 {
        self.size.min(FIRST_TAIL)
    }

    /// Reads the footer out of the file's last bytes.
    ///
    /// # Errors
    /// [`Error::Verify`] if it is not the one that was written.
    pub fn open(&self, tail: &[u8]) -> Result<Tail> {
        let wrong = || bad(&self.file_id, "its footer");
        let start = tail.len().checked_sub(frame::END).ok_or_else(wrong)?;
        if tail.len() as u64 > self.size {
            return Err(wrong());
        }
        let needed = frame::footer_length(&tail[start..], self.size).ok_or_else(wrong)?;
        let Some(begin) = tail.len().checked_sub(needed) else {
            return Ok(Tail::More(needed as u64));
        };
        if !frame::is_footer(&tail[begin..start]) {
            return Err(wrong());
        }
        let last = Bytes::copy_from_slice(&tail[begin..]);
        let read = || self.read_footer(last).ok_or_else(wrong);
        guarded(read, wrong).map(|file| Tail::Open(Box::new(file)))
    }

    fn read_footer(&self, last: Bytes) -> Option<OpenFile> {
        let cipher = FileDecryptionProperties::builder(self.data_key.to_vec())
            .with_aad_prefix(self.context.to_vec())
            .build()
            .ok()?;
        let begin = self.size - last.len() as u64;
        let mut decoder = ParquetMetaDataPushDecoder::try_new(self.size)
            .ok()?
            .with_page_index_policy(PageIndexPolicy::Skip)
            .with_file_decryption_properties(Some(cipher.clone()));
        decoder.push_range(begin..self.size, last).ok()?;
        let DecodeResult::Data(metadata) = decoder.try_decode().ok()? else {
            return None;
        };
        // Every chunk is between the magic and the footer.
        for column in metadata.row_groups().iter().flat_map(|g| g.columns()) {
            let (start, length) = column.byte_range();
            let end = start.checked_add(length)?;
            (start >= 4 && end <= begin).then_some(())?;
        }
        let rows = metadata.row_groups().iter().map(|g| g.num_rows());
        let rows = rows
            .map(|n| usize::try_from(n).ok())
            .collect::<Option<_>>()?;
        let options = ArrowReaderOptions::new().with_file_decryption_properties(cipher);
        let metadata = ArrowReaderMetadata::try_new(Arc::new(metadata), options).ok()?;
        Some(OpenFile {
            file_id: self.file_id,
            columns: column_ids(metadata.schema()).ok()?,
            metadata,
            rows,
        })
    }
}

impl OpenFile {
    /// Ids of the file's columns.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// Rows of each row group.
    pub fn row_groups(&self) -> &[usize] {
        &self.rows
    }

    /// Offset and length of what [`OpenFile::read`] needs of the file, in order; neighbours in one.
    ///
    /// Columns that the file does not have need nothing. `None` is all row groups.
    ///
    /// # Errors
    /// [`Error::Value`] for a row group that the file does not have.
    pub fn ranges(&self, columns: &[u32], groups: Option<&[usize]>) -> Result<Vec<(u64, u64)>> {
        let groups = self.groups(groups)?;
        let mut parts = self.chunks(&self.roots(columns), &groups);
        parts.sort_unstable_by_key(|part| part.start);
        let mut out: Vec<Range<u64>> = Vec::new();
        for part in parts {
            match out.last_mut() {
                Some(last) if part.start <= last.end.saturating_add(GAP) => {
                    last.end = last.end.max(part.end);
                }
                _ => out.push(part),
            }
        }
        Ok(out
            .into_iter()
            .map(|r| (r.start, r.end - r.start))
            .collect())
    }

    /// The rows of these columns, in the order requested; columns that the file does not have are
    /// left out. `parts` are bytes of the file and their offsets.
    ///
    /// # Errors
    /// [`Error::Verify`] if anything needed was altered, [`Error::Value`] if bytes are missing.
    pub fn read<B>(
        &self,
        columns: &[u32],
        parts: Vec<(u64, B)>,
        groups: Option<&[usize]>,
    ) -> Result<(SchemaRef, Vec<RecordBatch>)>
    where
        B: AsRef<[u8]> + Send + 'static,
    {
        let groups = self.groups(groups)?;
        let roots = self.roots(columns);
        let parts = Parts::new(parts);
        let wrong = || bad(&self.file_id, "one of its pages");
        for chunk in self.chunks(&roots, &groups) {
            if !frame::is_chunk(&parts.get(&chunk)?) {
                return Err(wrong());
            }
        }
        let batches = guarded(|| self.decode(&roots, &groups, &parts), wrong)?;
        let rows = batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        if rows != groups.iter().map(|&g| self.rows[g]).sum::<usize>() {
            return Err(wrong());
        }
        self.restore(&roots, &batches)
    }

    fn decode(&self, roots: &[usize], groups: &[usize], parts: &Parts) -> Result<Vec<RecordBatch>> {
        let wrong = |_| bad(&self.file_id, "one of its pages");
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), roots.iter().copied());
        let rows = groups.iter().map(|&g| self.rows[g]).max().unwrap_or(1);
        let mut decoder = ParquetPushDecoderBuilder::new_with_metadata(self.metadata.clone())
            .with_row_groups(groups.to_vec())
            .with_projection(mask)
            .with_batch_size(rows.max(1))
            .build()
            .map_err(wrong)?;
        let mut out = Vec::with_capacity(groups.len());
        loop {
            match decoder.try_decode().map_err(wrong)? {
                DecodeResult::NeedsData(ranges) => {
                    let data: Result<Vec<Bytes>> = ranges.iter().map(|r| parts.get(r)).collect();
                    decoder.push_ranges(ranges, data?).map_err(wrong)?;
                }
                DecodeResult::Data(batch) => out.push(batch),
                DecodeResult::Finished => return Ok(out),
            }
        }
    }

    /// Batches hold the columns in the file's order; `roots` says which, in the order requested.
    fn restore(
        &self,
        roots: &[usize],
        batches: &[RecordBatch],
    ) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let held = self.metadata.schema().fields();
        let fields: Result<Vec<_>> = roots.iter().map(|&r| restored_field(&held[r])).collect();
        let schema = Arc::new(Schema::new(fields?));
        let mut order = roots.to_vec();
        order.sort_unstable();
        let index_of = |root| order.binary_search(root).expect("it was asked for");
        let restore = |batch: &RecordBatch| {
            let column = |root| restored(batch.column(index_of(root)), &held[*root]);
            let columns: Result<Vec<ArrayRef>> = roots.iter().map(column).collect();
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            RecordBatch::try_new_with_options(schema.clone(), columns?, &options)
                .map_err(|_| bad(&self.file_id, "one of its columns"))
        };
        let batches: Result<Vec<_>> = batches.iter().map(restore).collect();
        Ok((schema.clone(), batches?))
    }

    fn groups(&self, groups: Option<&[usize]>) -> Result<Vec<usize>> {
        let Some(groups) = groups else {
            return Ok((0..self.rows.len()).collect());
        };
        if groups.iter().any(|&g| g >= self.rows.len()) || !groups.is_sorted_by(|a, b| a < b) {
            let text = "row groups are given in order, each once, as the file has them";
            return Err(Error::value(text));
        }
        Ok(groups.to_vec())
    }

    /// Indexes in the file's schema, in the order requested.
    fn roots(&self, columns: &[u32]) -> Vec<usize> {
        let mut out = Vec::with_capacity(columns.len());
        for id in columns {
            let index = self.columns.iter().position(|c| c == id);
            out.extend(index.filter(|p| !out.contains(p)));
        }
        out
    }

    fn chunks(&self, roots: &[usize], groups: &[usize]) -> Vec<Range<u64>> {
        let schema = self.metadata.parquet_schema();
        let leaves: Vec<usize> = (0..schema.num_columns())
            .filter(|&leaf| roots.contains(&schema.get_column_root_idx(leaf)))
            .collect();
        let metadata = self.metadata.metadata();
        let chunk = |group: usize, leaf: usize| {
            let (start, length) = metadata.row_group(group).column(leaf).byte_range();
            start..start + length
        };
        let of_group = |&group: &usize| leaves.iter().map(move |&leaf| chunk(group, leaf));
        groups.iter().flat_map(of_group).collect()
    }
}

/// Pieces of a file.
struct Parts(Vec<(u64, Bytes)>);

impl Parts {
    fn new<B: AsRef<[u8]> + Send + 'static>(parts: Vec<(u64, B)>) -> Self {
        let parts = parts.into_iter();
        let mut parts: Vec<_> = parts.map(|(at, b)| (at, Bytes::from_owner(b))).collect();
        parts.sort_unstable_by_key(|(at, _)| *at);
        Self(parts)
    }

    fn get(&self, range: &Range<u64>) -> Result<Bytes> {
        let missing = || Error::value("bytes of a data file that ranges() asked for are missing");
        let after = self.0.partition_point(|(at, _)| *at <= range.start);
        let (at, bytes) = self.0[..after].last().ok_or_else(missing)?;
        let from = usize::try_from(range.start - at).map_err(|_| missing())?;
        let length = usize::try_from(range.end - range.start).map_err(|_| missing())?;
        let to = from.checked_add(length).filter(|to| *to <= bytes.len());
        Ok(bytes.slice(from..to.ok_or_else(missing)?))
    }
}

impl fmt::Debug for SealedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealedFile(redacted)")
    }
}

impl fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpenFile(redacted)")
    }
}
