//! The forms beside rows of single bits: filters of single files, segments of blocks and of whole
//! filters. Each answers exactly as its filters in the clear do, so no file is ever lost.

use super::kind::Kind;
use super::secret::file::{FileIndex, FILE_ID};
use super::secret::{blocks, Index};
use super::server::file::{Prober, Work};
use super::server::Token;
use super::spec::{Encryption, Hash, Spec};
use super::Segment;
use crate::Root;
use louver_primitives::eds::token::SUB_TOKENS;
use louver_trusted::eds::keys::IndexKeys;
use louver_trusted::eds::{tokens, Ranges, ANY_VALUE, NO_VALUE, RANGE};
use proptest::prelude::*;

fn index(spec: Spec) -> Index {
    Index::new(&Root::new([5; 32]), [1, 7, 1], spec)
}

fn file_index(spec: Spec) -> FileIndex {
    FileIndex::new(&Root::new([5; 32]), [1, 7, 1], spec)
}

fn specs(bits: u32, k: u8) -> impl Iterator<Item = Spec> {
    let kinds = Kind::ALL.into_iter();
    let pairs = kinds.flat_map(|kind| Hash::ALL.map(|hash| (kind, hash)));
    let all = pairs.flat_map(|(kind, hash)| Encryption::ALL.map(|way| (kind, hash, way)));
    all.map(move |(kind, hash, encryption)| Spec {
        kind,
        hash,
        encryption,
        k: if kind.allows(bits, k) { k } else { 8 },
        bits,
    })
}

/// Ranges of files: few values near each other, so that many touch a query's ends.
fn files() -> impl Strategy<Value = Vec<(u64, u64, u8)>> {
    let value = || prop_oneof![0..40_u64, any::<u64>(), u64::MAX - 40..=u64::MAX];
    let file = (value(), value(), 0..3_u8);
    let file = file.prop_map(|(a, b, state)| (a.min(b), a.max(b), state));
    prop::collection::vec(file, 1..140)
}

/// What filters in the clear say: Algorithm 3, corrected, without encryption or early ends.
fn model(keys: &IndexKeys<Spec>, filter: &[u8], low: u64, high: u64, sides: bool) -> bool {
    let (header, positions) = tokens::positions(keys, low, high, sides).unwrap();
    let set = |position: &u32| filter[*position as usize / 8] >> (position % 8) & 1 == 1;
    let sub_tokens = positions.chunks(usize::from(header.spec.k));
    let hits: Vec<bool> = sub_tokens.map(|sub| sub.iter().all(set)).collect();
    let count = |hits: &[bool]| hits.iter().filter(|hit| **hit).count();
    let (least, greatest) = hits.split_at(SUB_TOKENS / 2);
    match sides {
        true => count(least) > 0 && count(greatest) > 0,
        false => count(&hits) > 1,
    }
}

fn must_keep((least, greatest, state): (u64, u64, u8), low: u64, high: u64) -> bool {
    match state {
        RANGE => least <= high && greatest >= low,
        state => state == ANY_VALUE,
    }
}

/// A filter of `noise` differs each time, so files without a value are left to other tests.
fn check_segment(spec: Spec, files: &[(u64, u64, u8)], (low, high): (u64, u64), sides: bool) {
    let (lows, highs) = (
        files.iter().map(|f| f.0).collect(),
        files.iter().map(|f| f.1).collect(),
    );
    let (lows, highs): (Vec<u64>, Vec<u64>) = (lows, highs);
    let states: Vec<u8> = files.iter().map(|file| file.2).collect();
    let ranges = Ranges {
        lows: &lows,
        highs: &highs,
        states: &states,
    };
    let index = index(spec);
    let mut segment = index.segment(&ranges).unwrap();
    let token = index.token(low, high, sides).unwrap();
    let answer = Token::new(&token).unwrap().sweep(&segment).unwrap();
    let keys = &index.0;
    let filters = blocks::filters(keys, &ranges).unwrap();
    let clear = filters.chunks_exact(keys.spec.bits as usize / 8);
    for ((at, file), filter) in files.iter().enumerate().zip(clear) {
        let answer = answer[at / 8] >> (at % 8) & 1 == 1;
        assert!(answer || !must_keep(*file, low, high), "a lost file");
        if file.2 != NO_VALUE {
            assert_eq!(answer, model(keys, filter, low, high, sides));
        }
    }
    index.check(&segment, Some(&token)).unwrap();
    index.check(&segment, None).unwrap();
    assert!(index
        .opened(&token)
        .unwrap()
        .iter()
        .all(|position| *position < keys.spec.bits));
    let last = segment.len() - 1;
    segment[last] ^= 1;
    assert!(index.check(&segment, None).is_err());
}

fn check_file(spec: Spec, file: (u64, u64, u8), (low, high): (u64, u64), sides: bool) {
    let index = file_index(spec);
    let range = Ranges {
        lows: &[file.0],
        highs: &[file.1],
        states: &[file.2],
    };
    let (id, other) = ([9; FILE_ID], [8; FILE_ID]);
    let filter = index.filter(&id, &range).unwrap();
    let token = index.token(low, high, sides).unwrap();
    let prober = Prober::new(&token).unwrap();
    let mut work = Work::default();
    let answer = prober.matches_counted(&id, &filter, &mut work).unwrap();
    assert!(answer || !must_keep(file, low, high), "a lost file");
    if file.2 != NO_VALUE {
        let clear = blocks::filters(index.keys(), &range).unwrap();
        assert_eq!(answer, model(index.keys(), &clear, low, high, sides));
        let same = index.filter(&other, &range).unwrap() == filter;
        let shows = matches!(spec.encryption, Encryption::Open | Encryption::AesEmptyIv);
        assert_eq!(same, shows, "equal bounds");
    }
    assert_eq!(work.decryptions == 0, spec.encryption == Encryption::Open);
    assert!(prober.matches(&id, &filter[1..]).is_err());
    assert!(Prober::new(&token[1..]).is_err());
}

/// All combinations, each with a few files.
#[test]
fn every_kind_hash_and_encryption() {
    let files = [
        (3, 9, RANGE),
        (0, u64::MAX, RANGE),
        (5, 5, NO_VALUE),
        (1, 0, ANY_VALUE),
    ];
    for spec in specs(1024, 8) {
        check_segment(spec, &files, (4, 4), false);
        for file in [files[0], files[1], files[3]] {
            check_file(spec, (file.0, file.1.max(file.0), file.2), (10, 20), false);
        }
    }
}

#[test]
fn a_segment_of_blocks_has_tokens_of_its_own() {
    let way = |encryption| Spec {
        kind: Kind::SplitBlock64,
        hash: Hash::Aes128,
        encryption,
        k: 8,
        bits: 2048,
    };
    let range = Ranges {
        lows: &[1],
        highs: &[2],
        states: &[RANGE],
    };
    let bits = index(way(Encryption::XorBit)).token(1, 1, false).unwrap();
    let segment = index(way(Encryption::XorBlock)).segment(&range).unwrap();
    assert!(Token::new(&bits).unwrap().sweep(&segment).is_err());
    assert!(Segment::decode(&segment).is_ok());
    let whole = index(way(Encryption::Aes));
    let aes = whole.token(1, 1, false).unwrap();
    assert!(Token::new(&aes).unwrap().sweep(&segment).is_err());
    assert_eq!(whole.opened(&aes).unwrap().len(), 2048);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn segments_answer_as_their_filters(
        files in files(),
        a: u64,
        b: u64,
        near in 0..45_u64,
        which in 0..30_usize,
        k in 1..17_u8,
        size in 10..14_u32,
        sides: bool,
    ) {
        let all: Vec<Spec> = specs(1 << size, k).filter(|spec| spec.hash == Hash::Aes128).collect();
        let spec = all[which % all.len()];
        check_segment(spec, &files, (a.min(b), a.max(b)), sides);
        check_segment(spec, &files, (near, near + 2), sides);
    }

    #[test]
    fn single_files_answer_as_their_filters(
        files in files(),
        near in 0..45_u64,
        which: prop::sample::Index,
        k in 1..17_u8,
        sides: bool,
    ) {
        let all: Vec<Spec> = specs(1024, k).collect();
        let spec = *which.get(&all);
        for file in files.into_iter().take(4) {
            check_file(spec, file, (near, near + 2), sides);
        }
    }

    #[test]
    fn hostile_bytes_do_not_panic(noise: Vec<u8>, at: prop::sample::Index, flip in 1..=255_u8) {
        let spec = specs(1024, 8).nth(17).unwrap();
        let index = file_index(spec);
        let mut token = index.token(1, 2, false).unwrap();
        let target = at.index(token.len());
        token[target] ^= flip;
        if let Ok(prober) = Prober::new(&token) {
            let _ = prober.matches(&[0; FILE_ID], &noise);
            let _ = prober.matches(&[0; FILE_ID], &[0x5a; 128]);
        }
        prop_assert!(Prober::new(&noise).is_err());
    }
}
