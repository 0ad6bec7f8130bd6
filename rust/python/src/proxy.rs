//! `louver._rust.proxy`: the front door, whose statements Python runs.

use crate::proxy_client::Client;
use crate::proxy_finish::Finish;
use crate::proxy_growth::{Growth, RowNumbers};
use crate::proxy_guest::Guest;
use crate::proxy_passes::Pass;
use crate::proxy_reads::Read;
use crate::proxy_relays::PassedChange;
use crate::proxy_returning::Returning;
use crate::proxy_rows::{Chosen, NewRow};
use crate::proxy_sequences::SequenceNumbers;
use crate::proxy_transactions::Begin;
use crate::proxy_values::failure;
use crate::proxy_writes::Write;
use crate::reserve::{self, Reserve};
use louver_proxy::{
    Address, Audit, Certificate, Done, Failure, Greeting, Lender, Level, Log, Monitor, Monitored,
    Options, Pool, Pooled, Server as Serving, Sharing, Stop, Users,
};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What Python says is wrong with the start of a server.
fn raised(error: louver_proxy::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Python's object, which opens sessions, and who may come.
struct Opening(Py<PyAny>, Arc<Users>);

impl Lender for Opening {
    type Engine = Client;

    fn visitor(&self, greeting: &Greeting) -> Done<Guest> {
        let words = self.1.verifier(&greeting.user);
        let words = words.map_or_else(Vec::new, |known| known.words.clone());
        Python::attach(|py| {
            let given = (
                greeting.user.as_str(),
                greeting.database.as_str(),
                greeting.parameters.clone(),
                words,
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
    monitored: Vec<(String, u16)>,
}

#[pymethods]
impl Server {
    /// Listens on `[(name, port) or (path of a socket, None)]`. `opener.open()` gives what runs
    /// statements of one client after the other, and `opener.visitor(user, database,
    /// [(name, value)], [(key, value)])` who a client is; the last are the words of the user's line
    /// in the file of users. `users` is that file, whose passwords are asked for; without one, only
    /// this machine's clients are let in. `certificate` is the files of a certificate's chain and
    /// of its key. `pool_size` sessions are kept for later clients, or `by_transaction` serve all
    /// of them, each waiting at most `pool_patience_ms`. Each statement is written down in `audit`;
    /// `log` is a file, or None for the standard error, and the least level that is written.
    /// `monitor` is an address, and what says whether the server behind answers.
    #[new]
    #[pyo3(signature = (addresses, opener, users=None, certificate=None, tls_required=false,
                        most_clients=500, most_message_bytes=1 << 30, patience_ms=60_000,
                        by_transaction=false, pool_size=16, pool_patience_ms=60_000,
                        audit=None, log=None, monitor=None))]
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
        audit: Option<PathBuf>,
        log: Option<(Option<PathBuf>, String)>,
        monitor: Option<GivenMonitor>,
    ) -> PyResult<Self> {
        let addresses: Vec<Address> = addresses.into_iter().map(address).collect();
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
            audit: audit
                .map(|path| Audit::open(&path).map(Arc::new))
                .transpose()
                .map_err(raised)?,
            log: log.map(opened_log).transpose()?.map(Arc::new),
        };
        let stop = Arc::new(Stop::new()?);
        let sharing = Sharing {
            by_transaction,
            size: pool_size,
            patience: Duration::from_millis(pool_patience_ms),
        };
        let audit = options.audit.clone();
        let pool = Pool::new(Opening(opener, Arc::clone(&options.users)), sharing);
        let pooled = pool.pooled();
        let serving = Serving::new(&addresses, pool, options, most_clients, Arc::clone(&stop))
            .map_err(raised)?;
        let monitored = monitored(&serving, monitor, (audit, Arc::clone(&pooled)), &stop)?;
        let named = |address: &SocketAddr| (address.ip().to_string(), address.port());
        Ok(Self {
            pool: pooled,
            monitored: monitored.iter().map(named).collect(),
            counts: serving.counts(),
            addresses: serving.addresses().iter().map(named).collect(),
            serving: Mutex::new(Some(serving)),
            stop,
        })
    }

    /// The numbers and ports that it listens on in the network.
    #[getter]
    fn addresses(&self) -> Vec<(String, u16)> {
        self.addresses.clone()
    }

    /// Those at which it answers what operators ask.
    #[getter]
    fn monitored(&self) -> Vec<(String, u16)> {
        self.monitored.clone()
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

fn address((name, port): (String, Option<u16>)) -> Address {
    match port {
        Some(port) => Address::Network(name, port),
        None => Address::Socket(name.into()),
    }
}

fn opened_log((path, level): (Option<PathBuf>, String)) -> PyResult<Log> {
    let level = Level::of(&level).ok_or_else(|| PyValueError::new_err("no level of the log"))?;
    Ok(Log::open(path.as_deref(), level)?)
}

type GivenMonitor = ((String, Option<u16>), Py<PyAny>);

/// Answers what operators ask, if that is wanted; at which addresses.
fn monitored(
    serving: &Serving<Pool<Opening>>,
    given: Option<GivenMonitor>,
    (audit, pool): (Option<Arc<Audit>>, Arc<dyn Pooled>),
    stop: &Arc<Stop>,
) -> PyResult<Vec<SocketAddr>> {
    let Some((own_address, well)) = given else {
        return Ok(Vec::new());
    };
    let own = Box::new(Monitoring(well, audit, pool));
    let monitor = Monitor::new(
        &address(own_address),
        serving.counts(),
        own,
        Arc::clone(stop),
    );
    let monitor = monitor.map_err(raised)?;
    let addresses = monitor.addresses();
    monitor.start().map_err(raised)?;
    Ok(addresses)
}

/// What Python says of the server behind, the audit, and the pool.
struct Monitoring(Py<PyAny>, Option<Arc<Audit>>, Arc<dyn Pooled>);

impl Monitored for Monitoring {
    fn is_well(&self) -> bool {
        Python::attach(|py| {
            let said = self.0.call0(py).and_then(|said| said.extract(py));
            said.unwrap_or(false)
        })
    }

    fn numbers(&self) -> Vec<(&'static str, &'static str, &'static str, u64)> {
        let (blocks, conditions) = reserve::counts();
        let lines = self.1.as_ref().map_or(0, |audit| audit.lines());
        let (sessions, idle, waiting) = self.2.counts();
        let gauge = |name, help, value: usize| (name, "gauge", help, value as u64);
        vec![
            gauge("pool_sessions", "Sessions of the pool.", sessions),
            gauge("pool_idle", "Those that no client has.", idle),
            gauge("pool_waiting", "Clients that wait for one.", waiting),
            (
                "audit_lines_total",
                "counter",
                "Lines of the audit file.",
                lines,
            ),
            (
                "ledger_blocks_total",
                "counter",
                "Blocks of conditions that were recorded ahead.",
                blocks,
            ),
            (
                "ledger_conditions_total",
                "counter",
                "Conditions that were taken from them.",
                conditions,
            ),
        ]
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
    module.add_class::<Finish>()?;
    module.add_class::<Reserve>()?;
    module.add_class::<Returning>()?;
    module.add_class::<RowNumbers>()?;
    module.add_class::<SequenceNumbers>()?;
    module.add_class::<Growth>()?;
    module.add_class::<Chosen>()?;
    module.add_class::<NewRow>()?;
    module.add_class::<Write>()?;
    module.add_class::<Pass>()?;
    module.add_class::<PassedChange>()?;
    module.add_class::<Begin>()?;
    module.add_class::<Server>()
}

/// A failure of a kind that the front door does not know: its kind, and nothing of its text.
pub(crate) fn internal(kind: &str) -> Failure {
    Failure::error("XX000", format!("internal error ({kind})"))
}
