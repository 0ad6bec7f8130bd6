//! Greetings without TLS.

use crate::peer::{alice, tcp, trusting, unix, Greeted, Peer, PASSWORD};
use louver_proxy::{Client, Greeting, Opened, Options, Users};
use postgres_protocol::authentication::sasl::ChannelBinding;
use postgres_protocol::message::backend::Message;
use std::sync::Arc;

type Pairs<'a> = &'a [(&'a str, &'a str)];

pub(crate) fn session(greeted: Greeted) -> (Client, Greeting) {
    match greeted.join().expect("no panic").expect("greeted") {
        Opened::Session(client, greeting) => (client, greeting),
        Opened::Cancel { .. } => panic!("a session is expected"),
    }
}

/// A startup packet of any version.
pub(crate) fn packet(version: u32, parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut body = version.to_be_bytes().to_vec();
    for (name, value) in parameters {
        body.extend_from_slice(format!("{name}\0{value}\0").as_bytes());
    }
    body.push(0);
    sized(&body)
}

/// A packet with its length before it.
pub(crate) fn sized(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("short");
    [&length.to_be_bytes()[..], body].concat()
}

fn greeting(parameters: &[(&str, &str)]) -> Greeting {
    let (stream, greeted) = unix(trusting());
    let mut peer = Peer::new(stream);
    peer.introduce(parameters);
    session(greeted).1
}

fn refusal(packet: &[u8]) -> (String, String) {
    let (stream, greeted) = unix(trusting());
    let mut peer = Peer::new(stream);
    peer.send(packet);
    let refusal = peer.refusal();
    let error = greeted.join().expect("no panic").expect_err("refused");
    assert_eq!(error.sqlstate(), refusal.0);
    refusal
}

#[test]
fn who_asks_is_read() {
    let asks = greeting(&[
        ("user", "alice"),
        ("client_encoding", "LATIN1"),
        ("replication", "off"),
        ("options", r"-c a.b=1 --search-path=x\ y,z -cwork_mem=4MB"),
        ("application_name", "é"),
    ]);
    assert_eq!(
        (&*asks.user, &*asks.database, asks.minor),
        ("alice", "alice", 0)
    );
    let pairs: Vec<_> = asks.parameters.iter().map(|(n, v)| (&**n, &**v)).collect();
    let expected = [
        ("a.b", "1"),
        ("search_path", "x y,z"),
        ("work_mem", "4MB"),
        ("client_encoding", "LATIN1"),
        ("application_name", "é"),
    ];
    assert_eq!(pairs, expected);
    assert_eq!(
        greeting(&[("user", "alice"), ("database", "db")]).database,
        "db"
    );
}

#[test]
fn what_is_not_done_is_refused() {
    let v3 = 3 << 16;
    let cases: [(u32, Pairs<'_>, &str); 11] = [
        (2 << 16, &[("user", "a")], "0A000"),
        (4 << 16, &[("user", "a")], "0A000"),
        (v3, &[], "28000"),
        (v3, &[("user", "")], "28000"),
        (v3, &[("database", "a")], "28000"),
        (v3, &[("user", "a"), ("replication", "true")], "0A000"),
        (v3, &[("user", "a"), ("replication", "database")], "0A000"),
        (v3, &[("user", "a"), ("options", "-d 5")], "42601"),
        (v3, &[("user", "a"), ("options", "-c")], "42601"),
        (v3, &[("user", "a"), ("options", "--x")], "42601"),
        (v3, &[("user", "a"), ("options", "-- a=b")], "42601"),
    ];
    for (version, parameters, sqlstate) in cases {
        assert_eq!(
            refusal(&packet(version, parameters)).0,
            sqlstate,
            "{parameters:?}"
        );
    }
}

#[test]
fn packets_that_are_none_are_refused() {
    for length in [0_u32, 7, 10_001, 0x7fff_ffff, u32::MAX] {
        assert_eq!(
            refusal(&length.to_be_bytes()).1,
            "invalid length of startup packet"
        );
    }
    assert_eq!(refusal(b"GET / HTTP/1.1\r\n\r\n").0, "08P01");
    for body in [
        &b"user\0a\0"[..],
        b"user\0a",
        b"user\0\0",
        b"\0a\0\0",
        b"user\0a\0\0\0",
        b"",
    ] {
        let packet = sized(&[&(3_u32 << 16).to_be_bytes()[..], body].concat());
        assert_eq!(refusal(&packet).0, "08P01", "{body:?}");
    }
    let latin = sized(b"\0\x03\0\0user\0\xe9\0\0");
    assert_eq!(refusal(&latin).0, "22021");
    // The greatest that there can be, and one more.
    let most = packet(3 << 16, &[("user", "a"), ("x", &"y".repeat(9981))]);
    assert_eq!(most.len(), 10_000);
    let (stream, greeted) = unix(trusting());
    let mut peer = Peer::new(stream);
    peer.send(&most);
    session(greeted);
    assert_eq!(
        refusal(&packet(3 << 16, &[("user", "a"), ("x", &"y".repeat(9982))])).0,
        "08P01"
    );
}

#[test]
fn versions_are_negotiated() {
    let cases: [(u32, Pairs<'_>, u16, Option<&[u8]>); 5] = [
        (0, &[], 0, None),
        (2, &[], 2, None),
        (1, &[], 0, Some(b"v\0\0\0\x0c\0\x03\0\0\0\0\0\0")),
        (9999, &[], 2, Some(b"v\0\0\0\x0c\0\x03\0\x02\0\0\0\0")),
        (
            0,
            &[("_pq_.x", "1")],
            0,
            Some(b"v\0\0\0\x13\0\x03\0\0\0\0\0\x01_pq_.x\0"),
        ),
    ];
    for (minor, more, spoken, expected) in cases {
        let (stream, greeted) = unix(trusting());
        let mut peer = Peer::new(stream);
        let parameters = [&[("user", "a")], more].concat();
        peer.send(&packet(3 << 16 | minor, &parameters));
        for byte in expected.unwrap_or_default() {
            assert_eq!(peer.byte(), *byte);
        }
        assert!(matches!(peer.message(), Some(Message::AuthenticationOk)));
        let greeting = session(greeted).1;
        assert_eq!(greeting.minor, spoken);
        assert!(greeting.parameters.is_empty());
    }
}

#[test]
fn requests_to_cancel_are_handed_on() {
    for secret in [vec![1, 2, 3, 4], vec![9; 32], vec![9; 256]] {
        let (stream, greeted) = tcp(alice());
        let head = [&80_877_102_u32.to_be_bytes()[..], &7_u32.to_be_bytes()].concat();
        let mut peer = Peer::new(stream);
        peer.send(&sized(&[&head, &secret[..]].concat()));
        let opened = greeted.join().expect("no panic").expect("read");
        let expected = secret;
        assert!(matches!(opened, Opened::Cancel { process: 7, secret } if secret == expected));
        assert!(peer.message().is_none());
    }
    for length in [0, 3, 257] {
        let head = [&80_877_102_u32.to_be_bytes()[..], &7_u32.to_be_bytes()].concat();
        let packet = sized(&[head, vec![1; length]].concat());
        assert_eq!(refusal(&packet).0, "08P01");
    }
}

#[test]
fn a_password_is_asked_for() {
    for parts in [1, 1000] {
        let (stream, greeted) = tcp(alice());
        let mut peer = Peer::new(stream);
        let bytes = packet(3 << 16, &[("user", "alice")]);
        for part in bytes.chunks(bytes.len().div_ceil(parts)) {
            peer.send(part);
        }
        let offered = peer.prove(PASSWORD, "SCRAM-SHA-256", ChannelBinding::unsupported());
        assert_eq!(offered, ["SCRAM-SHA-256"]);
        assert_eq!(session(greeted).1.user, "alice");
    }
}

#[test]
fn who_proves_no_password_is_told() {
    for (user, password) in [("alice", "wrong"), ("bob", "wrong")] {
        let (stream, greeted) = tcp(alice());
        let mut peer = Peer::new(stream);
        peer.introduce(&[("user", user)]);
        peer.prove(password, "SCRAM-SHA-256", ChannelBinding::unsupported());
        let text = format!("password authentication failed for user \"{user}\"");
        assert_eq!(peer.refusal(), ("28P01".to_owned(), text));
        assert!(greeted.join().expect("no panic").is_err());
    }
}

#[test]
fn trust_is_for_servers_without_users_alone() {
    // Users are there: trust does not count.
    let mut options = alice();
    options.trust_loopback = true;
    let (stream, _greeted) = unix(options);
    let mut peer = Peer::new(stream);
    peer.introduce(&[("user", "alice")]);
    assert!(matches!(
        peer.message(),
        Some(Message::AuthenticationSasl(_))
    ));
    // None are there, and nobody is trusted.
    let (stream, greeted) = unix(Options::new(Arc::new(Users::none().expect("none"))));
    let mut peer = Peer::new(stream);
    peer.introduce(&[("user", "alice")]);
    assert_eq!(peer.refusal().0, "28000");
    assert!(greeted.join().expect("no panic").is_err());
    // Loopback is this machine.
    let (stream, greeted) = tcp(trusting());
    let mut peer = Peer::new(stream);
    peer.introduce(&[("user", "alice")]);
    session(greeted);
}
