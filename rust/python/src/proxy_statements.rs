//! Statements that Python has prepared, what runs them without it, and what they gave.

use crate::proxy_moments::Moments;
use crate::proxy_passes::Pass;
use crate::proxy_reads::Read;
use crate::proxy_relays::PassedChange;
use crate::proxy_shapes::Literals;
use crate::proxy_transactions::Begin;
use crate::proxy_values::{columns, rows};
use crate::proxy_writes::Write;
use louver_proxy::{CopyForm, CursorUse, CursorVerb, Kind, Looks, Outcome, Statement};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A prepared statement: Python's object, and how it runs without Python; and the values of one
/// whose text has them in it.
#[derive(Clone)]
pub(crate) struct Handle(Arc<Inner>, Option<Arc<Literals>>);

struct Inner {
    object: Py<PyAny>,
    looks: Looks,
    ends: Option<End>,
    moments: Moments,
    known: Mutex<Known>,
}

/// How a statement ends a transaction, if it does nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Commit,
    Rollback,
}

/// What runs a statement without Python.
#[derive(FromPyObject)]
pub(crate) enum Direct {
    Read(Py<Read>),
    Pass(Py<Pass>),
    Write(Py<Write>),
    Change(Py<PassedChange>),
    Begin(Py<Begin>),
}

/// The way of a statement in one generation, if it is known; after so many runs that gave none,
/// it is looked for seldom.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) generation: u64,
    pub(crate) runs: u32,
    pub(crate) way: Option<Direct>,
    /// How many more transactions that begin with it Python took over than not, of late, and how
    /// many it is to run from their begin.
    pub(crate) falls: u32,
    pub(crate) waits: u32,
}

impl Known {
    /// Nothing is known in this generation.
    pub(crate) fn renew(&mut self, generation: u64) {
        if self.generation != generation {
            *self = Self {
                generation,
                falls: self.falls,
                waits: self.waits,
                ..Self::default()
            };
        }
    }
}

impl Handle {
    /// Python's.
    pub(crate) fn object(&self) -> &Py<PyAny> {
        &self.0.object
    }

    /// The same statement with values.
    pub(crate) fn with(&self, literals: Literals) -> Self {
        Self(Arc::clone(&self.0), Some(Arc::new(literals)))
    }

    pub(crate) fn literals(&self) -> Option<Arc<Literals>> {
        self.1.clone()
    }

    pub(crate) fn looks(&self) -> Looks {
        self.0.looks.clone()
    }

    pub(crate) fn ends(&self) -> Option<End> {
        self.0.ends
    }

    pub(crate) fn moments(&self) -> &Moments {
        &self.0.moments
    }

    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is the same statement.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What Python has prepared.
pub(crate) fn statement(prepared: Bound<'_, PyAny>) -> PyResult<Statement<Handle>> {
    let kind: String = prepared.getattr("kind")?.extract()?;
    let used: Option<(String, String, i64)> = prepared.getattr("cursor")?.extract()?;
    let verb = |verb: &str| match verb {
        "DECLARE" => CursorVerb::Declare,
        "FETCH" => CursorVerb::Fetch,
        "MOVE" => CursorVerb::Move,
        _ => CursorVerb::Close,
    };
    Ok(Statement {
        kind: match kind.as_str() {
            "empty" => Kind::Empty,
            "begins" => Kind::Begins,
            "controls" => Kind::Controls,
            "copies" => Kind::Copies,
            "varies" => Kind::Varies,
            _ => Kind::Other,
        },
        parameters: prepared.getattr("parameters")?.extract()?,
        columns: columns(&prepared.getattr("columns")?)?,
        deallocates: prepared.getattr("deallocates")?.extract()?,
        cursor: used.map(|(word, name, ahead)| CursorUse {
            verb: verb(&word),
            name,
            ahead,
        }),
        handle: Handle(
            Arc::new(Inner {
                looks: Looks {
                    kind: prepared.getattr("does")?.extract()?,
                    shape: prepared.getattr("shape")?.extract()?,
                },
                ends: match prepared.getattr("ends")?.extract::<&str>()? {
                    "commit" => Some(End::Commit),
                    "rollback" => Some(End::Rollback),
                    _ => None,
                },
                moments: Moments {
                    types: prepared.getattr("moments")?.extract()?,
                    places: prepared.getattr("places")?.extract()?,
                },
                object: prepared.unbind(),
                known: Mutex::default(),
            }),
            None,
        ),
    })
}

/// What `run` gave: `None`, a tag, the begin of a COPY, or rows. A COPY is `("text", "csv" or
/// "binary", columns)`, with quote and escape where it gives data.
pub(crate) fn outcome(given: &Bound<'_, PyAny>) -> PyResult<Outcome> {
    if given.is_none() {
        return Ok(Outcome::Empty);
    }
    if let Ok(tag) = given.extract::<String>() {
        return Ok(Outcome::Done { tag });
    }
    if let Ok((form, columns)) = given.extract::<(String, usize)>() {
        let format = i8::from(form == "binary");
        return Ok(Outcome::CopyIn { format, columns });
    }
    if let Ok((form, columns, quote, escape)) = given.extract::<(String, usize, u8, u8)>() {
        let form = match form.as_str() {
            "binary" => CopyForm::Binary,
            "csv" => CopyForm::Csv { quote, escape },
            _ => CopyForm::Text,
        };
        return Ok(Outcome::CopyOut { form, columns });
    }
    rows(given)
}
