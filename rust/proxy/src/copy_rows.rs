//! Data of COPY … TO STDOUT, cut into rows: a server sends each in a message of its own, which
//! clients rely on.

use bytes::BytesMut;

/// What the data looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyForm {
    /// A row ends with a line feed, which is in no value.
    Text,
    /// A line feed between quotes is part of a value.
    Csv {
        /// What values are between.
        quote: u8,
        /// What stands before a quote within a value.
        escape: u8,
    },
    /// A head of 19 bytes, rows with the number and the lengths of their values, and −1.
    Binary,
}

const HEAD: usize = 19;

/// Cuts data that comes in pieces.
#[derive(Debug)]
pub struct Splitter {
    form: CopyForm,
    held: BytesMut,
    /// So many bytes were looked at, and whether they end within a value of CSV.
    seen: usize,
    quoted: bool,
    headed: bool,
}

impl Splitter {
    /// Of data of this form.
    #[must_use]
    pub fn new(form: CopyForm) -> Self {
        Self {
            form,
            held: BytesMut::new(),
            seen: 0,
            quoted: false,
            headed: false,
        }
    }

    /// More data.
    pub fn add(&mut self, data: &[u8]) {
        self.held.extend_from_slice(data);
    }

    /// The next row that is whole.
    pub fn next_row(&mut self) -> Option<BytesMut> {
        let length = match self.form {
            CopyForm::Text => self.line(|_, byte| byte == b'\n'),
            CopyForm::Csv { quote, escape } => self.line(|own, byte| {
                // A quote that is doubled changes nothing; an escaped one is between quotes.
                if byte == quote || (byte == escape && escape != quote && own.skips(quote)) {
                    own.quoted = !own.quoted;
                }
                byte == b'\n' && !own.quoted
            }),
            CopyForm::Binary => self.tuple(),
        }?;
        self.seen = 0;
        Some(self.held.split_to(length))
    }

    /// Whatever is left behind the last row.
    pub fn rest(&mut self) -> Option<BytesMut> {
        let rest = self.held.split();
        (!rest.is_empty()).then_some(rest)
    }

    /// Behind an escape that is no quote, the quote that follows ends no value: both change
    /// nothing together.
    fn skips(&self, quote: u8) -> bool {
        self.quoted && self.held.get(self.seen + 1) == Some(&quote)
    }

    fn line(&mut self, mut ends: impl FnMut(&mut Self, u8) -> bool) -> Option<usize> {
        while let Some(&byte) = self.held.get(self.seen) {
            let end = ends(self, byte);
            self.seen += 1;
            if end {
                return Some(self.seen);
            }
        }
        None
    }

    /// A row, the first one behind the head; what ends the data is part of the last.
    fn tuple(&mut self) -> Option<usize> {
        let start = if self.headed { 0 } else { HEAD };
        let width = i16::from_be_bytes(*self.held.get(start..)?.first_chunk::<2>()?);
        let mut at = start + 2;
        for _ in 0..width.max(0) {
            let length = i32::from_be_bytes(*self.held.get(at..)?.first_chunk::<4>()?);
            at = at
                .checked_add(4)?
                .checked_add(usize::try_from(length).unwrap_or(0))?;
        }
        (at <= self.held.len()).then(|| {
            self.headed = true;
            at
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows(form: CopyForm, pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut splitter, mut all) = (Splitter::new(form), Vec::new());
        for piece in pieces {
            splitter.add(piece);
            while let Some(row) = splitter.next_row() {
                all.push(row.to_vec());
            }
        }
        all.extend(splitter.rest().map(|rest| rest.to_vec()));
        all
    }

    #[test]
    fn lines_between_quotes_are_values() {
        let csv = CopyForm::Csv {
            quote: b'"',
            escape: b'"',
        };
        let data = b"a,\"x\ny\"\n\"q\"\"\n\"\n\"\"\nend\n";
        let want: [&[u8]; 4] = [b"a,\"x\ny\"\n", b"\"q\"\"\n\"\n", b"\"\"\n", b"end\n"];
        assert_eq!(rows(csv, &[data]), want);
        let other = CopyForm::Csv {
            quote: b'"',
            escape: b'\\',
        };
        let data = b"\"x\\\"\ny\",1\nz\n";
        assert_eq!(rows(other, &[data]), [&b"\"x\\\"\ny\",1\n"[..], b"z\n"]);
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(
            values in prop::collection::vec(
                prop::collection::vec(prop::option::of("[a\n\",]{0,4}"), 1..4), 0..6),
            cuts in prop::collection::vec(1_usize..7, 1..40),
        ) {
            let mut binary = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
            let mut want = Vec::new();
            for row in &values {
                let start = if want.is_empty() { 0 } else { binary.len() };
                binary.extend((row.len() as i16).to_be_bytes());
                for value in row {
                    let length = value.as_ref().map_or(-1, |v| v.len() as i32);
                    binary.extend(length.to_be_bytes());
                    binary.extend(value.as_ref().map_or("", String::as_str).as_bytes());
                }
                want.push(binary[start..].to_vec());
            }
            let end = if want.is_empty() { 0 } else { binary.len() };
            binary.extend((-1_i16).to_be_bytes());
            want.push(binary[end..].to_vec());
            let (mut pieces, mut left) = (Vec::new(), &binary[..]);
            for cut in cuts {
                let (head, tail) = left.split_at(cut.min(left.len()));
                pieces.push(head);
                left = tail;
            }
            pieces.push(left);
            prop_assert_eq!(rows(CopyForm::Binary, &pieces), want);
        }

        #[test]
        fn no_bytes_make_it_panic(data in prop::collection::vec(any::<u8>(), 0..80)) {
            for form in [
                CopyForm::Text,
                CopyForm::Binary,
                CopyForm::Csv { quote: b'"', escape: b'\\' },
            ] {
                prop_assert_eq!(rows(form, &[&data]).concat(), data.clone());
            }
        }
    }
}
