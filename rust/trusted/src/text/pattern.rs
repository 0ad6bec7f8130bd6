//! The tokens that every value has which fits a search.

use super::tokens::{encoded, in_word, starts, Kind, GRAM, PREFIXES, SUFFIXES};
use super::Search;

/// Most tokens of a search; more would say more and find no less.
const MOST: usize = 32;

/// A piece of a pattern without wildcards.
#[derive(Debug, Default)]
struct Piece {
    text: String,
    /// Whether it is at the value's beginning, and at its end.
    first: bool,
    last: bool,
}

/// Encoded tokens; `None` if there are none.
pub(super) fn tokens(search: Search<'_>) -> Option<Vec<Vec<u8>>> {
    let piece = |text: &str, first, last| Piece {
        text: text.into(),
        first,
        last,
    };
    let pieces = match search {
        Search::Word(word) => {
            let whole = !word.is_empty() && word.chars().all(in_word);
            return whole.then(|| vec![token(Kind::Word, word)]);
        }
        Search::Prefix(text) => vec![piece(text, true, false)],
        Search::Suffix(text) => vec![piece(text, false, true)],
        Search::Contains(text) => vec![piece(text, false, false)],
        Search::Like(pattern, escape) => pieces(pattern, escape)?,
    };
    let mut output = Vec::new();
    pieces.iter().for_each(|piece| piece.tokens(&mut output));
    output.truncate(MOST);
    (!output.is_empty()).then_some(output)
}

/// A LIKE pattern's pieces; `None` if it ends in its escape character, which is an error.
fn pieces(pattern: &str, escape: Option<char>) -> Option<Vec<Piece>> {
    let mut output = Vec::new();
    let mut piece = Piece {
        first: true,
        ..Piece::default()
    };
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if Some(c) == escape {
            piece.text.push(chars.next()?);
        } else if c == '%' || c == '_' {
            output.push(std::mem::take(&mut piece));
        } else {
            piece.text.push(c);
        }
    }
    piece.last = true;
    output.push(piece);
    Some(output)
}

impl Piece {
    fn tokens(&self, output: &mut Vec<Vec<u8>>) {
        let text = self.text.as_str();
        if self.first && self.last {
            return output.push(token(Kind::Whole, text));
        }
        let mut offsets = Vec::new();
        starts(text, &mut offsets);
        let count = offsets.len() - 1;
        let part = |first: usize, end: usize| &text[offsets[first]..offsets[end]];
        let longest = |lengths: &[usize]| lengths.iter().rfind(|l| **l <= count).copied();
        let (mut begin, mut end) = (0, count);
        if let Some(length) = longest(&PREFIXES).filter(|_| self.first) {
            output.push(token(Kind::Prefix, part(0, length)));
            begin = length;
        }
        if let Some(length) = longest(&SUFFIXES).filter(|_| self.last) {
            output.push(token(Kind::Suffix, part(count - length, count)));
            end = count - length;
        }
        if count < GRAM {
            return;
        }
        // Every character that is left is in one n-gram at least, and few are in two.
        let mut at = begin;
        while at < end {
            let first = at.min(count - GRAM);
            output.push(token(Kind::Gram, part(first, first + GRAM)));
            at = first + GRAM;
        }
    }
}

fn token(kind: Kind, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    encoded(kind, text, &mut out);
    out
}
