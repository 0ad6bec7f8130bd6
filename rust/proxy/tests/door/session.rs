//! What a session does with its client.

use bytes::BytesMut;
use louver_proxy::{reply, Client, Error, Ready, Request, Stream};
use postgres_protocol::message::frontend;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const MOST: usize = 1 << 20;
const SOON: Option<Duration> = Some(Duration::from_millis(30));
const LATE: Option<Duration> = Some(Duration::from_secs(20));

fn pair() -> (UnixStream, Client) {
    let (peer, stream) = UnixStream::pair().expect("a pair");
    (peer, Client::new(Stream::Unix(stream)).expect("a client"))
}

fn query(sql: &str) -> BytesMut {
    let mut out = BytesMut::new();
    frontend::query(sql, &mut out).expect("written");
    out
}

#[test]
fn messages_wait_in_the_buffer() {
    let (mut peer, mut client) = pair();
    let mut bytes = query("a");
    frontend::sync(&mut bytes);
    bytes.extend_from_slice(&query("b")[..4]);
    peer.write_all(&bytes).expect("sent");
    assert_eq!(client.next_tag(), None);
    assert_eq!(
        client.next(MOST).expect("a"),
        Some(Request::Query("a".to_owned()))
    );
    assert_eq!(client.next_tag(), Some(b'S'));
    assert_eq!(client.wait(LATE, None).expect("waited"), Ready::Message);
    assert_eq!(client.next(MOST).expect("sync"), Some(Request::Sync));
    assert_eq!(client.next_tag(), None);
    peer.write_all(&query("b")[4..]).expect("sent");
    assert_eq!(
        client.next(MOST).expect("b"),
        Some(Request::Query("b".to_owned()))
    );
    peer.write_all(&query("c")[..4]).expect("sent");
    drop(peer);
    let error = client.next(MOST).expect_err("half a message");
    assert!(matches!(error, Error::Io(why) if why.kind() == ErrorKind::UnexpectedEof));
}

#[test]
fn a_wait_ends_with_what_comes_first() {
    let (mut peer, mut client) = pair();
    let (mut bell, other) = UnixStream::pair().expect("a pair");
    let began = Instant::now();
    assert_eq!(
        client.wait(SOON, Some(other.as_fd())).expect("waited"),
        Ready::Timeout
    );
    assert!(began.elapsed() >= SOON.expect("some"));
    let now = Some(Duration::ZERO);
    assert_eq!(client.wait(now, None).expect("waited"), Ready::Timeout);
    bell.write_all(b"x").expect("sent");
    assert_eq!(
        client.wait(None, Some(other.as_fd())).expect("waited"),
        Ready::Other
    );
    peer.write_all(&query("a")).expect("sent");
    assert_eq!(
        client.wait(LATE, Some(other.as_fd())).expect("waited"),
        Ready::Message
    );
    assert!(!client.has_gone());
    drop(peer);
    assert!(client.has_gone());
    // What it said before it went is still to be read.
    assert_eq!(client.wait(LATE, None).expect("waited"), Ready::Message);
    assert!(client.next(MOST).expect("a").is_some());
    assert_eq!(client.wait(LATE, None).expect("waited"), Ready::Gone);
    assert_eq!(client.next(MOST).expect("an end"), None);
}

#[test]
fn a_client_that_does_not_read_is_given_up() {
    let (peer, mut client) = pair();
    client.set_write_timeout(Duration::from_millis(100));
    reply::copy_data(&mut client.output, &vec![0; 8 << 20]).expect("fits");
    let error = client.flush().expect_err("nobody reads");
    assert!(matches!(error, Error::Io(why) if why.kind() == ErrorKind::TimedOut));
    drop(peer);
}

#[test]
fn a_client_that_reads_slowly_is_not_given_up() {
    let (mut peer, mut client) = pair();
    client.set_write_timeout(Duration::from_millis(500));
    let size = 4 << 20;
    let reader = std::thread::spawn(move || {
        let (mut part, mut total) = (vec![0; 1 << 18], 0);
        while total < size {
            std::thread::sleep(Duration::from_millis(60));
            total += peer.read(&mut part).expect("read");
        }
    });
    let began = Instant::now();
    reply::copy_data(&mut client.output, &vec![0; size]).expect("fits");
    client.flush().expect("sent");
    assert!(began.elapsed() > Duration::from_millis(500) && client.output.is_empty());
    drop(client);
    reader.join().expect("no panic");
}

#[test]
fn a_message_is_bounded_while_it_comes() {
    let (mut peer, mut client) = pair();
    peer.write_all(b"Q\x7f\xff\xff\xff").expect("sent");
    assert_eq!(client.wait(LATE, None).expect("waited"), Ready::Message);
    assert!(matches!(client.next(MOST), Err(Error::Protocol(_))));
}
