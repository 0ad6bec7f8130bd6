//! From an Arrow array to bytes.

use super::{class_of, unsupported, Class, STEP};
use crate::error::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, BinaryViewArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;

/// An array prepared for encoding any of its rows.
pub(crate) struct Encoder {
    class: Class,
    nulls: Option<NullBuffer>,
    kind: Kind,
}

enum Offsets {
    Small(OffsetBuffer<i32>),
    Large(OffsetBuffer<i64>),
}

impl Offsets {
    fn range(&self, row: usize) -> std::ops::Range<usize> {
        match self {
            Self::Small(o) => o[row] as usize..o[row + 1] as usize,
            Self::Large(o) => o[row] as usize..o[row + 1] as usize,
        }
    }
}

enum Kind {
    Null,
    Bool(BooleanBuffer),
    Fixed {
        width: usize,
        bytes: Buffer,
    },
    Bytes {
        offsets: Offsets,
        bytes: Buffer,
    },
    View(BinaryViewArray),
    List {
        offsets: Offsets,
        child: Box<Encoder>,
    },
    FixedList {
        size: usize,
        child: Box<Encoder>,
    },
    Struct(Vec<Encoder>),
    Union {
        ids: ScalarBuffer<i8>,
        offsets: Option<ScalarBuffer<i32>>,
        children: Vec<(i8, Encoder)>,
    },
    Dictionary {
        keys: Vec<usize>,
        child: Box<Encoder>,
    },
}

impl Encoder {
    /// Prepares an array.
    ///
    /// # Errors
    /// [`Error::Value`] for a type that cannot be sealed. The caller has bounded its depth with
    /// [`super::plain_type`].
    pub(crate) fn new(array: &ArrayRef) -> Result<Self> {
        use DataType as T;
        let data_type = array.data_type();
        let kind = match data_type {
            T::Null => Kind::Null,
            T::Boolean => Kind::Bool(array.as_boolean().values().clone()),
            T::Utf8 => small(array.as_string::<i32>()),
            T::Binary => small(array.as_binary::<i32>()),
            T::LargeUtf8 => large(array.as_string::<i64>()),
            T::LargeBinary => large(array.as_binary::<i64>()),
            T::BinaryView => Kind::View(array.as_binary_view().clone()),
            T::Utf8View => Kind::View(array.as_string_view().clone().to_binary_view()),
            T::List(_) => {
                let list = array.as_list::<i32>();
                list_kind(Offsets::Small(list.offsets().clone()), list.values())?
            }
            T::LargeList(_) => {
                let list = array.as_list::<i64>();
                list_kind(Offsets::Large(list.offsets().clone()), list.values())?
            }
            T::Map(_, _) => {
                let map = array.as_map();
                let entries: ArrayRef = std::sync::Arc::new(map.entries().clone());
                list_kind(Offsets::Small(map.offsets().clone()), &entries)?
            }
            T::FixedSizeList(_, size) => Kind::FixedList {
                size: usize::try_from(*size).map_err(|_| unsupported(data_type))?,
                child: Box::new(Self::new(array.as_fixed_size_list().values())?),
            },
            T::Struct(_) => {
                let columns = array.as_struct().columns();
                Kind::Struct(columns.iter().map(Self::new).collect::<Result<_>>()?)
            }
            T::Union(_, _) => union_kind(array)?,
            T::Dictionary(_, _) => {
                let dictionary = array.as_any_dictionary();
                Kind::Dictionary {
                    keys: dictionary.normalized_keys(),
                    child: Box::new(Self::new(dictionary.values())?),
                }
            }
            _ => fixed_kind(array)?,
        };
        Ok(Self {
            class: class_of(data_type)?,
            nulls: array.nulls().cloned(),
            kind,
        })
    }

    /// Appends the stored form of one row: an element, padded if its type has no fixed length.
    pub(crate) fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        self.element(row, out)?;
        if !matches!(self.class, Class::Null | Class::Bool | Class::Fixed) {
            out.resize(start + (out.len() - start).next_multiple_of(STEP), 0);
        }
        Ok(())
    }

    fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|n| n.is_null(row)) || matches!(self.kind, Kind::Null)
    }

    /// Appends the element of one row.
    pub(crate) fn element(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let null = self.is_null(row);
        match &self.kind {
            Kind::Null => out.push(self.class.flag(true)),
            Kind::Bool(bits) => {
                out.push(self.class.flag(null));
                out.push(u8::from(!null && bits.value(row)));
            }
            Kind::Fixed { width, bytes } => {
                out.push(self.class.flag(null));
                if null {
                    out.resize(out.len() + width, 0);
                } else {
                    out.extend_from_slice(&bytes[row * width..][..*width]);
                }
            }
            Kind::Dictionary { keys, child } => {
                if null {
                    return child.null_element(out);
                }
                return child.element(keys[row], out);
            }
            _ if null => return self.null_element(out),
            _ => {
                out.push(self.class.flag(false));
                let at = out.len();
                out.extend_from_slice(&[0; 4]);
                self.body(row, out)?;
                let length = u32::try_from(out.len() - at - 4)
                    .map_err(|_| Error::value("a value has more than 4 GiB"))?;
                out[at..at + 4].copy_from_slice(&length.to_le_bytes());
            }
        }
        Ok(())
    }

    /// The element of a NULL.
    fn null_element(&self, out: &mut Vec<u8>) -> Result<()> {
        let zeros = match &self.kind {
            Kind::Null => 0,
            Kind::Bool(_) => 1,
            Kind::Fixed { width, .. } => *width,
            Kind::Dictionary { child, .. } => return child.null_element(out),
            _ => 4,
        };
        out.push(self.class.flag(true));
        out.resize(out.len() + zeros, 0);
        Ok(())
    }

    /// What follows the length of an element without fixed length.
    fn body(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        match &self.kind {
            Kind::Bytes { offsets, bytes } => out.extend_from_slice(&bytes[offsets.range(row)]),
            Kind::View(array) => out.extend_from_slice(array.value(row)),
            Kind::List { offsets, child } => elements(child, offsets.range(row), out)?,
            Kind::FixedList { size, child } => elements(child, row * size..(row + 1) * size, out)?,
            Kind::Struct(children) => {
                for child in children {
                    child.element(row, out)?;
                }
            }
            Kind::Union {
                ids,
                offsets,
                children,
            } => {
                let id = ids[row];
                let at = offsets.as_ref().map_or(row, |o| o[row] as usize);
                let (_, child) = children
                    .iter()
                    .find(|(of, _)| *of == id)
                    .ok_or_else(|| Error::value("a union value of an unknown member"))?;
                out.push(id.cast_unsigned());
                child.element(at, out)?;
            }
            Kind::Null | Kind::Bool(_) | Kind::Fixed { .. } | Kind::Dictionary { .. } => {}
        }
        Ok(())
    }
}

fn elements(child: &Encoder, rows: std::ops::Range<usize>, out: &mut Vec<u8>) -> Result<()> {
    let count = u32::try_from(rows.len())
        .map_err(|_| Error::value("a list has more than 4,294,967,295 elements"))?;
    out.extend_from_slice(&count.to_le_bytes());
    rows.into_iter().try_for_each(|row| child.element(row, out))
}

fn small<T: ByteArrayType<Offset = i32>>(array: &arrow_array::GenericByteArray<T>) -> Kind {
    Kind::Bytes {
        offsets: Offsets::Small(array.offsets().clone()),
        bytes: array.values().clone(),
    }
}

fn large<T: ByteArrayType<Offset = i64>>(array: &arrow_array::GenericByteArray<T>) -> Kind {
    Kind::Bytes {
        offsets: Offsets::Large(array.offsets().clone()),
        bytes: array.values().clone(),
    }
}

fn list_kind(offsets: Offsets, values: &ArrayRef) -> Result<Kind> {
    let child = Box::new(Encoder::new(values)?);
    Ok(Kind::List { offsets, child })
}

fn union_kind(array: &ArrayRef) -> Result<Kind> {
    let union = array.as_union();
    let DataType::Union(fields, _) = array.data_type() else {
        return Err(unsupported(array.data_type()));
    };
    let children = fields
        .iter()
        .map(|(id, _)| Encoder::new(union.child(id)).map(|child| (id, child)));
    Ok(Kind::Union {
        ids: union.type_ids().clone(),
        offsets: union.offsets().cloned(),
        children: children.collect::<Result<_>>()?,
    })
}

fn fixed_kind(array: &ArrayRef) -> Result<Kind> {
    let width = super::width_of(array.data_type()).ok_or_else(|| unsupported(array.data_type()))?;
    let data = array.to_data();
    let buffer = data
        .buffers()
        .first()
        .ok_or_else(|| unsupported(array.data_type()))?;
    Ok(Kind::Fixed {
        width,
        bytes: buffer.slice_with_length(data.offset() * width, data.len() * width),
    })
}
