//! Dates and time stamps of messages, as days and microseconds since 1970: those of the years that
//! Python has as well, written as ISO 8601 has them.

use std::ops::RangeInclusive;

/// Days and microseconds between 1970 and 2000, and the days of the years 1 to 9999, which Python
/// has as well.
const EPOCH_DAYS: i128 = 10_957;
const EPOCH_US: i128 = 946_684_800_000_000;
const DAYS: RangeInclusive<i128> = -719_162..=2_932_896;
const DAY_US: i128 = 86_400_000_000;
/// Hours between UTC and a time that are read here; PostgreSQL takes one more.
const MOST_HOURS: i128 = 14;

/// A date as it is sent in binary: days since 2000.
pub(crate) fn sent_day(days: i32) -> Option<i128> {
    let days = i128::from(days) + EPOCH_DAYS;
    DAYS.contains(&days).then_some(days)
}

/// A time stamp as it is sent in binary: microseconds since 2000.
pub(crate) fn sent_moment(us: i64) -> Option<i128> {
    known(i128::from(us) + EPOCH_US)
}

fn known(us: i128) -> Option<i128> {
    DAYS.contains(&us.div_euclid(DAY_US)).then_some(us)
}

/// `YYYY-MM-DD`, in days since 1970.
pub(crate) fn day(bytes: &[u8]) -> Option<i128> {
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
pub(crate) fn moment(bytes: &[u8]) -> Option<i128> {
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

/// The same with how far it is ahead of UTC: `[+-]HH[:MM]`.
pub(crate) fn moment_of_zone(bytes: &[u8]) -> Option<i128> {
    // Behind the date, whose parts have signs as well.
    let at = bytes.iter().rposition(|byte| b"+-".contains(byte))?;
    (at > 10).then_some(())?;
    let (local, offset) = bytes.split_at(at);
    let (sign, hours, minutes) = match *offset {
        [sign, h1, h2] => (sign, [h1, h2], *b"00"),
        [sign, h1, h2, b':', m1, m2] => (sign, [h1, h2], [m1, m2]),
        _ => return None,
    };
    let (hours, minutes) = (number(&hours)?, number(&minutes)?);
    (hours <= MOST_HOURS && minutes < 60).then_some(())?;
    let ahead = (hours * 60 + minutes) * 60_000_000;
    let us = moment(local)?;
    known(if sign == b'-' { us + ahead } else { us - ahead })
}

fn number(digits: &[u8]) -> Option<i128> {
    digits.iter().all(u8::is_ascii_digit).then_some(())?;
    let value = digits.iter();
    Some(value.fold(0, |value, digit| value * 10 + i128::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted() {
        let days = |text: &str| day(text.as_bytes());
        assert_eq!(days("1970-01-01"), Some(0));
        assert_eq!(days("2000-02-29"), Some(11_016));
        assert_eq!(days("0001-01-01"), Some(*DAYS.start()));
        assert_eq!(days("9999-12-31"), Some(*DAYS.end()));
        for wrong in [
            "1900-02-29",
            "2001-13-01",
            "2001-00-10",
            "2001-1-1",
            "today",
            "2001-04-31",
        ] {
            assert_eq!(days(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn each_day_follows_the_last() {
        let mut before = None;
        for year in 1890..2110 {
            for month in 1..=12 {
                for day_ in 1..=31 {
                    let text = format!("{year:04}-{month:02}-{day_:02}");
                    if let Some(days) = day(text.as_bytes()) {
                        assert!(before.is_none_or(|last: i128| last + 1 == days), "{text}");
                        before = Some(days);
                    }
                }
            }
        }
    }

    #[test]
    fn moments_are_read() {
        let us = |text: &str| moment(text.as_bytes());
        assert_eq!(us("1970-01-01 00:00:01.5"), Some(1_500_000));
        assert_eq!(us("1969-12-31 23:59:59"), Some(-1_000_000));
        assert_eq!(us("1970-01-01 24:00:00"), None);
        assert_eq!(us("1970-01-01 00:00:01+02"), None);
        let of_zone = |text: &str| moment_of_zone(text.as_bytes());
        assert_eq!(of_zone("1970-01-01 02:00:00+02"), Some(0));
        assert_eq!(of_zone("1969-12-31 23:30:01.5-00:30"), Some(1_500_000));
        assert_eq!(of_zone("0001-01-01 00:00:00+01"), None);
        assert_eq!(of_zone("1970-01-01 00:00:00"), None);
        assert_eq!(of_zone("1970-01-01 00:00:00+0200"), None);
    }
}
