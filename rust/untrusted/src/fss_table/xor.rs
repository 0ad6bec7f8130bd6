//! Records under one bit masks: what a share selects of a block of a table.
//!
//! A tile is some bytes of a record's width that lie in registers while the rows of a block go
//! by. Every row is read and masked, so neither time nor addresses depend on a bit.

/// Bytes of records that stay in the first-level cache while all shares go over them.
const BLOCK: usize = 16 << 10;
/// The least rows of a block: what is kept of wide records is loaded and stored once for so many.
const ROWS: usize = 4;

/// What several shares select: their bits at the same rows, and the XOR of what they chose.
pub(super) struct Choice<'a> {
    /// One byte a row, 0 or 1, of one share after the other, `stride` bytes apart.
    pub(super) bits: &'a [u8],
    /// From one share's bits to the next one's.
    pub(super) stride: usize,
    /// The records chosen so far, one after the other.
    pub(super) sums: &'a mut [u8],
}

/// XORs into each share's record the rows of `records` where its bit is 1. `width` is a multiple
/// of 16; whatever is longer than the shortest of the arguments allows is left out.
pub(super) fn select(records: &[u8], width: usize, choice: &mut Choice<'_>) {
    if width == 0 || choice.stride == 0 {
        return;
    }
    let run = kernel();
    let rows = (BLOCK / width).max(ROWS);
    for (index, block) in records.chunks(rows * width).enumerate() {
        let first = index * rows;
        let shares = choice.bits.chunks(choice.stride);
        for (bits, sum) in shares.zip(choice.sums.chunks_exact_mut(width)) {
            let Some(bits) = bits.get(first..) else {
                return;
            };
            run(block, width, bits, sum);
        }
    }
}

type Kernel = fn(&[u8], usize, &[u8], &mut [u8]);

/// The fastest of what this processor can do.
fn kernel() -> Kernel {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            return wide::select_512;
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            return wide::select_256;
        }
    }
    select_portable
}

fn select_portable(block: &[u8], width: usize, bits: &[u8], sum: &mut [u8]) {
    tiles(block, width, bits, sum);
}

/// Tiles of 128 bytes, then of 16.
#[inline(always)]
fn tiles(block: &[u8], width: usize, bits: &[u8], sum: &mut [u8]) {
    let split = width / 128 * 128;
    let (wide, narrow) = sum.split_at_mut(split);
    for (index, part) in wide.chunks_exact_mut(128).enumerate() {
        tile::<16>(block, width, index * 128, bits, part);
    }
    for (index, part) in narrow.chunks_exact_mut(16).enumerate() {
        tile::<2>(block, width, split + index * 16, bits, part);
    }
}

/// `WORDS` words of every row, from `start` of the row's bytes.
#[inline(always)]
fn tile<const WORDS: usize>(block: &[u8], width: usize, start: usize, bits: &[u8], sum: &mut [u8]) {
    let word = |bytes: &[u8]| u64::from_le_bytes(std::array::from_fn(|at| bytes[at]));
    let mut kept = [0_u64; WORDS];
    for (row, &bit) in block.chunks_exact(width).zip(bits) {
        let mask = 0_u64.wrapping_sub(u64::from(bit));
        let part = &row[start..start + WORDS * 8];
        for (kept, bytes) in kept.iter_mut().zip(part.chunks_exact(8)) {
            *kept ^= word(bytes) & mask;
        }
    }
    for (bytes, kept) in sum.chunks_exact_mut(8).zip(kept) {
        let mixed = word(bytes) ^ kept;
        bytes.copy_from_slice(&mixed.to_le_bytes());
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        __m512i, _mm512_mask_storeu_epi64, _mm512_maskz_loadu_epi64, _mm512_set1_epi64,
        _mm512_ternarylogic_epi64,
    };

    /// Registers of a tile: 512 bytes.
    const LINES: usize = 8;
    const LINE: usize = 64;
    /// `a ^ (b & c)` as a table of three inputs.
    const XOR_MASKED: i32 = 0x78;

    pub(super) fn select_256(block: &[u8], width: usize, bits: &[u8], sum: &mut [u8]) {
        // SAFETY: `kernel` gives this out only where the processor has AVX2.
        unsafe { tiles_256(block, width, bits, sum) }
    }

    /// The portable tiles, compiled for 256-bit registers.
    #[target_feature(enable = "avx2")]
    fn tiles_256(block: &[u8], width: usize, bits: &[u8], sum: &mut [u8]) {
        super::tiles(block, width, bits, sum);
    }

    pub(super) fn select_512(block: &[u8], width: usize, bits: &[u8], sum: &mut [u8]) {
        for start in (0..width).step_by(LINES * LINE) {
            let bytes = (width - start).min(LINES * LINE);
            let part = &mut sum[start..start + bytes];
            // SAFETY: `kernel` gives this out only where the processor has AVX-512F.
            unsafe {
                match bytes.div_ceil(LINE) {
                    1 => tile_512::<1>(block, width, start, bits, part),
                    2 => tile_512::<2>(block, width, start, bits, part),
                    3 => tile_512::<3>(block, width, start, bits, part),
                    4 => tile_512::<4>(block, width, start, bits, part),
                    5 => tile_512::<5>(block, width, start, bits, part),
                    6 => tile_512::<6>(block, width, start, bits, part),
                    7 => tile_512::<7>(block, width, start, bits, part),
                    _ => tile_512::<LINES>(block, width, start, bits, part),
                }
            }
        }
    }

    /// Lanes of 8 bytes of line `line` of a tile of so many bytes.
    fn lanes(bytes: usize, line: usize) -> u8 {
        let left = bytes.saturating_sub(line * LINE) / 8;
        u8::try_from((1_u32 << left.min(8)) - 1).unwrap_or(u8::MAX)
    }

    /// `tile` of up to `N` lines of 64 bytes, of which the last may be a part.
    #[target_feature(enable = "avx512f")]
    fn tile_512<const N: usize>(
        block: &[u8],
        width: usize,
        start: usize,
        bits: &[u8],
        sum: &mut [u8],
    ) {
        let lane: [u8; N] = std::array::from_fn(|line| lanes(sum.len(), line));
        let load = |at: *const u8, line: usize| -> __m512i {
            // SAFETY: only lanes of the slice that `at` points to are read, see `lanes`; `at` is
            // the first of `sum.len()` readable bytes at both callers.
            unsafe { _mm512_maskz_loadu_epi64(lane[line], at.add(line * LINE).cast()) }
        };
        let mut kept: [__m512i; N] = std::array::from_fn(|line| load(sum.as_ptr(), line));
        for (row, &bit) in block.chunks_exact(width).zip(bits) {
            let mask = _mm512_set1_epi64(0_i64.wrapping_sub(i64::from(bit)));
            let part = row[start..start + sum.len()].as_ptr();
            for (line, kept) in kept.iter_mut().enumerate() {
                let bytes = load(part, line);
                *kept = _mm512_ternarylogic_epi64::<XOR_MASKED>(*kept, bytes, mask);
            }
        }
        let to = sum.as_mut_ptr();
        for (line, kept) in kept.iter().enumerate() {
            // SAFETY: as for `load`.
            unsafe { _mm512_mask_storeu_epi64(to.add(line * LINE).cast(), lane[line], *kept) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(records: &[u8], width: usize, bits: &[u8]) -> Vec<u8> {
        let mut sum = vec![0; width];
        for (row, &bit) in records.chunks_exact(width).zip(bits) {
            for (sum, byte) in sum.iter_mut().zip(row) {
                *sum ^= byte * bit;
            }
        }
        sum
    }

    fn kernels() -> Vec<Kernel> {
        let mut found: Vec<Kernel> = vec![select_portable];
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx2") {
                found.push(wide::select_256);
            }
            if std::arch::is_x86_feature_detected!("avx512f") {
                found.push(wide::select_512);
            }
        }
        found
    }

    proptest! {
        #[test]
        fn every_kernel_chooses_the_same(
            units in 1_usize..90,
            rows in 0_usize..40,
            seed in any::<u64>(),
        ) {
            let width = units * 16;
            let mut state = seed | 1;
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 40) as u8
            };
            let records: Vec<u8> = (0..rows * width).map(|_| next()).collect();
            let bits: Vec<u8> = (0..rows).map(|_| next() & 1).collect();
            let expected = plain(&records, width, &bits);
            for run in kernels() {
                let mut sum = vec![0; width];
                run(&records, width, &bits, &mut sum);
                prop_assert_eq!(&sum, &expected);
                run(&records, width, &bits, &mut sum);
                prop_assert!(sum.iter().all(|&byte| byte == 0));
            }
            let mut sums = vec![0; width * 2];
            let twice = [bits.clone(), vec![0; rows]].concat();
            let mut choice = Choice { bits: &twice, stride: rows, sums: &mut sums };
            select(&records, width, &mut choice);
            prop_assert_eq!(&sums[..width], &expected);
            prop_assert!(sums[width..].iter().all(|&byte| byte == 0));
        }
    }
}
