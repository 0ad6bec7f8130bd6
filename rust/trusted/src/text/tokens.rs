//! The tokens of a value.

use std::ops::Range;

/// Characters of an n-gram.
pub(super) const GRAM: usize = 3;
/// Lengths of the prefixes that are tokens, in characters.
pub(super) const PREFIXES: [usize; 8] = [1, 2, 3, 4, 6, 8, 12, 16];
/// Lengths of the suffixes that are tokens.
pub(super) const SUFFIXES: [usize; 3] = [1, 2, 3];

/// What a token says of a value; part of what is hashed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    Whole = 1,
    Prefix = 2,
    Suffix = 3,
    Word = 4,
    Gram = 5,
}

/// A token as it is hashed: kind, then text.
pub(super) fn encoded(kind: Kind, text: &str, out: &mut Vec<u8>) {
    out.clear();
    out.push(kind as u8);
    out.extend_from_slice(text.as_bytes());
}

/// Whether a character belongs to a word. Nothing that a later Unicode may change.
pub(super) fn in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || !c.is_ascii()
}

/// Gives every token of a value, some more than once.
pub(super) fn each(text: &str, offsets: &mut Vec<usize>, mut give: impl FnMut(Kind, &str)) {
    starts(text, offsets);
    let count = offsets.len() - 1;
    let part = |chars: Range<usize>| &text[offsets[chars.start]..offsets[chars.end]];
    give(Kind::Whole, text);
    for length in PREFIXES.into_iter().take_while(|length| *length <= count) {
        give(Kind::Prefix, part(0..length));
    }
    for length in SUFFIXES.into_iter().take_while(|length| *length <= count) {
        give(Kind::Suffix, part(count - length..count));
    }
    for first in 0..(count + 1).saturating_sub(GRAM) {
        give(Kind::Gram, part(first..first + GRAM));
    }
    let words = text.split(|c| !in_word(c)).filter(|word| !word.is_empty());
    words.for_each(|word| give(Kind::Word, word));
}

/// Where each character begins, and the end.
pub(super) fn starts(text: &str, offsets: &mut Vec<usize>) {
    offsets.clear();
    offsets.extend(text.char_indices().map(|(at, _)| at));
    offsets.push(text.len());
}
