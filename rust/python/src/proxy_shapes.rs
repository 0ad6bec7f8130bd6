//! Texts that differ only in their literals: from the third one on, all of one shape run as one
//! statement with parameters, which Python has prepared with the second.

use crate::proxy_client::Client;
use crate::proxy_statements::{statement, Handle};
use crate::proxy_transactions::Transaction;
use louver_proxy::literals::{cut, Class, Cut, Literal};
use louver_proxy::{Engine, Kind, Statement, Values};
use pyo3::prelude::*;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

const MOST: usize = 256;
const MOST_SEEN: usize = 4_096;
const BOOLEAN: u32 = 16;
const FLOAT8: u32 = 701;
const NUMERIC: u32 = 1700;

/// Types whose values are read from a string in one way, whatever column they are for: boolean,
/// bytea, bigint, smallint, integer, text, json, real, double precision, inet, char(n), varchar(n),
/// date, time, timestamp, both with time zones, numeric, uuid, jsonb. `3` as an interval is some
/// minutes in one column and days in another.
const OF_STRINGS: [u32; 20] = [
    BOOLEAN, 17, 20, 21, 23, 25, 114, 700, FLOAT8, 869, 1042, 1043, 1082, 1083, 1114, 1184, 1266,
    NUMERIC, 2950, 3802,
];

/// A shape, and the types that its literals are cast to.
type Key = (String, Vec<u32>);

/// One session's.
#[derive(Default)]
pub(crate) struct Shapes {
    known: HashMap<Key, Shape>,
    /// Hashes of those of which one text has come.
    seen: HashSet<u64>,
    hashes: RandomState,
}

enum Shape {
    /// With parameters it would mean something else, or nothing, in this generation.
    Other(u64),
    /// What is known of it since this generation.
    Known(Statement<Handle>, u64),
}

/// What a text had where its shape has parameters.
pub(crate) struct Literals {
    /// The client's own text.
    pub(crate) text: String,
    pub(crate) values: Values,
}

impl Shapes {
    /// Another client comes, which may not know what these show.
    pub(crate) fn clear(&mut self) {
        self.known.clear();
        self.seen.clear();
    }

    fn put(&mut self, key: Key, shape: Shape) {
        if self.known.len() >= MOST && !self.known.contains_key(&key) {
            self.known.clear();
        }
        self.known.insert(key, shape);
    }

    /// Whether one such text has come before; from now on, one has.
    fn was_seen(&mut self, key: &Key) -> bool {
        if self.seen.len() >= MOST_SEEN {
            self.seen.clear();
        }
        !self.seen.insert(self.hashes.hash_one(key))
    }
}

impl Client {
    /// Where a text is known to be nothing but one statement, that one, and how many characters
    /// precede it.
    pub(crate) fn known_part(&self, sql: &str) -> Option<(String, u32)> {
        let cut = self.cut(sql)?;
        let known = self.shapes.known.get(&key(&cut))?;
        matches!(known, Shape::Known(..)).then_some(())?;
        let before = sql.get(..cut.start)?.chars().count();
        let text = sql.get(cut.start..cut.end)?.to_owned();
        Some((text, before.try_into().ok()?))
    }

    /// The statement of a text whose shape is known, with its literals.
    pub(crate) fn known_shape(&mut self, sql: &str) -> Option<Statement<Handle>> {
        let is_usable = match self.status() {
            b'I' => true,
            b'T' => !self.within.as_ref().is_some_and(Transaction::is_lost),
            _ => false,
        };
        is_usable.then_some(())?;
        let cut = self.cut(sql)?;
        let key = key(&cut);
        let Some(Shape::Known(known, generation)) = self.shapes.known.get(&key) else {
            return None;
        };
        let mut known = known.clone();
        if *generation != self.generation {
            let object = known.handle.object();
            let holds = Python::attach(|py| {
                let object = object.clone_ref(py);
                self.call_apart(py, |o| o.call_method1("holds", (object,))?.extract())
            });
            if !holds.unwrap_or(false) {
                self.shapes.known.remove(&key);
                return None;
            }
            let renewed = Shape::Known(known.clone(), self.generation);
            self.shapes.put(key, renewed);
        }
        (known.parameters.len() == cut.literals.len()).then_some(())?;
        let types = std::mem::take(&mut known.parameters);
        let mut literals = cut.literals.iter().zip(types);
        let all_fit = literals.all(|(literal, type_)| fits(literal, type_));
        all_fit.then_some(())?;
        let formats = vec![0; cut.literals.len()];
        let values = cut.literals.into_iter().map(|literal| literal.value);
        known.handle = known.handle.with(Literals {
            text: sql.to_owned(),
            values: Values {
                values: values.collect(),
                formats,
            },
        });
        Some(known)
    }

    /// A text was prepared as it is; the second one of a shape has its shape prepared as well.
    pub(crate) fn learn_shape(&mut self, sql: &str, prepared: &Statement<Handle>) {
        if prepared.kind != Kind::Other {
            return;
        }
        let Some(cut) = self.cut(sql) else {
            return;
        };
        let key = key(&cut);
        let is_known = match self.shapes.known.get(&key) {
            None => false,
            Some(Shape::Known(..)) => true,
            Some(Shape::Other(generation)) => *generation == self.generation,
        };
        if is_known || !self.shapes.was_seen(&key) {
            return;
        }
        let given = (cut.shape.as_str(), key.1.clone());
        let shaped: Option<Statement<Handle>> = Python::attach(|py| {
            let object = prepared.handle.object().clone_ref(py);
            let shaped = self.call_apart(py, |o| {
                let shaped: Option<Bound<'_, PyAny>> = o
                    .call_method1("shaped", (object, given.0, given.1))?
                    .extract()?;
                shaped.map(statement).transpose()
            });
            shaped.ok().flatten()
        });
        let shape = match shaped {
            Some(shaped) => Shape::Known(shaped, self.generation),
            None => Shape::Other(self.generation),
        };
        self.shapes.put(key, shape);
    }

    /// A text without its literals; none where a backslash in them may stand for something else.
    fn cut(&self, sql: &str) -> Option<Cut> {
        let is_plain = !sql.contains('\\') || self.has("standard_conforming_strings", "on");
        is_plain.then(|| cut(sql))?
    }
}

fn key(cut: &Cut) -> Key {
    let types = cut.literals.iter().map(|literal| literal.type_);
    (cut.shape.clone(), types.collect())
}

/// Whether a literal means the same as a parameter of a type whose value has its text. The type is
/// that of a column which the literal is compared with or stored in, so a string has it anyway; a
/// number has its own, and PostgreSQL compares it as that of the two which is wider.
fn fits(literal: &Literal, type_: u32) -> bool {
    if literal.type_ != 0 {
        return literal.type_ == type_;
    }
    let text = literal.value.as_deref().unwrap_or_default();
    let number = std::str::from_utf8(text).ok().map(str::parse::<i64>);
    let is_within = |least: i64, most: i64| match number {
        Some(Ok(number)) => (least..=most).contains(&number),
        _ => false,
    };
    // A number is no negative zero, and text may be one.
    let is_zero = || !text.iter().any(|byte| (b'1'..=b'9').contains(byte));
    match (literal.class, type_) {
        (Class::Text, type_) => OF_STRINGS.contains(&type_),
        (Class::Integer | Class::Bigint | Class::Decimal, FLOAT8) => {
            !(text.starts_with(b"-") && is_zero())
        }
        (Class::Null, _)
        | (Class::Boolean, BOOLEAN)
        | (Class::Integer | Class::Bigint | Class::Decimal, NUMERIC) => true,
        (Class::Integer | Class::Bigint, 21) => is_within(i16::MIN.into(), i16::MAX.into()),
        (Class::Integer | Class::Bigint, 23) => is_within(i32::MIN.into(), i32::MAX.into()),
        (Class::Integer | Class::Bigint, 20) => is_within(i64::MIN, i64::MAX),
        _ => false,
    }
}
