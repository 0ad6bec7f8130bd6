//! Bit packing of 1,024 numbers at one width (`spec/tile.md`, "Packed numbers").
//!
//! Numbers lie in lanes side by side, so that one shift, one mask and one addition of wide
//! instructions serve a whole line of them, and come out in order. Up to 32 bits there are 32 lanes
//! of 32-bit words, up to 64 bits 16 lanes of 64-bit words; beyond that the low 64 bits are packed
//! first, then the rest.

mod lanes;
#[cfg(test)]
mod tests;
mod word;

pub use lanes::Lanes;
pub use word::Word;

/// Numbers of a block.
pub const ROWS: usize = 1024;

/// Bytes of a block at this width.
pub const fn packed_bytes(bits: u32) -> usize {
    bits as usize * (ROWS / 8)
}

/// Writes `value - base` of each number at a width of `bits`; `false`, and undefined bytes, if one
/// takes more bits.
///
/// # Panics
/// If `out` is not [`packed_bytes`] long, or `bits` is more than the type has.
pub fn pack<T: Word>(values: &[T; ROWS], base: T, bits: u32, out: &mut [u8]) -> bool {
    assert!(bits <= T::BITS && out.len() == packed_bytes(bits));
    if !fits(values, base, bits) {
        return false;
    }
    out.fill(0);
    let low = bits.min(u64::BITS);
    let (first, second) = out.split_at_mut(packed_bytes(low));
    pack_words(values.map(|v| v.minus(base).low()), low, first);
    if bits > u64::BITS {
        let high = values.map(|v| v.minus(base).high());
        pack_words(high, bits - u64::BITS, second);
    }
    true
}

/// Reads what [`pack`] wrote.
///
/// # Panics
/// If `packed` is not [`packed_bytes`] long, or `bits` is more than the type has.
pub fn unpack<T: Word>(lanes: Lanes, packed: &[u8], base: T, bits: u32, out: &mut [T; ROWS]) {
    assert!(bits <= T::BITS && packed.len() == packed_bytes(bits));
    if bits <= u64::BITS {
        lanes.unpack(packed, base, bits, out);
        return;
    }
    let (first, second) = packed.split_at(packed_bytes(u64::BITS));
    let (mut low, mut high) = ([0_u64; ROWS], [0_u64; ROWS]);
    lanes.unpack(first, 0, u64::BITS, &mut low);
    lanes.unpack(second, 0, bits - u64::BITS, &mut high);
    for ((value, low), high) in out.iter_mut().zip(low).zip(high) {
        *value = T::joined(low, high).plus(base);
    }
}

/// Whether all numbers fit.
fn fits<T: Word>(values: &[T; ROWS], base: T, bits: u32) -> bool {
    let (mut low, mut high) = (0, 0);
    for value in values {
        let rest = value.minus(base);
        low |= rest.low();
        high |= rest.high();
    }
    let room = |bits: u32| u64::MAX.checked_shl(bits).unwrap_or(0);
    low & room(bits) == 0 && high & room(bits.saturating_sub(u64::BITS)) == 0
}

/// Packs words that fit, into zeros.
fn pack_words(words: [u64; ROWS], bits: u32, out: &mut [u8]) {
    match bits {
        0 => {}
        1..=32 => pack_narrow(&words, bits, out),
        _ => pack_wide(&words, bits, out),
    }
}

fn pack_narrow(words: &[u64; ROWS], bits: u32, out: &mut [u8]) {
    let (rows, _) = words.as_chunks::<32>();
    let (out, _) = out.as_chunks_mut::<4>();
    let (lines, _) = out.as_chunks_mut::<32>();
    for (at, row) in rows.iter().enumerate() {
        let bit = at as u32 * bits;
        let (line, shift) = ((bit / 32) as usize, bit % 32);
        add_narrow(&mut lines[line], row, |word| word << shift);
        if shift + bits > 32 {
            add_narrow(&mut lines[line + 1], row, |word| word >> (32 - shift));
        }
    }
}

fn pack_wide(words: &[u64; ROWS], bits: u32, out: &mut [u8]) {
    let (rows, _) = words.as_chunks::<16>();
    let (out, _) = out.as_chunks_mut::<8>();
    let (lines, _) = out.as_chunks_mut::<16>();
    for (at, row) in rows.iter().enumerate() {
        let bit = at as u32 * bits;
        let (line, shift) = ((bit / 64) as usize, bit % 64);
        add_wide(&mut lines[line], row, |word| word << shift);
        if shift + bits > 64 {
            add_wide(&mut lines[line + 1], row, |word| word >> (64 - shift));
        }
    }
}

#[inline(always)]
fn add_narrow(line: &mut [[u8; 4]; 32], row: &[u64; 32], part: impl Fn(u64) -> u64) {
    for (bytes, word) in line.iter_mut().zip(row) {
        *bytes = (u32::from_le_bytes(*bytes) | part(*word) as u32).to_le_bytes();
    }
}

#[inline(always)]
fn add_wide(line: &mut [[u8; 8]; 16], row: &[u64; 16], part: impl Fn(u64) -> u64) {
    for (bytes, word) in line.iter_mut().zip(row) {
        *bytes = (u64::from_le_bytes(*bytes) | part(*word)).to_le_bytes();
    }
}
