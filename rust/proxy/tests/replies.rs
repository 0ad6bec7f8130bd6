//! Messages to clients, read by another author's codec.

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use louver_proxy::{reply, Column, Fields};
use postgres_protocol::message::backend::Message;
use proptest::collection::vec;
use proptest::prelude::*;

fn read(bytes: &mut BytesMut) -> Message {
    let length = u32::from_be_bytes(*bytes[1..].first_chunk().expect("a length"));
    assert!(bytes.len() > length as usize);
    Message::parse(bytes).expect("read").expect("a message")
}

/// What a message written by this reads as.
fn written(write: impl FnOnce(&mut BytesMut)) -> Message {
    // Behind what is there already.
    let mut out = BytesMut::from(&b"before"[..]);
    write(&mut out);
    let mut message = out.split_off(6);
    assert_eq!(&out[..], b"before");
    let read = read(&mut message);
    assert!(message.is_empty());
    read
}

/// A text as a client reads it.
fn before_nul(text: &str) -> &str {
    text.split('\0').next().expect("one")
}

fn column() -> impl Strategy<Value = Column> {
    let numbers = any::<(u32, i16, u32, i16, i32)>();
    (any::<String>(), numbers, 0_i16..2).prop_map(|(name, numbers, format)| {
        let (table, attribute, type_, size, modifier) = numbers;
        Column {
            name,
            table,
            attribute,
            type_,
            size,
            modifier,
            format,
        }
    })
}

fn fields() -> impl Strategy<Value = Fields> {
    let more = vec((any::<u8>(), any::<String>()), 0..4);
    let texts = any::<(String, Option<String>, Option<String>, Option<u32>)>();
    (texts, more).prop_map(|((message, detail, hint, position), more)| Fields {
        severity: "ERROR",
        sqlstate: "22012".to_owned(),
        message,
        detail,
        hint,
        position,
        more,
        code: None,
    })
}

proptest! {
    #[test]
    fn columns_are_described(columns in vec(column(), 0..5)) {
        let message = written(|out| reply::row_description(out, &columns).expect("fits"));
        let Message::RowDescription(body) = message else { panic!() };
        let fields: Vec<_> = body.fields().map(|field| {
            Ok(Column {
                name: field.name().to_owned(),
                table: field.table_oid(),
                attribute: field.column_id(),
                type_: field.type_oid(),
                size: field.type_size(),
                modifier: field.type_modifier(),
                format: field.format(),
            })
        }).collect().expect("fields");
        let mut expected = columns;
        for column in &mut expected {
            column.name = before_nul(&column.name).to_owned();
        }
        prop_assert_eq!(fields, expected);
    }

    #[test]
    fn rows_hold_their_values(values in vec(proptest::option::of(vec(any::<u8>(), 0..20)), 0..6)) {
        let slices: Vec<_> = values.iter().map(Option::as_deref).collect();
        let message = written(|out| reply::data_row(out, &slices).expect("fits"));
        let Message::DataRow(body) = message else { panic!() };
        let read: Vec<_> = body.ranges()
            .map(|range| Ok(range.map(|range| body.buffer()[range].to_vec())))
            .collect().expect("ranges");
        prop_assert_eq!(read, values);
    }

    #[test]
    fn errors_and_notices_hold_their_fields(fields in fields(), is_error in any::<bool>()) {
        let message = written(|out| {
            if is_error { reply::error(out, &fields) } else { reply::notice(out, &fields) }
        });
        let (is, mut body) = match &message {
            Message::ErrorResponse(body) => (true, body.fields()),
            Message::NoticeResponse(body) => (false, body.fields()),
            _ => panic!(),
        };
        prop_assert_eq!(is, is_error);
        let mut read = Vec::new();
        while let Some(field) = body.next().expect("a field") {
            read.push((field.type_(), field.value_bytes().to_vec()));
        }
        let mut expected = vec![
            (b'S', fields.severity.to_owned()),
            (b'V', fields.severity.to_owned()),
            (b'C', fields.sqlstate.clone()),
            (b'M', fields.message.clone()),
        ];
        expected.extend(fields.detail.clone().map(|text| (b'D', text)));
        expected.extend(fields.hint.clone().map(|text| (b'H', text)));
        expected.extend(fields.position.map(|at| (b'P', at.to_string())));
        expected.extend(fields.more.iter().filter(|(l, _)| l.is_ascii_alphabetic()).cloned());
        let expected: Vec<_> = expected.iter()
            .map(|(letter, text)| (*letter, before_nul(text).as_bytes().to_vec()))
            .collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn texts_end_before_a_nul(name in any::<String>(), value in any::<String>()) {
        let message = written(|out| reply::parameter_status(out, &name, &value));
        let Message::ParameterStatus(body) = message else { panic!() };
        prop_assert_eq!(body.name().expect("UTF-8"), before_nul(&name));
        prop_assert_eq!(body.value().expect("UTF-8"), before_nul(&value));
        let message = written(|out| reply::notification(out, 7, &name, &value));
        let Message::NotificationResponse(body) = message else { panic!() };
        prop_assert_eq!(body.process_id(), 7);
        prop_assert_eq!(body.channel().expect("UTF-8"), before_nul(&name));
        prop_assert_eq!(body.message().expect("UTF-8"), before_nul(&value));
        let message = written(|out| reply::command_complete(out, &name));
        let Message::CommandComplete(body) = message else { panic!() };
        prop_assert_eq!(body.tag().expect("UTF-8"), before_nul(&name));
    }
}

#[test]
fn messages_without_a_body_are_theirs() {
    type Write = fn(&mut BytesMut);
    type Is = fn(&Message) -> bool;
    let cases: [(Write, Is); 8] = [
        (reply::authentication_ok, |m| {
            matches!(m, Message::AuthenticationOk)
        }),
        (reply::parse_complete, |m| {
            matches!(m, Message::ParseComplete)
        }),
        (reply::bind_complete, |m| matches!(m, Message::BindComplete)),
        (reply::close_complete, |m| {
            matches!(m, Message::CloseComplete)
        }),
        (reply::no_data, |m| matches!(m, Message::NoData)),
        (reply::empty_query, |m| {
            matches!(m, Message::EmptyQueryResponse)
        }),
        (reply::portal_suspended, |m| {
            matches!(m, Message::PortalSuspended)
        }),
        (reply::copy_done, |m| matches!(m, Message::CopyDone)),
    ];
    for (at, (write, is)) in cases.into_iter().enumerate() {
        assert!(is(&written(write)), "{at}");
    }
}

#[test]
fn other_messages_are_read_as_written() {
    for status in *b"ITE" {
        let Message::ReadyForQuery(body) = written(|out| reply::ready(out, status)) else {
            panic!()
        };
        assert_eq!(body.status(), status);
    }
    let message = written(|out| reply::backend_key(out, 7, &[0, 0, 0, 9]).expect("fits"));
    let Message::BackendKeyData(body) = message else {
        panic!()
    };
    assert_eq!((body.process_id(), body.secret_key()), (7, 9));
    let message = written(|out| reply::parameter_description(out, &[23, 25]).expect("fits"));
    let Message::ParameterDescription(body) = message else {
        panic!()
    };
    assert_eq!(
        body.parameters().collect::<Vec<_>>().expect("types"),
        [23, 25]
    );
    let message = written(|out| reply::authentication_sasl(out, &["A", "B"]));
    let Message::AuthenticationSasl(body) = message else {
        panic!()
    };
    assert_eq!(
        body.mechanisms().collect::<Vec<_>>().expect("names"),
        ["A", "B"]
    );
    let message = written(|out| reply::authentication_sasl_continue(out, b"data").expect("fits"));
    assert!(matches!(message, Message::AuthenticationSaslContinue(body) if body.data() == b"data"));
    let message = written(|out| reply::authentication_sasl_final(out, b"data").expect("fits"));
    assert!(matches!(message, Message::AuthenticationSaslFinal(body) if body.data() == b"data"));
    let message = written(|out| reply::copy_in(out, 1, &[1, 1]).expect("fits"));
    let Message::CopyInResponse(body) = message else {
        panic!()
    };
    assert_eq!(
        (body.format(), body.column_formats().count().expect("two")),
        (1, 2)
    );
    let message = written(|out| reply::copy_out(out, 0, &[0]).expect("fits"));
    let Message::CopyOutResponse(body) = message else {
        panic!()
    };
    assert_eq!(
        (body.format(), body.column_formats().count().expect("one")),
        (0, 1)
    );
    let message = written(|out| reply::copy_data(out, b"row").expect("fits"));
    assert!(matches!(message, Message::CopyData(body) if body.data() == b"row"));
}

#[test]
fn a_version_is_negotiated() {
    let mut out = BytesMut::new();
    reply::negotiate_version(&mut out, 2, &["_pq_.x".to_owned()]);
    assert_eq!(&out[..], b"v\0\0\0\x13\0\x03\0\x02\0\0\0\x01_pq_.x\0");
}

#[test]
fn what_does_not_fit_appends_nothing() {
    let mut out = BytesMut::new();
    assert!(reply::data_row(&mut out, &vec![None; 65_536]).is_err());
    assert!(reply::parameter_description(&mut out, &vec![0; 65_536]).is_err());
    assert!(reply::copy_in(&mut out, 0, &vec![0; 65_536]).is_err());
    assert!(reply::backend_key(&mut out, 1, &[0; 3]).is_err());
    assert!(reply::backend_key(&mut out, 1, &[0; 257]).is_err());
    // Three values that share their bytes are more than a message can hold.
    let large = vec![0; 1 << 30];
    assert!(reply::data_row(&mut out, &[Some(large.as_slice()); 3]).is_err());
    assert!(out.is_empty());
}

#[test]
fn what_tells_about_something_is_cut_at_a_letter() {
    let mut out = BytesMut::new();
    let message = "€".repeat(reply::MOST_TEXT);
    let fields = Fields {
        severity: "ERROR",
        message: message.clone(),
        ..Fields::default()
    };
    reply::error(&mut out, &fields);
    assert!(out.len() <= reply::MOST_TEXT + 40);
    assert!(std::str::from_utf8(&out[5..]).is_ok());
}
