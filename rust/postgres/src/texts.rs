//! Values as PostgreSQL itself prints them, read. None of any other spelling, and of what is beyond
//! the limits named here: such values PostgreSQL reads.

use std::ops::RangeInclusive;

/// The days of the years 1 to 9999 since 1970, which Python has as well.
pub const DAYS: RangeInclusive<i128> = -719_162..=2_932_896;
/// The microseconds of a day.
pub const DAY_US: i128 = 86_400_000_000;
/// Digits of decimals that are read here.
const MOST_DIGITS: usize = 36;
/// As many digits are within 64 bits.
const MOST_DIGITS_OF_WHOLE: usize = 19;

/// A whole number: `-?digits`.
#[must_use]
pub fn whole(bytes: &[u8]) -> Option<i64> {
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    ((1..=MOST_DIGITS_OF_WHOLE).contains(&digits.len()) && is_digits(digits)).then_some(())?;
    let value = digits
        .iter()
        .fold(0_u64, |value, digit| value * 10 + u64::from(digit - b'0'));
    if digits.len() < bytes.len() {
        0_i64.checked_sub_unsigned(value)
    } else {
        i64::try_from(value).ok()
    }
}

/// Whether there are ASCII digits alone.
#[must_use]
pub fn is_digits(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_digit)
}

/// Pairs of hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> Option<Vec<u8>> {
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = bytes.chunks_exact(2);
    pairs
        .map(|pair| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8))
        .collect()
}

/// A UUID with its four hyphens.
#[must_use]
pub fn uuid(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.len() != 36 || [8, 13, 18, 23].iter().any(|&at| bytes[at] != b'-') {
        return None;
    }
    let digits: Vec<u8> = bytes.iter().copied().filter(|&byte| byte != b'-').collect();
    hex(&digits).filter(|value| value.len() == 16)
}

/// A number without anything but digits, a sign, a point and an exponent.
#[must_use]
pub fn double(bytes: &[u8]) -> Option<f64> {
    let value: f64 = number_text(bytes)?.parse().ok()?;
    // What is too large or too small for a double is an error to PostgreSQL.
    (value.is_normal() || value.to_bits() == 0).then_some(value)
}

/// The same of half the width.
#[must_use]
pub fn single(bytes: &[u8]) -> Option<f32> {
    let value: f32 = number_text(bytes)?.parse().ok()?;
    (value.is_normal() || value.to_bits() == 0).then_some(value)
}

fn number_text(bytes: &[u8]) -> Option<&str> {
    let known = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    (bytes.len() <= 32 && bytes.iter().all(known)).then_some(())?;
    std::str::from_utf8(bytes).ok()
}

/// `-?digits[.digits]` with at most so many digits behind the point, without that.
#[must_use]
pub fn decimal(bytes: &[u8], scale: u8) -> Option<i128> {
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let point = digits.iter().position(|&byte| byte == b'.');
    let (whole, fraction) = match point {
        Some(at) => (&digits[..at], &digits[at + 1..]),
        None => (digits, &[][..]),
    };
    let scale = usize::from(scale);
    let fine = !whole.is_empty()
        && (point.is_none() || !fraction.is_empty())
        && fraction.len() <= scale
        && whole.len() + scale <= MOST_DIGITS
        && is_digits(whole)
        && is_digits(fraction);
    fine.then_some(())?;
    let filled = std::iter::repeat_n(&b'0', scale - fraction.len());
    let mut value = 0_i128;
    for digit in whole.iter().chain(fraction).chain(filled) {
        value = value * 10 + i128::from(digit - b'0');
    }
    Some(if digits.len() < bytes.len() {
        -value
    } else {
        value
    })
}

/// `YYYY-MM-DD`, in days since 1970.
#[must_use]
pub fn day(bytes: &[u8]) -> Option<i128> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = *bytes else {
        return None;
    };
    let year = number(&[y1, y2, y3, y4])?;
    let (month, day) = (number(&[m1, m2])?, number(&[d1, d2])?);
    (year >= 1 && (1..=12).contains(&month)).then_some(())?;
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let last = match month {
        2 => 28 + i128::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    (1..=last).contains(&day).then_some(())?;
    // Years begin in March, so that the day of a leap year is the last one.
    let (shifted, at) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let of_year = (153 * at + 2) / 5 + day - 1;
    Some(shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + of_year - 719_468)
}

/// `YYYY-MM-DD HH:MM:SS[.ffffff]`, in microseconds since 1970.
#[must_use]
pub fn moment(bytes: &[u8]) -> Option<i128> {
    let (date, time) = bytes.split_at_checked(10)?;
    let [b' ' | b'T', h1, h2, b':', m1, m2, b':', s1, s2, fraction @ ..] = time else {
        return None;
    };
    let (hour, minute) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?);
    let second = number(&[*s1, *s2])?;
    (hour < 24 && minute < 60 && second < 60).then_some(())?;
    let micros = match fraction {
        [] => 0,
        [b'.', digits @ ..] if (1..=6).contains(&digits.len()) => {
            number(digits)? * 10_i128.pow(6 - digits.len() as u32)
        }
        _ => return None,
    };
    let seconds = (hour * 60 + minute) * 60 + second;
    Some(day(date)? * DAY_US + seconds * 1_000_000 + micros)
}

/// The same with a zone, `+HH` or `-HH` with or without `:MM`, as it is in Greenwich.
#[must_use]
pub fn zoned(bytes: &[u8]) -> Option<i128> {
    let at = bytes.iter().rposition(|byte| b"+-".contains(byte))?;
    // Before it are a day and a time, or the sign is one of the day's hyphens.
    let (local, zone) = bytes.split_at_checked(at.max(19))?;
    let (sign, hours, minutes) = match *zone {
        [sign, h1, h2] => (sign, number(&[h1, h2])?, 0),
        [sign, h1, h2, b':', m1, m2] => (sign, number(&[h1, h2])?, number(&[m1, m2])?),
        _ => return None,
    };
    (hours < 15 && minutes < 60).then_some(())?;
    let offset = (hours * 60 + minutes) * 60_000_000;
    let us = moment(local)?;
    let us = if sign == b'+' {
        us - offset
    } else {
        us + offset
    };
    DAYS.contains(&us.div_euclid(DAY_US)).then_some(us)
}

fn number(digits: &[u8]) -> Option<i128> {
    is_digits(digits).then_some(())?;
    let value = digits.iter();
    Some(value.fold(0, |value, digit| value * 10 + i128::from(digit - b'0')))
}
