//! Messages of clients and to clients, against another author's codec.

use bytes::{Bytes, BytesMut};
use louver_proxy::message::{decode, next_tag};
use louver_proxy::{Error, Request, Target};
use postgres_protocol::message::frontend;
use postgres_protocol::IsNull;
use proptest::collection::vec;
use proptest::prelude::*;

const MOST: usize = 1 << 20;

fn text() -> impl Strategy<Value = String> {
    "[^\0]{0,12}"
}

fn value() -> impl Strategy<Value = Option<Vec<u8>>> {
    proptest::option::of(vec(any::<u8>(), 0..20))
}

fn target() -> impl Strategy<Value = Target> {
    prop_oneof![Just(Target::Statement), Just(Target::Portal)]
}

fn bind() -> impl Strategy<Value = Request> {
    let formats = (0_usize..3, 0_i16..2);
    let results = vec(0_i16..2, 0..4);
    (text(), text(), formats, vec(value(), 0..5), results).prop_map(
        |(portal, statement, (count, format), values, result_formats)| Request::Bind {
            portal,
            statement,
            parameter_formats: vec![format; [0, 1, values.len()][count]],
            parameters: values.into_iter().map(|v| v.map(Bytes::from)).collect(),
            result_formats,
        },
    )
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        text().prop_map(Request::Query),
        (text(), text(), vec(any::<u32>(), 0..4)).prop_map(|(name, sql, types)| Request::Parse {
            name,
            sql,
            types
        }),
        bind(),
        (target(), text()).prop_map(|(target, name)| Request::Describe(target, name)),
        (target(), text()).prop_map(|(target, name)| Request::Close(target, name)),
        (text(), any::<i32>()).prop_map(|(portal, most)| Request::Execute { portal, most }),
        vec(any::<u8>(), 0..20).prop_map(|data| Request::CopyData(data.into())),
        text().prop_map(Request::CopyFail),
        vec(any::<u8>(), 0..20).prop_map(|data| Request::Password(data.into())),
        Just(Request::Flush),
        Just(Request::Sync),
        Just(Request::CopyDone),
        Just(Request::Terminate),
    ]
}

fn letter(target: Target) -> u8 {
    match target {
        Target::Statement => b'S',
        Target::Portal => b'P',
    }
}

fn write(request: &Request, out: &mut BytesMut) {
    match request {
        Request::Query(sql) => frontend::query(sql, out),
        Request::Parse { name, sql, types } => {
            frontend::parse(name, sql, types.iter().copied(), out)
        }
        Request::Bind {
            portal,
            statement,
            parameter_formats,
            parameters,
            result_formats,
        } => {
            let put = |value: &Option<Bytes>, out: &mut BytesMut| {
                Ok(match value {
                    Some(value) => {
                        out.extend_from_slice(value);
                        IsNull::No
                    }
                    None => IsNull::Yes,
                })
            };
            let formats = parameter_formats.iter().copied();
            let results = result_formats.iter().copied();
            let written = frontend::bind(portal, statement, formats, parameters, put, results, out);
            assert!(written.is_ok());
            Ok(())
        }
        Request::Describe(target, name) => frontend::describe(letter(*target), name, out),
        Request::Close(target, name) => frontend::close(letter(*target), name, out),
        Request::Execute { portal, most } => frontend::execute(portal, *most, out),
        Request::CopyData(data) => {
            frontend::CopyData::new(data.clone()).map(|message| message.write(out))
        }
        Request::CopyFail(reason) => frontend::copy_fail(reason, out),
        Request::Password(data) => frontend::sasl_response(data, out),
        Request::Flush => return frontend::flush(out),
        Request::Sync => return frontend::sync(out),
        Request::CopyDone => return frontend::copy_done(out),
        Request::Terminate => return frontend::terminate(out),
        Request::FunctionCall => unreachable!("nobody writes it"),
    }
    .expect("written");
}

/// A message: its letter, and its length before its body.
fn raw(letter: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("short");
    [&[letter], &length.to_be_bytes()[..], body].concat()
}

fn refused(bytes: &[u8]) -> Error {
    let mut input = BytesMut::from(bytes);
    decode(&mut input, MOST).expect_err(&format!("{bytes:?}"))
}

proptest! {
    #[test]
    fn requests_are_read_as_written(requests in vec(request(), 1..4)) {
        let mut bytes = BytesMut::new();
        for request in &requests {
            write(request, &mut bytes);
        }
        // All at once.
        let mut input = bytes.clone();
        for request in &requests {
            prop_assert!(next_tag(&input).is_some());
            let read = decode(&mut input, MOST).expect("a message");
            prop_assert_eq!(read.as_ref(), Some(request));
        }
        prop_assert!(input.is_empty() && next_tag(&input).is_none());
        // Byte by byte: nothing is taken before all of it is there.
        let (mut input, mut read) = (BytesMut::new(), Vec::new());
        for byte in &bytes {
            input.extend_from_slice(&[*byte]);
            let (before, tag) = (input.clone(), next_tag(&input));
            let next = decode(&mut input, MOST).expect("a message");
            prop_assert_eq!(tag.is_some(), next.is_some());
            prop_assert!(next.is_some() || input == before);
            read.extend(next);
        }
        prop_assert_eq!(read, requests);
    }

    #[test]
    fn what_is_cut_or_too_long_is_refused(
        request in request(),
        cut in 1_usize..40,
        more in 1_usize..9,
    ) {
        let mut bytes = BytesMut::new();
        write(&request, &mut bytes);
        let body = &bytes[5..];
        let free = matches!(request, Request::CopyData(_) | Request::Password(_));
        let longer = raw(bytes[0], &[body, &vec![0; more][..]].concat());
        prop_assert_eq!(decode(&mut BytesMut::from(&longer[..]), MOST).is_ok(), free);
        if cut <= body.len() && !free {
            let shorter = raw(bytes[0], &body[..body.len() - cut]);
            prop_assert!(matches!(refused(&shorter), Error::Protocol(_)));
        }
    }

    #[test]
    fn no_bytes_make_it_panic(
        bytes in vec(any::<u8>(), 0..64),
        letter in proptest::sample::select(&b"QPBDECHSdcfFpX"[..]),
    ) {
        for bytes in [raw(letter, &bytes), bytes] {
            let mut input = BytesMut::from(&bytes[..]);
            while let Ok(Some(_)) = decode(&mut input, MOST) {}
            let _ = next_tag(&input);
        }
    }
}

#[test]
fn a_length_is_refused_before_its_bytes_come() {
    for length in [0, 3, MOST as u32 + 1, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
        let bytes = [&b"Q"[..], &length.to_be_bytes()].concat();
        assert!(matches!(refused(&bytes), Error::Protocol(_)), "{length}");
        assert_eq!(next_tag(&BytesMut::from(&bytes[..])), None);
    }
    // Names are short.
    for letter in b"DECHSXcfp" {
        let bytes = [&[*letter], &10_001_u32.to_be_bytes()[..]].concat();
        assert!(matches!(refused(&bytes), Error::Protocol(_)));
    }
    let mut most = BytesMut::from(&[&b"Q"[..], &(MOST as u32).to_be_bytes()].concat()[..]);
    assert!(matches!(decode(&mut most, MOST), Ok(None)));
}

#[test]
fn what_is_not_a_message_is_refused_by_its_letter() {
    for letter in 0..=u8::MAX {
        let known = b"QPBDECHSdcfFpX".contains(&letter);
        let read = decode(&mut BytesMut::from(&[letter][..]), MOST);
        assert_eq!(read.is_ok(), known, "{letter}");
    }
}

#[test]
fn wrong_contents_are_refused() {
    let cases: [(u8, &[u8]); 13] = [
        (b'Q', b"SELECT 1"),
        (b'Q', b"SELECT 1\0SELECT 2\0"),
        (b'D', b"X\0"),
        (b'C', b"\0"),
        (b'E', b"\0\0\0\0"),
        (b'S', b"\0"),
        (b'P', b"\0\0\xff\xff"),
        (b'B', b"\0\0\xff\xff\0\0"),
        // Formats other than 0 and 1, of parameters and of results.
        (b'B', b"\0\0\0\x01\0\x02\0\x01\0\0\0\0\0\0"),
        (b'B', b"\0\0\0\0\0\0\0\x01\xff\xff"),
        // Two formats for one parameter.
        (b'B', b"\0\0\0\x02\0\0\0\x01\0\x01\xff\xff\xff\xff\0\0"),
        // Lengths of -2, and beyond the end.
        (b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0"),
        (b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xff\0\0"),
    ];
    for (letter, body) in cases {
        let error = refused(&raw(letter, body));
        assert!(matches!(error, Error::Protocol(_)), "{letter} {body:?}");
        assert_eq!(error.sqlstate(), "08P01");
    }
}

#[test]
fn a_text_that_is_not_utf8_leaves_the_connection_in_step() {
    let bytes = [raw(b'Q', b"SELECT '\xe9'\0"), raw(b'S', b"")].concat();
    let mut input = BytesMut::from(&bytes[..]);
    let error = decode(&mut input, MOST).expect_err("not UTF-8");
    assert_eq!(error.sqlstate(), "22021");
    let text = "invalid byte sequence for encoding \"UTF8\": 0xe9";
    assert_eq!(error.to_string(), text);
    assert_eq!(decode(&mut input, MOST).expect("next"), Some(Request::Sync));
}
