//! The generator's public keys, and the key schedule of AES-128.

use std::sync::OnceLock;

/// Blocks of output that one seed can give for its value.
pub(super) const VALUE_KEYS: usize = 8;
const LABEL: &str = "louver fss generator v1: ";

/// Eleven round keys.
pub(super) type Rounds = [u128; 11];

/// The generator's keys: left child, right child, blocks of the value.
pub(super) struct Keys {
    /// Of the left and of the right child.
    pub(super) sides: [u128; 2],
    /// Of the value's blocks.
    pub(super) values: [u128; VALUE_KEYS],
}

impl Keys {
    /// Nothing up the sleeve: the first 16 bytes of BLAKE3 of a label each.
    pub(super) fn get() -> &'static Self {
        static KEYS: OnceLock<Keys> = OnceLock::new();
        KEYS.get_or_init(|| Self {
            sides: [key("left"), key("right")],
            values: std::array::from_fn(|at| key(&format!("value {at}"))),
        })
    }
}

fn key(name: &str) -> u128 {
    let digest = blake3::hash(format!("{LABEL}{name}").as_bytes());
    u128::from_le_bytes(digest.as_bytes()[..16].try_into().expect("16 bytes"))
}

/// The round keys of a public key (tables are used, so never of a secret one).
pub(super) fn rounds(key: u128) -> Rounds {
    let sbox = sbox();
    let mut words = [0_u32; 44];
    for (at, word) in words.iter_mut().take(4).enumerate() {
        *word = (key >> (32 * at)) as u32;
    }
    let mut constant = 1_u8;
    for at in 4..44 {
        let mut word = words[at - 1];
        if at % 4 == 0 {
            let bytes = word.rotate_right(8).to_le_bytes();
            word = u32::from_le_bytes(bytes.map(|byte| sbox[usize::from(byte)]));
            word ^= u32::from(constant);
            constant = double(constant);
        }
        words[at] = words[at - 4] ^ word;
    }
    std::array::from_fn(|round| {
        (0..4).fold(0, |key, at| {
            key | u128::from(words[4 * round + at]) << (32 * at)
        })
    })
}

pub(super) fn double(byte: u8) -> u8 {
    byte << 1 ^ if byte & 0x80 == 0 { 0 } else { 0x1b }
}

/// The S-box from its definition: the inverse in GF(2^8), then an affine map.
pub(super) fn sbox() -> [u8; 256] {
    let mut sbox = [0x63; 256];
    let (mut power, mut inverse) = (1_u8, 1_u8);
    loop {
        power ^= double(power); // times 3, a generator
        inverse ^= inverse << 1; // divided by 3
        inverse ^= inverse << 2;
        inverse ^= inverse << 4;
        if inverse & 0x80 != 0 {
            inverse ^= 0x09;
        }
        let turned = (1..5).fold(inverse, |sum, by| sum ^ inverse.rotate_left(by));
        sbox[usize::from(power)] = turned ^ 0x63;
        if power == 1 {
            return sbox;
        }
    }
}
