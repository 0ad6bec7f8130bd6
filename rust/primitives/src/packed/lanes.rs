//! Unpacking by the widest instructions of the processor, or by none in particular.
//!
//! The loops are the same for each: the compiler turns them into instructions of the width that a
//! function may use.

use super::{Word, ROWS};

/// Which instructions unpack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Lanes {
    /// Those of any processor.
    pub const PORTABLE: Self = Self(Kind::Portable);

    /// The widest of this processor; the environment variable `LOUVER_BACKEND=portable` forces
    /// portable ones.
    pub fn best() -> Self {
        if std::env::var_os("LOUVER_BACKEND").is_some_and(|v| v == "portable") {
            return Self::PORTABLE;
        }
        Self::all().last().copied().unwrap_or(Self::PORTABLE)
    }

    /// All that this processor has, the widest last.
    pub fn all() -> Vec<Self> {
        let mut all = vec![Self::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            if has!("avx2") {
                all.push(Self(Kind::Avx2));
                if has!("avx512f") && has!("avx512bw") && has!("avx512vl") && has!("avx512dq") {
                    all.push(Self(Kind::Avx512));
                }
            }
        }
        all
    }

    /// Unpacks a width of at most 64 bits.
    pub(super) fn unpack<T: Word>(self, packed: &[u8], base: T, bits: u32, out: &mut [T; ROWS]) {
        match self.0 {
            Kind::Portable => any(packed, base, bits, out),
            // SAFETY: only `all` makes this value, where the processor has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { avx2(packed, base, bits, out) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { avx512(packed, base, bits, out) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2<T: Word>(packed: &[u8], base: T, bits: u32, out: &mut [T; ROWS]) {
    any(packed, base, bits, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
fn avx512<T: Word>(packed: &[u8], base: T, bits: u32, out: &mut [T; ROWS]) {
    any(packed, base, bits, out);
}

#[inline(always)]
fn any<T: Word>(packed: &[u8], base: T, bits: u32, out: &mut [T; ROWS]) {
    match bits {
        0 => out.fill(base),
        1..=32 => narrow(packed, base, bits, out),
        _ => wide(packed, base, bits, out),
    }
}

/// 32 lanes of 32-bit words.
#[inline(always)]
fn narrow<T: Word>(packed: &[u8], base: T, bits: u32, out: &mut [T; ROWS]) {
    let mask = u32::MAX >> (32 - bits);
    let (words, _) = packed.as_chunks::<4>();
    let (lines, _) = words.as_chunks::<32>();
    let (rows, _) = out.as_chunks_mut::<32>();
    for (row, out) in rows.iter_mut().enumerate() {
        let bit = row as u32 * bits;
        let (line, shift) = ((bit / 32) as usize, bit % 32);
        let first = &lines[line];
        if shift + bits <= 32 {
            for (value, word) in out.iter_mut().zip(first) {
                let word = u32::from_le_bytes(*word) >> shift;
                *value = T::narrow(word & mask).plus(base);
            }
        } else {
            for ((value, word), next) in out.iter_mut().zip(first).zip(&lines[line + 1]) {
                let next = u32::from_le_bytes(*next) << (32 - shift);
                let word = u32::from_le_bytes(*word) >> shift | next;
                *value = T::narrow(word & mask).plus(base);
            }
        }
    }
}

/// 16 lanes of 64-bit words.
#[inline(always)]
fn wide<T: Word>(packed: &[u8], base: T, bits: u32, out: &mut [T; ROWS]) {
    let mask = u64::MAX >> (64 - bits);
    let (words, _) = packed.as_chunks::<8>();
    let (lines, _) = words.as_chunks::<16>();
    let (rows, _) = out.as_chunks_mut::<16>();
    for (row, out) in rows.iter_mut().enumerate() {
        let bit = row as u32 * bits;
        let (line, shift) = ((bit / 64) as usize, bit % 64);
        let first = &lines[line];
        if shift + bits <= 64 {
            for (value, word) in out.iter_mut().zip(first) {
                let word = u64::from_le_bytes(*word) >> shift;
                *value = T::wide(word & mask).plus(base);
            }
        } else {
            for ((value, word), next) in out.iter_mut().zip(first).zip(&lines[line + 1]) {
                let next = u64::from_le_bytes(*next) << (64 - shift);
                let word = u64::from_le_bytes(*word) >> shift | next;
                *value = T::wide(word & mask).plus(base);
            }
        }
    }
}
