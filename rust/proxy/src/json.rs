//! Lines of JSON, as the audit file and the log have them.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// The longest text of a client's in a line, in bytes.
pub(crate) const MOST_TEXT: usize = 128;

/// One object, member by member.
pub(crate) struct Object(String);

impl Object {
    /// Without members.
    pub(crate) fn new() -> Self {
        Self("{".to_owned())
    }

    fn key(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        quote(&mut self.0, name);
        self.0.push(':');
    }

    /// A text, of which the first bytes are written.
    pub(crate) fn text(mut self, name: &str, value: &str) -> Self {
        self.key(name);
        quote(&mut self.0, cut(value));
        self
    }

    /// A text, if there is one.
    pub(crate) fn some(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.text(name, value),
            None => self,
        }
    }

    /// A number.
    pub(crate) fn number(mut self, name: &str, value: u64) -> Self {
        self.key(name);
        let _ = write!(self.0, "{value}");
        self
    }

    /// Milliseconds with three digits behind the point.
    pub(crate) fn duration(mut self, name: &str, value: std::time::Duration) -> Self {
        self.key(name);
        let us = value.as_micros();
        let _ = write!(self.0, "{}.{:03}", us / 1000, us % 1000);
        self
    }

    /// Texts, which are not the client's and are written whole.
    pub(crate) fn texts(mut self, name: &str, values: &[String]) -> Self {
        self.key(name);
        self.0.push_str(&list(values));
        self
    }

    /// Objects.
    pub(crate) fn objects(mut self, name: &str, values: &[String]) -> Self {
        self.key(name);
        let _ = write!(self.0, "[{}]", values.join(","));
        self
    }

    /// The object.
    pub(crate) fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// A list of texts.
fn list(values: &[String]) -> String {
    let mut out = String::from("[");
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        quote(&mut out, value);
    }
    out.push(']');
    out
}

/// The first bytes of a text, whole characters.
pub(crate) fn cut(text: &str) -> &str {
    let mut end = text.len().min(MOST_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn quote(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            // Of what some readers take for the end of a line, and of what terminals obey.
            '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", character as u32);
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// A moment in RFC 3339's form, in UTC with microseconds.
pub(crate) fn moment(when: SystemTime) -> String {
    let since = when.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:06}Z",
        second / 3600,
        second / 60 % 60,
        second % 60,
        since.subsec_micros()
    )
}

/// The date of a day since 1970-01-01, in years that begin with March (H. Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`).
fn date(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let (era, doe) = (z / 146_097, z % 146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (
        yoe + era * 400 + u64::from(month <= 2),
        month,
        doy - (153 * mp + 2) / 5 + 1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    #[test]
    fn moments_are_those_of_the_calendar() {
        let at = |seconds| moment(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000000Z");
        assert_eq!(at(1_709_251_199), "2024-02-29T23:59:59.000000Z");
        assert_eq!(at(4_107_542_399), "2100-02-28T23:59:59.000000Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00.000000Z");
    }

    proptest! {
        #[test]
        fn a_line_is_a_line(text in "\\PC*|[\\x00-\\x7f\\u{80}-\\u{2030}]*") {
            let line = Object::new().text("a", &text).end();
            let ends = line.chars().any(|c| c.is_control() || c == '\u{2028}');
            prop_assert!(!ends);
            let quotes = line.replace("\\\\", "").replace("\\\"", "");
            prop_assert_eq!(quotes.matches('"').count(), 4);
            prop_assert!(line.len() <= 6 * MOST_TEXT + 10);
        }
    }
}
