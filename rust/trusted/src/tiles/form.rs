//! The form of a column's tiles: what the catalog says of them.

use crate::error::{Error, Result};
use crate::value::{class_of, plain_type, width_of, Class};
use arrow_schema::DataType;
use sha2::{Digest, Sha256};

/// Most bytes of a unit, and of the values of a tile.
const MOST: u32 = 1 << 30;

/// How the tiles of a column are sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileForm {
    /// Numbers of a fixed width: `base` and what is above it, in so many bits. All tiles of the
    /// column have one length.
    Packed {
        /// The least value.
        base: i128,
        /// 0 to the width of the type; 0 says that all values are the base.
        bits: u32,
        /// Whether there can be NULLs.
        nulls: bool,
    },
    /// Byte strings, in a whole number of units.
    Units {
        /// Bytes that the plaintext of a tile is a multiple of.
        unit: u32,
        /// Most bytes that the values of a tile take.
        limit: u32,
    },
}

/// A form that fits its type.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    pub(crate) form: TileForm,
    pub(crate) data_type: DataType,
    pub(crate) class: Class,
    /// Bytes of a value, if the type has as many.
    pub(crate) width: Option<usize>,
    /// Tells a tile of another form or type.
    pub(crate) check: [u8; 4],
}

impl TileForm {
    /// That of numbers from `low` to `high`.
    ///
    /// # Errors
    /// [`Error::Value`] if `low` is above `high`.
    pub fn of_bounds(low: i128, high: i128, nulls: bool) -> Result<Self> {
        if low > high {
            return Err(Error::value("the lower bound is above the upper one"));
        }
        let span = high.wrapping_sub(low).cast_unsigned();
        Ok(Self::Packed {
            base: low,
            bits: u128::BITS - span.leading_zeros(),
            nulls,
        })
    }

    /// The form and the plain type that it is of.
    pub(crate) fn checked(self, data_type: &DataType) -> Result<Checked> {
        let data_type = plain_type(data_type)?;
        let (class, width) = (class_of(&data_type)?, width_of(&data_type));
        // A decimal of whatever precision: one of few digits may be opened in fewer bytes.
        let width_bytes = match data_type {
            DataType::Decimal32(..) | DataType::Decimal64(..) => 16,
            _ => width.unwrap_or(0) as u32,
        };
        let mut text = vec![class as u8];
        text.extend_from_slice(&width_bytes.to_le_bytes());
        match self {
            Self::Packed { base, bits, nulls } => {
                check_packed(&data_type, class, width, base, bits)?;
                text.extend_from_slice(&[1, bits as u8, u8::from(nulls)]);
                text.extend_from_slice(&base.to_le_bytes());
            }
            Self::Units { unit, limit } => {
                if !(1..=MOST).contains(&unit) || limit > MOST {
                    return Err(Error::value(
                        "a unit has 1 byte to 1 GiB, the values of a tile at most 1 GiB",
                    ));
                }
                text.push(2);
            }
        }
        let digest = Sha256::digest(&text);
        Ok(Checked {
            form: self,
            data_type,
            class,
            width,
            check: [digest[0], digest[1], digest[2], digest[3]],
        })
    }
}

fn check_packed(
    data_type: &DataType,
    class: Class,
    width: Option<usize>,
    base: i128,
    bits: u32,
) -> Result<()> {
    let most = match (class, width) {
        (Class::Bool, _) => 1,
        (Class::Fixed, Some(width @ (1 | 2 | 4 | 8 | 16))) => 8 * width as u32,
        _ => {
            let text = "is not packed: its tiles have a unit";
            return Err(Error::value(format!("Arrow type {data_type} {text}")));
        }
    };
    let room = most == i128::BITS || (base >= -(1 << (most - 1)) && base < 1 << most);
    let room = room && (class != Class::Bool || base >= 0 && base + i128::from(bits) <= 1);
    if bits > most || !room {
        let text = format!("base or width is not one of Arrow type {data_type}");
        return Err(Error::value(text));
    }
    Ok(())
}
