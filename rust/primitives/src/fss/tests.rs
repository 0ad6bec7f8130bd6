//! The generator against AES written from its standard; products against schoolbook ones.

use super::prg::{Backend, Packed, Prg};
use super::schedule::{double, rounds, sbox, Keys};
use super::{dot, record_tag, DotSum};

/// FIPS 197, sections 5.1 and 5.2, byte by byte.
fn aes(key: u128, block: u128) -> u128 {
    let (sbox, keys) = (sbox(), rounds(key));
    let mut state = (block ^ keys[0]).to_le_bytes();
    for (round, key) in keys.iter().enumerate().skip(1) {
        let mut shifted = [0; 16];
        for (at, byte) in shifted.iter_mut().enumerate() {
            *byte = sbox[usize::from(state[(at + 4 * (at % 4)) % 16])];
        }
        if round < 10 {
            for column in shifted.chunks_exact_mut(4) {
                let all = column.iter().fold(0, |sum, byte| sum ^ byte);
                let first = column[0];
                for at in 0..4 {
                    let next = if at == 3 { first } else { column[at + 1] };
                    column[at] ^= all ^ double(column[at] ^ next);
                }
            }
        }
        state = (u128::from_le_bytes(shifted) ^ key).to_le_bytes();
    }
    u128::from_le_bytes(state)
}

fn child(state: u128, side: usize, level: &[u128; 2]) -> u128 {
    let seed = state & !1;
    aes(Keys::get().sides[side], seed) ^ seed ^ if state & 1 == 1 { level[side] } else { 0 }
}

fn backends() -> Vec<&'static Prg> {
    let all = [Backend::Portable, Backend::Wide];
    all.into_iter().filter_map(Prg::with).collect()
}

/// Numbers in no order.
fn numbers(count: usize) -> Vec<u128> {
    let mut state = 1_u128;
    let mut next = || {
        state = state.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645);
        state = state.wrapping_add(0x5851_f42d_4c95_7f2d_1405_7b7e_f767_814f);
        state.rotate_left(64) ^ state >> 7
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn aes_is_that_of_its_standard() {
    let bytes = |text: &str| u128::from_str_radix(text, 16).unwrap().swap_bytes();
    let key = bytes("000102030405060708090a0b0c0d0e0f");
    let plain = bytes("00112233445566778899aabbccddeeff");
    assert_eq!(aes(key, plain), bytes("69c4e0d86a7b0430d8cdb78070b4c55a"));
}

#[test]
fn all_backends_make_the_same_tree() {
    let level = [0x55 << 64 | 0xab0, 0x55 << 64 | 0xab1];
    for count in [1, 3, 4, 23, 24, 25, 100, 300] {
        let states = numbers(count);
        let points: Vec<u64> = states.iter().map(|state| (state >> 40) as u64).collect();
        for prg in backends() {
            let mut walked = states.clone();
            prg.descend(&mut walked, &points, 9, &[level, [7, 6]]);
            for (at, state) in states.iter().enumerate() {
                let (first, second) = (
                    (points[at] >> 9) as usize & 1,
                    (points[at] >> 8) as usize & 1,
                );
                let below = child(*state, first, &level);
                assert_eq!(walked[at], child(below, second, &[7, 6]));
            }
            let mut both = vec![0; 2 * count];
            prg.expand(&states, &level, &mut both);
            for (at, actual) in both.iter().enumerate() {
                assert_eq!(*actual, child(states[at / 2], at % 2, &level));
            }
            let seed = states[0] & !1;
            assert_eq!(
                prg.children(seed),
                [0, 1].map(|side| child(seed, side, &level))
            );
            for at in 0..8 {
                let mut values = vec![0; count];
                prg.values(&states, at, &mut values);
                for (value, state) in values.iter().zip(&states) {
                    assert_eq!(
                        *value,
                        aes(Keys::get().values[at], state & !1) ^ (state & !1)
                    );
                    assert_eq!(*value, prg.value(state & !1, at));
                }
            }
        }
    }
}

#[test]
fn all_backends_correct_values_alike() {
    let correction = 0xffff_ffff_ffff_fff0_8000_0000_0000_0001;
    for count in [1, 3, 24, 25, 257] {
        let states = numbers(count);
        for (prg, at) in backends().into_iter().flat_map(|prg| [(prg, 0), (prg, 7)]) {
            let actual = [Packed::Words, Packed::NegativeWords, Packed::Bits].map(|kind| {
                let mut out = vec![u128::MAX; count];
                prg.packed(&states, at, correction, kind, &mut out);
                out
            });
            for (index, state) in states.iter().enumerate() {
                let value = aes(Keys::get().values[at], state & !1) ^ (state & !1);
                let corrected = if state & 1 == 1 { correction } else { 0 };
                assert_eq!(actual[2][index], value ^ corrected);
                for shift in [0, 64] {
                    let sum = ((value >> shift) as u64).wrapping_add((corrected >> shift) as u64);
                    assert_eq!((actual[0][index] >> shift) as u64, sum);
                    assert_eq!((actual[1][index] >> shift) as u64, sum.wrapping_neg());
                }
            }
        }
    }
}

#[test]
fn all_backends_add_the_same_values() {
    for count in [1, 24, 25, 257] {
        let (states, before) = (numbers(count), numbers(2 * count)[count..].to_vec());
        let mut wanted = before.clone();
        for (sum, state) in wanted.iter_mut().zip(&states) {
            let corrected = if state & 1 == 1 { u128::MAX - 5 } else { 0 };
            let value = aes(Keys::get().values[0], state & !1) ^ (state & !1);
            *sum = sum.wrapping_add(value).wrapping_add(corrected);
        }
        for prg in backends() {
            let mut sums = before.clone();
            prg.add_values(&mut sums, &states, u128::MAX - 5);
            assert_eq!(sums, wanted);
            let (mut left, mut bits) = (states.clone(), vec![0; count]);
            prg.finish(&mut left, 3 << 100, &mut bits);
            for (at, state) in states.iter().enumerate() {
                assert_eq!(u128::from(bits[at]), state & 1);
                assert_eq!(left[at], (state & !1) ^ ((3 << 100) * (state & 1)));
            }
        }
    }
}

#[test]
fn all_backends_find_the_same_nodes() {
    for (count, gap) in [(1, 1), (7, 1), (8, 3), (64, 5), (65, 2), (999, 40)] {
        let mut points: Vec<u64> = numbers(count).iter().map(|n| *n as u64 % gap + 1).collect();
        for at in 1..count {
            points[at] += points[at - 1];
        }
        let closest = points.windows(2).map(|pair| pair[0] ^ pair[1]).min();
        let mut expansions = Vec::new();
        for prg in backends() {
            assert_eq!(prg.closest(&points), closest.unwrap_or(u64::MAX));
            let mut list = points.clone();
            list.resize(count + 8, 99);
            let mut links = vec![0; count.div_ceil(4)];
            let parents = prg.fold(&mut list, count, &mut links);
            let mut wanted: Vec<u64> = points.iter().map(|point| point >> 1).collect();
            wanted.dedup();
            assert_eq!(list[..parents], wanted);
            let mut states = vec![0];
            states.extend(numbers(parents));
            states.extend([0; 4]);
            let mut children = vec![0; count];
            prg.link(&states, &links, &[4, 5], &mut children);
            for (at, actual) in children.iter().enumerate() {
                let parent = wanted.binary_search(&(points[at] >> 1)).unwrap();
                let side = points[at] as usize & 1;
                assert_eq!(*actual, child(states[parent + 1], side, &[4, 5]));
            }
            expansions.push(links);
        }
        assert!(expansions.iter().all(|links| *links == expansions[0]));
    }
}

/// A product in POLYVAL's field: multiply, then divide by x 128 times.
fn schoolbook(a: u128, b: u128) -> u128 {
    // x^128 = x^127 + x^126 + x^121 + 1; what is divided by x must end in zero.
    let modulus = 1 << 127 | 1 << 126 | 1 << 121 | 1_u128;
    let mut product = 0_u128;
    for at in 0..128 {
        product ^= if b >> at & 1 == 1 { a } else { 0 };
        let odd = product & 1;
        product = ((product ^ (modulus * odd)) >> 1) | (odd << 127);
    }
    product
}

#[test]
fn products_are_those_of_polyval() {
    // RFC 8452, appendix A: the product of H and X_1 there, then with X_2 the whole hash.
    let bytes = |text: &str| u128::from_str_radix(text, 16).unwrap().swap_bytes();
    let key = bytes("25629347589242761d31f826ba4b757b");
    let first = dot(key, bytes("4f4f95668c83dfb6401762bb2d01a262"));
    let second = dot(key, first ^ bytes("d1a24ddd2721d006bbe45f20d3c9f362"));
    assert_eq!(second, bytes("f7a3b47b846119fae5b7866cf5e5b77e"));
    let all = numbers(200);
    let (left, right) = all.split_at(100);
    let mut sum = DotSum::default();
    sum.add(&left[..60], &right[..60]);
    let mut rest = DotSum::default();
    rest.add(&left[60..], &right[60..]);
    sum.merge(&rest);
    let mut wanted = 0;
    for (a, b) in left.iter().zip(right) {
        assert_eq!(dot(*a, *b), schoolbook(*a, *b));
        wanted ^= dot(*a, *b);
    }
    assert_eq!(sum.reduce(), wanted);
}

#[test]
fn tags_differ_by_level_and_record() {
    let tag = record_tag(1, b"record");
    assert_ne!(tag, record_tag(2, b"record"));
    assert_ne!(tag, record_tag(1, b"Record"));
    assert_eq!(tag, record_tag(1, b"record"));
}
