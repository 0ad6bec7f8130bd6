//! What a statement gives to the columns of a row: values of Bind, constants, columns of the row as
//! it was, sums of two of these, and numbers of sequences.

use crate::proxy_sequences::SequenceNumbers;
use crate::raw::Raw;
use crate::raw_messages::{Given, Kind};
use crate::raw_values::of_python;
use arrow_schema::DataType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// One part of what a column is set to.
enum Part {
    Column(usize),
    Parameter { at: usize, type_: u32 },
    Constant(Raw),
    Drawn(SequenceNumbers),
}

/// What a column is set to: one part, or with a sign two.
pub(crate) struct Term {
    /// The place of the column.
    target: usize,
    kind: Kind,
    required: bool,
    /// What an operand of a sum may be.
    limits: Option<(i128, i128)>,
    parts: Vec<Part>,
    sign: i128,
}

/// A column's place, a parameter's place and the number of its type, a constant in a tuple, or a
/// sequence.
#[derive(FromPyObject)]
enum GivenPart<'py> {
    Column(usize),
    Parameter((usize, u32)),
    Constant((Bound<'py, PyAny>,)),
    Drawn(Py<SequenceNumbers>),
}

/// `(place of the column, kind, required, limits of operands, parts, sign or 0)`.
#[derive(FromPyObject)]
pub(crate) struct GivenTerm<'py>(
    usize,
    Kind,
    bool,
    Option<(i128, i128)>,
    Vec<GivenPart<'py>>,
    i8,
);

impl Term {
    pub(crate) fn new(given: GivenTerm<'_>, width: usize) -> PyResult<Self> {
        let GivenTerm(target, kind, required, limits, parts, sign) = given;
        let wrong = || PyValueError::new_err("a term that is none");
        let part = |part: GivenPart<'_>| {
            Ok::<_, PyErr>(match part {
                GivenPart::Column(at) if at < width => Part::Column(at),
                GivenPart::Column(_) => return Err(wrong()),
                GivenPart::Parameter((at, type_)) => Part::Parameter { at, type_ },
                GivenPart::Constant((value,)) => {
                    Part::Constant(of_python(&value).ok_or_else(wrong)?)
                }
                GivenPart::Drawn(numbers) => Part::Drawn(numbers.get().clone()),
            })
        };
        let parts = parts.into_iter().map(part).collect::<PyResult<Vec<_>>>()?;
        if target >= width || parts.len() != if sign == 0 { 1 } else { 2 } {
            return Err(wrong());
        }
        Ok(Self {
            target,
            kind,
            required,
            limits,
            parts,
            sign: sign.into(),
        })
    }

    fn part(&self, part: &Part, old: &[Raw], given: &Given<'_>) -> Option<Raw> {
        let (at, type_) = match part {
            Part::Column(at) => return old.get(*at).cloned(),
            Part::Constant(value) => return self.within(value.clone()),
            Part::Drawn(numbers) => return numbers.draw().map(|number| Raw::Whole(number.into())),
            Part::Parameter { at, type_ } => (*at, *type_),
        };
        self.within(given.value(at, self.kind, type_)?)
    }

    /// Whether all values that came for it are of the column's type, which PostgreSQL asks for
    /// also where no row gets them.
    fn takes(&self, types: &[DataType], given: &Given<'_>) -> bool {
        let Some(type_) = types.get(self.target) else {
            return false;
        };
        self.parts.iter().all(|part| match part {
            Part::Parameter { .. } | Part::Constant(_) => self
                .part(part, &[], given)
                .is_some_and(|value| value.array(type_).is_some()),
            Part::Column(_) | Part::Drawn(_) => true,
        })
    }

    /// The sequences that it draws from.
    pub(crate) fn sequences(&self) -> impl Iterator<Item = &SequenceNumbers> {
        self.parts.iter().filter_map(|part| match part {
            Part::Drawn(numbers) => Some(numbers),
            _ => None,
        })
    }

    fn within(&self, value: Raw) -> Option<Raw> {
        match (&value, self.limits) {
            (Raw::Whole(number), Some((least, most))) => {
                (least..=most).contains(number).then_some(value)
            }
            _ => Some(value),
        }
    }

    fn result(&self, old: &[Raw], given: &Given<'_>) -> Option<Raw> {
        let mut parts = self.parts.iter().map(|part| self.part(part, old, given));
        let left = parts.next()??;
        let result = match parts.next() {
            None => left,
            Some(right) => match (left, right?) {
                (Raw::Null, _) | (_, Raw::Null) => Raw::Null,
                (Raw::Whole(left), Raw::Whole(right)) => {
                    Raw::Whole(left.checked_add(self.sign.checked_mul(right)?)?)
                }
                _ => return None,
            },
        };
        (!self.required || result != Raw::Null).then_some(result)
    }
}

/// Whether all values that came are of the types of the columns that they are for.
pub(crate) fn take(terms: &[Term], types: &[DataType], given: &Given<'_>) -> bool {
    terms.iter().all(|term| term.takes(types, given))
}

/// A row with what terms give it; None where only the local engine tells.
pub(crate) fn changed(terms: &[Term], old: &[Raw], given: &Given<'_>) -> Option<Vec<Raw>> {
    let mut new = old.to_vec();
    for term in terms {
        *new.get_mut(term.target)? = term.result(old, given)?;
    }
    Some(new)
}
