//! `louver._rust.postgres`: sessions of a PostgreSQL server, rows as Arrow.

use crate::copy_parts::Parts;
use crate::postgres_failures::{fields, raised, ConnectionLost};
use crate::postgres_replies::{arrays, Reply};
use crate::postgres_values::Given;
use crate::sealed_rows::SealedRow;
use louver_postgres::{
    Binding, Cancel, Check, Connection, Field, Host, Identity, Look, Relay, Roots, Secret,
    Settings, State, Step, Tls,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// One session. Its calls run one after the other; `cancel` may be called from any thread.
#[pyclass(frozen, module = "louver._rust.postgres")]
pub(crate) struct Session {
    connection: Mutex<Option<Connection>>,
    cancel: Cancel,
}

#[pymethods]
impl Session {
    /// Opens a session. `host` is the folder of a Unix socket where it begins with `/`. `tls` is
    /// `(what is checked: "nothing", "authority" or "name", the file of the roots or None for the
    /// system's, None or the files of our certificate and its key)`; without, only loopback
    /// addresses are connected to. `binding` of the password's proof to it: "off", "offered" or
    /// "required".
    #[new]
    #[pyo3(signature = (host, port, user, database, password=None, parameters=Vec::new(),
                        timeout_ms=10_000, most_message_bytes=1 << 30, tls=None,
                        binding="offered"))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        host: String,
        port: u16,
        user: String,
        database: String,
        password: Option<String>,
        parameters: Vec<(String, String)>,
        timeout_ms: u64,
        most_message_bytes: usize,
        tls: Option<GivenTls>,
        binding: &str,
    ) -> PyResult<Self> {
        let host = if host.starts_with('/') {
            Host::Folder(host.into())
        } else {
            Host::Network(host)
        };
        let password = password.map(Secret::new);
        let settings = Settings {
            host,
            tls: tls.map(given_tls).transpose()?,
            binding: match binding {
                "off" => Binding::Off,
                "offered" => Binding::Offered,
                "required" => Binding::Required,
                _ => return Err(PyValueError::new_err("unknown binding")),
            },
            port,
            user,
            database,
            password,
            parameters,
            timeout_ms,
            most_message_bytes,
        };
        let connection = py.detach(|| Connection::open(settings)).map_err(raised)?;
        let cancel = connection.cancel();
        Ok(Self {
            connection: Mutex::new(Some(connection)),
            cancel,
        })
    }

    /// `([oid of each parameter], [column])`, a column being `(name, oid, modifier, table,
    /// attribute)`.
    #[pyo3(signature = (sql, types=Vec::new()))]
    fn describe(
        &self,
        py: Python<'_>,
        sql: String,
        types: Vec<u32>,
    ) -> PyResult<(Vec<u32>, Vec<Described>)> {
        let said = self.with(py, |connection, look| {
            connection.describe(&sql, &types, look)
        })?;
        Ok((
            said.parameters,
            said.columns.into_iter().map(described).collect(),
        ))
    }

    /// Runs `[(sql, [value])]` in one round trip. A value may be `(Arrow array, oid of its items)`.
    fn run(&self, py: Python<'_>, statements: Vec<(String, Vec<Given>)>) -> PyResult<Vec<Reply>> {
        let mut steps = Vec::with_capacity(statements.len());
        let mut texts = Vec::with_capacity(statements.len());
        for (sql, given) in statements {
            texts.push(sql);
            steps.push(Given::values(given)?);
        }
        let steps: Vec<Step<'_>> = texts
            .iter()
            .zip(steps)
            .map(|(sql, values)| Step { sql, values })
            .collect();
        let replies = self.with(py, |connection, look| connection.run(&steps, look))?;
        Ok(replies.into_iter().map(Reply::of).collect())
    }

    /// Opens a portal in the open transaction; its columns.
    fn open_portal(
        &self,
        py: Python<'_>,
        portal: String,
        sql: String,
        values: Vec<Given>,
    ) -> PyResult<Vec<Described>> {
        let values = Given::values(values)?;
        let step = Step { sql: &sql, values };
        let columns = self.with(py, |c, look| c.open_portal(&portal, &step, look))?;
        Ok(columns.into_iter().map(described).collect())
    }

    /// The next rows of a portal with these columns, as Arrow arrays; whether there may be more.
    fn fetch<'py>(
        &self,
        py: Python<'py>,
        portal: String,
        columns: Vec<Described>,
        most: i32,
    ) -> PyResult<(Vec<Bound<'py, PyAny>>, bool)> {
        let columns: Vec<Field> = columns.into_iter().map(field).collect();
        let (rows, more) = self.with(py, |c, look| c.fetch(&portal, &columns, most, look))?;
        let (fields, columns) = rows.finish();
        Ok((arrays(py, &fields, &columns)?, more))
    }

    /// Runs a `COPY … FROM STDIN (FORMAT binary)` of Arrow batches into columns of these types; the
    /// number of rows. What the batches raise comes out as it is, and nothing is written. Batches
    /// may be asked for `by_thread` where it does not matter which one does.
    #[pyo3(signature = (sql, types, batches, by_thread=false))]
    fn copy_in(
        &self,
        py: Python<'_>,
        sql: String,
        types: Vec<u32>,
        batches: Py<PyAny>,
        by_thread: bool,
    ) -> PyResult<u64> {
        let parts = Parts::new(batches.bind(py), types, by_thread)?;
        // Without the lock: at the end it waits for a thread that may want it.
        py.detach(|| {
            std::thread::scope(|scope| {
                // It goes before the thread is waited for, whose channel is closed then.
                let mut parts = parts;
                Python::attach(|py| {
                    self.with(py, |connection, look| {
                        connection.copy_in(&sql, || parts.next(scope), look)
                    })
                })
            })
        })?
    }

    /// Ends the statement that runs; nothing if none does.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.cancel.send()).map_err(raised)
    }

    /// "idle", "within" a transaction, or within one that "failed".
    fn state(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.with(py, |connection, _| {
            Ok(match connection.state() {
                State::Idle => "idle",
                State::Within => "within",
                State::Failed => "failed",
            })
        })
    }

    /// Whether it cannot be used any more.
    fn is_broken(&self, py: Python<'_>) -> bool {
        self.with(py, |connection, _| Ok(connection.is_broken()))
            .unwrap_or(true)
    }

    /// Bytes that came, and that went.
    fn traffic(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        self.with(py, |connection, _| Ok(connection.traffic()))
    }

    /// Prepares every statement anew from now on: the tables of this session change.
    fn keep_no_statements(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |connection, _| {
            connection.keep_no_statements();
            Ok(())
        })
    }

    /// Prepares every statement anew when it is next sent: tables were made anew.
    fn forget_statements(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |connection, _| {
            connection.forget_statements();
            Ok(())
        })
    }

    /// Whether statements stay prepared: they do unless a pooler is in between.
    fn keeps_statements(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |connection, _| Ok(connection.keeps_statements()))
    }

    /// What the server says of itself.
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = self.with(py, |connection, _| Ok(connection.parameters.clone()))?;
        let dict = PyDict::new(py);
        for (name, value) in all {
            dict.set_item(name, value)?;
        }
        Ok(dict)
    }

    /// The notices that came since they were last asked for, as dicts.
    fn notices<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let all = self.with(py, |connection, _| {
            Ok(std::mem::take(&mut connection.notices))
        })?;
        let list = PyList::empty(py);
        for notice in &all {
            list.append(fields(py, notice)?)?;
        }
        Ok(list)
    }

    /// `[(channel, what was said)]` since they were last asked for.
    fn notifications(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        self.with(py, |c, _| Ok(c.notifications.drain(..).collect()))
    }

    /// Says goodbye; calls behind it raise ConnectionLost.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            let mut held = self
                .connection
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if let Some(connection) = held.take() {
                connection.close();
            }
        });
    }
}

/// What came of statements; None where they were not sent.
type Direct = Option<louver_postgres::Result<Vec<louver_postgres::Reply>>>;

impl Session {
    /// Runs statements for a caller that holds no lock of the interpreter's. None where the session
    /// is closed, and within a transaction: whoever is in one there goes another way.
    pub(crate) fn direct(&self, steps: &[Step<'_>], look: Look<'_>) -> Direct {
        self.unlocked(false, |connection| connection.run(steps, look))
    }

    /// The same, but that the rows of one statement are relayed; or `within` a transaction that
    /// such a caller has begun.
    pub(crate) fn relayed(&self, steps: &[Step<'_>], relay: Relay<'_>, within: bool) -> Direct {
        self.unlocked(within, |connection| {
            connection.relay(steps, relay, &mut || false)
        })
    }

    /// Runs statements within a transaction that such a caller has begun.
    pub(crate) fn direct_within(&self, steps: &[Step<'_>], look: Look<'_>) -> Direct {
        self.unlocked(true, |connection| connection.run(steps, look))
    }

    fn unlocked(
        &self,
        within: bool,
        call: impl FnOnce(&mut Connection) -> louver_postgres::Result<Vec<louver_postgres::Reply>>,
    ) -> Direct {
        let mut held = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let connection = held.as_mut()?;
        let fits = (connection.state() != State::Idle) == within && !connection.is_broken();
        fits.then(|| call(connection))
    }

    /// Without the interpreter's lock; a signal that raises ends the statement and comes out.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut Connection, Look<'_>) -> louver_postgres::Result<T> + Send,
    ) -> PyResult<T> {
        let mut signal = None;
        let done = py.detach(|| {
            let mut held = self
                .connection
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let connection = held.as_mut()?;
            Some(call(connection, &mut || {
                signal = Python::attach(|py| py.check_signals()).err();
                signal.is_some()
            }))
        });
        if let Some(signal) = signal {
            return Err(signal);
        }
        done.ok_or_else(|| ConnectionLost::new_err("the session is closed"))?
            .map_err(raised)
    }
}

type GivenTls = (String, Option<PathBuf>, Option<(PathBuf, PathBuf)>);

fn given_tls((check, roots, identity): GivenTls) -> PyResult<Tls> {
    let check = match check.as_str() {
        "nothing" => Check::Nothing,
        "authority" => Check::Authority,
        "name" => Check::Name,
        _ => return Err(PyValueError::new_err("unknown check")),
    };
    Ok(Tls {
        check,
        roots: roots.map_or(Roots::System, Roots::File),
        identity: identity.map(|(certificate, key)| Identity { certificate, key }),
    })
}

pub(crate) type Described = (String, u32, i32, u32, i16);

pub(crate) fn described(field: Field) -> Described {
    (
        field.name,
        field.type_,
        field.modifier,
        field.table,
        field.attribute,
    )
}

fn field((name, type_, modifier, table, attribute): Described) -> Field {
    Field {
        name,
        table,
        attribute,
        type_,
        modifier,
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SealedRow>()?;
    module.add_class::<Session>()?;
    module.add_class::<Reply>()?;
    crate::copies::register(module)?;
    crate::postgres_failures::register(module)
}
