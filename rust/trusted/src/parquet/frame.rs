//! The bytes of an encrypted Parquet file that are in plaintext: magics, lengths, and which cipher
//! it is. They are compared to the letter with what [`super::write()`] makes, so that a decoder
//! which is neither bounded nor free of panics meets nothing that was not authenticated.

/// Ends (and begins) a file with an encrypted footer. A file that claims another is refused: the
/// crate `parquet` would read it as plaintext.
const MAGIC: &[u8; 4] = b"PARE";
/// Length of the footer, and the magic.
pub(super) const END: usize = 8;
/// No file is shorter: a magic and an end.
pub(super) const LEAST_FILE: u64 = (MAGIC.len() + END) as u64;
/// Most bytes of a footer: a thousand columns in a thousand row groups.
pub(super) const MOST_FOOTER: usize = 256 << 20;
/// `FileCryptoMetaData` in Thrift's compact protocol: AES_GCM_V1, a unique part of 8 bytes, the
/// prefix of the associated data comes from the reader; no key metadata.
const CIPHER_HEAD: [u8; 4] = [0x1c, 0x1c, 0x28, 0x08];
const CIPHER_UNIQUE: usize = 8;
const CIPHER_TAIL: [u8; 4] = [0x11, 0, 0, 0];
const CIPHER: usize = CIPHER_HEAD.len() + CIPHER_UNIQUE + CIPHER_TAIL.len();
/// Length, nonce and tag of a module.
const LENGTH: usize = 4;
const LEAST: usize = 12 + 16;

/// Bytes of the footer and of the file's end together, by the file's last 8 bytes; `None` if they
/// cannot be the end of a file of `size` bytes.
pub(super) fn footer_length(end: &[u8], size: u64) -> Option<usize> {
    let (length, magic) = end.split_first_chunk::<LENGTH>()?;
    if magic != MAGIC {
        return None;
    }
    let length = u32::from_le_bytes(*length) as usize;
    let whole = length.checked_add(END)?;
    let fits = length <= MOST_FOOTER && (whole + MAGIC.len()) as u64 <= size;
    fits.then_some(whole)
}

/// Whether a footer (without the file's end) is one cipher header and one module.
pub(super) fn is_footer(footer: &[u8]) -> bool {
    let Some((cipher, module)) = footer.split_at_checked(CIPHER) else {
        return false;
    };
    cipher.starts_with(&CIPHER_HEAD)
        && cipher.ends_with(&CIPHER_TAIL)
        && module_length(module) == Some(module.len())
}

/// Whether a column chunk is a row of whole modules: a header and a page, again and again.
pub(super) fn is_chunk(mut chunk: &[u8]) -> bool {
    let mut modules = 0_usize;
    while !chunk.is_empty() {
        let Some(length) = module_length(chunk) else {
            return false;
        };
        chunk = &chunk[length..];
        modules += 1;
    }
    modules.is_multiple_of(2)
}

/// Bytes of the module at the start of `bytes`, if it is all there.
fn module_length(bytes: &[u8]) -> Option<usize> {
    let length = u32::from_le_bytes(*bytes.first_chunk::<LENGTH>()?) as usize;
    let whole = length.checked_add(LENGTH)?;
    (length >= LEAST && whole <= bytes.len()).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_judged(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = footer_length(&bytes, 100);
            let _ = is_footer(&bytes);
            let _ = is_chunk(&bytes);
        }
    }

    #[test]
    fn lengths_are_bounded() {
        let end = |length: u32| [&length.to_le_bytes()[..], MAGIC].concat();
        assert_eq!(footer_length(&end(50), 62), Some(58));
        assert_eq!(footer_length(&end(50), 61), None);
        assert_eq!(footer_length(&end(u32::MAX), u64::MAX), None);
        assert_eq!(footer_length(b"\0\0\0\0PAR1", 62), None);
        let module = [&28_u32.to_le_bytes()[..], &[0; 28]].concat();
        assert!(is_chunk(&[&module[..], &module].concat()));
        assert!(!is_chunk(&module), "a page is missing");
        assert!(!is_chunk(&[&module[..], &module[..31]].concat()));
    }
}
