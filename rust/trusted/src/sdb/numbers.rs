//! Arrow columns of whole numbers, and the signed numbers that they hold.

use crate::error::{Error, Result};
use arrow_array::{make_array, Array, ArrayRef};
use arrow_buffer::{MutableBuffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field};
use num_bigint::{BigInt, Sign};
use num_traits::ToPrimitive;
use std::cmp::Ordering;

/// A signed number of up to 128 bits and a sign: HUGEINT and UHUGEINT both fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Number {
    /// Never set for 0.
    pub(crate) negative: bool,
    pub(crate) magnitude: u128,
}

impl Number {
    pub(crate) fn new(negative: bool, magnitude: u128) -> Self {
        let negative = negative && magnitude != 0;
        Self {
            negative,
            magnitude,
        }
    }

    /// The nearest number to one that may be larger than we can hold (for bounds).
    pub(crate) fn saturating(value: &BigInt) -> Self {
        let magnitude = value.magnitude().to_u128().unwrap_or(u128::MAX);
        Self::new(value.sign() == Sign::Minus, magnitude)
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.magnitude.cmp(&other.magnitude),
            (true, true) => other.magnitude.cmp(&self.magnitude),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

/// How an Arrow type lays out its whole numbers: little endian, so many bytes, signed or not.
#[derive(Clone, Debug)]
pub struct NumberType {
    data_type: DataType,
    width: usize,
    signed: bool,
}

impl NumberType {
    /// The layout of a field's type. Sixteen-byte strings are DuckDB's HUGEINT, or UHUGEINT where
    /// the field's extension metadata says so.
    ///
    /// # Errors
    /// [`Error::Value`] for a type whose values are not integers.
    pub fn new(field: &Field) -> Result<Self> {
        use DataType as T;
        let data_type = field.data_type().clone();
        let unsigned = || {
            let metadata = field.metadata().get("ARROW:extension:metadata");
            metadata.is_some_and(|text| text.contains("\"uhugeint\""))
        };
        let uuid = || {
            let name = field.metadata().get("ARROW:extension:name");
            name.is_some_and(|name| name == "arrow.uuid")
        };
        let (width, signed) = match &data_type {
            T::Int8 => (1, true),
            T::Int16 => (2, true),
            T::Int32 | T::Date32 | T::Time32(_) | T::Decimal32(_, _) => (4, true),
            T::Int64 | T::Date64 | T::Time64(_) | T::Timestamp(_, _) => (8, true),
            T::Duration(_) | T::Decimal64(_, _) => (8, true),
            T::UInt8 => (1, false),
            T::UInt16 => (2, false),
            T::UInt32 => (4, false),
            T::UInt64 => (8, false),
            T::Decimal128(_, _) => (16, true),
            T::FixedSizeBinary(16) if !uuid() => (16, !unsigned()),
            other => {
                let text = format!("values of Arrow type {other} are no whole numbers");
                return Err(Error::value(text));
            }
        };
        Ok(Self {
            data_type,
            width,
            signed,
        })
    }

    /// The rows that are not NULL, and their numbers.
    pub(crate) fn read(&self, array: &ArrayRef) -> (Vec<usize>, Vec<Number>) {
        let data = array.to_data();
        let bytes = &data.buffers()[0].as_slice()[data.offset() * self.width..];
        let values = bytes.chunks_exact(self.width).take(data.len());
        let live = values.enumerate().filter(|(row, _)| array.is_valid(*row));
        live.map(|(row, bytes)| (row, self.number(bytes))).unzip()
    }

    fn number(&self, bytes: &[u8]) -> Number {
        let negative = self.signed && bytes[self.width - 1] & 0x80 != 0;
        let mut wide = [if negative { 0xff } else { 0 }; 16];
        wide[..self.width].copy_from_slice(bytes);
        let wide = u128::from_le_bytes(wide);
        Number::new(negative, if negative { wide.wrapping_neg() } else { wide })
    }

    /// The least and the greatest number of the type.
    pub(crate) fn range(&self) -> (Number, Number) {
        let bits = self.width as u32 * 8;
        if self.signed {
            let half = 1u128 << (bits - 1);
            (Number::new(true, half), Number::new(false, half - 1))
        } else {
            let most = u128::MAX >> (128 - bits);
            (Number::new(false, 0), Number::new(false, most))
        }
    }

    /// An array of `rows` rows; `numbers[i]` (within [`NumberType::range`]) goes to row `live[i]`,
    /// the others are NULL.
    pub(crate) fn write(
        &self,
        rows: usize,
        live: &[usize],
        numbers: &[Number],
    ) -> Result<ArrayRef> {
        let mut bytes = MutableBuffer::from_len_zeroed(rows * self.width);
        let out = bytes.as_slice_mut();
        let mut valid = vec![false; rows];
        for (&row, number) in live.iter().zip(numbers) {
            let wide = if number.negative {
                number.magnitude.wrapping_neg()
            } else {
                number.magnitude
            };
            out[row * self.width..][..self.width]
                .copy_from_slice(&wide.to_le_bytes()[..self.width]);
            valid[row] = true;
        }
        let nulls = NullBuffer::from(valid);
        let data = ArrayData::builder(self.data_type.clone())
            .len(rows)
            .add_buffer(bytes.into())
            .nulls((nulls.null_count() > 0).then_some(nulls))
            .build()
            .map_err(|e| Error::value(e.to_string()))?;
        Ok(make_array(data))
    }
}
