//! Tokens of ranges, as clients send them to a pruning service: what is accepted must sweep.

use louver_primitives::eds::segment::{self, SEGMENT_ID};
use louver_primitives::eds::spec::{Layout, Spec};
use louver_primitives::eds::token::Header;
use louver_trusted::eds::LakeKeys;
use louver_trusted::fuzz;
use louver_untrusted::eds::reference::Prober;
use louver_untrusted::eds::sweep::Token;
use std::sync::{Arc, LazyLock};

const FILES: u32 = 3;

pub(crate) static KEYS: LazyLock<LakeKeys> =
    LazyLock::new(|| LakeKeys::new(Arc::new(fuzz::ring()), 5));

/// One spec of every kind and encryption, in its smallest size.
pub(crate) fn specs() -> impl Iterator<Item = [u8; 8]> {
    let codes = (0..5_u8).flat_map(|kind| (0..5_u8).map(move |encryption| (kind, encryption)));
    codes.filter_map(|(kind, encryption)| {
        let least = [kind, 0, encryption, 1, 0, 4, 0, 0];
        let other = [kind, 0, encryption, 8, 0, 4, 0, 0];
        [least, other]
            .into_iter()
            .find(|spec| Spec::decode(spec).is_ok())
    })
}

pub(crate) fn run(data: &[u8]) {
    let prober = Prober::new(data);
    if let Ok(prober) = prober {
        let spec = data.get(5..13).and_then(|spec| Spec::decode(spec).ok());
        let filter = vec![0xff; spec.expect("it was read").bits as usize / 8];
        prober
            .matches(&[1; 16], &filter)
            .expect("a filter of the right size");
    }
    let opened = KEYS.opened(data);
    let Ok(token) = Token::new(data) else {
        return;
    };
    assert!(opened.is_ok(), "one reader takes what another refuses");
    let header = Header::decode(data).expect("it was read");
    let segment = segment(&header);
    let files = token.sweep(&segment).expect("a segment of its index");
    assert_eq!(files.len(), 1);
    assert_eq!(files[0] >> FILES, 0);
}

/// A segment for a token: all bits set, where they are not encrypted.
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
        let sides = spec[0] % 2 == 0;
        let token = KEYS.token(1, 0, &spec, (5, 900), sides);
        seeds.push(token.expect("a token"));
        let layout = Spec::decode(&spec).expect("a spec").encryption.layout();
        if layout != Layout::BitMajor {
            let index = KEYS.file_index(1, 0, &spec).expect("an index");
            seeds.push(index.token(5, 900, sides).expect("a token"));
        }
    }
    seeds
}
