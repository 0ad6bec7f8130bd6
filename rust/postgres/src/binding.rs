//! What binds a password's proof to the channel: `tls-server-end-point` (RFC 5929), the hash of the
//! server's certificate.

use sha2::{Digest, Sha256, Sha384, Sha512};

/// The hash of a certificate by the hash function of its own signature; None where that is not
/// one that RFC 5929 defines (Ed25519), or RSASSA-PSS, of which servers differ.
pub fn hash(certificate: &[u8]) -> Option<Vec<u8>> {
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];
    let (_, content) = sequence(certificate, 0x30)?;
    let (behind_body, _) = sequence(content, 0x30)?;
    let (_, algorithm) = sequence(behind_body, 0x30)?;
    let (_, name) = sequence(algorithm, 0x06)?;
    // MD5 and SHA-1 count as SHA-256.
    match (name.strip_prefix(RSA), name.strip_prefix(ECDSA)) {
        (Some([4 | 5 | 11]), _) | (_, Some([1] | [3, 2])) => {
            Some(Sha256::digest(certificate).to_vec())
        }
        (Some([12]), _) | (_, Some([3, 3])) => Some(Sha384::digest(certificate).to_vec()),
        (Some([13]), _) | (_, Some([3, 4])) => Some(Sha512::digest(certificate).to_vec()),
        _ => None,
    }
}

/// What follows an element of DER with this tag, and what is in it.
fn sequence(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[first, short], rest) = bytes.split_first_chunk::<2>()?;
    if first != tag {
        return None;
    }
    let (length, rest) = if short < 0x80 {
        (usize::from(short), rest)
    } else {
        let digits = usize::from(short & 0x7f);
        if !(1..=4).contains(&digits) {
            return None;
        }
        let (length, rest) = rest.split_at_checked(digits)?;
        let length = length
            .iter()
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        (length, rest)
    };
    let (content, behind) = rest.split_at_checked(length)?;
    Some((behind, content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn element(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len()).expect("short");
        [&[tag, 0x82][..], &length.to_be_bytes(), content].concat()
    }

    fn certificate(name: &[u8]) -> Vec<u8> {
        let algorithm = element(0x30, &[element(0x06, name), vec![5, 0]].concat());
        let body = element(0x30, &[7; 300]);
        element(0x30, &[body, algorithm, vec![3, 1, 0]].concat())
    }

    #[test]
    fn a_certificate_is_hashed_as_its_signature_is() {
        let rsa = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
        for (last, length) in [(4, 32), (5, 32), (11, 32), (12, 48), (13, 64)] {
            let bytes = certificate(&[&rsa[..], &[last]].concat());
            assert_eq!(hash(&bytes).expect("known").len(), length);
        }
        let bytes = certificate(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 3, 3]);
        assert_eq!(hash(&bytes), Some(Sha384::digest(&bytes).to_vec()));
        assert_eq!(hash(&certificate(&[&rsa[..], &[10]].concat())), None);
        assert_eq!(hash(&certificate(&[0x2b, 0x65, 0x70])), None);
        assert_eq!(hash(&bytes[..bytes.len() - 5]), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = hash(&bytes);
            let _ = hash(&[&[0x30, 0x84][..], &bytes].concat());
        }
    }
}
