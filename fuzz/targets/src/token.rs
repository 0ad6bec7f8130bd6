//! Tokens of ranges, as clients send them to a pruning service: what is accepted must sweep.

use louver_primitives::eds::kind::Kind;
use louver_primitives::eds::segment::{self, SEGMENT_ID};
use louver_primitives::eds::spec::{Form, Spec};
use louver_primitives::eds::token::Header;
use louver_trusted::eds::LakeKeys;
use louver_trusted::fuzz;
use louver_untrusted::eds::sweep::Token;
use std::sync::{Arc, LazyLock};

const FILES: u32 = 3;

pub(crate) static KEYS: LazyLock<LakeKeys> =
    LazyLock::new(|| LakeKeys::new(Arc::new(fuzz::ring()), 5));

/// Every kind in its two smallest sizes.
pub(crate) fn specs() -> impl Iterator<Item = [u8; 8]> {
    let sizes = |kind| [1024, 2048].map(|bits| (kind, bits));
    Kind::ALL.into_iter().flat_map(sizes).map(|(kind, bits)| {
        let k = if kind.allows(bits, 1) { 1 } else { 8 };
        Spec { kind, k, bits }.encode()
    })
}

pub(crate) fn run(data: &[u8]) {
    let opened = KEYS.opened(data);
    let Ok(token) = Token::<Spec>::new(data) else {
        return;
    };
    assert!(opened.is_ok(), "one reader takes what another refuses");
    let header = Header::decode(data).expect("it was read");
    let segment = segment(&header);
    let files = token.sweep(&segment).expect("a segment of its index");
    assert_eq!(files.len(), 1);
    assert_eq!(files[0] >> FILES, 0);
}

/// A segment for a token.
fn segment(token: &Header) -> Vec<u8> {
    let header = segment::Header {
        spec: token.spec,
        index_id: token.index_id,
        segment_id: [3; SEGMENT_ID],
        files: FILES,
    };
    let mut bytes = header.encode().to_vec();
    bytes.resize(header.total(), 0xff);
    bytes
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for spec in specs() {
        let sides = spec[0] == 0;
        let token = KEYS.token(1, 0, &spec, (5, 900), sides);
        seeds.push(token.expect("a token"));
    }
    seeds
}
