//! `louver._rust.proxy`: the front door, whose statements Python runs.

use crate::proxy_client::Client;
use crate::proxy_growth::{Growth, RowNumbers};
use crate::proxy_guest::Guest;
use crate::proxy_passes::Pass;
use crate::proxy_reads::Read;
use crate::proxy_rows::{Chosen, NewRow};
use crate::proxy_values::failure;
use crate::proxy_writes::Write;
use crate::reserve::Reserve;
use louver_proxy::{
    Address, Certificate, Done, Failure, Greeting, Lender, Options, Pool, Pooled,
    Server as Serving, Sharing, Stop, Users,
};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What Python says is wrong with the start of a server.
fn raised(error: louver_proxy::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Python's object, which opens sessions and knows who may come.
struct Opening(Py<PyAny>);

impl Lender for Opening {
    type Engine = Client;

    fn visitor(&self, greeting: &Greeting) -> Done<Guest> {
        Python::attach(|py| {
            let given = (
                greeting.user.as_str(),
                greeting.database.as_str(),
                greeting.parameters.clone(),
            );
            let object = self.0.call_method1(py, "visitor", given);
            Ok(Guest::new(object.map_err(|e| failure(py, &e))?))
        })
    }

    fn open(&self) -> Done<Client> {
        Python::attach(|py| {
            let object = self.0.call_method0(py, "open");
            Client::new(py, object.map_err(|e| failure(py, &e))?)
        })
    }
}

/// Clients of PostgreSQL, and what serves them.
#[pyclass(frozen, module = "louver._rust.proxy")]
struct Server {
    serving: Mutex<Option<Serving<Pool<Opening>>>>,
    stop: Arc<Stop>,
    counts: Arc<louver_proxy::Counts>,
    pool: Arc<dyn Pooled>,
    addresses: Vec<(String, u16)>,
}

#[pymethods]
impl Server {
    /// Listens on `[(name, port) or (path of a socket, None)]`. `opener.open()` gives what runs
    /// statements of one client after the other, and `opener.visitor(user, database,
    /// [(name, value)])` who a client is. `users` is a file of users, whose passwords are asked
    /// for; without one, only this machine's clients are let in. `certificate` is the files of a
    /// certificate's chain and of its key. `pool_size` sessions are kept for later clients, or
    /// `by_transaction` serve all of them, each waiting at most `pool_patience_ms`.
    #[new]
    #[pyo3(signature = (addresses, opener, users=None, certificate=None, tls_required=false,
                        most_clients=500, most_message_bytes=1 << 30, patience_ms=60_000,
                        by_transaction=false, pool_size=16, pool_patience_ms=60_000))]
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
        by_transaction: bool,
        pool_size: usize,
        pool_patience_ms: u64,
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
        let sharing = Sharing {
            by_transaction,
            size: pool_size,
            patience: Duration::from_millis(pool_patience_ms),
        };
        let pool = Pool::new(Opening(opener), sharing);
        let pooled = pool.pooled();
        let serving = Serving::new(&addresses, pool, options, most_clients, Arc::clone(&stop))
            .map_err(raised)?;
        Ok(Self {
            pool: pooled,
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

    /// Sessions of the pool that there are, that are idle, and clients that wait for one.
    fn pooled(&self) -> (usize, usize, usize) {
        self.pool.counts()
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
    module.add_class::<Read>()?;
    module.add_class::<Reserve>()?;
    module.add_class::<RowNumbers>()?;
    module.add_class::<Growth>()?;
    module.add_class::<Chosen>()?;
    module.add_class::<NewRow>()?;
    module.add_class::<Write>()?;
    module.add_class::<Pass>()?;
    module.add_class::<Server>()
}

/// A failure of a kind that the front door does not know: its kind, and nothing of its text.
pub(crate) fn internal(kind: &str) -> Failure {
    Failure::error("XX000", format!("internal error ({kind})"))
}
