//! What those who operate a server ask by HTTP: its numbers, whether it is well, and its state.
//!
//! Requests are read up to [`MOST_HEAD`] bytes, within [`PATIENCE`] as a whole, and at most
//! [`MOST_AT_ONCE`] at a time; only their first line counts, and each connection has one.

use crate::addresses::{listen, Address, Listening};
use crate::error::{Error, Result};
use crate::json::Object;
use crate::listener::Counts;
use crate::metrics::number;
use crate::socket::Stream;
use crate::stop::Stop;
use rustix::event::{poll, PollFd, PollFlags};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

const MOST_HEAD: usize = 4096;
const MOST_AT_ONCE: usize = 8;
const PATIENCE: Duration = Duration::from_secs(2);
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
const JSON: &str = "application/json";

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// Numbers for Prometheus.
    Metrics,
    /// Whether the server behind answers.
    Health,
    /// The state as JSON.
    Status,
}

/// Reads the head of a request; None while it is not all there. An error is the status that is
/// answered.
pub fn page(head: &[u8]) -> std::result::Result<Option<Page>, u16> {
    let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") else {
        return if head.len() >= MOST_HEAD {
            Err(431)
        } else {
            Ok(None)
        };
    };
    let line = head[..end].split(|byte| *byte == b'\r').next();
    let line = line.and_then(|line| std::str::from_utf8(line).ok());
    let mut words = line.ok_or(400_u16)?.split(' ');
    let (method, path, version) = (words.next(), words.next(), words.next());
    if !version.is_some_and(|version| version.starts_with("HTTP/1.")) || words.next().is_some() {
        return Err(400);
    }
    if method != Some("GET") {
        return Err(405);
    }
    match path.map(|path| path.split('?').next().unwrap_or_default()) {
        Some("/metrics") => Ok(Some(Page::Metrics)),
        Some("/health") => Ok(Some(Page::Health)),
        Some("/status") => Ok(Some(Page::Status)),
        _ => Err(404),
    }
}

/// What a monitor tells about a server.
pub trait Monitored: Send + Sync {
    /// Whether the server behind answers.
    fn is_well(&self) -> bool;

    /// Further numbers, as Prometheus reads them.
    fn numbers(&self) -> Vec<(&'static str, &'static str, &'static str, u64)>;
}

/// Answers requests, on a thread of its own.
pub struct Monitor {
    listening: Vec<Listening>,
    shared: Arc<Shared>,
}

struct Shared {
    counts: Arc<Counts>,
    monitored: Box<dyn Monitored>,
    stop: Arc<Stop>,
    began: Instant,
    at_once: AtomicUsize,
}

impl Monitor {
    /// Listens on an address.
    ///
    /// # Errors
    /// [`Error::Io`] for one that cannot be used.
    pub fn new(
        address: &Address,
        counts: Arc<Counts>,
        monitored: Box<dyn Monitored>,
        stop: Arc<Stop>,
    ) -> Result<Self> {
        let mut listening = Vec::new();
        listen(address, &mut listening)?;
        let (began, at_once) = (Instant::now(), AtomicUsize::new(0));
        Ok(Self {
            listening,
            shared: Arc::new(Shared {
                counts,
                monitored,
                stop,
                began,
                at_once,
            }),
        })
    }

    /// The addresses in the network that it listens on.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listening
            .iter()
            .filter_map(Listening::address)
            .collect()
    }

    /// Answers until the process ends, so also while clients are waited for.
    ///
    /// # Errors
    /// [`Error::Io`] where there is no thread for it.
    pub fn start(self) -> Result<()> {
        let builder = std::thread::Builder::new().name("monitor".to_owned());
        builder.spawn(move || self.run()).map_err(Error::Io)?;
        Ok(())
    }

    fn run(self) {
        loop {
            let mut ready: Vec<PollFd<'_>> = Vec::new();
            for listening in &self.listening {
                ready.push(PollFd::from_borrowed_fd(listening.as_fd(), PollFlags::IN));
            }
            if poll(&mut ready, None).is_err() {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
            for listening in &self.listening {
                if let Ok(stream) = listening.accept() {
                    self.serve(stream);
                }
            }
        }
    }

    fn serve(&self, stream: Stream) {
        let shared = Arc::clone(&self.shared);
        if shared.at_once.fetch_add(1, Ordering::SeqCst) >= MOST_AT_ONCE {
            shared.at_once.fetch_sub(1, Ordering::SeqCst);
            return;
        }
        let builder = std::thread::Builder::new().name("request".to_owned());
        let spawned = builder.spawn({
            let shared = Arc::clone(&shared);
            move || {
                let served = std::panic::AssertUnwindSafe(|| shared.answer(stream));
                let _ = std::panic::catch_unwind(served);
                shared.at_once.fetch_sub(1, Ordering::SeqCst);
            }
        });
        if spawned.is_err() {
            shared.at_once.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Shared {
    fn answer(&self, stream: Stream) {
        match stream {
            Stream::Tcp(mut stream) => self.answered(&mut stream, |stream, time| {
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(time))?;
                stream.set_write_timeout(Some(time))
            }),
            Stream::Unix(mut stream) => self.answered(&mut stream, |stream, time| {
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(time))?;
                stream.set_write_timeout(Some(time))
            }),
        }
    }

    fn answered<S: Read + Write>(
        &self,
        stream: &mut S,
        limit: impl Fn(&S, Duration) -> std::io::Result<()>,
    ) {
        let end = Instant::now() + PATIENCE;
        let (mut head, mut length) = ([0; MOST_HEAD], 0);
        let wanted = loop {
            match page(&head[..length]) {
                Ok(None) => {}
                Ok(Some(page)) => break Ok(page),
                Err(status) => break Err(status),
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || limit(stream, left).is_err() {
                return;
            }
            match stream.read(&mut head[length..]) {
                Ok(count) if count > 0 => length += count,
                _ => return,
            }
        };
        let (status, kind, body) = match wanted {
            Ok(page) => self.page(page),
            Err(status) => (status, TEXT, String::new()),
        };
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status} {}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
             Cache-Control: no-store\r\nConnection: close\r\n\r\n{body}",
            reason(status)
        );
        // It fits the buffers of the system.
        if limit(stream, PATIENCE).is_ok() {
            let _ = stream.write_all(answer.as_bytes());
        }
    }

    fn page(&self, page: Page) -> (u16, &'static str, String) {
        match page {
            Page::Metrics => (200, TEXT, self.metrics()),
            Page::Health if self.monitored.is_well() => (200, TEXT, "well\n".to_owned()),
            Page::Health => (503, TEXT, "the server behind does not answer\n".to_owned()),
            Page::Status => (200, JSON, self.status()),
        }
    }

    fn numbers(&self) -> Vec<(&'static str, &'static str, &'static str, u64)> {
        let counts = &self.counts;
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::SeqCst);
        let clients = counts.clients.load(Ordering::SeqCst) as u64;
        let mut numbers = vec![
            (
                "uptime_seconds",
                "gauge",
                "Since the start.",
                self.began.elapsed().as_secs(),
            ),
            (
                "draining",
                "gauge",
                "1 while no client is let in any more.",
                self.stop.is_set().into(),
            ),
            ("clients", "gauge", "Clients that are connected.", clients),
            (
                "clients_total",
                "counter",
                "Clients that were let in.",
                count(&counts.greeted),
            ),
            (
                "refused_total",
                "counter",
                "Clients that were not.",
                count(&counts.refused),
            ),
            (
                "cancelled_total",
                "counter",
                "Requests to cancel.",
                count(&counts.cancelled),
            ),
        ];
        numbers.extend(self.monitored.numbers());
        numbers
    }

    fn metrics(&self) -> String {
        let mut out = String::new();
        for (name, kind, help, value) in self.numbers() {
            number(&mut out, name, kind, help, value);
        }
        self.counts.metrics.write(&mut out);
        out
    }

    fn status(&self) -> String {
        let mut line = Object::new().number("version", 1);
        line = line.number("upstream", self.monitored.is_well().into());
        for (name, _, _, value) in self.numbers() {
            line = line.number(name, value);
        }
        let metrics = &self.counts.metrics;
        line = line.number("statements_total", metrics.statements());
        line.number("failed_total", metrics.failed())
            .number("direct_total", metrics.direct())
            .end()
            + "\n"
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        431 => "Request Header Fields Too Large",
        _ => "Service Unavailable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::TcpStream;

    struct Well(bool);

    impl Monitored for Well {
        fn is_well(&self) -> bool {
            self.0
        }

        fn numbers(&self) -> Vec<(&'static str, &'static str, &'static str, u64)> {
            vec![("own_total", "counter", "Of the test.", 7)]
        }
    }

    fn monitor(is_well: bool) -> SocketAddr {
        let monitor = Monitor::new(
            &Address::Network("127.0.0.1".to_owned(), 0),
            Arc::default(),
            Box::new(Well(is_well)),
            Arc::new(Stop::new().expect("a pipe")),
        );
        let monitor = monitor.expect("a port");
        let address = monitor.addresses()[0];
        monitor.start().expect("a thread");
        address
    }

    fn asked(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).expect("connected");
        stream.write_all(request).expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("text");
        text
    }

    #[test]
    fn pages_are_answered() {
        let address = monitor(true);
        let text = asked(address, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"));
        assert!(text.contains("\nlouver_own_total 7\n") && text.contains("le=\"+Inf\"} 0\n"));
        for (path, status) in [
            ("/health", 200),
            ("/status?x", 200),
            ("/", 404),
            ("/metric", 404),
        ] {
            let text = asked(address, format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes());
            assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{text}");
        }
        let text = asked(monitor(false), b"GET /health HTTP/1.1\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 503 "));
        assert!(asked(address, b"POST /health HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        assert!(asked(address, &[b'x'; MOST_HEAD]).starts_with("HTTP/1.1 431 "));
    }

    #[test]
    fn slow_ones_are_cut_and_do_not_hold_others() {
        let address = monitor(true);
        let mut slow: Vec<TcpStream> = (0..MOST_AT_ONCE - 1)
            .map(|_| TcpStream::connect(address).expect("connected"))
            .collect();
        for stream in &mut slow {
            stream.write_all(b"GET").expect("sent");
        }
        let began = Instant::now();
        assert!(asked(address, b"GET /status HTTP/1.1\r\n\r\n").contains("\"upstream\":1"));
        assert!(began.elapsed() < PATIENCE);
        for mut stream in slow {
            let mut text = String::new();
            let _ = stream.read_to_string(&mut text);
            assert_eq!(text, "");
        }
        assert!(began.elapsed() < 3 * PATIENCE);
    }

    proptest! {
        #[test]
        fn no_head_is_too_much(head in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = page(&head);
            let mut ended = head;
            ended.extend_from_slice(b"\r\n\r\n");
            prop_assert!(!matches!(page(&ended), Ok(None)));
        }
    }
}
