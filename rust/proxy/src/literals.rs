//! Literals that stand alone in a statement's text are cut out of it, so that texts which differ in
//! nothing else have one shape, and run as one statement with parameters. What this does not know
//! for certain stays as it is; a text of any other kind than SELECT, INSERT, UPDATE and DELETE with
//! words, names, strings, numbers and operators is not cut at all.
//!
//! A literal stands alone where it is all that something is compared with, a bound of BETWEEN, an
//! item of VALUES or IN, or what SET gives a column. There PostgreSQL finds the type of a parameter
//! as it finds that of a string (its documentation, "Type Conversion"); whether a number has that
//! type is asked of whoever knows the columns.

use crate::lexing::{tokens, Kind, Token};
use bytes::Bytes;

const MOST: usize = 64;
const VERBS: [&str; 4] = ["SELECT", "INSERT", "UPDATE", "DELETE"];
/// What may follow a literal that stands alone.
const BEHIND: [&str; 9] = [
    "AND",
    "OR",
    "WHERE",
    "RETURNING",
    "ORDER",
    "GROUP",
    "LIMIT",
    "OFFSET",
    "FOR",
];
/// Types by their names, as PostgreSQL numbers them.
const TYPES: [(&str, u32); 18] = [
    ("BOOL", 16),
    ("BYTEA", 17),
    ("DATE", 1082),
    ("FLOAT8", 701),
    ("INET", 869),
    ("INT2", 21),
    ("INT4", 23),
    ("INT8", 20),
    ("INTERVAL", 1186),
    ("JSON", 114),
    ("JSONB", 3802),
    ("NUMERIC", 1700),
    ("TEXT", 25),
    ("TIME", 1083),
    ("TIMESTAMP", 1114),
    ("TIMESTAMPTZ", 1184),
    ("TIMETZ", 1266),
    ("UUID", 2950),
];

/// What a literal looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A whole number that PostgreSQL takes for an integer.
    Integer,
    /// One that it takes for a bigint.
    Bigint,
    /// Any other number.
    Decimal,
    /// A string.
    Text,
    /// `true` or `false`.
    Boolean,
    /// NULL.
    Null,
}

/// One literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    /// See there.
    pub class: Class,
    /// The number of the type that it is cast to; 0 of one that is not.
    pub type_: u32,
    /// Its text; None of NULL.
    pub value: Option<Bytes>,
}

/// A statement without its literals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The text with `$1` and so on in their place.
    pub shape: String,
    /// See there.
    pub literals: Vec<Literal>,
    /// Where the statement is in the text, in bytes, without blanks and a semicolon around it.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
}

/// Cuts a text; None of one that is not certain to be one statement.
#[must_use]
pub fn cut(sql: &str) -> Option<Cut> {
    let tokens = tokens(sql)?;
    let first = tokens.first()?;
    let verb = first.keyword(sql);
    VERBS.contains(&verb.as_str()).then_some(())?;
    let mut cutting = Cutting {
        sql,
        tokens: &tokens,
        levels: vec![Level::default()],
        shape: String::with_capacity(sql.len()),
        literals: Vec::new(),
        end: first.start,
    };
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if token.kind == Kind::Word {
            let word = token.keyword(sql);
            let is_other = word == "CONFLICT" || (word == "INTO" && verb == "SELECT");
            (!is_other).then_some(())?;
        }
        at += cutting.take(at)?;
    }
    (cutting.levels.len() == 1 && cutting.literals.len() <= MOST).then_some(())?;
    Some(Cut {
        shape: cutting.shape,
        literals: cutting.literals,
        start: first.start,
        end: tokens.last()?.end,
    })
}

/// What is known between two parentheses.
#[derive(Default)]
struct Level {
    /// Whether they hold a list of values.
    is_list: bool,
    is_row: bool,
    /// Whether a row of VALUES was the last thing that stood here.
    behind_row: bool,
    /// Whether the next AND is that of BETWEEN, or this one was.
    between: bool,
    upper: bool,
}

struct Cutting<'a> {
    sql: &'a str,
    tokens: &'a [Token],
    levels: Vec<Level>,
    shape: String,
    literals: Vec<Literal>,
    /// Where the last token ended.
    end: usize,
}

impl Cutting<'_> {
    /// Takes what begins with a token: how many tokens that are.
    fn take(&mut self, at: usize) -> Option<usize> {
        if let Some((literal, count)) = self.literal(at) {
            self.literals.push(literal);
            self.put_parameter(at, count);
            if let Some(level) = self.levels.last_mut() {
                (level.behind_row, level.upper) = (false, false);
            }
            return Some(count);
        }
        let token = self.tokens.get(at)?;
        if token.start > self.end {
            self.shape.push(' ');
        }
        self.shape.push_str(token.text(self.sql));
        self.end = token.end;
        self.follow(at, token)?;
        Some(1)
    }

    fn put_parameter(&mut self, at: usize, count: usize) {
        let all = self.tokens.get(at..at + count).unwrap_or_default();
        let is_tight = self.shape.ends_with(['(', ',', '=', '<', '>']);
        let starts = all.first().map_or(0, |token| token.start);
        if starts > self.end && !is_tight {
            self.shape.push(' ');
        }
        self.shape.push_str(&format!("${}", self.literals.len()));
        self.end = all.last().map_or(self.end, |token| token.end);
        let next = self.tokens.get(at + count);
        if next.is_some_and(|next| next.kind == Kind::Word && next.start == self.end) {
            self.shape.push(' ');
        }
    }

    /// What a token that stays means for those behind it.
    fn follow(&mut self, at: usize, token: &Token) -> Option<()> {
        let word = token.keyword(self.sql);
        let before = self.word(at.checked_sub(1));
        let level = self.levels.last_mut()?;
        let behind_row = level.behind_row && token.kind == Kind::Comma;
        level.upper = word == "AND" && std::mem::take(&mut level.between);
        match token.kind {
            Kind::Open => {
                let is_row = before == "VALUES" || (level.behind_row && before == ",");
                level.behind_row = false;
                self.levels.push(Level {
                    is_list: is_row || before == "IN",
                    is_row,
                    ..Level::default()
                });
                return Some(());
            }
            Kind::Close => {
                let closed = self.levels.pop()?;
                self.levels.last_mut()?.behind_row = closed.is_row;
                return Some(());
            }
            Kind::Word => {
                level.between |= word == "BETWEEN";
                let begins = matches!(word.as_str(), "SELECT" | "WITH" | "TABLE" | "VALUES");
                level.is_list &= !begins;
            }
            _ => {}
        }
        level.behind_row = behind_row;
        Some(())
    }

    /// The literal that begins with a token and stands alone, and of how many tokens it is.
    fn literal(&self, at: usize) -> Option<(Literal, usize)> {
        let token = self.tokens.get(at)?;
        let is_signed = token.kind == Kind::Sign;
        let own = self.tokens.get(at + usize::from(is_signed))?;
        let text = own.text(self.sql);
        let (class, value) = match own.kind {
            Kind::Number => {
                let is_negative = is_signed && token.text(self.sql) == "-";
                let sign = if is_negative { "-" } else { "" };
                (class_of(text), Some(format!("{sign}{text}")))
            }
            _ if is_signed => return None,
            Kind::Text => {
                let inner = text.get(1..text.len().checked_sub(1)?)?;
                (Class::Text, Some(inner.replace("''", "'")))
            }
            Kind::Escaped => {
                let inner = text.get(2..text.len().checked_sub(1)?)?;
                (Class::Text, Some(unescaped(inner)))
            }
            Kind::Word => match own.keyword(self.sql).as_str() {
                "NULL" => (Class::Null, None),
                "TRUE" => (Class::Boolean, Some("true".to_owned())),
                "FALSE" => (Class::Boolean, Some("false".to_owned())),
                _ => return None,
            },
            _ => return None,
        };
        let mut count = 1 + usize::from(is_signed);
        let mut type_ = 0;
        if class == Class::Text && self.kind(at + count) == Some(Kind::Cast) {
            let name = self.word(Some(at + count + 1));
            type_ = TYPES.iter().find(|known| known.0 == name)?.1;
            count += 2;
        }
        self.stands_alone(at, count).then_some(())?;
        let value = value.map(Bytes::from);
        Some((
            Literal {
                class,
                type_,
                value,
            },
            count,
        ))
    }

    fn stands_alone(&self, at: usize, count: usize) -> bool {
        let Some((before, level)) = at.checked_sub(1).zip(self.levels.last()) else {
            return false;
        };
        let (word, next) = (self.word(Some(before)), self.word(Some(at + count)));
        let ends_item = next == ")" || next == ",";
        let ends = ends_item || next.is_empty() || BEHIND.contains(&next.as_str());
        if self.kind(before) == Some(Kind::Comparison) {
            return ends;
        }
        match word.as_str() {
            "BETWEEN" => next == "AND",
            "AND" => level.upper && ends,
            "(" | "," => level.is_list && ends_item,
            _ => false,
        }
    }

    fn kind(&self, at: usize) -> Option<Kind> {
        self.tokens.get(at).map(|token| token.kind)
    }

    /// A word in upper case, or what stands between words; nothing at the end.
    fn word(&self, at: Option<usize>) -> String {
        let token = at.and_then(|at| self.tokens.get(at));
        token.map_or_else(String::new, |token| token.keyword(self.sql))
    }
}

/// Each quote and backslash that another one precedes.
fn unescaped(inner: &str) -> String {
    let mut result = String::with_capacity(inner.len());
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        let escapes = letter == '\'' || letter == '\\';
        result.extend(if escapes {
            letters.next()
        } else {
            Some(letter)
        });
    }
    result
}

/// What PostgreSQL takes a number for: the smallest of integer, bigint and numeric.
fn class_of(text: &str) -> Class {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Class::Decimal;
    }
    match text.parse::<i64>() {
        Ok(number) if i32::try_from(number).is_ok() => Class::Integer,
        Ok(_) => Class::Bigint,
        Err(_) => Class::Decimal,
    }
}
