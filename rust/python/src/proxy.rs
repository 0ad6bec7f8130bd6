//! `louver._rust.proxy`: the front door, whose statements Python runs.

use crate::proxy_values::{columns, failure, fields, rows};
use bytes::Bytes;
use louver_proxy::{
    Address, Canceller, Certificate, Column, CopyForm, Done, Engine, Failure, Fields, Greeting,
    Kind, Opener, Options, Outcome, Server as Serving, Statement, Stop, Users, Values,
};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What Python says is wrong with the start of a server.
fn raised(error: louver_proxy::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// One client's engine: an object of Python's.
struct Client {
    object: Py<PyAny>,
    canceller: Arc<Cancelling>,
    /// The settings that were told last.
    settings: Vec<(String, String)>,
    status: u8,
    listens: bool,
    notices: Vec<Fields>,
}

struct Cancelling(Py<PyAny>);

impl Canceller for Cancelling {
    fn cancel(&self) {
        Python::attach(|py| {
            let _ = self.0.call_method0(py, "cancel");
        });
    }
}

impl Client {
    /// Calls a method, and takes over what it changed.
    fn call<'py, T>(
        &mut self,
        py: Python<'py>,
        call: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
    ) -> Done<T> {
        let object = self.object.bind(py).clone();
        let done = call(&object).map_err(|error| failure(py, &error));
        let after = self.after(&object);
        match (done, after) {
            (Ok(done), Ok(())) => Ok(done),
            (Err(failure), _) => Err(failure),
            (Ok(_), Err(error)) => Err(failure(py, &error)),
        }
    }

    fn after(&mut self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let (status, listens, settings, notices): (String, bool, Option<_>, Vec<Py<PyDict>>) =
            object.call_method0("after")?.extract()?;
        self.status = status.bytes().next().unwrap_or(b'E');
        self.listens = listens;
        if let Some(settings) = settings {
            self.settings = settings;
        }
        for notice in notices {
            self.notices
                .push(fields(notice.bind(object.py()), "NOTICE")?);
        }
        Ok(())
    }
}

impl Engine for Client {
    type Handle = Py<PyAny>;

    fn settings(&mut self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn split(&mut self, sql: &str) -> Done<Vec<String>> {
        Python::attach(|py| self.call(py, |o| o.call_method1("split", (sql,))?.extract()))
    }

    fn prepare(&mut self, sql: &str, types: &[u32]) -> Done<Statement<Py<PyAny>>> {
        Python::attach(|py| {
            self.call(py, |object| {
                let prepared = object.call_method1("prepare", (sql, types.to_vec()))?;
                let kind: String = prepared.getattr("kind")?.extract()?;
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
                    handle: prepared.unbind(),
                })
            })
        })
    }

    fn describe(&mut self, statement: &Statement<Py<PyAny>>) -> Done<Option<Vec<Column>>> {
        Python::attach(|py| {
            let handle = statement.handle.bind(py).clone();
            self.call(py, |object| {
                columns(&object.call_method1("describe", (handle,))?)
            })
        })
    }

    fn cursor(&mut self, name: &str) -> Done<Option<Vec<Column>>> {
        Python::attach(|py| self.call(py, |o| columns(&o.call_method1("cursor", (name,))?)))
    }

    fn run(
        &mut self,
        statement: &Statement<Py<PyAny>>,
        values: &Values,
        formats: &[i16],
    ) -> Done<Outcome> {
        Python::attach(|py| {
            let given: Vec<Option<Bound<'_, PyBytes>>> = values
                .values
                .iter()
                .map(|value| value.as_ref().map(|bytes| PyBytes::new(py, bytes)))
                .collect();
            let handle = statement.handle.bind(py).clone();
            let forms = values.formats.clone();
            self.call(py, |object| {
                let given = (handle, given, forms, formats.to_vec());
                outcome(&object.call_method1("run", given)?)
            })
        })
    }

    fn copy_in(&mut self, data: &[u8]) -> Done<()> {
        Python::attach(|py| {
            let data = PyBytes::new(py, data);
            self.call(py, |object| {
                object.call_method1("copy_in", (data,)).map(drop)
            })
        })
    }

    fn copy_end(&mut self, reason: Option<&str>) -> Done<String> {
        Python::attach(|py| self.call(py, |o| o.call_method1("copy_end", (reason,))?.extract()))
    }

    fn copy_out(&mut self) -> Done<Option<Bytes>> {
        Python::attach(|py| {
            self.call(py, |object| {
                let piece: Option<Vec<u8>> = object.call_method0("copy_out")?.extract()?;
                Ok(piece.map(Bytes::from))
            })
        })
    }

    fn begin(&mut self) -> Done<()> {
        Python::attach(|py| self.call(py, |object| object.call_method0("begin").map(drop)))
    }

    fn end(&mut self, commit: bool) -> Done<()> {
        Python::attach(|py| self.call(py, |o| o.call_method1("end", (commit,)).map(drop)))
    }

    fn fail(&mut self) {
        let _ = Python::attach(|py| self.call(py, |o| o.call_method0("fail").map(drop)));
    }

    fn status(&mut self) -> u8 {
        self.status
    }

    fn notices(&mut self) -> Vec<Fields> {
        std::mem::take(&mut self.notices)
    }

    fn listens(&self) -> bool {
        self.listens
    }

    fn notifications(&mut self) -> Done<Vec<(u32, String, String)>> {
        Python::attach(|py| self.call(py, |o| o.call_method0("notifications")?.extract()))
    }

    fn canceller(&self) -> Arc<dyn Canceller> {
        Arc::clone(&self.canceller) as Arc<dyn Canceller>
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        Python::attach(|py| {
            let _ = self.object.call_method0(py, "close");
        });
    }
}

/// What `run` gave: `None`, a tag, the begin of a COPY, or rows. A COPY is `("text", "csv" or
/// "binary", columns)`, with quote and escape where it gives data.
fn outcome(given: &Bound<'_, PyAny>) -> PyResult<Outcome> {
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

struct Opening(Py<PyAny>);

impl Opener for Opening {
    type Engine = Client;

    fn open(&self, greeting: &Greeting) -> Done<Client> {
        Python::attach(|py| {
            let given = (
                greeting.user.as_str(),
                greeting.database.as_str(),
                greeting.parameters.clone(),
            );
            let object = self.0.call1(py, given).map_err(|e| failure(py, &e))?;
            let mut client = Client {
                canceller: Arc::new(Cancelling(object.clone_ref(py))),
                object,
                settings: Vec::new(),
                status: b'I',
                listens: false,
                notices: Vec::new(),
            };
            client.call(py, |_| Ok(()))?;
            Ok(client)
        })
    }
}

/// Clients of PostgreSQL, and what serves them.
#[pyclass(frozen, module = "louver._rust.proxy")]
struct Server {
    serving: Mutex<Option<Serving<Opening>>>,
    stop: Arc<Stop>,
    counts: Arc<louver_proxy::Counts>,
    addresses: Vec<(String, u16)>,
}

#[pymethods]
impl Server {
    /// Listens on `[(name, port) or (path of a socket, None)]`. `opener(user, database,
    /// [(name, value)])` gives what runs a client's statements. `users` is a file of users, whose
    /// passwords are asked for; without one, only this machine's clients are let in. `certificate`
    /// is the files of a certificate's chain and of its key.
    #[new]
    #[pyo3(signature = (addresses, opener, users=None, certificate=None, tls_required=false,
                        most_clients=500, most_message_bytes=1 << 30, patience_ms=60_000))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        addresses: Vec<(String, Option<u16>)>,
        opener: Py<PyAny>,
        users: Option<PathBuf>,
        certificate: Option<(PathBuf, PathBuf)>,
        tls_required: bool,
        most_clients: usize,
        most_message_bytes: usize,
        patience_ms: u64,
    ) -> PyResult<Self> {
        let addresses: Vec<Address> = addresses
            .into_iter()
            .map(|(name, port)| match port {
                Some(port) => Address::Network(name, port),
                None => Address::Socket(name.into()),
            })
            .collect();
        let trust_loopback = users.is_none();
        let users = match users {
            Some(path) => Users::read(&path),
            None => Users::none(),
        };
        let certificate = certificate.map(|(chain, key)| Certificate::read(&chain, &key));
        let options = Options {
            certificate: certificate.transpose().map_err(raised)?.map(Arc::new),
            tls_required,
            users: Arc::new(users.map_err(raised)?),
            trust_loopback,
            most_message_bytes,
            patience: Duration::from_millis(patience_ms),
        };
        let stop = Arc::new(Stop::new()?);
        let opening = Opening(opener);
        let serving = Serving::new(
            &addresses,
            opening,
            options,
            most_clients,
            Arc::clone(&stop),
        )
        .map_err(raised)?;
        Ok(Self {
            counts: serving.counts(),
            addresses: serving
                .addresses()
                .iter()
                .map(|address| (address.ip().to_string(), address.port()))
                .collect(),
            serving: Mutex::new(Some(serving)),
            stop,
        })
    }

    /// The numbers and ports that it listens on in the network.
    #[getter]
    fn addresses(&self) -> Vec<(String, u16)> {
        self.addresses.clone()
    }

    /// Serves until `stop` is called, then until all clients have gone, or for so long; the number
    /// of those that are left. Signals are the caller's: it serves on a thread of its own.
    fn run(&self, py: Python<'_>, patience_ms: u64) -> PyResult<usize> {
        let mut held = self.serving.lock().unwrap_or_else(PoisonError::into_inner);
        let serving = held.take();
        drop(held);
        let serving = serving.ok_or_else(|| PyRuntimeError::new_err("it has run"))?;
        py.detach(|| serving.run(Duration::from_millis(patience_ms)))
            .map_err(raised)
    }

    /// Lets nobody in any more.
    fn stop(&self) {
        self.stop.set();
    }

    /// Clients that are there, that were greeted, that were turned away, and cancellations.
    fn counts(&self) -> (usize, u64, u64, u64) {
        use std::sync::atomic::Ordering::SeqCst;
        let c = &self.counts;
        (
            c.clients.load(SeqCst),
            c.greeted.load(SeqCst),
            c.refused.load(SeqCst),
            c.cancelled.load(SeqCst),
        )
    }
}

/// What the file of users has of a password.
#[pyfunction]
fn verifier(password: String) -> PyResult<String> {
    louver_proxy::verifier(&louver_proxy::Secret::new(password)).map_err(raised)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(verifier, module)?)?;
    module.add_class::<Server>()
}

/// A failure of a kind that the front door does not know: its kind, and nothing of its text.
pub(crate) fn internal(kind: &str) -> Failure {
    Failure::error("XX000", format!("internal error ({kind})"))
}
