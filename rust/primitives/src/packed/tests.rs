//! Every width of every type, by every kind of instructions, against a plain definition.

use super::{pack, packed_bytes, unpack, Lanes, Word, ROWS};
use proptest::prelude::*;

/// Bit `bit` of row `row`, by the definition of `spec/tile.md`.
fn bit_of(packed: &[u8], bits: usize, row: usize, bit: usize) -> u8 {
    if bits > 64 {
        let (low, high) = packed.split_at(packed_bytes(64));
        return match bit {
            ..64 => bit_of(low, 64, row, bit),
            _ => bit_of(high, bits - 64, row, bit - 64),
        };
    }
    let word = if bits <= 32 { 32 } else { 64 };
    let lanes = ROWS / word;
    let at = row / lanes * bits + bit;
    let at = (at / word * lanes + row % lanes) * word + at % word;
    packed[at / 8] >> (at % 8) & 1
}

fn check<T: Word + std::fmt::Debug>(values: &[i128], base: i128) {
    let base = T::cut(base);
    for bits in 0..=T::BITS {
        let mask = 1_u128.checked_shl(bits).unwrap_or(0).wrapping_sub(1);
        let inside = |i: usize| T::cut((values[i % values.len()].cast_unsigned() & mask) as i128);
        let numbers: [T; ROWS] = std::array::from_fn(|i| inside(i).plus(base));
        let mut packed = vec![0xa5; packed_bytes(bits)];
        assert!(pack(&numbers, base, bits, &mut packed));
        for row in [0, 1, 15, 16, 31, 32, 33, 500, ROWS - 1] {
            let rest = numbers[row].minus(base);
            let rest = u128::from(rest.high()) << 64 | u128::from(rest.low());
            for bit in 0..bits as usize {
                let expected = (rest >> bit & 1) as u8;
                assert_eq!(bit_of(&packed, bits as usize, row, bit), expected);
            }
        }
        for lanes in Lanes::all() {
            let mut out = [T::default(); ROWS];
            unpack(lanes, &packed, base, bits, &mut out);
            assert!(out == numbers, "{bits} bits by {lanes:?}");
        }
        if bits < T::BITS {
            for row in [0, 700] {
                let mut beyond = numbers;
                beyond[row] = T::cut((1_u128 << bits) as i128).plus(base);
                assert!(!pack(&beyond, base, bits, &mut packed));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn every_width(
        values in proptest::collection::vec(any::<i128>(), 97..600),
        base in any::<i128>(),
    ) {
        check::<u8>(&values, base);
        check::<u16>(&values, base);
        check::<u32>(&values, base);
        check::<u64>(&values, base);
        check::<i128>(&values, base);
    }
}

#[test]
fn the_widest_are_taken() {
    assert!(Lanes::all().contains(&Lanes::best()));
    assert_eq!(Lanes::all()[0], Lanes::PORTABLE);
}
