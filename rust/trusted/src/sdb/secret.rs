//! Big integers that are overwritten when dropped.

use num_bigint::{BigInt, BigUint, Sign};
use std::fmt;
use zeroize::Zeroizing;

/// A secret integer: redacted `Debug`, no `Clone`, overwritten on drop.
///
/// The big-integer library's own temporaries are beyond our reach; what lives long lives in here.
pub(crate) struct Secret(BigInt);

impl Secret {
    pub(crate) fn new(value: BigInt) -> Self {
        Self(value)
    }

    pub(crate) fn natural(value: BigUint) -> Self {
        Self(BigInt::from(value))
    }

    /// The value.
    pub(crate) fn expose(&self) -> &BigInt {
        &self.0
    }

    /// The absolute value.
    pub(crate) fn magnitude(&self) -> &BigUint {
        self.0.magnitude()
    }

    /// The absolute value, big endian.
    pub(crate) fn bytes(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.0.magnitude().to_bytes_be())
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        let digits = self.0.magnitude().to_u32_digits().len();
        // Same length, so the old digits are overwritten in place.
        self.0.assign_from_slice(Sign::Plus, &vec![0; digits]);
        std::hint::black_box(&self.0);
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(redacted)")
    }
}
