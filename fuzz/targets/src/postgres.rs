//! What a PostgreSQL server says: messages, and values in their binary forms.

use louver_postgres::decoders::{agreed, certificate_hash, column, messages, numeric_text};

const TYPES: [u32; 16] = [
    16, 17, 19, 20, 21, 23, 25, 26, 600, 700, 701, 1082, 1114, 1184, 1700, 2950,
];

pub(crate) fn run(data: &[u8]) {
    let _ = messages(data);
    assert_eq!(agreed(data).is_ok(), data == b"S");
    if let Some(hash) = certificate_hash(data) {
        assert!([32, 48, 64].contains(&hash.len()));
    }
    if let Ok(text) = numeric_text(data) {
        assert!(text.is_ascii() && !text.is_empty());
    }
    if let [type_, value @ ..] = data {
        let type_ = TYPES[usize::from(*type_) % TYPES.len()];
        if let Ok(read) = column(type_, &[Some(value), None]) {
            assert_eq!((read.len(), read.null_count()), (2, 1));
        }
    }
}

/// A message: its letter, and its length before its body.
fn message(letter: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("a short body");
    [&[letter], length.to_be_bytes().as_slice(), body].concat()
}

fn described(types: &[u32]) -> Vec<u8> {
    let mut body = (types.len() as u16).to_be_bytes().to_vec();
    for type_ in types {
        body.extend_from_slice(b"c\0");
        body.extend_from_slice(&[0; 6]);
        body.extend_from_slice(&type_.to_be_bytes());
        body.extend_from_slice(&[0, 4, 255, 255, 255, 255, 0, 1]);
    }
    message(b'T', &body)
}

fn row(values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut body = (values.len() as u16).to_be_bytes().to_vec();
    for value in values {
        let length = value.map_or(-1, |value| value.len() as i32);
        body.extend_from_slice(&length.to_be_bytes());
        body.extend_from_slice(value.unwrap_or_default());
    }
    message(b'D', &body)
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let numeric = [0, 2, 0, 0, 64, 0, 0, 2, 0, 12, 9, 196];
    let answer = [
        described(&[23, 25, 1700, 2950, 1082, 16]),
        row(&[
            Some(&[0, 0, 0, 7]),
            Some("é".as_bytes()),
            Some(&numeric),
            Some(&[7; 16]),
            Some(&[127, 255, 255, 255]),
            Some(&[1]),
        ]),
        row(&[None; 6]),
        message(b'C', b"SELECT 2\0"),
        message(b'Z', b"I"),
    ];
    let refused = [
        message(b'E', b"SERROR\0VERROR\0C23505\0Mno\0P12\0nkey\0\0"),
        message(b'N', b"SNOTICE\0C00000\0Msaid\0\0"),
        message(b'S', b"TimeZone\0UTC\0"),
        message(b'A', b"\0\0\0\x01a\0b\0"),
        message(b't', &[0, 1, 0, 0, 0, 23]),
    ];
    // A certificate as far as it is read: a body, and how it is signed (ECDSA with SHA-256).
    let name = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
    let certificate = [&[0x30, 16, 0x30, 2, 5, 0, 0x30, 10], name.as_slice()].concat();
    vec![
        answer.concat(),
        certificate,
        refused.concat(),
        numeric.to_vec(),
        [&[14], numeric.as_slice()].concat(),
    ]
}
