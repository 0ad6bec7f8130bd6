//! Bloom filters of fixed load (`spec/text.md`): which bits a token sets, on both sides.

/// Bits that a token sets.
pub const PROBES: u64 = 7;
/// Tokens of the smallest filter, and the step of larger ones.
pub const STEP_TOKENS: usize = 32;
/// Bytes of a step: 11 bits a token, with which 7 probes err in 1 of 190 cases.
pub const STEP_BYTES: usize = 44;

/// Sets the bits of a token, given the 128 bits that it has in this row.
pub fn set(filter: &mut [u8], token: u128) {
    let bits = filter.len() as u64 * 8;
    for bit in places(token, bits) {
        filter[bit / 8] |= 1 << (bit % 8);
    }
}

/// Whether all bits of a token are set.
pub fn test(filter: &[u8], token: u128) -> bool {
    let bits = filter.len() as u64 * 8;
    places(token, bits).all(|bit| filter[bit / 8] >> (bit % 8) & 1 == 1)
}

/// Double hashing: the high half plus multiples of the low half, scaled down to the filter.
fn places(token: u128, bits: u64) -> impl Iterator<Item = usize> {
    let (start, step) = ((token >> 64) as u64, token as u64 | 1);
    (0..PROBES).map(move |probe| {
        let index = start.wrapping_add(step.wrapping_mul(probe));
        ((u128::from(index) * u128::from(bits)) >> 64) as usize
    })
}
