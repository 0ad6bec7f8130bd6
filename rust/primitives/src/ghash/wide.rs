//! GHASH of long messages by wide instructions (NIST SP 800-38D): sixteen blocks at a time, four in
//! each register, reduced once. For processors with VPCLMULQDQ and AVX-512.
//!
//! Numbers are those of POLYVAL (RFC 8452, appendix A): bytes of a block backwards, and a product
//! has a factor of x^-128. `louver-trusted` compares with the crate `ghash` on messages of every
//! length and holds known answers of NIST and Wycheproof.

use std::arch::x86_64::*;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Blocks of a step.
const STEP: usize = 16;
const BLOCK: usize = 16;
/// x^127 + x^126 + x^121, the upper half.
const POLYNOMIAL: i64 = 0xc200_0000_0000_0000_u64.cast_signed();

/// The powers of a key, the highest first; overwritten when dropped.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct WideGhash([[u8; BLOCK]; STEP]);

impl WideGhash {
    /// The powers of the hash key `h`; `None` if the processor lacks the instructions, or if
    /// `LOUVER_BACKEND=portable` forbids them.
    pub fn new(h: &[u8; BLOCK]) -> Option<Self> {
        if std::env::var_os("LOUVER_BACKEND").is_some_and(|v| v == "portable") || !available() {
            return None;
        }
        let mut powers = Self([[0; BLOCK]; STEP]);
        // SAFETY: the processor has the instructions.
        unsafe { fill(h, &mut powers.0) };
        Some(powers)
    }

    /// Goes on from the state `y` with a message, filled with zeros to whole blocks.
    pub fn update(&self, y: &mut [u8; BLOCK], message: &[u8]) {
        // SAFETY: there is no value of this type where the processor lacks the instructions.
        unsafe { absorb(&self.0, y, message) }
    }
}

fn available() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx512f") && has!("avx512bw") && has!("vpclmulqdq") && has!("pclmulqdq") && has!("ssse3")
}

/// A block's bytes, backwards.
#[target_feature(enable = "ssse3")]
fn backwards(x: __m128i) -> __m128i {
    let order = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm_shuffle_epi8(x, order)
}

#[target_feature(enable = "sse2")]
fn load(bytes: &[u8; BLOCK]) -> __m128i {
    // SAFETY: sixteen bytes, at any address.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "sse2")]
fn store(x: __m128i, bytes: &mut [u8; BLOCK]) {
    // SAFETY: as above.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), x) }
}

/// What is above 128 bits, and what below, times x^-128.
#[target_feature(enable = "sse2,pclmulqdq")]
fn reduced(low: __m128i, high: __m128i) -> __m128i {
    let polynomial = _mm_set_epi64x(0, POLYNOMIAL);
    let first = _mm_xor_si128(
        _mm_shuffle_epi32(low, 0x4e),
        _mm_clmulepi64_si128(low, polynomial, 0x00),
    );
    let second = _mm_xor_si128(
        _mm_shuffle_epi32(first, 0x4e),
        _mm_clmulepi64_si128(first, polynomial, 0x00),
    );
    _mm_xor_si128(high, second)
}

#[target_feature(enable = "sse2,pclmulqdq")]
fn product(a: __m128i, b: __m128i) -> __m128i {
    let middle = _mm_xor_si128(
        _mm_clmulepi64_si128(a, b, 0x01),
        _mm_clmulepi64_si128(a, b, 0x10),
    );
    let low = _mm_xor_si128(_mm_clmulepi64_si128(a, b, 0x00), _mm_slli_si128(middle, 8));
    let high = _mm_xor_si128(_mm_clmulepi64_si128(a, b, 0x11), _mm_srli_si128(middle, 8));
    reduced(low, high)
}

/// `h` times x, as POLYVAL has it, and its powers.
#[target_feature(enable = "sse2,ssse3,pclmulqdq")]
fn fill(h: &[u8; BLOCK], powers: &mut [[u8; BLOCK]; STEP]) {
    let number = u128::from_be_bytes(*h);
    let carry = (number >> 127) as u64;
    let folded = (u128::from(carry.wrapping_neg()) & 0xc2 << 56) << 64 | u128::from(carry);
    let first = load(&(number << 1 ^ folded).to_le_bytes());
    let mut power = first;
    for bytes in powers.iter_mut().rev() {
        store(power, bytes);
        power = product(power, first);
    }
}

#[target_feature(enable = "avx512f,avx512bw,vpclmulqdq,sse2,ssse3,pclmulqdq")]
fn absorb(powers: &[[u8; BLOCK]; STEP], y: &mut [u8; BLOCK], message: &[u8]) {
    let mut state = backwards(load(y));
    let (steps, rest) = message.as_chunks::<{ STEP * BLOCK }>();
    let (fours, _) = powers.as_chunks::<4>();
    let wide = |four: &[[u8; BLOCK]; 4]| {
        // SAFETY: 64 bytes, at any address.
        unsafe { _mm512_loadu_si512(four.as_ptr().cast()) }
    };
    let keys = [
        wide(&fours[0]),
        wide(&fours[1]),
        wide(&fours[2]),
        wide(&fours[3]),
    ];
    for step in steps {
        state = sixteen(&keys, state, step);
    }
    let (blocks, rest) = rest.as_chunks::<BLOCK>();
    let first = load(&powers[STEP - 1]);
    for block in blocks {
        state = product(_mm_xor_si128(state, backwards(load(block))), first);
    }
    if !rest.is_empty() {
        let mut block = [0; BLOCK];
        block[..rest.len()].copy_from_slice(rest);
        state = product(_mm_xor_si128(state, backwards(load(&block))), first);
    }
    store(backwards(state), y);
}

/// Sixteen blocks.
#[target_feature(enable = "avx512f,avx512bw,vpclmulqdq,sse2,ssse3,pclmulqdq")]
#[inline]
fn sixteen(keys: &[__m512i; 4], state: __m128i, step: &[u8; STEP * BLOCK]) -> __m128i {
    let order = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let order = _mm512_broadcast_i32x4(order);
    let zero = _mm512_setzero_si512();
    let (mut low, mut middle, mut high) = (zero, zero, zero);
    let (parts, _) = step.as_chunks::<64>();
    let mut first = _mm512_zextsi128_si512(state);
    for (part, key) in parts.iter().zip(keys) {
        // SAFETY: 64 bytes, at any address.
        let blocks = unsafe { _mm512_loadu_si512(part.as_ptr().cast()) };
        let blocks = _mm512_xor_si512(_mm512_shuffle_epi8(blocks, order), first);
        first = zero;
        low = _mm512_xor_si512(low, _mm512_clmulepi64_epi128(blocks, *key, 0x00));
        high = _mm512_xor_si512(high, _mm512_clmulepi64_epi128(blocks, *key, 0x11));
        let straight = _mm512_clmulepi64_epi128(blocks, *key, 0x01);
        let crossed = _mm512_clmulepi64_epi128(blocks, *key, 0x10);
        // 0x96: the sum of three.
        middle = _mm512_ternarylogic_epi64(middle, straight, crossed, 0x96);
    }
    let (low, middle, high) = (folded(low), folded(middle), folded(high));
    let low = _mm_xor_si128(low, _mm_slli_si128(middle, 8));
    let high = _mm_xor_si128(high, _mm_srli_si128(middle, 8));
    reduced(low, high)
}

/// The sum of the four parts.
#[target_feature(enable = "avx512f")]
#[inline]
fn folded(x: __m512i) -> __m128i {
    let half = _mm256_xor_si256(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
    _mm_xor_si128(
        _mm256_castsi256_si128(half),
        _mm256_extracti128_si256(half, 1),
    )
}
