//! Public numbers as residues: what a plain column is under its key `<1, 0>`.

use super::call::Call;
use crate::columns::binary;
use crate::error::{Error, Result};
use arrow_array::{new_null_array, Array, ArrayRef};
use arrow_schema::DataType;
use num_bigint::BigUint;

/// Digits of a number that is read; a HUGEINT has 39.
const DIGITS: usize = 80;

/// The residue of a decimal number in ASCII, its point left out: `-1.50` is n - 150.
///
/// # Errors
/// Text that is not a number, or no shorter than the modulus.
pub fn sdb_residue(text: &dyn Array, n: &dyn Array) -> Result<ArrayRef> {
    let Some(call) = Call::new(&[text], n)? else {
        return Ok(new_null_array(&DataType::Binary, n.len()));
    };
    let bytes = call.kernel.modulus().to_be_bytes();
    let modulus = BigUint::from_bytes_be(&bytes);
    let mut out = Vec::with_capacity(call.live.len() * bytes.len());
    for &row in &call.live {
        let value = residue(call.value(0, row), &modulus)
            .ok_or_else(|| Error::new(format!("row {row}: not a number below the modulus")))?;
        let digits = value.to_bytes_be();
        out.resize(out.len() + bytes.len() - digits.len(), 0);
        out.extend_from_slice(&digits);
    }
    Ok(binary(call.rows, &call.live, bytes.len(), out))
}

fn residue(text: &[u8], modulus: &BigUint) -> Option<BigUint> {
    let (negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        _ => (false, text),
    };
    if digits.len() > DIGITS {
        return None;
    }
    let digits: Vec<u8> = digits.iter().copied().filter(|&c| c != b'.').collect();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = BigUint::parse_bytes(&digits, 10)?;
    if &value >= modulus {
        return None;
    }
    Some(if negative && value != BigUint::ZERO {
        modulus - value
    } else {
        value
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_malformed_text() {
        let n = BigUint::from(1_000_003u32);
        let read = |text: &[u8]| residue(text, &n);
        assert_eq!(read(b"150"), Some(BigUint::from(150u32)));
        assert_eq!(read(b"-1.50"), Some(BigUint::from(1_000_003u32 - 150)));
        assert_eq!(read(b"-0"), Some(BigUint::ZERO));
        for wrong in [
            &b""[..],
            b"-",
            b"1e5",
            b"+5",
            b"1000003",
            b"\xff",
            &[b'1'; 81],
        ] {
            assert_eq!(read(wrong), None);
        }
    }
}
