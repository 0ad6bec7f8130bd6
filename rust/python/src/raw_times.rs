//! Dates and time stamps of messages in binary, as days and microseconds since 1970: those of the
//! years that Python has as well.

use louver_postgres::texts::{DAYS, DAY_US};

/// Days and microseconds between 1970 and 2000.
const EPOCH_DAYS: i128 = 10_957;
const EPOCH_US: i128 = 946_684_800_000_000;

/// A date as it is sent in binary: days since 2000.
pub(crate) fn sent_day(days: i32) -> Option<i128> {
    let days = i128::from(days) + EPOCH_DAYS;
    DAYS.contains(&days).then_some(days)
}

/// A time stamp as it is sent in binary: microseconds since 2000.
pub(crate) fn sent_moment(us: i64) -> Option<i128> {
    let us = i128::from(us) + EPOCH_US;
    DAYS.contains(&us.div_euclid(DAY_US)).then_some(us)
}
