//! AES-256-GCM against known answers and against the crate `aes-gcm`.

use super::*;
use proptest::prelude::*;
use serde_json::Value;

const VECTORS: &str = include_str!("../../../../spec/vectors/gcm.json");

/// One value with everything that its sealed form depends on.
#[derive(Clone, Debug)]
struct Case {
    head: Vec<u8>,
    row_id: i64,
    nonce: [u8; NONCE],
    plain: Vec<u8>,
}

type Pair = (Vec<u8>, [u8; TAG]);

/// The values sealed as one batch.
fn seal(gcm: &Gcm, cases: &[Case]) -> Vec<Pair> {
    let bindings: Vec<Binding> = cases.iter().map(|case| gcm.binding(&case.head)).collect();
    let pairs = cases.iter().map(|case| (case.plain.clone(), [0; TAG]));
    let mut pairs: Vec<Pair> = pairs.collect();
    let values = cases.iter().zip(&bindings).zip(&mut pairs);
    let mut values: Vec<Plain<'_>> = values
        .map(|((case, binding), (body, tag))| Plain {
            binding,
            row_id: case.row_id,
            nonce: case.nonce,
            body,
            tag,
        })
        .collect();
    assert!(gcm.seal(&mut values, &mut Scratch::default()));
    pairs
}

/// The pairs opened as one batch; `None` for those that are refused.
fn open(gcm: &Gcm, cases: &[Case], pairs: &[Pair]) -> Vec<Option<Vec<u8>>> {
    let bindings: Vec<Binding> = cases.iter().map(|case| gcm.binding(&case.head)).collect();
    let values = cases.iter().zip(&bindings).zip(pairs);
    let values: Vec<Sealed<'_>> = values
        .map(|((case, binding), (body, tag))| Sealed {
            binding,
            row_id: case.row_id,
            nonce: &case.nonce,
            body,
            tag,
        })
        .collect();
    let mut opened = Vec::new();
    let give = |index: usize, body: Option<&[u8]>| {
        assert_eq!(index, opened.len());
        opened.push(body.map(<[u8]>::to_vec));
        Ok::<(), ()>(())
    };
    gcm.open(&values, &mut Scratch::default(), give).unwrap();
    opened
}

/// A value sealed by the crate `aes-gcm`.
fn reference(key: &[u8; 32], case: &Case) -> Pair {
    let mut body = case.plain.clone();
    let associated = [case.head.as_slice(), &case.row_id.to_be_bytes()].concat();
    let buffer = body.as_mut_slice().into();
    let tag = Aes256Gcm::new(key.into())
        .encrypt_inout_detached(&case.nonce.into(), &associated, buffer)
        .unwrap();
    (body, tag.into())
}

fn hex(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    let digits = (0..text.len()).step_by(2).map(|at| &text[at..at + 2]);
    digits
        .map(|two| u8::from_str_radix(two, 16).unwrap())
        .collect()
}

/// NIST CAVP and Wycheproof; each case is refused, too, when any byte of it is changed.
#[test]
fn known_answers() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 36);
    for vector in cases {
        let key: [u8; 32] = hex(&vector["key"]).try_into().unwrap();
        let associated = hex(&vector["associated"]);
        let (head, row_id) = associated.split_last_chunk::<ROW_ID>().unwrap();
        let case = Case {
            head: head.to_vec(),
            row_id: i64::from_be_bytes(*row_id),
            nonce: hex(&vector["nonce"]).try_into().unwrap(),
            plain: hex(&vector["plaintext"]),
        };
        let tag: [u8; TAG] = hex(&vector["tag"]).try_into().unwrap();
        let pair = (hex(&vector["ciphertext"]), tag);
        let (gcm, cases, pairs) = (Gcm::new(&key), [case], [pair]);
        assert_eq!(seal(&gcm, &cases), pairs, "{vector}");
        let opened = open(&gcm, &cases, &pairs);
        assert_eq!(opened, [Some(cases[0].plain.clone())], "{vector}");
        refused(&gcm, &cases[0], &pairs[0]);
    }
}

/// Every byte of nonce, associated data, body and tag, changed by itself.
fn refused(gcm: &Gcm, case: &Case, (body, tag): &Pair) {
    let (mut cases, mut pairs) = (Vec::new(), Vec::new());
    let mut push = |case: Case, pair: Pair| {
        cases.push(case);
        pairs.push(pair);
    };
    for at in 0..body.len() {
        let mut body = body.clone();
        body[at] ^= 1 << (at % 8);
        push(case.clone(), (body, *tag));
    }
    for at in 0..TAG {
        let mut tag = *tag;
        tag[at] ^= 0x80 >> (at % 8);
        push(case.clone(), (body.clone(), tag));
    }
    for at in 0..NONCE {
        let mut case = case.clone();
        case.nonce[at] ^= 1;
        push(case, (body.clone(), *tag));
    }
    for at in 0..case.head.len() {
        let mut case = case.clone();
        case.head[at] ^= 0x10;
        push(case, (body.clone(), *tag));
    }
    for bit in 0..64 {
        let mut case = case.clone();
        case.row_id ^= 1 << bit;
        push(case, (body.clone(), *tag));
    }
    assert!(open(gcm, &cases, &pairs).iter().all(Option::is_none));
}

/// Values of lengths around those of blocks, batches and [`LONG`].
fn cases() -> impl Strategy<Value = Vec<Case>> {
    let length = prop_oneof![
        8 => 0..=70_usize,
        2 => 250..=260_usize,
        1 => LONG - 2..=LONG + 17,
    ];
    let head = (0..4_usize, 0..=BLOCK - ROW_ID).prop_map(|(blocks, rest)| blocks * BLOCK + rest);
    let head = head.prop_flat_map(|length| prop::collection::vec(any::<u8>(), length));
    let case = (
        head,
        any::<i64>(),
        any::<[u8; NONCE]>(),
        length,
        any::<u8>(),
    );
    let case = case.prop_map(|(head, row_id, nonce, length, byte)| Case {
        head,
        row_id,
        nonce,
        plain: (0..length)
            .map(|i| (i as u8).wrapping_mul(7) ^ byte)
            .collect(),
    });
    prop::collection::vec(case, 0..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A batch has the bytes of the crate `aes-gcm`; a changed bit refuses its own value only.
    #[test]
    fn batches_agree_with_the_reference(
        key: [u8; 32],
        cases in cases(),
        target: prop::sample::Index,
        bit: prop::sample::Index,
    ) {
        let gcm = Gcm::new(&key);
        let mut pairs = seal(&gcm, &cases);
        let expected: Vec<Pair> = cases.iter().map(|case| reference(&key, case)).collect();
        prop_assert_eq!(&pairs, &expected);
        let mut plain: Vec<_> = cases.iter().map(|case| Some(case.plain.clone())).collect();
        prop_assert_eq!(open(&gcm, &cases, &pairs), plain.clone());
        if !cases.is_empty() {
            let target = target.index(cases.len());
            let (body, tag) = &mut pairs[target];
            let bit = bit.index(8 * (body.len() + TAG));
            match body.get_mut(bit / 8) {
                Some(byte) => *byte ^= 1 << (bit % 8),
                None => tag[bit / 8 - body.len()] ^= 1 << (bit % 8),
            }
            plain[target] = None;
            prop_assert_eq!(open(&gcm, &cases, &pairs), plain);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn long_values_with_and_without_wide_instructions(
        key in any::<[u8; 32]>(),
        lengths in proptest::collection::vec(0_usize..3000, 1..5),
        nonce in any::<[u8; NONCE]>(),
        row_id in any::<i64>(),
    ) {
        let fill = |length: usize| (0..length).map(|at| (at * 131 % 251) as u8 ^ key[at % 32]);
        let case = |length: usize| Case {
            head: key[..21].to_vec(),
            row_id,
            nonce,
            plain: fill(length).collect(),
        };
        let cases: Vec<Case> = lengths.into_iter().map(case).collect();
        let mut gcm = Gcm::new(&key);
        let expected: Vec<Pair> = cases.iter().map(|case| reference(&key, case)).collect();
        for _ in 0..2 {
            let mut pairs = seal(&gcm, &cases);
            prop_assert_eq!(&pairs, &expected);
            for (case, opened) in cases.iter().zip(open(&gcm, &cases, &pairs)) {
                prop_assert_eq!(opened.as_ref(), Some(&case.plain));
            }
            for (body, tag) in &mut pairs {
                match body.last_mut() {
                    Some(last) => *last ^= 0x80,
                    None => tag[0] ^= 1,
                }
            }
            prop_assert!(open(&gcm, &cases, &pairs).iter().all(Option::is_none));
            gcm.wide = None;
        }
    }
}
