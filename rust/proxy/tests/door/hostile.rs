//! Clients that want no session.

use crate::peer::{alice, tcp, trusting, unix, Peer};
use crate::plain::{packet, sized};
use bytes::BytesMut;
use louver_proxy::Error;
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;
use std::io::{ErrorKind, Write};
use std::time::{Duration, Instant};

const SSL: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
const GSS: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 48];

#[test]
fn half_a_greeting_is_dropped_after_the_patience() {
    let whole = packet(3 << 16, &[("user", "alice")]);
    for end in [0, 1, 3, 4, 9, whole.len() - 1, whole.len()] {
        let mut options = alice();
        options.patience = Duration::from_millis(150);
        let began = Instant::now();
        let (mut stream, greeted) = tcp(options);
        stream.write_all(&whole[..end]).expect("sent");
        let error = greeted.join().expect("no panic").expect_err("dropped");
        assert!(
            matches!(error, Error::Io(why) if why.kind() == ErrorKind::TimedOut),
            "{end}"
        );
        assert!((150..5000).contains(&began.elapsed().as_millis()));
    }
}

#[test]
fn a_byte_now_and_then_buys_no_time() {
    let mut options = alice();
    options.patience = Duration::from_millis(200);
    let (mut stream, greeted) = tcp(options);
    let began = Instant::now();
    for byte in packet(3 << 16, &[("user", &"a".repeat(500))]) {
        if stream.write_all(&[byte]).is_err() || greeted.is_finished() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(greeted.join().expect("no panic").is_err());
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn who_goes_is_gone() {
    for end in [0, 3, 9] {
        let (mut stream, greeted) = unix(alice());
        let bytes = packet(3 << 16, &[("user", "alice")]);
        stream.write_all(&bytes[..end]).expect("sent");
        drop(stream);
        let error = greeted.join().expect("no panic").expect_err("gone");
        assert!(matches!(error, Error::Io(why) if why.kind() == ErrorKind::UnexpectedEof));
    }
}

#[test]
fn encryption_is_asked_for_once_and_alone() {
    for (request, again) in [(SSL, SSL), (GSS, GSS)] {
        let (stream, greeted) = unix(trusting());
        let mut peer = Peer::new(stream);
        peer.send(&request);
        assert_eq!(peer.byte(), b'N');
        peer.send(&again);
        assert_eq!(peer.refusal().0, "08P01");
        assert!(greeted.join().expect("no panic").is_err());
    }
    let startup = packet(3 << 16, &[("user", "alice")]);
    for request in [SSL, GSS] {
        let (stream, greeted) = unix(trusting());
        let mut peer = Peer::new(stream);
        peer.send(&[&request[..], &startup].concat());
        assert!(peer
            .refusal()
            .1
            .starts_with("received unencrypted data after"));
        assert!(greeted.join().expect("no panic").is_err());
    }
    // One after the other is what clients do.
    let (stream, greeted) = unix(trusting());
    let mut peer = Peer::new(stream);
    for request in [GSS, SSL] {
        peer.send(&request);
        assert_eq!(peer.byte(), b'N');
    }
    peer.send(&startup);
    crate::plain::session(greeted);
}

#[test]
fn a_session_is_not_begun_without_a_proof() {
    let (mut query, mut long, mut body) = (BytesMut::new(), BytesMut::new(), BytesMut::new());
    frontend::query("SELECT 1", &mut query).expect("written");
    frontend::sasl_response(&[b'a'; 2000], &mut long).expect("written");
    frontend::password_message(b"secret", &mut body).expect("written");
    for message in [query, long, body] {
        let (stream, greeted) = tcp(alice());
        let mut peer = Peer::new(stream);
        peer.introduce(&[("user", "alice")]);
        assert!(matches!(
            peer.message(),
            Some(Message::AuthenticationSasl(_))
        ));
        peer.send(&message);
        assert_eq!(peer.refusal().0, "08P01");
        assert!(greeted.join().expect("no panic").is_err());
    }
}

#[test]
fn a_client_that_is_refused_and_does_not_read_holds_nothing_up() {
    let (mut stream, greeted) = unix(trusting());
    let began = Instant::now();
    stream.write_all(&sized(b"\0\x09\0\0")).expect("sent");
    assert!(greeted.join().expect("no panic").is_err());
    assert!(began.elapsed() < Duration::from_secs(5));
}
