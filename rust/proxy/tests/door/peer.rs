//! A client of the protocol that says what a test wants.

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use louver_proxy::{greet, verifier, Opened, Options, Result, Secret, Stream, Users};
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub(crate) const PASSWORD: &str = "secret";

/// What a stream is for a client.
pub(crate) trait Bytes: Read + Write + Send {}
impl<T: Read + Write + Send> Bytes for T {}

/// A client.
pub(crate) struct Peer {
    pub(crate) stream: Box<dyn Bytes>,
    input: BytesMut,
}

impl Peer {
    pub(crate) fn new(stream: impl Bytes + 'static) -> Self {
        let (stream, input) = (Box::new(stream), BytesMut::new());
        Self { stream, input }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("sent");
        self.stream.flush().expect("sent");
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.stream.read_exact(&mut byte).expect("a byte");
        byte[0]
    }

    /// The next message; None at the end.
    pub(crate) fn message(&mut self) -> Option<Message> {
        loop {
            if let Some(message) = Message::parse(&mut self.input).expect("a message") {
                return Some(message);
            }
            let mut part = [0; 4096];
            match self.stream.read(&mut part) {
                Ok(count) if count > 0 => self.input.extend_from_slice(&part[..count]),
                _ => return None,
            }
        }
    }

    /// The SQLSTATE and the text of the error that comes next, behind which nothing comes.
    pub(crate) fn refusal(&mut self) -> (String, String) {
        let Some(Message::ErrorResponse(body)) = self.message() else {
            panic!("an error is expected")
        };
        let fields: Vec<_> = body
            .fields()
            .map(|field| {
                Ok((
                    field.type_(),
                    String::from_utf8_lossy(field.value_bytes()).into_owned(),
                ))
            })
            .collect()
            .expect("fields");
        let of = |letter| {
            let mut fields = fields.iter();
            fields
                .find(|(l, _)| *l == letter)
                .expect("a field")
                .1
                .clone()
        };
        assert_eq!(
            (of(b'S'), of(b'V')),
            ("FATAL".to_owned(), "FATAL".to_owned())
        );
        assert!(self.message().is_none());
        (of(b'C'), of(b'M'))
    }

    /// Sends a startup message of version 3.0.
    pub(crate) fn introduce(&mut self, parameters: &[(&str, &str)]) {
        let mut out = BytesMut::new();
        frontend::startup_message(parameters.iter().copied(), &mut out).expect("written");
        self.send(&out);
    }

    /// Proves a password up to AuthenticationOk, which a session sends; the mechanisms offered.
    pub(crate) fn prove(
        &mut self,
        password: &str,
        mechanism: &str,
        binding: ChannelBinding,
    ) -> Vec<String> {
        let Some(Message::AuthenticationSasl(body)) = self.message() else {
            panic!("SASL is expected")
        };
        let offered = body.mechanisms().map(|name| Ok(name.to_owned()));
        let offered = offered.collect().expect("names");
        let mut scram = ScramSha256::new(password.as_bytes(), binding);
        let mut out = BytesMut::new();
        frontend::sasl_initial_response(mechanism, scram.message(), &mut out).expect("written");
        self.send(&out);
        let Some(Message::AuthenticationSaslContinue(body)) = self.message() else {
            panic!("a challenge is expected")
        };
        scram.update(body.data()).expect("a challenge");
        out.clear();
        frontend::sasl_response(scram.message(), &mut out).expect("written");
        self.send(&out);
        if password == PASSWORD {
            let Some(Message::AuthenticationSaslFinal(body)) = self.message() else {
                panic!("the server's proof is expected")
            };
            scram.finish(body.data()).expect("the server's proof");
            assert!(matches!(self.message(), Some(Message::AuthenticationOk)));
        }
        offered
    }
}

/// What a server makes of a client. A session's output is sent.
pub(crate) type Greeted = JoinHandle<Result<Opened>>;

fn server(stream: Stream, options: Options) -> Greeted {
    thread::spawn(move || {
        let mut opened = greet(stream, &options);
        if let Ok(Opened::Session(client, _)) = &mut opened {
            client.flush()?;
        }
        opened
    })
}

/// A connection over TCP.
pub(crate) fn tcp(options: Options) -> (TcpStream, Greeted) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let client = TcpStream::connect(address).expect("connected");
    client
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("set");
    let (stream, _) = listener.accept().expect("accepted");
    (client, server(Stream::Tcp(stream), options))
}

/// A connection over a Unix socket.
pub(crate) fn unix(options: Options) -> (UnixStream, Greeted) {
    let (client, stream) = UnixStream::pair().expect("a pair");
    client
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("set");
    (client, server(Stream::Unix(stream), options))
}

/// Alice alone, with a password.
pub(crate) fn alice() -> Options {
    let text = verifier(&Secret::new(PASSWORD.to_owned())).expect("a verifier");
    let users = Users::parse(format!("alice {text}").as_bytes()).expect("users");
    Options::new(Arc::new(users))
}

/// Nobody, so that who is on this machine is trusted.
pub(crate) fn trusting() -> Options {
    let mut options = Options::new(Arc::new(Users::none().expect("none")));
    options.trust_loopback = true;
    options
}
