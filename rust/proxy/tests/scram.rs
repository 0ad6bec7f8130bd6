//! SCRAM against another author's client, and what a client may try.

use louver_proxy::decoders::Exchange;
use louver_proxy::{verifier, Error, Secret, Users};
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use proptest::collection::vec;
use proptest::prelude::*;

const PLAIN: &str = "SCRAM-SHA-256";
const PLUS: &str = "SCRAM-SHA-256-PLUS";
const HASH: [u8; 32] = [7; 32];

fn users(name: &str, password: &str) -> Users {
    let text = verifier(&Secret::new(password.to_owned())).expect("a verifier");
    Users::parse(format!("{name} {text}\n").as_bytes()).expect("users")
}

/// The body of SASLInitialResponse.
fn initial(mechanism: &str, message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("short").to_be_bytes();
    [mechanism.as_bytes(), b"\0", &length[..], message].concat()
}

/// A whole exchange.
fn prove(
    users: &Users,
    user: &str,
    password: &str,
    mechanism: &str,
    offered: Option<&[u8]>,
    binding: ChannelBinding,
) -> Result<(), Error> {
    let mut client = ScramSha256::new(password.as_bytes(), binding);
    let mut server = Exchange::new(users, user, offered);
    let challenge = server.first(&initial(mechanism, client.message()))?;
    client.update(challenge.as_bytes()).expect("a challenge");
    let answer = server.last(client.message())?;
    client
        .finish(answer.as_bytes())
        .expect("the server's proof");
    Ok(())
}

fn bound() -> ChannelBinding {
    ChannelBinding::tls_server_end_point(HASH.to_vec())
}

#[test]
fn a_password_is_proved() {
    for password in [
        "secret",
        "Passwört",
        "\u{ad}soft",
        "a\u{a0}b",
        "\u{7}",
        "x,y=z",
    ] {
        let users = users("alice", password);
        let unsupported = ChannelBinding::unsupported();
        prove(&users, "alice", password, PLAIN, None, unsupported).expect("right");
        let unrequested = ChannelBinding::unrequested();
        prove(&users, "alice", password, PLAIN, None, unrequested).expect("right");
        prove(&users, "alice", password, PLUS, Some(&HASH), bound()).expect("right");
        let unsupported = ChannelBinding::unsupported();
        prove(&users, "alice", password, PLAIN, Some(&HASH), unsupported).expect("right");
    }
}

#[test]
fn wrong_passwords_and_unknown_users_look_alike() {
    let users = users("alice", "secret");
    for (user, password) in [("alice", "Secret"), ("alice", ""), ("bob", "secret")] {
        for (mechanism, offered) in [(PLAIN, None), (PLUS, Some(&HASH[..]))] {
            let binding = match offered {
                Some(_) => bound(),
                None => ChannelBinding::unsupported(),
            };
            let error =
                prove(&users, user, password, mechanism, offered, binding).expect_err("wrong");
            assert_eq!(error.sqlstate(), "28P01");
            let text = format!("password authentication failed for user \"{user}\"");
            assert_eq!(error.to_string(), text);
        }
    }
}

fn challenge(users: &Users, user: &str) -> (String, String) {
    let mut server = Exchange::new(users, user, None);
    let challenge = server
        .first(&initial(PLAIN, b"n,,n=,r=abc"))
        .expect("a challenge");
    let (nonce, rest) = challenge.split_once(',').expect("parts");
    (nonce.to_owned(), rest.to_owned())
}

#[test]
fn the_challenge_of_an_unknown_user_stays_the_same() {
    let users = users("alice", "secret");
    let (first, other) = (challenge(&users, "bob"), challenge(&users, "bob"));
    assert_eq!(first.1, other.1);
    assert_ne!(first.0, other.0);
    assert_ne!(first.1, challenge(&users, "carol").1);
    let known = challenge(&users, "alice").1;
    assert_eq!(known.len(), first.1.len());
    assert!(known.ends_with(",i=4096") && first.1.ends_with(",i=4096"));
}

#[test]
fn an_unknown_user_looks_like_those_that_there_are() {
    let text = format!(
        "a SCRAM-SHA-256$9000:{0}$AAAA{1}:BBBB{1}",
        "QUJDREVGR0g=",
        { "A".repeat(39) + "=" }
    );
    let users = Users::parse(text.as_bytes()).expect("users");
    let (known, unknown) = (challenge(&users, "a").1, challenge(&users, "b").1);
    assert_eq!(known.len(), unknown.len());
    assert!(unknown.ends_with(",i=9000"));
}

#[test]
fn a_taken_away_offer_is_noticed() {
    let users = users("alice", "secret");
    let unrequested = ChannelBinding::unrequested();
    let error =
        prove(&users, "alice", "secret", PLAIN, Some(&HASH), unrequested).expect_err("a downgrade");
    assert_eq!(error.sqlstate(), "28000");
}

#[test]
fn another_certificate_is_noticed() {
    let users = users("alice", "secret");
    let other = ChannelBinding::tls_server_end_point(vec![8; 32]);
    let error = prove(&users, "alice", "secret", PLUS, Some(&HASH), other).expect_err("another");
    assert_eq!(error.to_string(), "SCRAM channel binding check failed");
}

#[test]
fn mechanisms_go_with_what_is_said_of_the_channel() {
    let users = users("alice", "secret");
    let cases = [
        (PLUS, None, "p=tls-server-end-point,,n=,r=a"),
        (PLAIN, None, "p=tls-server-end-point,,n=,r=a"),
        (PLAIN, Some(&HASH[..]), "p=tls-server-end-point,,n=,r=a"),
        (PLUS, Some(&HASH[..]), "n,,n=,r=a"),
        (PLUS, Some(&HASH[..]), "y,,n=,r=a"),
        (PLUS, Some(&HASH[..]), "p=tls-unique,,n=,r=a"),
        ("SCRAM-SHA-1", None, "n,,n=,r=a"),
        ("", None, "n,,n=,r=a"),
    ];
    for (mechanism, offered, message) in cases {
        let mut server = Exchange::new(&users, "alice", offered);
        let error = server.first(&initial(mechanism, message.as_bytes()));
        assert!(
            matches!(error, Err(Error::Protocol(_))),
            "{mechanism} {message}"
        );
    }
}

#[test]
fn first_messages_that_are_not_allowed_are_refused() {
    let users = users("alice", "secret");
    let long = format!("n,,n=,r={}", "a".repeat(1024));
    let cases = [
        "",
        "n",
        "n,",
        "n,,",
        "n,,n=",
        "n,,r=a",
        "n,,n=,r=",
        "n,,n=,r=a b",
        "n,,n=,r=\u{e9}",
        "n,,n=,r=a,",
        "n,,n=,r=a,x",
        "n,,n=,r=a,1=2",
        "n,x,n=,r=a",
        "x,,n=,r=a",
        "n,,n=,r=a\0",
        "n,a=bob,n=,r=a",
        "n,,m=x,n=,r=a",
        &long,
    ];
    for message in cases {
        let mut server = Exchange::new(&users, "alice", None);
        assert!(
            server.first(&initial(PLAIN, message.as_bytes())).is_err(),
            "{message:?}"
        );
    }
    let mut server = Exchange::new(&users, "alice", None);
    server
        .first(&initial(PLAIN, b"n,,n=x,r=a,x=y"))
        .expect("extensions are let pass");
    // Lengths that are not the message's.
    for length in [0_u32, 8, 10, 0xffff_ffff] {
        let body = [&b"SCRAM-SHA-256\0"[..], &length.to_be_bytes(), b"n,,n=,r=a"].concat();
        assert!(Exchange::new(&users, "alice", None).first(&body).is_err());
    }
}

#[test]
fn messages_come_once_and_in_order() {
    let users = users("alice", "secret");
    let mut server = Exchange::new(&users, "alice", None);
    assert!(server.last(b"c=biws,r=a,p=AAAA").is_err());
    let first = initial(PLAIN, b"n,,n=,r=abc");
    assert!(server.first(&first).is_err());
    let mut server = Exchange::new(&users, "alice", None);
    server.first(&first).expect("a challenge");
    assert!(server.first(&first).is_err());
    assert!(server.last(b"c=biws,r=abc,p=AAAA").is_err());
}

/// The client's last message, and the server that waits for it.
fn challenged(users: &Users) -> (String, Exchange<'static>) {
    let mut client = ScramSha256::new(b"secret", ChannelBinding::unsupported());
    let mut server = Exchange::new(users, "alice", None);
    let challenge = server
        .first(&initial(PLAIN, client.message()))
        .expect("a challenge");
    client.update(challenge.as_bytes()).expect("a challenge");
    let last = std::str::from_utf8(client.message())
        .expect("UTF-8")
        .to_owned();
    (last, server)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_message_that_was_tampered_with_proves_nothing(
        at in any::<prop::sample::Index>(),
        flip in 1_u8..128,
    ) {
        let users = users("alice", "secret");
        let (last, mut server) = challenged(&users);
        let mut bytes = last.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        prop_assert!(server.last(&bytes).is_err());
    }

    #[test]
    fn no_bytes_make_it_panic(first in vec(any::<u8>(), 0..64), last in vec(any::<u8>(), 0..64)) {
        let users = Users::none().expect("none");
        let mut server = Exchange::new(&users, "alice", Some(&HASH));
        let _ = server.first(&first);
        let _ = server.first(&initial(PLUS, &first));
        let mut server = Exchange::new(&users, "alice", None);
        server.first(&initial(PLAIN, b"n,,n=,r=abc")).expect("a challenge");
        prop_assert!(server.last(&last).is_err());
    }
}

#[test]
fn messages_that_are_cut_or_longer_prove_nothing() {
    let users = users("alice", "secret");
    let (last, mut server) = challenged(&users);
    server.last(last.as_bytes()).expect("the right one");
    for end in (0..last.len()).step_by(7) {
        let (last, mut server) = challenged(&users);
        assert!(server.last(&last.as_bytes()[..end]).is_err());
    }
    for more in [",x=y", "A", ",p=AAAA"] {
        let (last, mut server) = challenged(&users);
        assert!(server.last(format!("{last}{more}").as_bytes()).is_err());
    }
}

#[test]
fn a_challenge_stays_the_same_where_the_users_are_read_anew() {
    let challenges = [0; 2].map(|_| challenge(&users("alice", "secret"), "bob").1);
    assert_eq!(challenges[0], challenges[1]);
}
