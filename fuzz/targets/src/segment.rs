//! Segments of an index, as a lake stores them: for the service that sweeps and for the client
//! that verifies.

use crate::token::{specs, KEYS};
use louver_primitives::eds::segment::{Header, Segment};
use louver_primitives::eds::spec::{Form, Spec};
use louver_trusted::eds::{Ranges, ANY_VALUE, NO_VALUE, RANGE};
use louver_untrusted::eds::sweep::Token;
use std::collections::HashMap;
use std::sync::LazyLock;

/// A token's bytes, and what is read of them, by its spec.
type Tokens = HashMap<[u8; 8], (Vec<u8>, Token)>;

/// A token of the index that seeds are segments of, for every spec.
static TOKENS: LazyLock<Tokens> = LazyLock::new(|| {
    let token = |spec: [u8; 8]| {
        let bytes = KEYS.token(1, 0, &spec, (5, 900), false).expect("a token");
        let read = Token::new(&bytes).expect("a token");
        (spec, (bytes, read))
    };
    specs().map(token).collect()
});

pub(crate) fn run(data: &[u8]) {
    let _ = Header::<Spec>::decode(data);
    let _ = KEYS.check(1, 0, data, None);
    let Ok(segment) = Segment::<Spec>::decode(data) else {
        return;
    };
    let header = segment.header;
    assert_eq!(header.encode(), data[..header.encode().len()]);
    assert!(segment.row(header.rows() - 1).is_some());
    assert!(segment.row(header.rows()).is_none());
    if let Some((bytes, token)) = TOKENS.get(&header.spec.encode()) {
        let _ = KEYS.check(1, 0, data, Some(bytes));
        if let Ok(files) = token.sweep(data) {
            assert_eq!(files.len(), (header.files as usize).div_ceil(8));
        }
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let ranges = Ranges {
        lows: &[3, 0, 0],
        highs: &[70, 0, 0],
        states: &[RANGE, NO_VALUE, ANY_VALUE],
    };
    let segment = |spec: [u8; 8]| {
        Spec::decode(&spec).expect("a spec");
        KEYS.segment(1, 0, &spec, &ranges).expect("a segment")
    };
    specs().map(segment).collect()
}
