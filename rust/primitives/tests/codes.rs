//! Permutations, CMAC, pads and masks against AES written down as FIPS 197 defines it: whichever
//! instructions the processor has, the answers are those of the definition.

use louver_primitives::ore::Masks;
use louver_primitives::prp::{Cmac, Prp128, Prp64};
use proptest::prelude::*;

type Block = [u8; 16];

fn times(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = (a << 1) ^ (0x1b * (a >> 7));
        b >>= 1;
    }
    product
}

fn substitute(byte: u8) -> u8 {
    let inverse = (1..=255)
        .find(|&other| times(byte, other) == 1)
        .unwrap_or(0);
    let turned = (0..5).map(|by| inverse.rotate_left(by));
    turned.fold(0x63, |sum, bits| sum ^ bits)
}

/// AES-128 of one key.
struct Plain {
    box_: [u8; 256],
    keys: [Block; 11],
}

impl Plain {
    fn new(key: &Block) -> Self {
        let box_: [u8; 256] = std::array::from_fn(|byte| substitute(byte as u8));
        let (mut keys, mut round) = ([*key; 11], 1);
        for i in 1..11 {
            let before = keys[i - 1];
            let mut word: [u8; 4] =
                std::array::from_fn(|at| box_[before[12 + (at + 1) % 4] as usize]);
            word[0] ^= round;
            round = times(round, 2);
            for at in 0..16 {
                word[at % 4] ^= before[at];
                keys[i][at] = word[at % 4];
            }
        }
        Self { box_, keys }
    }

    fn of(&self, block: Block) -> Block {
        let mut state: Block = std::array::from_fn(|at| block[at] ^ self.keys[0][at]);
        for (round, key) in self.keys.iter().enumerate().skip(1) {
            let rows: Block =
                std::array::from_fn(|at| self.box_[state[(at + 4 * (at % 4)) % 16] as usize]);
            state = std::array::from_fn(|at| {
                let (column, row) = (at / 4 * 4, at % 4);
                let byte = |down: usize| rows[column + (row + down) % 4];
                let mixed = times(byte(0), 2) ^ times(byte(1), 3) ^ byte(2) ^ byte(3);
                (if round == 10 { rows[at] } else { mixed }) ^ key[at]
            });
        }
        state
    }

    fn number(&self, number: u128) -> u128 {
        u128::from_be_bytes(self.of(number.to_be_bytes()))
    }

    /// Spec/eq.md, "Functions".
    fn feistel(&self, value: u64) -> u64 {
        let (mut left, mut right) = ((value >> 32) as u32, value as u32);
        for round in 0..12 {
            let f = (self.number(round << 64 | u128::from(right)) >> 96) as u32;
            (left, right) = (right, left ^ f);
        }
        u64::from(left) << 32 | u64::from(right)
    }

    /// RFC 4493.
    fn cmac(&self, message: &[u8]) -> u128 {
        let double = |a: u128| (a << 1) ^ (0x87 * (a >> 127));
        let whole = double(self.number(0));
        let blocks = message.len().div_ceil(16).max(1);
        (0..blocks).fold(0, |state, at| {
            let part = &message[16 * at..message.len().min(16 * at + 16)];
            let mut block = [0; 16];
            block[..part.len()].copy_from_slice(part);
            let mut end = 0;
            if at + 1 == blocks {
                end = whole;
                if part.len() < 16 {
                    block[part.len()] = 0x80;
                    end = double(whole);
                }
            }
            self.number(state ^ u128::from_be_bytes(block) ^ end)
        })
    }
}

/// FIPS 197, appendix C.1.
#[test]
fn the_definition_itself() {
    let key = std::array::from_fn(|at| at as u8);
    let plain = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff;
    let wanted = 0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a;
    assert_eq!(Plain::new(&key).number(plain), wanted);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn as_defined(
        key: Block,
        narrow in prop::collection::vec(any::<u64>(), 1..200),
        wide in prop::collection::vec(any::<u128>(), 1..200),
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..70), 1..60),
    ) {
        let plain = Plain::new(&key);
        let mut codes = narrow.clone();
        Prp64::new(&key).encrypt(&mut codes);
        prop_assert!(narrow.iter().map(|v| plain.feistel(*v)).eq(codes));
        let mut codes = wide.clone();
        Prp128::new(&key).encrypt(&mut codes);
        prop_assert!(wide.iter().map(|v| plain.number(*v)).eq(codes));
        let parts: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        let actual = Cmac::new(&key).of(&parts);
        prop_assert!(parts.iter().map(|m| plain.cmac(m)).eq(actual));
        let masks = Masks::new(&key);
        for value in wide {
            let wanted = ((plain.number(value) ^ value) >> 64) as u64 % 3;
            prop_assert_eq!(u64::from(masks.one(&value.to_be_bytes())), wanted);
        }
    }
}
