//! Addresses that clients connect to. Each has a thread of its own (docs/decisions/0033).

use crate::addresses::{listen, Address, Listening};
use crate::engine::{Canceller, Engine, Opener};
use crate::error::{Error, Result};
use crate::greetings::Greetings;
use crate::json::Object;
use crate::log::Level;
use crate::metrics::Metrics;
use crate::observed::Observer;
use crate::pool::lock;
use crate::reply;
use crate::session::Session;
use crate::socket::{Client, Stream};
use crate::startup::{greet, Greeting, Opened, Options};
use crate::stop::Stop;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of the secret that a cancellation proves itself by: 4 in protocol 3.0.
const LONG_SECRET: usize = 32;
/// Stack of a client's thread. The planner needs most of it.
const STACK_BYTES: usize = 16 << 20;
/// So many connections may be greeted at a time, or as many as there may be clients.
const FEWEST_GREETINGS: usize = 64;

/// What a server has done.
#[derive(Debug, Default)]
pub struct Counts {
    /// Clients that are there.
    pub clients: AtomicUsize,
    /// Clients that were greeted.
    pub greeted: AtomicU64,
    /// Clients that were turned away.
    pub refused: AtomicU64,
    /// Cancellations that stopped something, or found nothing to stop.
    pub cancelled: AtomicU64,
    /// What happens to statements.
    pub metrics: Arc<Metrics>,
    /// The number of the next connection in the log.
    connections: AtomicU64,
}

struct Running {
    secret: Vec<u8>,
    canceller: Arc<dyn Canceller>,
}

/// What all sessions share.
struct Shared<O> {
    opener: O,
    options: Options,
    most_clients: usize,
    stop: Arc<Stop>,
    counts: Arc<Counts>,
    running: Mutex<HashMap<u32, Running>>,
    processes: AtomicU32,
    /// Clients whose sessions have not ended yet; signalled when one has.
    served: (Mutex<usize>, Condvar),
    greeting: Greetings,
}

/// Clients and what serves them.
pub struct Server<O> {
    listening: Vec<Listening>,
    shared: Arc<Shared<O>>,
}

impl<O: Opener + 'static> Server<O> {
    /// Listens on addresses.
    ///
    /// # Errors
    /// [`Error::Io`] for an address that cannot be used.
    pub fn new(
        addresses: &[Address],
        opener: O,
        options: Options,
        most_clients: usize,
        stop: Arc<Stop>,
    ) -> Result<Self> {
        let mut listening = Vec::new();
        for address in addresses {
            listen(address, &mut listening)?;
        }
        let shared = Shared {
            opener,
            options,
            most_clients,
            stop,
            counts: Arc::default(),
            running: Mutex::default(),
            processes: AtomicU32::new(1),
            served: (Mutex::new(0), Condvar::new()),
            greeting: Greetings::default(),
        };
        Ok(Self {
            listening,
            shared: Arc::new(shared),
        })
    }

    /// What it counts.
    #[must_use]
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.shared.counts)
    }

    /// The addresses in the network that it listens on.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listening
            .iter()
            .filter_map(Listening::address)
            .collect()
    }

    /// Serves until it is stopped, and then until all clients have gone, or for so long: idle ones
    /// are told, others may end their transaction. How many are left.
    ///
    /// # Errors
    /// [`Error::Io`] where no clients can be waited for.
    pub fn run(self, patience: Duration) -> Result<usize> {
        while !self.shared.stop.is_set() {
            let mut ready: Vec<PollFd<'_>> = Vec::new();
            for listening in &self.listening {
                ready.push(PollFd::from_borrowed_fd(listening.as_fd(), PollFlags::IN));
            }
            let signal = self.shared.stop.signal();
            ready.push(PollFd::from_borrowed_fd(signal.as_fd(), PollFlags::IN));
            match poll(&mut ready, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(Error::Io(error.into())),
            }
            let due: Vec<bool> = ready.iter().map(|r| !r.revents().is_empty()).collect();
            for (listening, _) in self.listening.iter().zip(&due).filter(|(_, due)| **due) {
                self.accept(listening);
            }
        }
        let shared = Arc::clone(&self.shared);
        for listening in &self.listening {
            if let Listening::Socket(_, path) = listening {
                let _ = std::fs::remove_file(path);
            }
        }
        drop(self);
        let clients = |line: Object| {
            line.number(
                "clients",
                shared.counts.clients.load(Ordering::SeqCst) as u64,
            )
        };
        shared.say(Level::Info, "draining", clients);
        let left = shared.drained(patience);
        shared.say(Level::Info, "ended", clients);
        Ok(left)
    }

    fn accept(&self, listening: &Listening) {
        let Ok(stream) = listening.accept() else {
            // Of too many open files: what goes makes room.
            std::thread::sleep(Duration::from_millis(20));
            return;
        };
        let shared = Arc::clone(&self.shared);
        let most = shared.most_clients.max(FEWEST_GREETINGS);
        let Ok(number) = shared.greeting.begin(&stream, most) else {
            shared.counts.refused.fetch_add(1, Ordering::SeqCst);
            return;
        };
        let builder = std::thread::Builder::new().name("client".to_owned());
        let spawned = builder.stack_size(STACK_BYTES).spawn({
            let shared = Arc::clone(&shared);
            move || {
                // A mistake of ours must not be the end of others.
                let served = std::panic::AssertUnwindSafe(|| shared.serve(stream, number));
                let _ = std::panic::catch_unwind(served);
                shared.greeting.end(number);
            }
        });
        if spawned.is_err() {
            shared.counts.refused.fetch_add(1, Ordering::SeqCst);
            shared.greeting.end(number);
        }
    }
}

impl<O: Opener> Shared<O> {
    fn serve(&self, stream: Stream, number: u64) {
        let connection = self.counts.connections.fetch_add(1, Ordering::SeqCst) + 1;
        let address = stream.address();
        self.say(Level::Info, "opened", |line| {
            line.number("connection", connection)
                .text("address", &address)
        });
        let opened = greet(stream, &self.options);
        self.greeting.end(number);
        match opened {
            Ok(Opened::Cancel { process, secret }) => self.cancel(process, &secret),
            Ok(Opened::Session(mut client, greeting)) => {
                self.counts.greeted.fetch_add(1, Ordering::SeqCst);
                let _served = Served::begin(self);
                let counted = Counted::begin(self);
                client.count(Arc::clone(&self.counts.metrics));
                // Whom the client is lost to, nobody is left to tell.
                let done = self.session(client, &greeting, counted);
                self.say(Level::Info, "closed", |line| {
                    let line = line.number("connection", connection);
                    line.some("state", done.err().map(|error| error.sqlstate()))
                });
            }
            Err(error) => {
                self.counts.refused.fetch_add(1, Ordering::SeqCst);
                self.say(Level::Warning, "refused", |line| {
                    let line = line.number("connection", connection);
                    line.text("state", error.sqlstate())
                });
            }
        }
    }

    fn session(&self, mut client: Client, greeting: &Greeting, counted: Counted<'_>) -> Result<()> {
        let refusal = if self.stop.is_set() {
            Some(("57P03", "the database system is shutting down"))
        } else if self.counts.clients.load(Ordering::SeqCst) > self.most_clients {
            Some(("53300", "sorry, too many clients already"))
        } else {
            None
        };
        let engine = match refusal {
            None => self.opener.open(greeting),
            Some((state, why)) => Err(crate::engine::Failure::fatal(state, why)),
        };
        let engine = match engine {
            Ok(engine) => engine,
            Err(mut failure) => {
                self.counts.refused.fetch_add(1, Ordering::SeqCst);
                failure.fields.severity = "FATAL";
                self.say(Level::Warning, "refused", |line| {
                    line.text("user", &greeting.user)
                        .text("state", &failure.fields.sqlstate)
                        .some("code", failure.fields.code.as_deref())
                });
                reply::error(&mut client.output, &failure.fields);
                return client.flush();
            }
        };
        let secret = secret(if greeting.minor == 0 { 4 } else { LONG_SECRET })?;
        let process = self.register(&secret, engine.canceller());
        self.say(Level::Info, "session", |line| {
            line.number("client", process.into())
                .text("address", &client.stream().address())
                .text("user", &greeting.user)
        });
        reply::backend_key(&mut client.output, process, &secret)?;
        let most = self.options.most_message_bytes;
        let observer = Observer {
            audit: self.options.audit.clone(),
            log: self.options.log.clone(),
            metrics: Arc::clone(&self.counts.metrics),
            user: greeting.user.clone(),
            process,
            address: client.stream().address(),
        };
        let mut session = Session::new(client, engine, most, &self.stop, observer);
        let done = session.run();
        self.running().remove(&process);
        // What is left of it may take a while to clear away, and keeps no other client out.
        drop(counted);
        drop(session);
        done
    }

    fn say(&self, level: Level, event: &str, more: impl FnOnce(Object) -> Object) {
        if let Some(log) = &self.options.log {
            log.say(level, event, more);
        }
    }

    fn register(&self, secret: &[u8], canceller: Arc<dyn Canceller>) -> u32 {
        let mut running = self.running();
        loop {
            let process = self.processes.fetch_add(1, Ordering::SeqCst) & 0x7fff_ffff;
            if process != 0 && !running.contains_key(&process) {
                let secret = secret.to_vec();
                running.insert(process, Running { secret, canceller });
                return process;
            }
        }
    }

    fn cancel(&self, process: u32, secret: &[u8]) {
        let canceller = {
            let running = self.running();
            let known = running.get(&process);
            known
                .filter(|known| same(&known.secret, secret))
                .map(|known| Arc::clone(&known.canceller))
        };
        if let Some(canceller) = canceller {
            self.counts.cancelled.fetch_add(1, Ordering::SeqCst);
            canceller.cancel();
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<u32, Running>> {
        lock(&self.running)
    }

    fn drained(&self, patience: Duration) -> usize {
        let end = Instant::now() + patience;
        let mut served = lock(&self.served.0);
        loop {
            let now = Instant::now();
            if *served == 0 || now >= end {
                return *served;
            }
            let waited = self.served.1.wait_timeout(served, end - now);
            served = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// A client that is counted for as long as this lasts, however it ends.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn begin<O>(shared: &'a Shared<O>) -> Self {
        shared.counts.clients.fetch_add(1, Ordering::SeqCst);
        Self(&shared.counts.clients)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A session that the end of the server waits for as long as this lasts, however it ends.
struct Served<'a>(&'a (Mutex<usize>, Condvar));

impl<'a> Served<'a> {
    fn begin<O>(shared: &'a Shared<O>) -> Self {
        *lock(&shared.served.0) += 1;
        Self(&shared.served)
    }
}

impl Drop for Served<'_> {
    fn drop(&mut self) {
        *lock(&self.0 .0) -= 1;
        self.0 .1.notify_all();
    }
}

fn secret(length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    getrandom::fill(&mut bytes)
        .map_err(|_| Error::Io(std::io::Error::other("no random bytes from the system")))?;
    Ok(bytes)
}

/// Whether two secrets are the same, in a time that does not tell where they differ.
fn same(own: &[u8], given: &[u8]) -> bool {
    own.len() == given.len() && own.iter().zip(given).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}
