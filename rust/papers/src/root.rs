//! The secret that the keys of this crate derive from, as `spec/keyfile.md` derives them.

use hkdf::Hkdf;
use sha2::Sha256;
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Bytes of the secret and of every derived key.
const KEY: usize = 32;

/// A root secret.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Root([u8; KEY]);

impl Root {
    /// The secret of these bytes.
    pub fn new(secret: [u8; KEY]) -> Self {
        Self(secret)
    }

    /// HKDF-SHA256 with info `louver/1/<name>/<table>/<column>/<generation>`.
    pub(crate) fn derive(
        &self,
        name: &str,
        [table, column, generation]: [u32; 3],
    ) -> Zeroizing<[u8; KEY]> {
        let info = format!("louver/1/{name}/{table}/{column}/{generation}");
        let mut key = Zeroizing::new([0; KEY]);
        Hkdf::<Sha256>::new(None, &self.0)
            .expand(info.as_bytes(), key.as_mut())
            .expect("32 bytes are within HKDF's limit");
        key
    }
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Root(redacted)")
    }
}
