//! The file of users.

use louver_proxy::{verifier, Secret, Users};
use proptest::collection::vec;
use proptest::prelude::*;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
const SALT: &str = "QUJDREVGR0hJSktMTU5PUA==";

fn line(name: &str) -> String {
    format!("{name} SCRAM-SHA-256$4096:{SALT}${KEY}:{KEY}")
}

#[test]
fn lines_comments_and_words_are_read() {
    let text = format!(
        "# users\n\n  {}\trole=reader note=a=b # c=d\r\n{} #\n",
        line("alice"),
        line("bob")
    );
    let users = Users::parse(text.as_bytes()).expect("users");
    let words = &users.verifier("alice").expect("alice").words;
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(*words, [pair("role", "reader"), pair("note", "a=b")]);
    assert!(users.verifier("bob").expect("bob").words.is_empty());
    assert!(users.verifier("carol").is_none() && !users.is_empty());
    assert!(Users::parse(b"# nobody").expect("none").is_empty());
}

#[test]
fn a_wrong_line_is_named_by_its_number_and_not_shown() {
    let good = line("alice");
    let cases = [
        "alice".to_owned(),
        "alice password".to_owned(),
        format!("alice SCRAM-SHA-1$4096:{SALT}${KEY}:{KEY}"),
        format!("alice SCRAM-SHA-256$100:{SALT}${KEY}:{KEY}"),
        format!("alice SCRAM-SHA-256$+4096:{SALT}${KEY}:{KEY}"),
        format!("alice SCRAM-SHA-256$99999999999:{SALT}${KEY}:{KEY}"),
        format!("alice SCRAM-SHA-256$4096:QUJD${KEY}:{KEY}"),
        format!("alice SCRAM-SHA-256$4096:{SALT}$AAAA:{KEY}"),
        format!("alice SCRAM-SHA-256$4096:{SALT}${KEY}:{KEY}A"),
        format!("alice SCRAM-SHA-256$4096:{SALT}${KEY}"),
        format!("{good} word"),
        format!("{good} =value"),
        format!("{good} a=b a=c"),
        line(&"n".repeat(64)),
        line("a\0b"),
        format!("{good} a={}", "b".repeat(4096)),
    ];
    for text in cases {
        let all = format!("# head\n{text}\n{}", line("zoe"));
        let error = Users::parse(all.as_bytes()).expect_err(&text).to_string();
        assert!(error.starts_with("line 2: "), "{error}");
        assert!(
            !error.contains("AAAA") && !error.contains("QUJD"),
            "{error}"
        );
    }
    let twice = format!("{good}\n{good}");
    let error = Users::parse(twice.as_bytes())
        .expect_err("twice")
        .to_string();
    assert_eq!(error, "line 2: this user has a line already");
    assert!(Users::parse(b"\xff").is_err());
}

#[test]
fn a_file_is_its_owners_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("users");
    assert!(Users::read(&path).is_err());
    fs::write(&path, line("alice")).expect("written");
    for (mode, good) in [
        (0o600, true),
        (0o400, true),
        (0o640, false),
        (0o604, false),
        (0o620, false),
    ] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("set");
        assert_eq!(Users::read(&path).is_ok(), good, "{mode:o}");
    }
    assert!(Users::read(folder.path()).is_err());
}

#[test]
fn a_verifier_of_a_password_is_a_line() {
    let text = verifier(&Secret::new("secret".to_owned())).expect("a verifier");
    let users = Users::parse(format!("alice {text}").as_bytes()).expect("users");
    assert!(users.verifier("alice").is_some());
    assert_ne!(
        text,
        verifier(&Secret::new("secret".to_owned())).expect("another salt")
    );
    assert!(verifier(&Secret::new(String::new())).is_err());
}

#[test]
fn secrets_are_not_shown() {
    let users = Users::parse(line("alice").as_bytes()).expect("users");
    let shown = format!("{users:?} {:?}", Secret::new("hidden".to_owned()));
    assert!(!shown.contains("hidden") && !shown.contains("stored") && !shown.contains("0, 0"));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in vec(any::<u8>(), 0..64)) {
        let _ = Users::parse(&bytes);
        let behind = [line("alice").as_bytes(), b" ", &bytes].concat();
        let _ = Users::parse(&behind);
    }
}
