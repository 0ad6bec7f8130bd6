//! The bytes of a client, with TLS or without.

use crate::error::{Error, Result};
use crate::message::{self, Request};
use crate::metrics::Metrics;
use crate::tls::{Certificate, Channel};
use bytes::BytesMut;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{sockopt, RecvFlags, SendFlags};
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

const READ_AT_ONCE: usize = 16 << 10;
/// Bytes that are made records before they are sent.
const SEALED_AT_ONCE: usize = 1 << 20;
/// A buffer that has grown further is given back.
const MOST_SPARE: usize = 1 << 20;
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// What poll says of a peer that has closed.
const CLOSED: PollFlags = PollFlags::RDHUP
    .union(PollFlags::HUP)
    .union(PollFlags::ERR)
    .union(PollFlags::NVAL);

/// A connection that was accepted.
#[derive(Debug)]
pub enum Stream {
    /// Of a network.
    Tcp(TcpStream),
    /// Of this machine.
    Unix(UnixStream),
}

impl Stream {
    /// Whether the client is on this machine: a Unix socket, or a loopback address.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp(stream) => stream
                .peer_addr()
                .is_ok_and(|address| address.ip().to_canonical().is_loopback()),
        }
    }

    /// Who is at the other end: an address and a port, or `local` of a Unix socket.
    pub(crate) fn address(&self) -> String {
        match self {
            Self::Unix(_) => "local".to_owned(),
            Self::Tcp(stream) => stream
                .peer_addr()
                .map_or_else(|_| String::new(), |address| address.to_string()),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

/// What a wait ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// A message begins here: [`Client::next`] gives it, or says what is wrong with it.
    Message,
    /// The other descriptor can be read, or was closed.
    Other,
    /// The time is over.
    Timeout,
    /// The client has gone, and sent nothing more.
    Gone,
}

/// A client's connection.
#[derive(Debug)]
pub struct Client {
    /// What [`Client::flush`] sends.
    pub output: BytesMut,
    stream: Stream,
    tls: Option<Channel>,
    /// Bytes of messages.
    input: BytesMut,
    /// Where reads go first: to clear room for a whole one each time costs more than to copy what
    /// came.
    read: Box<[u8]>,
    /// The client sends nothing any more.
    ended: bool,
    write_timeout: Duration,
    /// When the greeting must be over.
    deadline: Option<Instant>,
    /// Where bytes are counted.
    counted: Option<Arc<Metrics>>,
}

impl Client {
    /// Takes a connection over.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be set up.
    pub fn new(stream: Stream) -> Result<Self> {
        if let Stream::Tcp(stream) = &stream {
            stream.set_nodelay(true)?;
            // A machine that vanished does not hold a session for ever.
            sockopt::set_socket_keepalive(stream, true)?;
        }
        Ok(Self {
            output: BytesMut::new(),
            stream,
            tls: None,
            input: BytesMut::new(),
            read: vec![0; READ_AT_ONCE].into_boxed_slice(),
            ended: false,
            write_timeout: WRITE_TIMEOUT,
            deadline: None,
            counted: None,
        })
    }

    /// Counts bytes from now on.
    pub(crate) fn count(&mut self, metrics: Arc<Metrics>) {
        self.counted = Some(metrics);
    }

    /// How long a write may make no progress; 60 seconds unless set.
    pub fn set_write_timeout(&mut self, timeout: Duration) {
        self.write_timeout = timeout;
    }

    /// Waits for the next message, of at most `most` bytes. None: the client has gone, between
    /// messages.
    ///
    /// # Errors
    /// Those of [`message::decode`]; [`Error::Io`] for a client that went within a message.
    pub fn next(&mut self, most: usize) -> Result<Option<Request>> {
        loop {
            if let Some(request) = message::decode(&mut self.input, most)? {
                if self.input.is_empty() && self.input.capacity() > MOST_SPARE {
                    self.input = BytesMut::new();
                }
                return Ok(Some(request));
            }
            if self.ended && self.input.is_empty() {
                return Ok(None);
            }
            self.more()?;
        }
    }

    /// The letter of the next message, if it is already here. Nothing is read.
    pub fn next_tag(&self) -> Option<u8> {
        message::next_tag(&self.input)
    }

    /// Waits until a message begins to come, the other descriptor can be read, the client has
    /// gone, or the time is over. What comes within TLS and is not a message does not end it. A
    /// message is not read further than what came at once, so its bound is left to
    /// [`Client::next`].
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Tls`].
    pub fn wait(
        &mut self,
        timeout: Option<Duration>,
        other: Option<BorrowedFd<'_>>,
    ) -> Result<Ready> {
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            if !self.input.is_empty() {
                return Ok(Ready::Message);
            }
            if self.ended {
                return Ok(Ready::Gone);
            }
            let (own, other) = self.poll(PollFlags::IN, end, other)?;
            if !own.is_empty() {
                self.fill()?;
            } else if !other.is_empty() {
                return Ok(Ready::Other);
            } else if end.is_some_and(|end| Instant::now() >= end) {
                return Ok(Ready::Timeout);
            }
        }
    }

    /// Sends `output`. A client that reads slowly holds up its own thread only.
    ///
    /// # Errors
    /// [`Error::Io`], also where nothing could be sent for the time of `write_timeout`; the
    /// connection cannot be used then.
    pub fn flush(&mut self) -> Result<()> {
        let mut bytes = std::mem::take(&mut self.output);
        let sent = self.write(&bytes);
        if let Some(metrics) = &self.counted {
            metrics.sent(bytes.len());
        }
        bytes.clear();
        if bytes.capacity() <= MOST_SPARE {
            self.output = bytes;
        }
        sent
    }

    /// Whether the client has closed its side. Nothing is read.
    pub fn has_gone(&self) -> bool {
        let mut state = [PollFd::new(&self.stream, PollFlags::RDHUP)];
        let now = Timespec::default();
        self.ended || poll(&mut state, Some(&now)).is_ok() && state[0].revents().intersects(CLOSED)
    }

    /// Whether TLS is spoken.
    pub fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(crate) fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// What came and is not taken yet.
    pub(crate) fn input(&mut self) -> &mut BytesMut {
        &mut self.input
    }

    /// Whether the client named the protocol in the handshake.
    pub(crate) fn is_named(&self) -> bool {
        self.tls.as_ref().is_some_and(Channel::is_named)
    }

    /// Waits for further bytes.
    pub(crate) fn more(&mut self) -> Result<()> {
        let before = self.input.len();
        while self.input.len() == before {
            if self.ended {
                let text = "the client went within a message";
                return Err(Error::Io(io::Error::new(ErrorKind::UnexpectedEof, text)));
            }
            let (own, _) = self.poll(PollFlags::IN, self.deadline, None)?;
            if !own.is_empty() {
                self.fill()?;
                if self.ended && before == 0 {
                    return Ok(());
                }
            } else {
                self.in_time()?;
            }
        }
        Ok(())
    }

    /// Does the handshake. What came before it is of it.
    pub(crate) fn encrypt(&mut self, certificate: &Certificate) -> Result<()> {
        let came = self.input.split();
        self.tls = Some(Channel::new(certificate)?);
        self.unseal(&came)?;
        while self.tls.as_ref().is_some_and(Channel::is_handshaking) {
            if self.ended {
                let text = "the client ended the handshake";
                return Err(Error::Tls(text.to_owned()));
            }
            let (own, _) = self.poll(PollFlags::IN, self.deadline, None)?;
            if own.is_empty() {
                self.in_time()?;
            } else {
                self.fill()?;
            }
        }
        Ok(())
    }

    fn in_time(&self) -> Result<()> {
        match self.deadline {
            Some(end) if Instant::now() >= end => Err(Error::Io(ErrorKind::TimedOut.into())),
            _ => Ok(()),
        }
    }

    /// Waits for the connection, or another descriptor, until then; what holds of them.
    fn poll(
        &self,
        flags: PollFlags,
        end: Option<Instant>,
        other: Option<BorrowedFd<'_>>,
    ) -> Result<(PollFlags, PollFlags)> {
        let own = PollFd::new(&self.stream, flags);
        let mut both = match &other {
            Some(other) => vec![own, PollFd::new(other, PollFlags::IN)],
            None => vec![own],
        };
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        // A time that does not fit is for ever.
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut both, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let of = |at: usize| both.get(at).map_or(PollFlags::empty(), PollFd::revents);
        Ok((of(0), of(1)))
    }

    /// Reads what is there, without waiting.
    fn fill(&mut self) -> Result<()> {
        let mut read = std::mem::take(&mut self.read);
        let count = rustix::net::recv(&self.stream, &mut *read, RecvFlags::DONTWAIT);
        let done = match count {
            Ok((0, _)) | Err(Errno::CONNRESET | Errno::PIPE) => {
                self.ended = true;
                Ok(())
            }
            Ok((count, _)) => {
                if let Some(metrics) = &self.counted {
                    metrics.received(count);
                }
                self.unseal(read.get(..count).unwrap_or_default())
            }
            Err(Errno::INTR | Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        };
        self.read = read;
        done
    }

    /// Bytes that came become bytes of messages.
    fn unseal(&mut self, came: &[u8]) -> Result<()> {
        let Some(channel) = &mut self.tls else {
            self.input.extend_from_slice(came);
            return Ok(());
        };
        let opened = channel.open(came, &mut self.input);
        // What TLS itself has to say; where that failed, why.
        let due = channel.seal(&[]).and_then(|records| self.send(&records));
        self.ended |= opened?;
        due
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if self.tls.is_none() {
            return self.send(bytes);
        }
        for part in bytes.chunks(SEALED_AT_ONCE) {
            if let Some(channel) = &mut self.tls {
                let records = channel.seal(part)?;
                self.send(&records)?;
            }
        }
        Ok(())
    }

    fn send(&self, mut left: &[u8]) -> Result<()> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let mut end = None;
        while !left.is_empty() {
            match rustix::net::send(&self.stream, left, flags) {
                Ok(count) => {
                    left = left.get(count..).unwrap_or_default();
                    end = None;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let until = *end.get_or_insert_with(|| self.until());
                    let (own, _) = self.poll(PollFlags::OUT, until, None)?;
                    if own.is_empty() && until.is_some_and(|until| Instant::now() >= until) {
                        return Err(Error::Io(ErrorKind::TimedOut.into()));
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Until when a write waits for a client that does not read.
    fn until(&self) -> Option<Instant> {
        let end = Instant::now().checked_add(self.write_timeout);
        end.into_iter().chain(self.deadline).min()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // So that the client can tell an end from a cut; it may not want to know.
        if let Some(Ok(records)) = self.tls.as_mut().map(Channel::goodbye) {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let _ = rustix::net::send(&self.stream, &records, flags);
        }
    }
}
