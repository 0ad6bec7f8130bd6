//! One share alone: what it predicts of the secret, and what becomes of it when it is damaged.

use super::tests::header;
use super::{less_shares, point_shares};
use louver_primitives::fss::{Group, Header, LessShare, PointShare, Prg, Scheme};
use louver_untrusted::fss::{evaluate_less, evaluate_point, Points};
use proptest::prelude::*;

const BITS: u32 = 8;
const KEYS: u64 = 2500;
/// The chance of a fair coin to be further from even is 3 in 10^12, and by Hoeffding's inequality
/// surely less than 5 in 10^11; no test here makes more than 10,000 such checks.
const SIGMAS: f64 = 7.0;

/// What one party sees at a level, given the whole way there: its state, and the corrections.
struct View {
    state: u128,
    seed: u128,
    sides: [u128; 2],
}

/// The most that any single bit of a view, or any XOR of its control bits, agrees with the
/// secret's next bit, in standard deviations from even.
fn worst(views: &[(View, u128)]) -> f64 {
    let mut agree = [0_u32; 128 + 128];
    for (view, secret) in views {
        let children = Prg::best().children(view.state & !1);
        let small = [
            view.seed,
            view.sides[0],
            view.sides[1],
            children[0],
            children[1],
            view.state,
        ];
        for (at, count) in agree.iter_mut().enumerate() {
            let bit = match at.checked_sub(128) {
                None => view.seed >> at & 1,
                Some(chosen) => {
                    let chosen = small
                        .iter()
                        .enumerate()
                        .filter(|(at, _)| chosen >> at & 1 == 1);
                    chosen.fold(0, |sum, (_, bit)| sum ^ bit & 1)
                }
            };
            *count += u32::from(bit == *secret);
        }
    }
    let (count, even) = (views.len() as f64, views.len() as f64 / 2.0);
    // A bit that is always zero agrees with a fair secret about half of the time, too.
    let off = agree
        .iter()
        .map(|agree| (f64::from(*agree) - even).abs() / (count / 4.0).sqrt());
    off.fold(0.0, f64::max)
}

/// Numbers of which each bit is even over all of them: secrets.
fn secrets() -> impl Iterator<Item = u64> {
    (0..KEYS).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) & ((1 << BITS) - 1))
}

#[test]
fn one_share_predicts_no_bit() {
    for party in 0..2 {
        let mut levels: Vec<Vec<(View, u128)>> = (0..BITS).map(|_| Vec::new()).collect();
        for at in secrets() {
            let shares = point_shares(header(Scheme::Point, Group::Tag, BITS), at, &[6]).unwrap();
            let tree = &shares[party].tree;
            let mut state = tree.root;
            for (down, level) in tree.levels.iter().enumerate() {
                let shift = BITS - 1 - down as u32;
                let secret = u128::from(at >> shift & 1);
                let view = View {
                    state,
                    seed: level[0] & !1,
                    sides: *level,
                };
                levels[down].push((view, secret));
                let mut walked = [state];
                Prg::best().descend(&mut walked, &[at], shift, &[*level]);
                state = walked[0];
            }
        }
        for (down, views) in levels.iter().enumerate() {
            assert!(
                worst(views) < SIGMAS,
                "party {party}, level {down}: {}",
                worst(views)
            );
        }
    }
}

/// The last level of a tree as it must not be made: the control bit stays in the seed.
fn naive(state: [u128; 2], bit: u128) -> View {
    let children = state.map(|state| Prg::best().children(state & !1));
    let lost = (1 - bit) as usize;
    let [[left0, right0], [left1, right1]] = children;
    View {
        state: state[0],
        seed: children[0][lost] ^ children[1][lost],
        sides: [(left0 ^ left1 ^ bit ^ 1) & 1, (right0 ^ right1 ^ bit) & 1],
    }
}

#[test]
fn the_test_finds_a_control_bit_that_was_left_in_the_seed() {
    let view = |at: u64| {
        let seed = |party: u64| {
            let number = u128::from(at + 1).wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645);
            Prg::best().value(number & !1, party as usize) & !1
        };
        let bit = secrets()
            .nth(at as usize)
            .map_or(0, |secret| u128::from(secret & 1));
        (naive([seed(0), seed(1) | 1], bit), bit)
    };
    let views: Vec<_> = (0..KEYS).map(view).collect();
    assert!(
        worst(&views) > 3.0 * SIGMAS,
        "half of the time it is known, else it is guessed"
    );
}

#[test]
fn shares_of_all_secrets_have_one_length_and_no_bit_in_common() {
    let head = header(Scheme::Interval, Group::Wide, 16);
    let mut ones = vec![0_u32; 8 * LessShare::len(&head)];
    for at in 0..KEYS {
        let ends = [(at % 7, &[1][..]), (65_535 - at % 5, &[0][..])];
        let share = less_shares(head, &ends, &[at as u128]).unwrap()[at as usize % 2].encode();
        assert_eq!(8 * share.len(), ones.len());
        for (at, count) in ones.iter_mut().enumerate() {
            *count += u32::from(share[at / 8] >> (at % 8) & 1);
        }
    }
    let fair = |count: &u32| (f64::from(*count) - KEYS as f64 / 2.0).abs() < SIGMAS * 25.0;
    // The header, and for each tree the seed's control bit and what is spare of the right bits.
    let unfair = ones[64..].iter().filter(|count| !fair(count)).count();
    assert_eq!(unfair, 2 * (1 + 64 - 15));
}

fn some_share() -> impl Strategy<Value = Vec<u8>> {
    let groups = [Group::Tag, Group::Wide, Group::Words, Group::Bits];
    let parts = (0..3_usize, 0..4_usize, 1..=64_u32, 1..=16_u16, 0..2_usize);
    parts.prop_map(move |(scheme, group, bits, words, party)| {
        let scheme = [Scheme::Point, Scheme::Less, Scheme::Interval][scheme];
        let group = if scheme == Scheme::Point {
            groups[group]
        } else {
            groups[1 + group % 2]
        };
        let words = if group == Group::Words { words } else { 0 };
        let head = Header {
            words,
            ..header(scheme, group, bits)
        };
        let payload = vec![5; head.value_blocks()];
        let ends = [(0, &payload[..]), (1, &payload[..])];
        match scheme {
            Scheme::Point => point_shares(head, 1, &payload).unwrap()[party].encode(),
            Scheme::Less => less_shares(head, &ends[..1], &payload).unwrap()[party].encode(),
            _ => less_shares(head, &ends, &payload).unwrap()[party].encode(),
        }
    })
}

/// Reads and evaluates what may be a share; gives its canonical bytes.
fn take(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut sink = |_: usize, _: &[u8], _: &[u128]| ();
    if let Ok(share) = PointShare::decode(bytes) {
        let _ = evaluate_point(&share, Points::Sorted(&[0, 1]), 0..2, &mut sink);
        return Some(share.encode());
    }
    let share = LessShare::decode(bytes).ok()?;
    let _ = evaluate_less(&share, Points::Loose(&[1, 0]), 0..2, &mut sink);
    Some(share.encode())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damaged_shares_are_refused_or_read_as_they_stand(
        share in some_share(),
        cut in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..5),
    ) {
        prop_assert_eq!(take(&share), Some(share.clone()));
        prop_assert_eq!(take(&share[..cut.index(share.len())]), None);
        prop_assert_eq!(take(&[&share[..], &[0]].concat()), None);
        let mut damaged = share;
        for (at, byte) in changes {
            let at = at.index(damaged.len());
            // Half of the changes hit the header.
            damaged[if byte % 2 == 0 { at } else { at % 8 }] = byte;
        }
        if let Some(again) = take(&damaged) {
            prop_assert_eq!(again, damaged);
        }
    }

    #[test]
    fn any_bytes_are_refused_or_read_as_they_stand(
        scheme in 0..7_u8, group in 0..6_u8, bits in 0..70_u8, words in 0..20_u8,
        body in proptest::collection::vec(any::<u8>(), 0..4000),
    ) {
        let head = [1, scheme, group, bits, body.len() as u8 % 3, 2, words, 0];
        let bytes = [&head[..], &body[..]].concat();
        if let Some(again) = take(&bytes) {
            prop_assert_eq!(again, bytes);
        }
        prop_assert_eq!(take(&body).unwrap_or(body.clone()), body);
    }
}
