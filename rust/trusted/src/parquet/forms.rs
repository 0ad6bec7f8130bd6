//! Arrow types that Parquet has no form for, and the forms in which they are kept.
//!
//! An interval of months, days and nanoseconds is 16 bytes (little-endian, in that order); a sparse
//! union is a struct of its tag and its members. A field's metadata says which it was, and is
//! stored in the encrypted footer as the rest of the Arrow schema does.
//!
//! Dictionaries inside of other types come back as their values: DuckDB 1.5 overruns its memory on
//! them, which its own export of ENUM[2] and of ENUM[] with a NULL in it shows.

use crate::error::{Error, Result};
use arrow_array::builder::FixedSizeBinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, IntervalMonthDayNano, IntervalMonthDayNanoType};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, Int8Array, IntervalMonthDayNanoArray,
    MapArray, OffsetSizeTrait, StructArray, UnionArray,
};
use arrow_schema::{DataType, Field, FieldRef, Fields, IntervalUnit, UnionFields, UnionMode};
use arrow_select::take::take;
use std::sync::Arc;

/// The metadata key of what a field was.
const FORM: &str = "louver:form";
const INTERVAL: &str = "interval";
const UNION: &str = "union";
const TAG: &str = "tag";
const INTERVAL_BYTES: i32 = 16;

/// The field in whose form Parquet keeps a field.
///
/// # Errors
/// [`Error::Value`] for a type that has none.
pub(super) fn stored_field(field: &Field) -> Result<Field> {
    if field.metadata().contains_key(FORM) {
        return Err(Error::value("a field bears metadata that is Louver's own"));
    }
    let (data_type, form) = match field.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let form = INTERVAL.to_owned();
            (DataType::FixedSizeBinary(INTERVAL_BYTES), Some(form))
        }
        DataType::Union(members, UnionMode::Sparse) => {
            let tag = Field::new(TAG, DataType::Int8, false);
            let mut fields = vec![Arc::new(tag)];
            let mut form = UNION.to_owned();
            for (id, member) in members.iter() {
                form.push_str(&format!(":{id}"));
                fields.push(Arc::new(stored_field(member)?));
            }
            (DataType::Struct(fields.into()), Some(form))
        }
        DataType::Union(_, UnionMode::Dense) => {
            return Err(Error::value("unions are written from sparse unions only"));
        }
        other => (with_children(other, &stored_field)?, None),
    };
    let mut out = field.clone().with_data_type(data_type);
    if let Some(form) = form {
        out.metadata_mut().insert(FORM.to_owned(), form);
    }
    Ok(out)
}

/// The field that [`stored_field`] was given, but for dictionaries inside of it.
///
/// # Errors
/// [`Error::Verify`] for a form that no writer makes.
pub(super) fn restored_field(field: &FieldRef) -> Result<Field> {
    let data_type = match form(field)? {
        Form::Same => with_children(field.data_type(), &inner_field)?,
        Form::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
        Form::Union(members) => DataType::Union(members, UnionMode::Sparse),
    };
    let mut out = field.as_ref().clone().with_data_type(data_type);
    out.metadata_mut().remove(FORM);
    Ok(out)
}

/// The field of a child, restored.
fn inner_field(field: &Field) -> Result<Field> {
    let field = restored_field(&Arc::new(field.clone()))?;
    Ok(match field.data_type() {
        DataType::Dictionary(_, values) => {
            let values = values.as_ref().clone();
            field.with_data_type(values)
        }
        _ => field,
    })
}

/// A child array, restored.
fn inner(array: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    let array = restored(array, field)?;
    match array.as_any_dictionary_opt() {
        Some(words) => take(words.values(), words.keys(), None).map_err(misfit),
        None => Ok(array),
    }
}

enum Form {
    Same,
    Interval,
    /// With its members' types restored.
    Union(UnionFields),
}

fn form(field: &Field) -> Result<Form> {
    let Some(form) = field.metadata().get(FORM) else {
        return Ok(Form::Same);
    };
    let unknown = || Error::verify("a data file keeps a type in a form that is not known");
    match (form.split_once(':'), field.data_type()) {
        (None, DataType::FixedSizeBinary(INTERVAL_BYTES)) if form == INTERVAL => Ok(Form::Interval),
        (Some((UNION, ids)), DataType::Struct(fields)) => {
            let ids: Option<Vec<i8>> = ids.split(':').map(|id| id.parse().ok()).collect();
            let ids = ids.ok_or_else(unknown)?;
            let (tag, members) = fields.split_first().ok_or_else(unknown)?;
            if tag.data_type() != &DataType::Int8 {
                return Err(unknown());
            }
            let members: Result<Vec<Field>> = members.iter().map(|f| inner_field(f)).collect();
            let union = UnionFields::try_new(ids, members?).map_err(|_| unknown())?;
            Ok(Form::Union(union))
        }
        _ => Err(unknown()),
    }
}

/// A type whose fields went through `each`.
fn with_children(of: &DataType, each: &dyn Fn(&Field) -> Result<Field>) -> Result<DataType> {
    let converted = |field: &FieldRef| each(field).map(Arc::new);
    Ok(match of {
        DataType::List(item) => DataType::List(converted(item)?),
        DataType::LargeList(item) => DataType::LargeList(converted(item)?),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(converted(item)?, *size),
        DataType::Map(entries, sorted) => DataType::Map(converted(entries)?, *sorted),
        DataType::Struct(fields) => {
            let fields: Result<Vec<_>> = fields.iter().map(converted).collect();
            DataType::Struct(fields?.into())
        }
        other => other.clone(),
    })
}

/// An array in the form of its [`stored_field`].
pub(super) fn stored(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let values = array.as_primitive::<IntervalMonthDayNanoType>();
            let mut out = FixedSizeBinaryBuilder::with_capacity(values.len(), INTERVAL_BYTES);
            for value in values {
                match value {
                    Some(value) => out.append_value(bytes_of(value)).map_err(misfit)?,
                    None => out.append_null(),
                }
            }
            Ok(Arc::new(out.finish()))
        }
        DataType::Union(members, UnionMode::Sparse) => {
            let union = array.as_union();
            let mut fields = vec![Arc::new(Field::new(TAG, DataType::Int8, false))];
            let tags = Int8Array::new(union.type_ids().clone(), None);
            let mut columns: Vec<ArrayRef> = vec![Arc::new(tags)];
            for (id, member) in members.iter() {
                fields.push(Arc::new(stored_field(member)?));
                columns.push(stored(union.child(id))?);
            }
            let out = StructArray::try_new(fields.into(), columns, None).map_err(misfit)?;
            Ok(Arc::new(out))
        }
        _ => mapped(array, &|child, field| {
            Ok((stored(child)?, stored_field(field)?))
        }),
    }
}

/// The array that [`stored`] was given; `field` is the one that it has in the file.
pub(super) fn restored(array: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    match form(field)? {
        Form::Same => mapped(array, &|child, field| {
            Ok((inner(child, field)?, inner_field(field)?))
        }),
        Form::Interval => {
            let values = array.as_fixed_size_binary_opt().ok_or_else(unfit)?;
            let values = values.iter().map(|value| value.map(interval_of));
            Ok(Arc::new(values.collect::<IntervalMonthDayNanoArray>()))
        }
        Form::Union(members) => {
            let held = array.as_struct_opt().ok_or_else(unfit)?;
            let tags = held.column(0).as_primitive_opt::<Int8Type>();
            let tags = tags.ok_or_else(unfit)?.values();
            // Under a NULL of an outer struct there is no member id.
            let first = members.iter().next().map_or(0, |(id, _)| id);
            let known = |tag: i8| members.iter().any(|(id, _)| id == tag);
            let tags = tags
                .iter()
                .map(|&t| if known(t) { t } else { first })
                .collect();
            let children = held.columns()[1..].iter().zip(&held.fields()[1..]);
            let children: Result<Vec<_>> = children.map(|(c, f)| inner(c, f)).collect();
            let out = UnionArray::try_new(members, tags, None, children?);
            Ok(Arc::new(out.map_err(misfit)?))
        }
    }
}

/// What a child array and its field become.
type Each<'a> = &'a dyn Fn(&ArrayRef, &Field) -> Result<(ArrayRef, Field)>;

/// An array whose children went through `each`; itself where nothing in it changes.
fn mapped(array: &ArrayRef, each: Each<'_>) -> Result<ArrayRef> {
    if !touched(array.data_type()) {
        return Ok(array.clone());
    }
    Ok(match array.data_type() {
        DataType::List(item) => Arc::new(list(array.as_list::<i32>(), item, each)?),
        DataType::LargeList(item) => Arc::new(list(array.as_list::<i64>(), item, each)?),
        DataType::FixedSizeList(item, size) => {
            let held = array.as_fixed_size_list();
            let (values, item) = each(held.values(), item)?;
            let nulls = held.nulls().cloned();
            let out = FixedSizeListArray::try_new(Arc::new(item), *size, values, nulls);
            Arc::new(out.map_err(misfit)?)
        }
        DataType::Map(_, sorted) => {
            let held = array.as_map();
            let entries: ArrayRef = Arc::new(held.entries().clone());
            let entries = mapped(&entries, each)?;
            let DataType::Map(field, _) = array.data_type() else {
                return Err(unfit());
            };
            let field = field.as_ref().clone();
            let field = Arc::new(field.with_data_type(entries.data_type().clone()));
            let (offsets, nulls) = (held.offsets().clone(), held.nulls().cloned());
            let entries = entries.as_struct().clone();
            let out = MapArray::try_new(field, offsets, entries, nulls, *sorted);
            Arc::new(out.map_err(misfit)?)
        }
        DataType::Struct(fields) => {
            let held = array.as_struct();
            let pairs = held.columns().iter().zip(fields);
            let pairs: Result<Vec<_>> = pairs.map(|(c, f)| each(c, f)).collect();
            let (columns, fields): (Vec<_>, Vec<_>) = pairs?.into_iter().unzip();
            let out = StructArray::try_new(Fields::from(fields), columns, held.nulls().cloned());
            Arc::new(out.map_err(misfit)?)
        }
        _ => array.clone(),
    })
}

fn list<O: OffsetSizeTrait>(
    held: &GenericListArray<O>,
    item: &Field,
    each: Each<'_>,
) -> Result<GenericListArray<O>> {
    let (values, item) = each(held.values(), item)?;
    let (offsets, nulls) = (held.offsets().clone(), held.nulls().cloned());
    GenericListArray::try_new(Arc::new(item), offsets, values, nulls).map_err(misfit)
}

/// Whether anything in a type has, or is, a form.
fn touched(of: &DataType) -> bool {
    let field = |f: &FieldRef| {
        let dictionary = matches!(f.data_type(), DataType::Dictionary(..));
        dictionary || f.metadata().contains_key(FORM) || touched(f.data_type())
    };
    match of {
        DataType::Interval(IntervalUnit::MonthDayNano) | DataType::Union(..) => true,
        DataType::List(f) | DataType::LargeList(f) | DataType::Map(f, _) => field(f),
        DataType::FixedSizeList(f, _) => field(f),
        DataType::Struct(fields) => fields.iter().any(field),
        _ => false,
    }
}

fn bytes_of(value: IntervalMonthDayNano) -> [u8; INTERVAL_BYTES as usize] {
    let mut out = [0; INTERVAL_BYTES as usize];
    out[..4].copy_from_slice(&value.months.to_le_bytes());
    out[4..8].copy_from_slice(&value.days.to_le_bytes());
    out[8..].copy_from_slice(&value.nanoseconds.to_le_bytes());
    out
}

/// Of 16 bytes: the array's type says so.
fn interval_of(bytes: &[u8]) -> IntervalMonthDayNano {
    IntervalMonthDayNano {
        months: i32::from_le_bytes(bytes[..4].try_into().expect("16 bytes")),
        days: i32::from_le_bytes(bytes[4..8].try_into().expect("16 bytes")),
        nanoseconds: i64::from_le_bytes(bytes[8..].try_into().expect("16 bytes")),
    }
}

fn misfit(_: arrow_schema::ArrowError) -> Error {
    unfit()
}

fn unfit() -> Error {
    Error::value("a nested value does not have the shape of its type")
}
