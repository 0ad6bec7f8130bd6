//! Portals: statements with values, and their rows as far as they were not sent yet.

use crate::engine::{Done, Failure, Outcome, Statement, Values};
use crate::reply::Column;
use bytes::{Bytes, BytesMut};
use std::collections::HashMap;
use std::rc::Rc;

/// A statement that is to run: with its values, and the formats of its columns.
pub(crate) type ToRun<H> = (Rc<Statement<H>>, Values, Vec<i16>);

enum State {
    Ready,
    Rows {
        tag: String,
        messages: BytesMut,
        ends: Vec<usize>,
        sent: usize,
    },
    Done,
}

/// A statement with values. It runs when it is first executed.
pub(crate) struct Portal<H> {
    pub(crate) statement: Rc<Statement<H>>,
    values: Values,
    pub(crate) formats: Vec<i16>,
    state: State,
    /// What its rows are of, once it has run.
    columns: Vec<Column>,
}

impl<H> Portal<H> {
    pub(crate) fn new(statement: Rc<Statement<H>>, values: Values, formats: Vec<i16>) -> Self {
        Self {
            statement,
            values,
            formats,
            state: State::Ready,
            columns: Vec::new(),
        }
    }

    /// What is to run; None where it has run and has rows.
    pub(crate) fn to_run(&self, name: &str) -> Done<Option<ToRun<H>>> {
        match self.state {
            State::Ready => Ok(Some((
                Rc::clone(&self.statement),
                self.values.clone(),
                self.formats.clone(),
            ))),
            State::Rows { .. } => Ok(None),
            State::Done => Err(done(name)),
        }
    }

    /// It has run, and gave rows.
    pub(crate) fn ran(&mut self, outcome: Outcome) {
        self.values = Values::default();
        if let Outcome::Rows { columns, .. } = &outcome {
            self.columns.clone_from(columns);
        }
        self.state = rows_of(outcome);
    }

    /// The next rows, as `next` has them: columns, messages, and where each of these ends.
    pub(crate) fn rows(&mut self, most: i32) -> (Vec<Column>, BytesMut, Vec<usize>) {
        let first = self.sent();
        let start = first.checked_sub(1).and_then(|row| self.ends().get(row));
        let start = start.copied().unwrap_or(0);
        let messages = BytesMut::from(next(&mut self.state, most).0);
        let own = self.ends().get(first..self.sent()).unwrap_or_default();
        let ends = own.iter().map(|end| end - start).collect();
        (self.columns.clone(), messages, ends)
    }

    fn sent(&self) -> usize {
        match &self.state {
            State::Rows { sent, .. } => *sent,
            _ => 0,
        }
    }

    fn ends(&self) -> &[usize] {
        match &self.state {
            State::Rows { ends, .. } => ends,
            _ => &[],
        }
    }

    /// It has run, without rows.
    pub(crate) fn done(&mut self) {
        self.state = State::Done;
    }

    /// The messages of the next rows, at most so many if that is not 0, and behind the last ones
    /// the tag, which counts those of this call.
    pub(crate) fn next(&mut self, most: i32) -> (&[u8], Option<String>) {
        next(&mut self.state, most)
    }
}

/// Rows without a portal.
pub(crate) struct Rows(State);

impl Rows {
    pub(crate) fn of(outcome: Outcome) -> Self {
        Self(rows_of(outcome))
    }

    /// All messages, and the tag.
    pub(crate) fn all(&mut self) -> (&[u8], String) {
        let (messages, tag) = next(&mut self.0, 0);
        (messages, tag.unwrap_or_default())
    }
}

fn rows_of(outcome: Outcome) -> State {
    match outcome {
        Outcome::Rows {
            tag,
            messages,
            ends,
            ..
        } => State::Rows {
            tag,
            messages,
            ends,
            sent: 0,
        },
        _ => State::Done,
    }
}

fn next(state: &mut State, most: i32) -> (&[u8], Option<String>) {
    let State::Rows {
        tag,
        messages,
        ends,
        sent,
    } = state
    else {
        return (&[], Some(String::new()));
    };
    let first = *sent;
    let limit = usize::try_from(most).unwrap_or(0);
    let last = match limit {
        0 => ends.len(),
        limit => ends.len().min(first.saturating_add(limit)),
    };
    *sent = last;
    let start = first.checked_sub(1).and_then(|row| ends.get(row));
    let end = last.checked_sub(1).and_then(|row| ends.get(row));
    let range = start.copied().unwrap_or(0)..end.copied().unwrap_or(0);
    // As in PostgreSQL, a portal that gave as many rows as were wanted does not know that there
    // are no more.
    let is_end = limit == 0 || last - first < limit;
    let tag = is_end.then(|| match tag.ends_with(' ') {
        true => format!("{tag}{}", last - first),
        false => tag.clone(),
    });
    (messages.get(range).unwrap_or_default(), tag)
}

/// A session's portals by name.
pub(crate) struct Portals<H>(HashMap<String, Portal<H>>);

impl<H> Default for Portals<H> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<H> Portals<H> {
    pub(crate) fn get(&self, name: &str) -> Option<&Portal<H>> {
        self.0.get(name)
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Portal<H>> {
        self.0.get_mut(name)
    }

    pub(crate) fn open(&mut self, name: String, portal: Portal<H>) -> Done<()> {
        if !name.is_empty() && self.0.contains_key(&name) {
            let message = format!("cursor \"{name}\" already exists");
            return Err(Failure::error("42P03", message));
        }
        self.0.insert(name, portal);
        Ok(())
    }

    pub(crate) fn close(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// They end with the transaction.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The error of a portal that has run to its end.
pub(crate) fn done(name: &str) -> Failure {
    Failure::error("55000", format!("portal \"{name}\" cannot be run"))
}

/// The error of a portal that is not there.
pub(crate) fn missing(name: &str) -> Failure {
    Failure::error("34000", format!("portal \"{name}\" does not exist"))
}

/// The values of Bind, with a format for each.
///
/// # Errors
/// What does not fit, in words.
pub(crate) fn bound<H>(
    statement: &Statement<H>,
    formats: Vec<i16>,
    values: Vec<Option<Bytes>>,
) -> Result<Values, Misfit> {
    if values.len() != statement.parameters.len() {
        return Err(Misfit::Count(values.len(), statement.parameters.len()));
    }
    let formats = match (formats.len(), formats.first()) {
        (0, _) => vec![0; values.len()],
        (1, Some(&all)) => vec![all; values.len()],
        (count, _) if count == values.len() => formats,
        (count, _) => return Err(Misfit::Formats(count, values.len())),
    };
    Ok(Values { values, formats })
}

/// What does not fit in a Bind.
pub(crate) enum Misfit {
    /// So many values, and so many parameters.
    Count(usize, usize),
    /// So many formats, and so many values.
    Formats(usize, usize),
}

/// The error of a Bind that does not fit a statement of this name.
pub(crate) fn misfit(name: &str, why: &Misfit) -> Failure {
    let message = match why {
        Misfit::Count(given, needed) => format!(
            "bind message supplies {given} parameters, but prepared statement \"{name}\" requires \
             {needed}"
        ),
        Misfit::Formats(formats, given) => {
            format!("bind message has {formats} parameter formats but {given} parameters")
        }
    };
    Failure::error("08P01", message)
}

/// Columns with the formats that Bind asked for.
pub(crate) fn in_formats(mut columns: Vec<Column>, formats: &[i16]) -> Done<Vec<Column>> {
    let count = columns.len();
    if formats.len() > 1 && formats.len() != count {
        let message = format!(
            "bind message has {} result formats but query has {count} columns",
            formats.len()
        );
        return Err(Failure::error("08P01", message));
    }
    for (at, column) in columns.iter_mut().enumerate() {
        let own = formats.get(at).or(formats.first());
        column.format = own.copied().unwrap_or(0);
    }
    Ok(columns)
}

/// A client that was told of columns may rely on them.
pub(crate) fn require_same(told: Option<&[Column]>, now: &[Column]) -> Done<()> {
    let types = |columns: &[Column]| columns.iter().map(|c| c.type_).collect::<Vec<_>>();
    if told.is_none_or(|told| types(told) == types(now)) {
        return Ok(());
    }
    Err(Failure::error(
        "0A000",
        "cached plan must not change result type",
    ))
}
