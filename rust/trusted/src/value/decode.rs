//! From bytes to an Arrow array. Bounded by the bytes given; no bytes make it panic.

use super::{class_of, unsupported, width_of, Class};
use crate::error::{Error, Result};
use arrow_array::{make_array, Array, ArrayRef, BinaryViewArray, StringViewArray};
use arrow_buffer::{BooleanBufferBuilder, Buffer, MutableBuffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, UnionMode};
use std::sync::Arc;

/// The bytes are not an encoding of this type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

/// Bytes yet to be read.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> std::result::Result<&'a [u8], Damaged> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> std::result::Result<u8, Damaged> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self) -> std::result::Result<usize, Damaged> {
        let bytes = self.take(4)?.try_into().map_err(|_| Damaged)?;
        usize::try_from(u32::from_le_bytes(bytes)).map_err(|_| Damaged)
    }
}

/// Builds an array of one type, value by value.
pub(crate) struct Builder {
    data_type: DataType,
    class: Class,
    valid: BooleanBufferBuilder,
    kind: Kind,
}

enum Kind {
    Null,
    Bool(BooleanBufferBuilder),
    Fixed { width: usize, bytes: MutableBuffer },
    Bytes { ends: Vec<i64>, bytes: Vec<u8> },
    List { ends: Vec<i64>, child: Box<Builder> },
    FixedList { size: usize, child: Box<Builder> },
    Struct(Vec<Builder>),
    Union(Union),
}

struct Union {
    ids: Vec<i8>,
    /// Of a dense union: the offset of a row in its child.
    offsets: Option<Vec<i32>>,
    children: Vec<(i8, Builder)>,
}

impl Builder {
    /// A builder of a type without dictionaries, with room for `rows` values.
    pub(crate) fn new(data_type: &DataType, rows: usize) -> Result<Self> {
        use DataType as T;
        let child =
            |field: &arrow_schema::FieldRef, rows| Self::new(field.data_type(), rows).map(Box::new);
        let kind = match data_type {
            T::Null => Kind::Null,
            T::Boolean => Kind::Bool(BooleanBufferBuilder::new(rows)),
            T::Utf8 | T::LargeUtf8 | T::Utf8View | T::Binary | T::LargeBinary | T::BinaryView => {
                Kind::Bytes {
                    ends: offsets(rows),
                    bytes: Vec::new(),
                }
            }
            T::List(field) | T::LargeList(field) | T::Map(field, _) => Kind::List {
                ends: offsets(rows),
                child: child(field, 0)?,
            },
            T::FixedSizeList(field, size) => Kind::FixedList {
                size: usize::try_from(*size).map_err(|_| unsupported(data_type))?,
                child: child(field, 0)?,
            },
            T::Struct(fields) => {
                let children = fields.iter().map(|f| Self::new(f.data_type(), rows));
                Kind::Struct(children.collect::<Result<_>>()?)
            }
            T::Union(fields, mode) => {
                let children = fields
                    .iter()
                    .map(|(id, f)| Self::new(f.data_type(), 0).map(|b| (id, b)));
                Kind::Union(Union {
                    ids: Vec::with_capacity(rows),
                    offsets: (*mode == UnionMode::Dense).then(Vec::new),
                    children: children.collect::<Result<_>>()?,
                })
            }
            _ => {
                let width = width_of(data_type).ok_or_else(|| unsupported(data_type))?;
                let bytes = MutableBuffer::new(rows.saturating_mul(width));
                Kind::Fixed { width, bytes }
            }
        };
        Ok(Self {
            data_type: data_type.clone(),
            class: class_of(data_type)?,
            valid: BooleanBufferBuilder::new(rows),
            kind,
        })
    }

    /// Appends one stored value: an element and its padding, to the last byte.
    pub(crate) fn push(&mut self, stored: &[u8]) -> std::result::Result<(), Damaged> {
        let mut reader = Reader(stored);
        self.element(&mut reader)?;
        let padding = reader.0;
        if padding.len() >= super::STEP || padding.iter().any(|&b| b != 0) {
            return Err(Damaged);
        }
        Ok(())
    }

    /// Appends one element, to the last byte.
    pub(crate) fn push_element(&mut self, bytes: &[u8]) -> std::result::Result<(), Damaged> {
        let mut reader = Reader(bytes);
        self.element(&mut reader)?;
        reader.0.is_empty().then_some(()).ok_or(Damaged)
    }

    fn element(&mut self, from: &mut Reader<'_>) -> std::result::Result<(), Damaged> {
        let flag = from.byte()?;
        let null = flag & 1 == 1;
        if flag >> 1 != self.class as u8 {
            return Err(Damaged);
        }
        let body = match &self.kind {
            Kind::Null => from.take(0)?,
            Kind::Bool(_) => from.take(1)?,
            Kind::Fixed { width, .. } => from.take(*width)?,
            _ => {
                let length = from.number()?;
                from.take(length)?
            }
        };
        if null {
            self.push_null();
            return if body.iter().any(|&b| b != 0) {
                Err(Damaged)
            } else {
                Ok(())
            };
        }
        let mut reader = Reader(body);
        self.body(&mut reader)?;
        self.valid.append(true);
        if reader.0.is_empty() {
            Ok(())
        } else {
            Err(Damaged)
        }
    }

    fn body(&mut self, from: &mut Reader<'_>) -> std::result::Result<(), Damaged> {
        match &mut self.kind {
            // A value of type NULL is always NULL.
            Kind::Null => return Err(Damaged),
            Kind::Bool(bits) => match from.byte()? {
                bit @ 0..=1 => bits.append(bit == 1),
                _ => return Err(Damaged),
            },
            Kind::Fixed { width, bytes } => bytes.extend_from_slice(from.take(*width)?),
            Kind::Bytes { ends, bytes } => {
                bytes.extend_from_slice(from.take(from.0.len())?);
                ends.push(length(bytes.len()));
            }
            Kind::List { ends, child } => {
                let count = from.number()?;
                // Every element takes a byte at least, so this ends with the bytes.
                for _ in 0..count {
                    child.element(from)?;
                }
                ends.push(length(child.valid.len()));
            }
            Kind::FixedList { size, child } => {
                if from.number()? != *size {
                    return Err(Damaged);
                }
                for _ in 0..*size {
                    child.element(from)?;
                }
            }
            Kind::Struct(children) => {
                for child in children {
                    child.element(from)?;
                }
            }
            Kind::Union(union) => union.push(from)?,
        }
        Ok(())
    }

    /// Appends a NULL.
    pub(crate) fn push_null(&mut self) {
        self.valid.append(false);
        match &mut self.kind {
            Kind::Null => {}
            Kind::Bool(bits) => bits.append(false),
            Kind::Fixed { width, bytes } => bytes.extend_zeros(*width),
            Kind::Bytes { ends, .. } | Kind::List { ends, .. } => {
                ends.push(ends.last().copied().unwrap_or(0));
            }
            Kind::FixedList { size, child } => (0..*size).for_each(|_| child.push_null()),
            Kind::Struct(children) => children.iter_mut().for_each(Self::push_null),
            Kind::Union(union) => union.push_null(),
        }
    }

    /// The array.
    ///
    /// # Errors
    /// [`Error::Verify`] where text is not UTF-8, [`Error::Value`] where offsets do not fit.
    pub(crate) fn finish(mut self) -> Result<ArrayRef> {
        let rows = self.valid.len();
        let nulls = NullBuffer::new(self.valid.finish());
        let nulls = (nulls.null_count() > 0).then_some(nulls);
        let (data_type, view) = unview(&self.data_type);
        let mut data = ArrayData::builder(data_type).len(rows);
        if !matches!(self.kind, Kind::Null | Kind::Union(_)) {
            data = data.nulls(nulls);
        }
        data = match self.kind {
            Kind::Null => data,
            Kind::Bool(mut bits) => data.add_buffer(bits.finish().into_inner()),
            Kind::Fixed { bytes, .. } => data.add_buffer(bytes.into()),
            Kind::Bytes { ends, bytes } => data
                .add_buffer(offset_buffer(&self.data_type, ends)?)
                .add_buffer(Buffer::from_vec(bytes)),
            Kind::List { ends, child } => data
                .add_buffer(offset_buffer(&self.data_type, ends)?)
                .add_child_data(child.finish()?.to_data()),
            Kind::FixedList { child, .. } => data.add_child_data(child.finish()?.to_data()),
            Kind::Struct(children) => {
                for child in children {
                    data = data.add_child_data(child.finish()?.to_data());
                }
                data
            }
            Kind::Union(union) => union.finish(data)?,
        };
        let data = data
            .build()
            .map_err(|_| Error::verify("a sealed value is not of the column's type"))?;
        let array = make_array(data);
        Ok(if view { to_view(&array) } else { array })
    }
}

impl Union {
    fn push(&mut self, from: &mut Reader<'_>) -> std::result::Result<(), Damaged> {
        let id = from.byte()?.cast_signed();
        let known = self.children.iter().position(|(of, _)| *of == id);
        let which = known.ok_or(Damaged)?;
        self.start(which);
        self.children[which].1.element(from)
    }

    fn push_null(&mut self) {
        if self.children.is_empty() {
            self.ids.push(0);
            return;
        }
        self.start(0);
        self.children[0].1.push_null();
    }

    /// Notes a row of member `which`; its value is pushed next.
    fn start(&mut self, which: usize) {
        self.ids.push(self.children[which].0);
        if let Some(offsets) = &mut self.offsets {
            let at = self.children[which].1.valid.len();
            offsets.push(i32::try_from(at).unwrap_or(i32::MAX));
        } else {
            let others = self.children.iter_mut().enumerate();
            others
                .filter(|(i, _)| *i != which)
                .for_each(|(_, (_, b))| b.push_null());
        }
    }

    fn finish(self, data: arrow_data::ArrayDataBuilder) -> Result<arrow_data::ArrayDataBuilder> {
        let mut data = data.add_buffer(Buffer::from_vec(self.ids));
        if let Some(offsets) = self.offsets {
            data = data.add_buffer(Buffer::from_vec(offsets));
        }
        for (_, child) in self.children {
            data = data.add_child_data(child.finish()?.to_data());
        }
        Ok(data)
    }
}

fn offsets(rows: usize) -> Vec<i64> {
    let mut ends = Vec::with_capacity(rows + 1);
    ends.push(0);
    ends
}

fn length(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// The offsets in the width that the type has.
fn offset_buffer(data_type: &DataType, ends: Vec<i64>) -> Result<Buffer> {
    use DataType as T;
    if matches!(data_type, T::LargeUtf8 | T::LargeBinary | T::LargeList(_)) {
        return Ok(Buffer::from_vec(ends));
    }
    let narrow = ends.into_iter().map(i32::try_from);
    let narrow: std::result::Result<Vec<i32>, _> = narrow.collect();
    narrow
        .map(Buffer::from_vec)
        .map_err(|_| Error::value("more than 2 GiB of values at once: open fewer rows at a time"))
}

fn unview(data_type: &DataType) -> (DataType, bool) {
    match data_type {
        DataType::Utf8View => (DataType::Utf8, true),
        DataType::BinaryView => (DataType::Binary, true),
        other => (other.clone(), false),
    }
}

fn to_view(array: &ArrayRef) -> ArrayRef {
    use arrow_array::cast::AsArray;
    match array.data_type() {
        DataType::Utf8 => Arc::new(StringViewArray::from(array.as_string::<i32>())),
        _ => Arc::new(BinaryViewArray::from(array.as_binary::<i32>())),
    }
}
