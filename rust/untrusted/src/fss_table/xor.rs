//! Records under one bit masks: what a share selects of a block of a table.
//!
//! A tile is some bytes of a record's width held in registers while the rows of a block go
//! by. Every row is read and masked, so neither time nor addresses depend on a bit.

/// Bytes of records that stay in the first-level cache while all shares go over them.
const BLOCK: usize = 16 << 10;
/// The least rows of a block: what is kept of wide records is loaded and stored once for so many.
pub(super) const ROWS: usize = 4;

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
    if width > 0 && choice.stride > 0 {
        select_with(kernel(), records, width, choice);
    }
}

fn select_with(run: Kernel, records: &[u8], width: usize, choice: &mut Choice<'_>) {
    let rows = (BLOCK / width).max(ROWS);
    for (index, block) in records.chunks(rows * width).enumerate() {
        let first = index * rows;
        let shares = choice.bits.chunks(2 * choice.stride);
        for (bits, sums) in shares.zip(choice.sums.chunks_mut(2 * width)) {
            let (left, other) = bits.split_at(choice.stride.min(bits.len()));
            let bits = [left, other].map(|bits| bits.get(first..).unwrap_or(&[]));
            run(block, width, bits, sums);
        }
    }
}

/// Takes the bits of one share or two, and their records.
type Kernel = fn(&[u8], usize, [&[u8]; 2], &mut [u8]);

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

fn select_portable(block: &[u8], width: usize, bits: [&[u8]; 2], sums: &mut [u8]) {
    for (bits, sum) in bits.into_iter().zip(sums.chunks_exact_mut(width)) {
        tiles(block, width, bits, sum);
    }
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
    let mut accumulators = [0_u64; WORDS];
    for (row, &bit) in block.chunks_exact(width).zip(bits) {
        let mask = 0_u64.wrapping_sub(u64::from(bit));
        let part = &row[start..start + WORDS * 8];
        for (accumulators, bytes) in accumulators.iter_mut().zip(part.chunks_exact(8)) {
            *accumulators ^= word(bytes) & mask;
        }
    }
    for (bytes, accumulators) in sum.chunks_exact_mut(8).zip(accumulators) {
        let mixed = word(bytes) ^ accumulators;
        bytes.copy_from_slice(&mixed.to_le_bytes());
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        __m512i, _mm512_mask_storeu_epi64, _mm512_maskz_loadu_epi64, _mm512_set1_epi64,
        _mm512_setzero_si512, _mm512_ternarylogic_epi64, _mm512_xor_si512,
    };

    /// Registers of a tile: 512 bytes of one share, or of two.
    const LINES: usize = 8;
    const LINE: usize = 64;
    /// `a ^ (b & c)` as a table of three inputs.
    const XOR_MASKED: i32 = 0x78;

    pub(super) fn select_256(block: &[u8], width: usize, bits: [&[u8]; 2], sums: &mut [u8]) {
        // SAFETY: `kernel` gives this out only where the processor has AVX2.
        unsafe { tiles_256(block, width, bits, sums) }
    }

    /// The portable tiles, compiled for 256-bit registers.
    #[target_feature(enable = "avx2")]
    fn tiles_256(block: &[u8], width: usize, bits: [&[u8]; 2], sums: &mut [u8]) {
        for (bits, sum) in bits.into_iter().zip(sums.chunks_exact_mut(width)) {
            super::tiles(block, width, bits, sum);
        }
    }

    pub(super) fn select_512(block: &[u8], width: usize, bits: [&[u8]; 2], sums: &mut [u8]) {
        let [left, other] = bits;
        let (first, second) = sums.split_at_mut(width.min(sums.len()));
        for start in (0..width).step_by(LINES * LINE) {
            let bytes = start..width.min(start + LINES * LINE);
            // SAFETY: `kernel` gives this out only where the processor has AVX-512F.
            unsafe {
                match (first.get_mut(bytes.clone()), second.get_mut(bytes)) {
                    (Some(sum), Some(more)) => {
                        lines(block, width, start, [left, other], [sum, more]);
                    }
                    (Some(sum), None) => lines(block, width, start, [left], [sum]),
                    _ => {}
                }
            }
        }
    }

    /// Calls for the tile's number of lines.
    #[target_feature(enable = "avx512f")]
    fn lines<const SHARES: usize>(
        block: &[u8],
        width: usize,
        start: usize,
        bits: [&[u8]; SHARES],
        sums: [&mut [u8]; SHARES],
    ) {
        match sums[0].len().div_ceil(LINE) {
            1 => tile_512::<1, SHARES>(block, width, start, bits, sums),
            2 => tile_512::<2, SHARES>(block, width, start, bits, sums),
            3 => tile_512::<3, SHARES>(block, width, start, bits, sums),
            4 => tile_512::<4, SHARES>(block, width, start, bits, sums),
            5 => tile_512::<5, SHARES>(block, width, start, bits, sums),
            6 => tile_512::<6, SHARES>(block, width, start, bits, sums),
            7 => tile_512::<7, SHARES>(block, width, start, bits, sums),
            _ => tile_512::<LINES, SHARES>(block, width, start, bits, sums),
        }
    }

    /// `tile` of `N` lines of 64 bytes, of which the last may be a part.
    #[target_feature(enable = "avx512f")]
    fn tile_512<const N: usize, const SHARES: usize>(
        block: &[u8],
        width: usize,
        start: usize,
        bits: [&[u8]; SHARES],
        sums: [&mut [u8]; SHARES],
    ) {
        let bytes = sums[0].len();
        assert!(bytes > (N - 1) * LINE && bytes <= N * LINE && bytes.is_multiple_of(8));
        assert!(sums.iter().all(|sum| sum.len() == bytes));
        let lanes = 0xff >> (8 - (bytes - (N - 1) * LINE) / 8);
        let mut accumulators = [[_mm512_setzero_si512(); N]; SHARES];
        let rows = bits.iter().map(|bits| bits.len()).min().unwrap_or(0);
        for (at, row) in block.chunks_exact(width).take(rows).enumerate() {
            let part = row[start..start + bytes].as_ptr();
            let mut mask = [_mm512_setzero_si512(); SHARES];
            for (mask, bits) in mask.iter_mut().zip(&bits) {
                *mask = _mm512_set1_epi64(0_i64.wrapping_sub(i64::from(bits[at])));
            }
            for line in 0..N {
                let lanes = if line + 1 == N { lanes } else { 0xff };
                // SAFETY: all lines but the last are whole, of the last only lanes are read that
                // belong to the part, as was asserted.
                let loaded = unsafe { load(part, line, lanes) };
                for (accumulators, mask) in accumulators.iter_mut().zip(&mask) {
                    accumulators[line] =
                        _mm512_ternarylogic_epi64::<XOR_MASKED>(accumulators[line], loaded, *mask);
                }
            }
        }
        for (sum, accumulators) in sums.into_iter().zip(accumulators) {
            for (line, accumulators) in accumulators.into_iter().enumerate() {
                let lanes = if line + 1 == N { lanes } else { 0xff };
                // SAFETY: as above, and all sums have as many bytes as a row's part.
                unsafe {
                    let mixed = _mm512_xor_si512(load(sum.as_ptr(), line, lanes), accumulators);
                    let to = sum.as_mut_ptr().add(line * LINE);
                    _mm512_mask_storeu_epi64(to.cast(), lanes, mixed);
                }
            }
        }
    }

    /// These lanes of a line of 64 bytes.
    ///
    /// # Safety
    /// They can be read.
    #[target_feature(enable = "avx512f")]
    unsafe fn load(at: *const u8, line: usize, lanes: u8) -> __m512i {
        // SAFETY: the caller's.
        unsafe { _mm512_maskz_loadu_epi64(lanes, at.add(line * LINE).cast()) }
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
        let mut kernels: Vec<Kernel> = vec![select_portable];
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx2") {
                kernels.push(wide::select_256);
            }
            if std::arch::is_x86_feature_detected!("avx512f") {
                kernels.push(wide::select_512);
            }
        }
        kernels
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
                run(&records, width, [&bits, &[]], &mut sum);
                prop_assert_eq!(&sum, &expected);
                run(&records, width, [&bits, &[]], &mut sum);
                prop_assert!(sum.iter().all(|&byte| byte == 0));
                let mut sums = vec![0; width * 3];
                let thrice = [bits.clone(), vec![0; rows], bits.clone()].concat();
                let mut choice = Choice { bits: &thrice, stride: rows.max(1), sums: &mut sums };
                select_with(run, &records, width, &mut choice);
                prop_assert_eq!(&sums[..width], &expected);
                prop_assert!(sums[width..width * 2].iter().all(|&byte| byte == 0));
                prop_assert_eq!(&sums[width * 2..], &expected);
            }
        }
    }
}
