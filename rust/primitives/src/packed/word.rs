//! The numbers that are packed. Arithmetic is modulo the power of two that the type has.

/// An integer of any width.
pub trait Word: Copy + Default + PartialEq + Send + Sync + 'static {
    /// Its width.
    const BITS: u32;
    /// `self + other`.
    fn plus(self, other: Self) -> Self;
    /// `self - other`.
    fn minus(self, other: Self) -> Self;
    /// The low 64 bits, without a sign.
    fn low(self) -> u64;
    /// The bits above them.
    fn high(self) -> u64;
    /// From 32 bits; the highest are cut off.
    fn narrow(bits: u32) -> Self;
    /// From 64 bits; the highest are cut off.
    fn wide(bits: u64) -> Self;
    /// From all bits; the highest are cut off.
    fn joined(low: u64, high: u64) -> Self;
    /// From a number of any sign; the highest bits are cut off.
    fn cut(number: i128) -> Self;
}

macro_rules! word {
    ($($name:ty, $unsigned:ty, $high:expr;)*) => {$(
        impl Word for $name {
            const BITS: u32 = <$name>::BITS;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            #[inline(always)]
            fn low(self) -> u64 {
                self as $unsigned as u64
            }

            #[inline(always)]
            fn high(self) -> u64 {
                let high: fn(u128) -> u64 = $high;
                high(self as $unsigned as u128)
            }

            #[inline(always)]
            fn narrow(bits: u32) -> Self {
                bits as Self
            }

            #[inline(always)]
            fn wide(bits: u64) -> Self {
                bits as Self
            }

            #[inline(always)]
            fn joined(low: u64, high: u64) -> Self {
                ((high as u128) << 64 | low as u128) as Self
            }

            #[inline(always)]
            fn cut(number: i128) -> Self {
                number as Self
            }
        }
    )*};
}

word! {
    u8, u8, |_| 0;
    u16, u16, |_| 0;
    u32, u32, |_| 0;
    u64, u64, |_| 0;
    i128, u128, |bits| (bits >> 64) as u64;
}
