//! Greetings within TLS.

use crate::certificate::{own, served};
use crate::peer::{alice, tcp, unix, Greeted, Peer, PASSWORD};
use crate::plain::{packet, session};
use louver_postgres::decoders::certificate_hash;
use louver_proxy::{Certificate, Error, Options, Request};
use postgres_protocol::authentication::sasl::ChannelBinding;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
};
use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

const SSL: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
const VERSIONS: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS12, &rustls::version::TLS13];

fn encrypting() -> (Options, Vec<u8>) {
    let (certificate, der) = served();
    let mut options = alice();
    options.certificate = Some(Arc::new(certificate));
    options.tls_required = true;
    (options, der)
}

/// TLS over a stream, trusting this certificate.
fn tls(
    stream: TcpStream,
    der: &[u8],
    names: &[&[u8]],
    version: &'static SupportedProtocolVersion,
) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from(der.to_vec()))
        .expect("a root");
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[version])
        .expect("a version")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = names.iter().map(|name| name.to_vec()).collect();
    let name = ServerName::try_from("localhost").expect("a name");
    let session = ClientConnection::new(Arc::new(config), name).expect("a session");
    StreamOwned::new(session, stream)
}

/// A connection whose request for TLS was agreed to.
fn agreed(options: Options) -> (TcpStream, Greeted) {
    let (mut stream, greeted) = tcp(options);
    stream.write_all(&SSL).expect("sent");
    let mut answer = [0];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(answer, *b"S");
    (stream, greeted)
}

fn bound(der: &[u8]) -> ChannelBinding {
    ChannelBinding::tls_server_end_point(certificate_hash(der).expect("a hash"))
}

#[test]
fn a_proof_is_bound_to_the_certificate() {
    for version in VERSIONS {
        let (options, der) = encrypting();
        let (stream, greeted) = agreed(options);
        let mut peer = Peer::new(tls(stream, &der, &[], version));
        peer.introduce(&[("user", "alice")]);
        let offered = peer.prove(PASSWORD, "SCRAM-SHA-256-PLUS", bound(&der));
        assert_eq!(offered, ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"]);
        let (mut client, greeting) = session(greeted);
        assert!(client.is_encrypted() && greeting.user == "alice");
        // A session goes on within: large messages both ways, and an end.
        let large = "x".repeat(3 << 20);
        let mut out = bytes::BytesMut::new();
        postgres_protocol::message::frontend::query(&large, &mut out).expect("written");
        let reader = std::thread::spawn(move || {
            peer.send(&out);
            assert!(peer.message().is_some());
            peer
        });
        let request = client.next(1 << 23).expect("a message");
        assert!(matches!(request, Some(Request::Query(sql)) if sql == large));
        louver_proxy::reply::copy_data(&mut client.output, large.as_bytes()).expect("fits");
        client.flush().expect("sent");
        drop(reader.join().expect("no panic"));
        assert_eq!(client.next(1 << 20).expect("an end"), None);
        assert!(client.has_gone());
    }
}

#[test]
fn a_client_that_binds_nothing_is_let_in_and_a_downgrade_is_not() {
    let (options, der) = encrypting();
    let (stream, greeted) = agreed(options);
    let mut peer = Peer::new(tls(stream, &der, &[b"postgresql"], VERSIONS[1]));
    peer.introduce(&[("user", "alice")]);
    peer.prove(PASSWORD, "SCRAM-SHA-256", ChannelBinding::unsupported());
    session(greeted);
}

#[test]
fn tls_can_come_first_if_it_names_the_protocol() {
    let (options, der) = encrypting();
    let (stream, greeted) = tcp(options);
    let mut peer = Peer::new(tls(stream, &der, &[b"postgresql"], VERSIONS[1]));
    peer.introduce(&[("user", "alice")]);
    peer.prove(PASSWORD, "SCRAM-SHA-256-PLUS", bound(&der));
    session(greeted);

    let (options, der) = encrypting();
    let (stream, greeted) = tcp(options);
    let mut stream = tls(stream, &der, &[], VERSIONS[1]);
    // The first read does the handshake.
    stream.flush().expect("sent");
    let mut peer = Peer::new(stream);
    assert_eq!(peer.refusal().0, "08P01");
    assert!(greeted.join().expect("no panic").is_err());

    let (options, der) = encrypting();
    let (stream, greeted) = tcp(options);
    let mut stream = tls(stream, &der, &[b"h2"], VERSIONS[1]);
    assert!(stream
        .write_all(b"x")
        .and_then(|()| stream.read(&mut [0]))
        .is_err());
    assert!(matches!(
        greeted.join().expect("no panic"),
        Err(Error::Tls(_))
    ));
}

#[test]
fn without_tls_nobody_is_let_in_where_it_is_required() {
    let (options, _) = encrypting();
    let (stream, greeted) = tcp(options);
    let mut peer = Peer::new(stream);
    peer.introduce(&[("user", "alice")]);
    let (sqlstate, text) = peer.refusal();
    assert!(sqlstate == "28000" && text.contains("sslmode"));
    assert!(greeted.join().expect("no panic").is_err());
    // A Unix socket has no need of it, and no offer.
    let (options, _) = encrypting();
    let (stream, greeted) = unix(options);
    let mut peer = Peer::new(stream);
    peer.send(&SSL);
    assert_eq!(peer.byte(), b'N');
    peer.introduce(&[("user", "alice")]);
    let offered = peer.prove(PASSWORD, "SCRAM-SHA-256", ChannelBinding::unsupported());
    assert_eq!(offered, ["SCRAM-SHA-256"]);
    session(greeted);
}

#[test]
fn what_comes_before_the_handshake_is_refused() {
    let (options, _) = encrypting();
    let (stream, greeted) = tcp(options);
    let mut peer = Peer::new(stream);
    peer.send(&[&SSL[..], &packet(3 << 16, &[("user", "alice")])].concat());
    assert_eq!(
        peer.refusal().1,
        "received unencrypted data after SSL request"
    );
    assert!(greeted.join().expect("no panic").is_err());
    // Neither is a packet taken for a handshake, nor a second request within.
    let (options, _) = encrypting();
    let (mut stream, greeted) = agreed(options);
    stream
        .write_all(&packet(3 << 16, &[("user", "alice")]))
        .expect("sent");
    assert!(matches!(
        greeted.join().expect("no panic"),
        Err(Error::Tls(_))
    ));
    let (options, der) = encrypting();
    let (stream, greeted) = agreed(options);
    let mut peer = Peer::new(tls(stream, &der, &[], VERSIONS[1]));
    peer.send(&SSL);
    assert_eq!(peer.refusal().0, "08P01");
    assert!(greeted.join().expect("no panic").is_err());
}

#[test]
fn half_a_handshake_is_dropped_after_the_patience() {
    for bytes in [&b"\x16"[..], b"\x16\x03\x01\x02\0\x01\0"] {
        let (mut options, _) = encrypting();
        options.patience = Duration::from_millis(150);
        let (mut stream, greeted) = tcp(options);
        stream.write_all(bytes).expect("sent");
        let error = greeted.join().expect("no panic").expect_err("dropped");
        assert!(matches!(error, Error::Io(why) if why.kind() == ErrorKind::TimedOut));
    }
}

#[test]
fn a_certificate_is_read_from_files_that_are_its_owners() {
    let armour = |label: &str, der: &[u8]| {
        use base64::Engine;
        let text = base64::engine::general_purpose::STANDARD.encode(der);
        format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
    };
    let folder = tempfile::tempdir().expect("a folder");
    let (chain, key) = (folder.path().join("crt"), folder.path().join("key"));
    let (der, secret) = own();
    fs::write(&chain, armour("CERTIFICATE", &der)).expect("written");
    fs::write(&key, armour("PRIVATE KEY", &secret)).expect("written");
    fs::set_permissions(&key, Permissions::from_mode(0o644)).expect("set");
    assert!(Certificate::read(&chain, &key)
        .expect_err("open")
        .to_string()
        .contains("chmod 600"));
    fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("set");
    let certificate = Certificate::read(&chain, &key).expect("read");
    assert_eq!(certificate.binding(), certificate_hash(&der).as_deref());
    // A key of another certificate, and files that hold neither.
    fs::write(&chain, armour("CERTIFICATE", &own().0)).expect("written");
    assert!(Certificate::read(&chain, &key).is_err());
    fs::write(&chain, "nothing").expect("written");
    assert!(Certificate::read(&chain, &key).is_err());
    assert!(Certificate::read(&key, &chain).is_err());
}
