//! UPDATE and DELETE of plain tables at the front door: the server is sent the values of Bind, and
//! changes its rows itself, behind the session's token, without the interpreter.

use crate::postgres::Session;
use crate::postgres_values::Given;
use crate::proxy_growth::{Growth, RowNumbers};
use crate::proxy_passes::{are_as_described, bound, cancelled, in_formats, Parameters, CANCELLED};
use crate::proxy_shown::Lacking;
use crate::proxy_transactions::Transaction;
use crate::proxy_values::{described, Described};
use crate::proxy_writes::Ran;
use louver_postgres::{Error, Relay, Reply, Step, Value};
use louver_proxy::{Column, Outcome, Values};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// What a guard does whose statement had another outcome: a division by zero.
const UNEXPECTED: &str = "22012";

/// text, char(n) and varchar.
const TEXTS: [u32; 3] = [25, 1042, 1043];

/// One change of a plain table, as Python has judged it.
#[pyclass(frozen, module = "louver._rust.proxy")]
pub(crate) struct PassedChange {
    session: Py<Session>,
    /// What begins the transaction, and what enters the session's token: it fails if that is void.
    opening: Vec<(String, Vec<Value>)>,
    token: (String, Vec<Value>),
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
    /// Numbers for the row that it changes: whoever has read the old one finds it no more.
    numbers: Option<Py<RowNumbers>>,
}

#[pymethods]
impl PassedChange {
    /// What begins its transaction and at last enters the session's token, a verb, the server's
    /// text, the types of its parameters and how long texts may be, its columns, how many more
    /// check rows, where rows are counted that it removes, and numbers for the row that it changes,
    /// one of which is its last parameter.
    #[new]
    #[allow(clippy::too_many_arguments)]
    fn new(
        session: Py<Session>,
        opening: Vec<(String, Vec<Given>)>,
        verb: String,
        sql: String,
        parameters: Parameters,
        longest: Option<usize>,
        columns: Option<Vec<(Described, bool)>>,
        checks: usize,
        growth: Option<Py<Growth>>,
        numbers: Option<Py<RowNumbers>>,
    ) -> PyResult<Self> {
        let own = |(sql, values)| Ok((sql, Given::values(values)?));
        let mut opening = opening.into_iter().map(own).collect::<PyResult<Vec<_>>>()?;
        let token = opening.pop();
        let token = token.ok_or_else(|| PyValueError::new_err("a change without a token"))?;
        let shown = columns.iter().flatten().map(|item| item.1).collect();
        let all = |items: Vec<(Described, bool)>| {
            let columns = items.into_iter().map(|item| described(item.0));
            columns.collect()
        };
        Ok(Self {
            session,
            opening,
            token,
            verb,
            sql,
            parameters,
            longest,
            columns: columns.map(all),
            firm: shown,
            checks,
            growth,
            numbers,
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
        let mut bound = bound;
        if let Some(numbers) = &self.numbers {
            let Some(number) = numbers.get().take() else {
                return Ran::Other;
            };
            bound.push(Value::Int8(number));
        }
        let statement = Step {
            sql: &self.sql,
            values: bound,
        };
        let mut wanted: Vec<i16> = columns.iter().map(|column| column.format).collect();
        wanted.extend(std::iter::repeat_n(1, self.checks));
        let reply = match within {
            Some(transaction) => self.run_within(statement, &wanted, transaction),
            None => self.run_alone(statement, &wanted),
        };
        match reply {
            Ok(reply) => self.outcome(reply, columns),
            Err(ran) => ran,
        }
    }

    /// What it cannot go on without.
    pub(crate) fn lacking(&self) -> Lacking<'_> {
        let numbers = self.numbers.iter().any(|numbers| numbers.get().is_empty());
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

    fn run_alone(&self, statement: Step<'_>, formats: &[i16]) -> Result<Reply, Ran> {
        let opening = self.opening.iter().chain([&self.token]);
        let mut steps: Vec<Step<'_>> = opening.map(step).collect();
        let at = steps.len();
        steps.push(statement);
        steps.push(Step {
            sql: "COMMIT",
            values: Vec::new(),
        });
        let relay = Relay {
            at,
            formats,
            hidden: self.checks,
        };
        let session = self.session.get();
        match session.relayed(&steps, relay, false).ok_or(Ran::Other)? {
            Ok(mut replies) => {
                let is_kept = replies.pop().is_some_and(|reply| reply.tag == "COMMIT");
                let reply = replies.pop().filter(|_| is_kept).ok_or(Ran::Other)?;
                if let Some(growth) = &self.growth {
                    growth.get().add(-removed(&reply));
                }
                Ok(reply)
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
                    Error::Server(said) if said.code == UNEXPECTED && said.statement < at => {
                        Ran::Stale
                    }
                    _ => Ran::Other,
                })
            }
        }
    }

    fn run_within(
        &self,
        statement: Step<'_>,
        formats: &[i16],
        transaction: &mut Transaction,
    ) -> Result<Reply, Ran> {
        let token = (!transaction.entered).then(|| step(&self.token));
        let steps: Vec<Step<'_>> = token.into_iter().chain([statement]).collect();
        match transaction
            .relay(&steps, formats, self.checks)
            .ok_or(Ran::Other)?
        {
            Ok(mut replies) => {
                transaction.entered = true;
                let reply = replies.pop().ok_or(Ran::Other)?;
                if let Some(growth) = &self.growth {
                    transaction.grow(growth.get(), -removed(&reply));
                }
                Ok(reply)
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

fn removed(reply: &Reply) -> i64 {
    i64::try_from(reply.count()).unwrap_or(i64::MAX)
}

fn step((sql, values): &(String, Vec<Value>)) -> Step<'_> {
    Step {
        sql,
        values: values.clone(),
    }
}
