//! The bytes of a connection: one message at a time, bounded before it is read.

use crate::error::{Error, Result};
use crate::settings::{Binding, Check, Host, Settings, Tls};
use crate::startup;
use crate::tls::{agreed, Channel};
use bytes::BytesMut;
use postgres_protocol::message::backend::{Header, Message};
use postgres_protocol::message::frontend;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::SendFlags;
use std::io::{self, ErrorKind, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How often a wait for the server asks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const READ_AT_ONCE: usize = 64 << 10;
/// Bytes that are made records before they are sent.
const SEALED_AT_ONCE: usize = 1 << 20;

#[derive(Debug)]
enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Socket {
    stream: Stream,
    tls: Option<Channel>,
    /// Records as they come, where there is TLS.
    records: BytesMut,
    input: BytesMut,
    /// Where reads go first: to clear room for a whole one each time costs more than to copy what
    /// came.
    read: Box<[u8]>,
    pub(crate) output: BytesMut,
    most: usize,
    /// Bytes that came and that went, protocol and all.
    pub(crate) traffic: (u64, u64),
}

impl Socket {
    pub(crate) fn open(settings: &Settings) -> Result<Self> {
        let timeout = Duration::from_millis(settings.timeout_ms.max(1));
        let stream = match &settings.host {
            Host::Folder(folder) => {
                let path = folder.join(format!(".s.PGSQL.{}", settings.port));
                Stream::Unix(UnixStream::connect(path).map_err(Error::Lost)?)
            }
            Host::Network(name) => {
                let local = settings.tls.is_none();
                Stream::Tcp(tcp(name, settings.port, timeout, local)?)
            }
        };
        let read = Some(LOOK_EVERY);
        match &stream {
            Stream::Unix(s) => s.set_read_timeout(read),
            Stream::Tcp(s) => s.set_read_timeout(read).and(s.set_nodelay(true)),
        }
        .map_err(Error::Lost)?;
        let most = settings.most_message_bytes;
        let mut socket = Self {
            stream,
            tls: None,
            records: BytesMut::new(),
            input: BytesMut::new(),
            read: vec![0; READ_AT_ONCE].into_boxed_slice(),
            output: BytesMut::new(),
            most,
            traffic: (0, 0),
        };
        if let (Host::Network(name), Some(tls)) = (&settings.host, &settings.tls) {
            if tls.check == Check::Nothing && settings.binding != Binding::Required {
                return Err(Error::Refused(
                    "without channel binding, a certificate must be checked".to_owned(),
                ));
            }
            socket.encrypt(name, tls, &mut startup::patience(settings))?;
        }
        Ok(socket)
    }

    /// Asks for TLS, and does not go on without.
    fn encrypt(
        &mut self,
        name: &str,
        tls: &Tls,
        look: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let mut channel = Channel::new(name, tls)?;
        frontend::ssl_request(&mut self.output);
        self.flush()?;
        while self.input.is_empty() {
            self.fill(look)?;
        }
        agreed(&self.input.split())?;
        let hello = channel.seal(&[])?;
        self.tls = Some(channel);
        self.send(&hello)?;
        while self.tls.as_ref().is_some_and(Channel::is_handshaking) {
            self.fill(look).map_err(ended)?;
            self.send_due()?;
        }
        Ok(())
    }

    /// What binds a password's proof to the TLS session; the outer None without one.
    pub(crate) fn binding(&self) -> Option<Option<Vec<u8>>> {
        self.tls.as_ref().map(Channel::binding)
    }

    /// Sends what was written to `output`. Where the server does not read on, for it waits until
    /// somebody reads what it answers, this is read meanwhile.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let bytes = self.output.split();
        if self.tls.is_none() {
            return self.send(&bytes);
        }
        for part in bytes.chunks(SEALED_AT_ONCE) {
            if let Some(channel) = &mut self.tls {
                let records = channel.seal(part)?;
                self.send(&records)?;
            }
        }
        Ok(())
    }

    /// Sends what TLS itself has to say.
    fn send_due(&mut self) -> Result<()> {
        match &mut self.tls {
            Some(channel) => {
                let records = channel.seal(&[])?;
                self.send(&records)
            }
            None => Ok(()),
        }
    }

    fn send(&mut self, mut left: &[u8]) -> Result<()> {
        while !left.is_empty() {
            match rustix::net::send(
                &self.stream,
                left,
                SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
            ) {
                Ok(count) => {
                    self.traffic.1 += count as u64;
                    left = &left[count..];
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait_to_send()?,
                Err(error) => return Err(Error::Lost(error.into())),
            }
        }
        Ok(())
    }

    /// The next message. While it does not come, `look` is called from time to time.
    pub(crate) fn next(&mut self, look: &mut dyn FnMut() -> Result<()>) -> Result<Message> {
        loop {
            if let Some(message) = whole(&mut self.input, self.most)? {
                return Ok(message);
            }
            self.fill(look)?;
        }
    }

    /// Whether the server has closed the connection. What is sent then was never begun.
    pub(crate) fn is_closed(&self) -> bool {
        let mut state = [PollFd::new(&self.stream, PollFlags::RDHUP)];
        let now = Timespec::default();
        let closed = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        poll(&mut state, Some(&now)).is_ok() && state[0].revents().intersects(closed)
    }

    fn wait_to_send(&mut self) -> Result<()> {
        let mut ready = [PollFd::new(&self.stream, PollFlags::IN | PollFlags::OUT)];
        match poll(&mut ready, None) {
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(Error::Lost(error.into())),
            Ok(_) => {}
        }
        let can_read = ready[0].revents().contains(PollFlags::IN);
        if can_read {
            self.fill(&mut || Ok(()))?;
        }
        Ok(())
    }

    fn fill(&mut self, look: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let read = match &mut self.stream {
            Stream::Unix(stream) => stream.read(&mut self.read),
            Stream::Tcp(stream) => stream.read(&mut self.read),
        };
        match read {
            Ok(0) => Err(Error::Lost(io::Error::new(
                ErrorKind::UnexpectedEof,
                "the server closed it",
            ))),
            Ok(count) => {
                self.traffic.0 += count as u64;
                let came = self.read.get(..count).unwrap_or_default();
                if self.tls.is_some() {
                    self.records.extend_from_slice(came);
                } else {
                    self.input.extend_from_slice(came);
                }
                self.unseal()
            }
            Err(error) => match error.kind() {
                ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => look(),
                _ => Err(Error::Lost(error)),
            },
        }
    }

    /// Records that came become bytes of messages.
    fn unseal(&mut self) -> Result<()> {
        let Some(channel) = &mut self.tls else {
            return Ok(());
        };
        let opened = channel.open(&self.records, &mut self.input);
        self.records.clear();
        opened.inspect_err(|_| {
            // The server may want to know why we go.
            let _ = self.send_due();
        })
    }
}

/// A server that goes during the handshake.
fn ended(error: Error) -> Error {
    match error {
        Error::Lost(why) if why.kind() != ErrorKind::TimedOut => {
            Error::Tls(format!("it ended the handshake ({why})"))
        }
        other => other,
    }
}

/// The first message, if all of it is there: memory is not taken for what is only announced.
pub(crate) fn whole(input: &mut BytesMut, most: usize) -> Result<Option<Message>> {
    let Some(header) = Header::parse(input).map_err(Error::protocol)? else {
        return Ok(None);
    };
    let length = header.len() as usize;
    if length > most {
        return Err(Error::Protocol(format!(
            "a message of {length} bytes, where at most {most} are read"
        )));
    }
    if input.len() <= length {
        return Ok(None);
    }
    Message::parse(input).map_err(Error::protocol)
}

fn tcp(name: &str, port: u16, timeout: Duration, local: bool) -> Result<TcpStream> {
    let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in (name, port).to_socket_addrs().map_err(Error::Lost)? {
        if local && !address.ip().is_loopback() {
            return Err(Error::Tls(format!(
                "{name} is another machine, which is not spoken to without it: leave out \
                 sslmode=disable"
            )));
        }
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(Error::Lost(last))
}
