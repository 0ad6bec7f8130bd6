//! PostgreSQL's numeric: digits in base 10,000, as its binary form has them, and as text.

use crate::error::{Error, Result};
use std::ops::{Div, Rem};

const POSITIVE: u16 = 0x0000;
const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const INFINITE: u16 = 0xD000;
const MINUS_INFINITE: u16 = 0xF000;
const MOST_SCALE: u16 = 0x3FFF;

/// The text that PostgreSQL prints for a numeric of this binary form.
///
/// # Errors
/// [`Error::Protocol`] for bytes that are no numeric.
pub fn text(bytes: &[u8]) -> Result<String> {
    let words =
        words(bytes).ok_or_else(|| Error::Protocol("a numeric of odd length".to_owned()))?;
    let [count, weight, sign, scale, digits @ ..] = words.as_slice() else {
        return Err(Error::Protocol("a numeric without its head".to_owned()));
    };
    let weight = i32::from(*weight as i16);
    if usize::from(*count) != digits.len() || digits.iter().any(|digit| *digit > 9999) {
        return Err(Error::Protocol(
            "digits of a numeric that are none".to_owned(),
        ));
    }
    match *sign {
        NAN => return Ok("NaN".to_owned()),
        INFINITE => return Ok("Infinity".to_owned()),
        MINUS_INFINITE => return Ok("-Infinity".to_owned()),
        POSITIVE | NEGATIVE => {}
        _ => {
            return Err(Error::Protocol(
                "a numeric with a sign that is none".to_owned(),
            ))
        }
    }
    if *scale > MOST_SCALE {
        return Err(Error::Protocol(
            "a numeric with too large a scale".to_owned(),
        ));
    }
    let digit = |power: i32| -> u16 {
        usize::try_from(weight - power)
            .ok()
            .and_then(|index| digits.get(index))
            .map_or(0, |d| *d)
    };
    let mut text = String::new();
    if *sign == NEGATIVE {
        text.push('-');
    }
    let start = text.len();
    for power in (0..=weight.max(0)).rev() {
        if text.len() > start {
            text.push_str(&format!("{:04}", digit(power)));
        } else if digit(power) > 0 || power == 0 {
            text.push_str(&digit(power).to_string());
        }
    }
    if *scale > 0 {
        text.push('.');
        let end = text.len() + usize::from(*scale);
        for power in (1..).take_while(|power| 4 * (power - 1) < i32::from(*scale)) {
            text.push_str(&format!("{:04}", digit(-power)));
        }
        text.truncate(end);
    }
    Ok(text)
}

/// The binary form of `unscaled / 10^scale`.
pub(crate) fn bytes_of(unscaled: i128, scale: u8, out: &mut Vec<u8>) {
    let value = unscaled.unsigned_abs();
    // From the last digit on: 39 digits and what fills the last four up are eleven fours.
    let mut digits = [0_u16; MOST_FOURS];
    let filled = usize::from((4 - scale % 4) % 4);
    let count = match u64::try_from(value) {
        Ok(value) => fours(value, filled, &mut digits),
        Err(_) => fours(value, filled, &mut digits),
    };
    let digits = &digits[..count];
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    let digits = &digits[zeros..];
    // None of these overflows.
    let weight = if digits.is_empty() {
        0
    } else {
        count as i16 - i16::from(scale.div_ceil(4)) - 1
    };
    let sign = if unscaled < 0 { NEGATIVE } else { POSITIVE };
    let head = [digits.len() as u16, weight as u16, sign, u16::from(scale)];
    for word in head.iter().chain(digits.iter().rev()) {
        out.extend_from_slice(&word.to_be_bytes());
    }
}

const MOST_FOURS: usize = 11;
const TENS: [u16; 5] = [1, 10, 100, 1_000, 10_000];

/// The digits of a number in fours, the last ones first, where `filled` zeros follow it; how many
/// fours there are.
fn fours<T>(value: T, filled: usize, digits: &mut [u16; MOST_FOURS]) -> usize
where
    T: Copy + PartialOrd + From<u16> + Rem<Output = T> + Div<Output = T> + TryInto<u16>,
{
    // What is left of a division by at most 10,000 is below that.
    let rest = |value: T, by: T| (value % by).try_into().unwrap_or(0);
    let last = T::from(TENS[4 - filled]);
    digits[0] = rest(value, last) * TENS[filled];
    let (mut left, mut count) = (value / last, 1);
    while left > T::from(0) {
        digits[count] = rest(left, T::from(10_000));
        left = left / T::from(10_000);
        count += 1;
    }
    count
}

/// The binary form of a number as PostgreSQL prints it; None for a text that it does not print.
pub(crate) fn bytes_of_text(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let special = match text {
        "NaN" => Some(NAN),
        "Infinity" => Some(INFINITE),
        "-Infinity" => Some(MINUS_INFINITE),
        _ => None,
    };
    if let Some(sign) = special {
        for word in [0, 0, sign, 0] {
            out.extend_from_slice(&u16::to_be_bytes(word));
        }
        return Some(());
    }
    let (digits, sign) = match text.strip_prefix('-') {
        Some(rest) => (rest, NEGATIVE),
        None => (text, POSITIVE),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let scale = u16::try_from(fraction.len()).ok()?;
    if scale > MOST_SCALE {
        return None;
    }
    let mut padded = "0".repeat((4 - whole.len() % 4) % 4) + whole;
    let weight = i32::try_from(padded.len() / 4).ok()?;
    padded.push_str(fraction);
    padded.push_str(&"0".repeat((4 - fraction.len() % 4) % 4));
    let mut words: Vec<u16> = padded
        .as_bytes()
        .chunks(4)
        .map(|four| {
            four.iter()
                .fold(0, |sum, byte| sum * 10 + u16::from(byte - b'0'))
        })
        .collect();
    let leading = words.iter().take_while(|word| **word == 0).count();
    words.drain(..leading);
    while words.last() == Some(&0) {
        words.pop();
    }
    let (weight, sign) = if words.is_empty() {
        (0, POSITIVE)
    } else {
        (weight - i32::try_from(leading).ok()? - 1, sign)
    };
    let head = [
        u16::try_from(words.len()).ok()?,
        i16::try_from(weight).ok()?.cast_unsigned(),
        sign,
        scale,
    ];
    for word in head.iter().chain(&words) {
        out.extend_from_slice(&word.to_be_bytes());
    }
    Some(())
}

fn words(bytes: &[u8]) -> Option<Vec<u16>> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    rest.is_empty()
        .then(|| pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect())
}

#[cfg(test)]
mod tests {
    use super::{bytes_of, bytes_of_text, text};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(value in any::<i128>(), scale in 0_u8..38) {
            let mut bytes = Vec::new();
            bytes_of(value, scale, &mut bytes);
            let read = text(&bytes).unwrap();
            let (sign, digits) = (if value < 0 { "-" } else { "" }, read.trim_start_matches('-'));
            prop_assert_eq!(sign == "-", read.starts_with('-'));
            let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
            prop_assert_eq!(fraction.len(), usize::from(scale));
            let all: i128 = format!("{sign}{whole}{fraction}").parse().unwrap();
            prop_assert_eq!(all, value);
        }

        #[test]
        fn numbers_of_any_size_have_no_zeros_around(bits in 0_u32..128, value in any::<i128>(),
                                                    scale in 0_u8..=38) {
            let value = value >> bits;
            let (mut bytes, mut again) = (Vec::new(), Vec::new());
            bytes_of(value, scale, &mut bytes);
            let read = text(&bytes).unwrap();
            let digits = read.replace('.', "");
            prop_assert_eq!(digits.parse::<i128>().unwrap(), value);
            let words: Vec<u16> = bytes
                .chunks(2)
                .map(|two| u16::from_be_bytes([two[0], two[1]]))
                .collect();
            prop_assert_eq!(usize::from(words[0]), words.len() - 4);
            prop_assert_eq!(words[0] == 0, value == 0);
            for end in [words.get(4), words.get(4..).and_then(<[u16]>::last)] {
                prop_assert!(end.is_none_or(|digit| (1..10_000).contains(digit)));
            }
            bytes_of_text(&read, &mut again).unwrap();
            prop_assert_eq!(bytes, again);
        }

        #[test]
        fn a_text_is_written_as_its_number(value in any::<i128>(), scale in 0_u8..38) {
            let (mut bytes, mut again) = (Vec::new(), Vec::new());
            bytes_of(value, scale, &mut bytes);
            bytes_of_text(&text(&bytes).unwrap(), &mut again).unwrap();
            prop_assert_eq!(bytes, again);
        }

        #[test]
        fn no_text_panics(given in any::<String>()) {
            let _ = bytes_of_text(&given, &mut Vec::new());
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = text(&bytes);
        }
    }

    #[test]
    fn extremes() {
        let head = |words: &[u16]| {
            words
                .iter()
                .flat_map(|w| w.to_be_bytes())
                .collect::<Vec<u8>>()
        };
        assert_eq!(text(&head(&[0, 0, 0xC000, 0])).unwrap(), "NaN");
        assert_eq!(text(&head(&[0, 0, 0xF000, 0])).unwrap(), "-Infinity");
        for said in [
            "NaN",
            "Infinity",
            "-Infinity",
            "0",
            "0.00",
            "-0.5",
            "10000.0001",
        ] {
            let mut bytes = Vec::new();
            bytes_of_text(said, &mut bytes).unwrap();
            assert_eq!(text(&bytes).unwrap(), said);
        }
        for wrong in ["", "-", ".5", "1e5", "+1", "1.2.3", "inf"] {
            assert!(bytes_of_text(wrong, &mut Vec::new()).is_none());
        }
        assert_eq!(text(&head(&[1, 1, 0, 2, 12])).unwrap(), "120000.00");
        assert_eq!(
            text(&head(&[1, 0xFFFE, 0x4000, 8, 12])).unwrap(),
            "-0.00000012"
        );
        assert!(text(&head(&[2, 0, 0, 0, 1])).is_err());
        assert!(text(&head(&[1, 0, 0, 0, 10_000])).is_err());
    }
}
