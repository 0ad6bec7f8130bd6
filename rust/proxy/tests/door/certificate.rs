//! A certificate that signs itself, made when it is needed.

use louver_proxy::Certificate;
use ring::rand::SystemRandom;
use ring::signature::{EcdsaKeyPair, KeyPair, ECDSA_P256_SHA256_ASN1_SIGNING};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

const ECDSA_SHA256: [u8; 10] = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
const EC_KEY: [u8; 9] = [6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const P256: [u8; 10] = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const COMMON_NAME: [u8; 5] = [6, 3, 0x55, 4, 3];
const ALTERNATIVE_NAME: [u8; 5] = [6, 3, 0x55, 0x1d, 0x11];

/// A certificate for `localhost`, in DER, and its key, in PKCS#8.
pub(crate) fn own() -> (Vec<u8>, Vec<u8>) {
    let random = SystemRandom::new();
    let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
    let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random).expect("a key");
    let signed_by = element(0x30, &[&ECDSA_SHA256]);
    let name = element(0x30, &[&COMMON_NAME, &element(0x0c, &[b"proxy"])]);
    let name = element(0x30, &[&element(0x31, &[&name])]);
    let from = element(0x17, &[b"250101000000Z"]);
    let until = element(0x18, &[b"20991231235959Z"]);
    let public = [&[0], pair.public_key().as_ref()].concat();
    let host = element(0x30, &[&element(0x82, &[b"localhost"])]);
    let extension = element(0x30, &[&ALTERNATIVE_NAME, &element(4, &[&host])]);
    let body = element(
        0x30,
        &[
            &element(0xa0, &[&[2, 1, 2]]),
            &[2, 1, 1],
            &signed_by,
            &name,
            &element(0x30, &[&from, &until]),
            &name,
            &element(
                0x30,
                &[&element(0x30, &[&EC_KEY, &P256]), &element(3, &[&public])],
            ),
            &element(0xa3, &[&element(0x30, &[&extension])]),
        ],
    );
    let signature = pair.sign(&random, &body).expect("a signature");
    let signature = element(3, &[&[0], signature.as_ref()]);
    let certificate = element(0x30, &[&body, &signed_by, &signature]);
    (certificate, key.as_ref().to_vec())
}

/// The same as a server takes it, and in DER.
pub(crate) fn served() -> (Certificate, Vec<u8>) {
    let (der, key) = own();
    let chain = vec![CertificateDer::from(der.clone())];
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key));
    (Certificate::new(chain, key).expect("a certificate"), der)
}

fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = u16::try_from(content.len()).expect("short").to_be_bytes();
    let head = match length {
        [0, short] if short < 0x80 => vec![tag, short],
        [0, long] => vec![tag, 0x81, long],
        [high, low] => vec![tag, 0x82, high, low],
    };
    [head, content].concat()
}
