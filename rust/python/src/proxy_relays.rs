//! UPDATE and DELETE of plain tables at the front door: the server is sent the values of Bind, and
//! changes its rows itself, behind the session's token, without the interpreter.

use crate::postgres::Session;
use crate::proxy_exchanges::{Entering, GivenStep, UNEXPECTED};
use crate::proxy_growth::{Growth, RowNumbers};
use crate::proxy_moments::number;
use crate::proxy_passes::{are_as_described, bound, cancelled, in_formats, Parameters, CANCELLED};
use crate::proxy_shown::Lacking;
use crate::proxy_transactions::Transaction;
use crate::proxy_values::{described, Described};
use crate::proxy_writes::Ran;
use louver_postgres::{Error, Relay, Reply, Step, Value};
use louver_proxy::{Column, Outcome, Values};
use pyo3::prelude::*;

/// Fewer numbers than these are not begun with.
const FEWEST: i64 = 256;

/// text, char(n) and varchar.
const TEXTS: [u32; 3] = [25, 1042, 1043];

/// One change of a plain table, as Python has judged it.
#[pyclass(frozen, module = "louver._rust.proxy")]
pub(crate) struct PassedChange {
    session: Py<Session>,
    entering: Entering,
    verb: String,
    sql: String,
    parameters: Parameters,
    /// None where it returns nothing.
    columns: Option<Vec<Column>>,
    firm: Vec<bool>,
    /// So many characters texts may have: PostgreSQL may refuse a longer one though no row changes.
    longest: Option<usize>,
    /// How many columns the server sends behind those, which fail where a new row is not fit.
    checks: usize,
    /// Where the rows are counted that it removes.
    growth: Option<Py<Growth>>,
    numbers: Option<Renumbering>,
}

/// Numbers, and the statements that set the one before the first and show the last.
type GivenNumbers = (Py<RowNumbers>, Option<(String, String)>);

/// Numbers for the rows that it changes: whoever has read the old ones finds them no more. One row
/// gets that of the last parameter. Of several each gets the next one of a setting, which begins
/// and ends with these statements; the last one that there is is the last parameter then.
struct Renumbering {
    numbers: Py<RowNumbers>,
    setting: Option<(String, String)>,
}

/// What the rows of one run are numbered with.
struct Numbered {
    first: i64,
    count: i64,
}

#[pymethods]
impl PassedChange {
    /// What begins its transaction and at last enters the session's token, what does that but for
    /// BEGIN in one statement, a verb, the server's text, the types of its parameters and how long
    /// texts may be, its columns, how many more check rows, where rows are counted that it removes,
    /// and numbers for the rows that it changes, of several with the statements that set the one
    /// before the first and show the last.
    #[new]
    #[allow(clippy::too_many_arguments)]
    fn new(
        session: Py<Session>,
        opening: Vec<GivenStep>,
        alone: Option<GivenStep>,
        verb: String,
        sql: String,
        parameters: Parameters,
        longest: Option<usize>,
        columns: Option<Vec<(Described, bool)>>,
        checks: usize,
        growth: Option<Py<Growth>>,
        numbers: Option<GivenNumbers>,
    ) -> PyResult<Self> {
        let shown = columns.iter().flatten().map(|item| item.1).collect();
        let all = |items: Vec<(Described, bool)>| {
            let columns = items.into_iter().map(|item| described(item.0));
            columns.collect()
        };
        Ok(Self {
            session,
            entering: Entering::new(opening, alone)?,
            verb,
            sql,
            parameters,
            longest,
            columns: columns.map(all),
            firm: shown,
            checks,
            growth,
            numbers: numbers.map(|(numbers, setting)| Renumbering { numbers, setting }),
        })
    }
}

impl PassedChange {
    /// Runs it with these values, `within` a transaction or in one of its own. The interpreter's
    /// lock is not held.
    pub(crate) fn run(
        &self,
        values: &Values,
        formats: &[i16],
        within: Option<&mut Transaction>,
    ) -> Ran {
        let shown = self.columns.as_deref().unwrap_or_default();
        let columns = match &self.columns {
            Some(_) => in_formats(shown, &self.firm, formats),
            None => Some(Vec::new()),
        };
        let (Some(columns), Some(bound)) = (columns, bound(&self.parameters, values)) else {
            return Ran::Other;
        };
        if self.is_too_long(values) {
            return Ran::Other;
        }
        let numbered = match &self.numbers {
            Some(renumbering) => match renumbering.begun() {
                Some(numbered) => Some(numbered),
                None => return Ran::Other,
            },
            None => None,
        };
        let mut wanted: Vec<i16> = columns.iter().map(|column| column.format).collect();
        wanted.extend(std::iter::repeat_n(1, self.checks));
        let (steps, behind) = self.steps(bound, numbered.as_ref());
        let replies = match within {
            Some(transaction) => self.run_within(steps, behind, &wanted, transaction),
            None => self.run_alone(steps, behind, &wanted),
        };
        let (replies, used) = match replies {
            Ok(mut replies) => {
                let last = if behind > 0 { replies.pop() } else { None };
                (Ok(replies.pop()), last.and_then(number).map(Some))
            }
            Err(Ran::Unsure) => return Ran::Unsure,
            Err(ran) => (Err(ran), Some(None)),
        };
        if let (Some(renumbering), Some(numbered), Some(last)) = (&self.numbers, numbered, used) {
            renumbering.end(&numbered, last);
        }
        match replies {
            Ok(reply) => reply.map_or(Ran::Unsure, |reply| self.outcome(reply, columns)),
            Err(ran) => ran,
        }
    }

    /// The statements of a run, and how many are behind the one that changes rows.
    fn steps(&self, mut values: Vec<Value>, numbered: Option<&Numbered>) -> (Vec<Step<'_>>, usize) {
        let setting = self.numbers.as_ref().and_then(|item| item.setting.as_ref());
        let mut steps = Vec::new();
        if let Some(numbered) = numbered {
            let last = numbered.first + numbered.count - 1;
            if let Some((set, _)) = setting {
                let before = (numbered.first - 1).to_string();
                steps.push(Step {
                    sql: set,
                    values: vec![Value::Text(before)],
                });
            }
            values.push(Value::Int8(last));
        }
        steps.push(Step {
            sql: &self.sql,
            values,
        });
        steps.extend(setting.map(|(_, shown)| Step {
            sql: shown,
            values: Vec::new(),
        }));
        (steps, usize::from(setting.is_some()))
    }

    /// What it cannot go on without.
    pub(crate) fn lacking(&self) -> Lacking<'_> {
        let numbers = self.numbers.iter().any(Renumbering::is_low);
        Lacking::of([].into_iter(), numbers, Vec::new())
    }

    fn is_too_long(&self, values: &Values) -> bool {
        let Some(longest) = self.longest else {
            return false;
        };
        let mut given = values.values.iter().zip(&self.parameters);
        given.any(|(value, &(_, type_, _))| {
            let Some(value) = value else {
                return false;
            };
            let is_short = value.len() <= longest;
            let count = || std::str::from_utf8(value).map(|text| text.chars().count());
            TEXTS.contains(&type_) && !is_short && count().is_ok_and(|count| count > longest)
        })
    }

    fn run_alone(
        &self,
        own: Vec<Step<'_>>,
        behind: usize,
        formats: &[i16],
    ) -> Result<Vec<Reply>, Ran> {
        let (mut steps, commits) = self.entering.whole();
        let begun = steps.len();
        let at = begun + own.len() - 1 - behind;
        steps.extend(own);
        steps.extend(commits.then_some(Step {
            sql: "COMMIT",
            values: Vec::new(),
        }));
        let relay = Relay {
            at,
            formats,
            hidden: self.checks,
        };
        let session = self.session.get();
        match session.relayed(&steps, relay, false).ok_or(Ran::Other)? {
            Ok(mut replies) => {
                let is_kept = !commits || replies.pop().is_some_and(|reply| reply.tag == "COMMIT");
                let reply = replies.get(at).filter(|_| is_kept).ok_or(Ran::Other)?;
                if let Some(growth) = &self.growth {
                    growth.get().add(-removed(reply), &[]);
                }
                Ok(replies)
            }
            Err(error) if error.is_fatal() => Err(Ran::Unsure),
            Err(error) => {
                let _ = session.direct_within(
                    &[Step {
                        sql: "ROLLBACK",
                        values: Vec::new(),
                    }],
                    &mut || false,
                );
                Err(match &error {
                    Error::Server(said) if said.code == CANCELLED => {
                        Ran::Done(Err(cancelled(said)))
                    }
                    Error::Server(said) if said.code == UNEXPECTED && said.statement < begun => {
                        Ran::Stale
                    }
                    _ => Ran::Other,
                })
            }
        }
    }

    fn run_within(
        &self,
        own: Vec<Step<'_>>,
        behind: usize,
        formats: &[i16],
        transaction: &mut Transaction,
    ) -> Result<Vec<Reply>, Ran> {
        let token = (!transaction.entered).then(|| self.entering.token());
        let steps: Vec<Step<'_>> = token.into_iter().chain(own).collect();
        match transaction
            .relay(&steps, behind, formats, self.checks)
            .ok_or(Ran::Other)?
        {
            Ok(replies) => {
                transaction.entered = true;
                let at = replies.len().checked_sub(1 + behind).ok_or(Ran::Other)?;
                let reply = replies.get(at).ok_or(Ran::Other)?;
                if let Some(growth) = &self.growth {
                    transaction.grow(growth.get(), -removed(reply), &[]);
                }
                Ok(replies)
            }
            Err(Error::Server(said)) if said.code == CANCELLED => {
                Err(Ran::Done(Err(cancelled(&said))))
            }
            Err(_) => Err(Ran::Other),
        }
    }

    fn outcome(&self, reply: Reply, columns: Vec<Column>) -> Ran {
        let width = columns.len() + self.checks;
        let is_described = reply.rows.fields.len() == width && are_as_described(&reply, &columns);
        let verb = &self.verb;
        if self.columns.is_none() {
            let tag = format!("{verb} {}", reply.count());
            return Ran::Done(Ok(Outcome::Done { tag }));
        }
        if !is_described {
            // It is done, and the server's table is another one than the catalog says.
            return Ran::Unsure;
        }
        Ran::Done(Ok(Outcome::Rows {
            tag: format!("{verb} "),
            columns,
            messages: reply.relayed.messages,
            ends: reply.relayed.ends,
        }))
    }
}

impl Renumbering {
    fn is_low(&self) -> bool {
        let left = self.numbers.get().left();
        left == 0 || (self.setting.is_some() && left < FEWEST)
    }

    /// Numbers for a run; None where there are too few.
    fn begun(&self) -> Option<Numbered> {
        if self.is_low() {
            return None;
        }
        let (first, count) = match &self.setting {
            Some(_) => self.numbers.get().take_all(),
            None => (self.numbers.get().take()?, 1),
        };
        Some(Numbered { first, count })
    }

    /// Gives those back that a run of several rows has not used, of which this is the last one
    /// that it has; None if it was undone.
    fn end(&self, numbered: &Numbered, last: Option<i64>) {
        let Numbered { first, count } = *numbered;
        let used = last.map_or(0, |last| last - first + 1);
        if self.setting.is_some() && (0..=count).contains(&used) {
            self.numbers.get().give_back(first + used, count - used);
        }
    }
}

fn removed(reply: &Reply) -> i64 {
    i64::try_from(reply.count()).unwrap_or(i64::MAX)
}
