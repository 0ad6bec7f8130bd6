//! What a PostgreSQL client says to the proxy, and the file of the proxy's users.

use bytes::BytesMut;
use louver_proxy::decoders::{packet, page, take_packet, Exchange};
use louver_proxy::literals::cut;
use louver_proxy::message::{decode, next_tag};
use louver_proxy::{Request, Users};
use std::sync::OnceLock;

const MOST: usize = 1 << 13;
const BINDING: [u8; 32] = [7; 32];
const LINE: &str = "alice SCRAM-SHA-256$4096:QUJDREVGR0hJSktMTU5PUA==$\
                    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:\
                    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= role=reader # first\n";

fn users() -> &'static Users {
    static USERS: OnceLock<Users> = OnceLock::new();
    USERS.get_or_init(|| Users::parse(LINE.as_bytes()).expect("a line"))
}

pub(crate) fn run(data: &[u8]) {
    messages(data);
    let mut input = BytesMut::from(data);
    while let Ok(Some(body)) = take_packet(&mut input) {
        let _ = packet(body);
    }
    proofs(data);
    let _ = page(data);
    let _ = Users::parse(data);
}

fn messages(data: &[u8]) {
    let mut input = BytesMut::from(data);
    loop {
        let (tag, before) = (next_tag(&input), input.len());
        match decode(&mut input, MOST) {
            Ok(Some(request)) => {
                assert!(tag.is_some() && input.len() < before);
                if let Request::Query(text) = request {
                    assert!(!text.contains('\0') && text.len() < before);
                    literals(&text);
                }
            }
            Ok(None) => {
                assert!(tag.is_none() && input.len() == before);
                return;
            }
            // A text that is not UTF-8 was taken, anything else ends it.
            Err(error) if error.sqlstate() == "22021" => assert!(input.len() < before),
            Err(_) => return,
        }
    }
}

/// A shape has one parameter for each literal, and nothing else that begins with a dollar.
fn literals(text: &str) {
    let Some(cut) = cut(text) else { return };
    assert!(text.get(cut.start..cut.end).is_some());
    let names = |shape: &str| shape.matches('"').count() + shape.matches('\'').count();
    if names(&cut.shape) == 0 {
        assert_eq!(cut.shape.matches('$').count(), cut.literals.len());
    }
}

/// No bytes prove a password that nobody knows.
fn proofs(data: &[u8]) {
    for binding in [None, Some(&BINDING[..])] {
        for user in ["alice", "bob"] {
            let mut exchange = Exchange::new(users(), user, binding);
            let mechanism = exchange.mechanisms()[0];
            if exchange.first(data).is_err() {
                exchange = Exchange::new(users(), user, binding);
                let _ = exchange.first(&initial(mechanism, data));
            }
            assert!(exchange.last(data).is_err());
        }
    }
}

/// The body of SASLInitialResponse.
fn initial(mechanism: &str, message: &[u8]) -> Vec<u8> {
    let length = (message.len() as u32).to_be_bytes();
    [mechanism.as_bytes(), b"\0", &length[..], message].concat()
}

/// A message: its letter, and its length before its body.
fn message(letter: u8, body: &[u8]) -> Vec<u8> {
    [&[letter][..], &sized(body)].concat()
}

fn sized(body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&length[..], body].concat()
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let bind = b"p\0s\0\0\x02\0\0\0\x01\0\x02\0\0\0\x01x\xff\xff\xff\xff\0\x01\0\x01";
    let extended = [
        message(b'P', b"s\0SELECT $1\0\0\x01\0\0\0\x17"),
        message(b'B', bind),
        message(b'D', b"Pp\0"),
        message(b'E', b"p\0\0\0\0\x09"),
        message(b'C', b"Ss\0"),
        message(b'H', b""),
        message(b'S', b""),
    ];
    let simple = [
        message(b'Q', "SELECT 'é'\0".as_bytes()),
        message(
            b'Q',
            b"UPDATE t SET a = 'b''c', d = -5.5 WHERE e IN (E'\\\\', NULL, '1'::int4)\0",
        ),
        message(b'd', b"1\t2\n"),
        message(b'c', b""),
        message(b'f', b"no\0"),
        message(b'F', b"\0\0\0\x01"),
        message(b'p', b"secret\0"),
        message(b'X', b""),
    ];
    let packets = [
        sized(b"\x04\xd2\x16\x2f"),
        sized(b"\x04\xd2\x16\x30"),
        sized(b"\x04\xd2\x16\x2e\0\0\0\x07\x01\x02\x03\x04"),
        sized(b"\0\x03\0\x02user\0a\0database\0b\0options\0-c a=b\\ c --d-e=f\0_pq_.x\0y\0\0"),
    ];
    vec![
        extended.concat(),
        simple.concat(),
        packets.concat(),
        initial("SCRAM-SHA-256", b"n,,n=,r=abc,x=y"),
        b"p=tls-server-end-point,,n=,r=abc".to_vec(),
        b"c=biws,r=abc,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".to_vec(),
        LINE.as_bytes().to_vec(),
    ]
}
