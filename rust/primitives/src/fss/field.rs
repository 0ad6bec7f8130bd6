//! Authentication of records: their tags, and products in GF(2^128).
//!
//! The field is POLYVAL's (RFC 8452): little-endian 128-bit polynomials modulo
//! x^128 + x^127 + x^126 + x^121 + 1, with the product a·b·x^-128.

const CONTEXT: &str = "louver 2026-11 fss record tag v1";

/// The tag of a record at a level: BLAKE3's key derivation over the level (u32, little endian)
/// and the record, the first 16 bytes.
pub fn record_tag(level: u32, record: &[u8]) -> u128 {
    static CONTEXT_KEY: std::sync::OnceLock<blake3::Hasher> = std::sync::OnceLock::new();
    let hasher = CONTEXT_KEY.get_or_init(|| blake3::Hasher::new_derive_key(CONTEXT));
    let mut hasher = hasher.clone();
    hasher.update(&level.to_le_bytes()).update(record);
    let digest = hasher.finalize();
    u128::from_le_bytes(digest.as_bytes()[..16].try_into().expect("16 bytes"))
}

/// The product of two elements. Takes the same time for all of them.
pub fn dot(a: u128, b: u128) -> u128 {
    let mut sum = DotSum::default();
    sum.add_portable(a, b);
    sum.reduce()
}

/// A sum of products that is reduced once, at its end.
#[derive(Clone, Copy, Default)]
pub struct DotSum {
    low: u128,
    high: u128,
}

impl DotSum {
    /// Adds the product of each pair. Slices of equal length.
    pub fn add(&mut self, left: &[u128], right: &[u128]) {
        assert_eq!(left.len(), right.len());
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("pclmulqdq") {
            // SAFETY: the processor has the instruction.
            return unsafe { self.add_fast(left, right) };
        }
        for (a, b) in left.iter().zip(right) {
            self.add_portable(*a, *b);
        }
    }

    /// Joins two sums.
    pub fn merge(&mut self, other: &Self) {
        self.low ^= other.low;
        self.high ^= other.high;
    }

    /// The sum as an element.
    pub fn reduce(&self) -> u128 {
        // Adding word · (x^128 + x^127 + x^126 + x^121 + 1) clears the lowest 64 bits: twice.
        let (mut low, mut high) = (self.low, self.high);
        for _ in 0..2 {
            let word = low & u128::from(u64::MAX);
            low = (low >> 64 | high << 64) ^ word << 57 ^ word << 62 ^ word << 63 ^ word << 64;
            high >>= 64;
        }
        low
    }

    fn add_portable(&mut self, a: u128, b: u128) {
        for at in 0..128 {
            let mask = (b >> at & 1).wrapping_neg();
            self.low ^= a << at & mask;
            self.high ^= (a >> 1 >> (127 - at)) & mask;
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "pclmulqdq,sse2")]
    fn add_fast(&mut self, left: &[u128], right: &[u128]) {
        use std::arch::x86_64::*;
        let load = |value: &u128| _mm_set_epi64x((value >> 64) as i64, *value as i64);
        let [mut low, mut middle, mut high] = [_mm_setzero_si128(); 3];
        for (a, b) in left.iter().zip(right) {
            let (a, b) = (load(a), load(b));
            low = _mm_xor_si128(low, _mm_clmulepi64_si128::<0x00>(a, b));
            high = _mm_xor_si128(high, _mm_clmulepi64_si128::<0x11>(a, b));
            middle = _mm_xor_si128(middle, _mm_clmulepi64_si128::<0x01>(a, b));
            middle = _mm_xor_si128(middle, _mm_clmulepi64_si128::<0x10>(a, b));
        }
        let word = |value: __m128i| {
            let low = _mm_cvtsi128_si64(value) as u64;
            let high = _mm_cvtsi128_si64(_mm_srli_si128::<8>(value)) as u64;
            u128::from(high) << 64 | u128::from(low)
        };
        let middle = word(middle);
        self.low ^= word(low) ^ middle << 64;
        self.high ^= word(high) ^ middle >> 64;
    }
}
