//! Sealed blobs: small things of any length, such as the catalog and ledger records
//! (`spec/rnd.md`, "Blobs").

use crate::error::{Error, Result};
use crate::keys::{random, Purpose, RootSecret};
use crate::KeyRing;
use aes_gcm::aead::{AeadInOut, KeyInit};
use aes_gcm::Aes256Gcm;
use aes_gcm_siv::Aes256GcmSiv;

/// AES-256-GCM under a random nonce: version, nonce, ciphertext, tag.
pub(crate) const VERSION_RANDOM: u8 = 1;
/// AES-256-GCM-SIV under the zero nonce: version, ciphertext, tag.
const VERSION_DETERMINISTIC: u8 = 2;
const NONCE: usize = 12;
const TAG: usize = 16;
/// Longest purpose: its length takes two bytes of the associated data.
const MAX_PURPOSE: usize = 255;

pub(crate) fn seal(
    root: &RootSecret,
    purpose: &str,
    context: &[u8],
    plain: &[u8],
) -> Result<Vec<u8>> {
    let associated = associated(VERSION_RANDOM, purpose, context)?;
    let key = root.derive(Purpose::whole(&format!("blob/{purpose}")));
    let cipher = Aes256Gcm::new_from_slice(&key[..]).expect("32 bytes");
    let mut nonce = [0; NONCE];
    random(&mut nonce)?;
    let mut out = Vec::with_capacity(1 + NONCE + plain.len() + TAG);
    out.push(VERSION_RANDOM);
    out.extend_from_slice(&nonce);
    out.extend_from_slice(plain);
    let body = &mut out[1 + NONCE..];
    let tag = cipher
        .encrypt_inout_detached(&nonce.into(), &associated, body.into())
        .map_err(|_| Error::value("the blob is too long to seal"))?;
    out.extend_from_slice(&tag);
    Ok(out)
}

pub(crate) fn open(
    root: &RootSecret,
    purpose: &str,
    context: &[u8],
    sealed: &[u8],
) -> Result<Vec<u8>> {
    let damaged = || Error::verify(format!("a sealed {purpose} blob was altered or moved"));
    let associated = associated(VERSION_RANDOM, purpose, context)?;
    let (&version, rest) = sealed.split_first().ok_or_else(damaged)?;
    if version != VERSION_RANDOM || rest.len() < NONCE + TAG {
        return Err(damaged());
    }
    let (nonce, rest) = rest.split_at(NONCE);
    let (body, tag) = rest.split_at(rest.len() - TAG);
    let key = root.derive(Purpose::whole(&format!("blob/{purpose}")));
    let cipher = Aes256Gcm::new_from_slice(&key[..]).expect("32 bytes");
    let mut plain = body.to_vec();
    let nonce: [u8; NONCE] = nonce.try_into().expect("split at its length");
    let tag: [u8; TAG] = tag.try_into().expect("split at its length");
    cipher
        .decrypt_inout_detached(
            &nonce.into(),
            &associated,
            plain.as_mut_slice().into(),
            &tag.into(),
        )
        .map_err(|_| damaged())?;
    Ok(plain)
}

/// Seals where no fresh nonce can be guaranteed: equal input gives equal output, and nothing else
/// is lost (RFC 8452).
///
/// # Errors
/// [`Error::Value`] if the purpose or the blob is too long.
pub fn seal_deterministic_blob(
    ring: &KeyRing,
    purpose: &str,
    context: &[u8],
    plain: &[u8],
) -> Result<Vec<u8>> {
    let associated = associated(VERSION_DETERMINISTIC, purpose, context)?;
    let cipher = deterministic(ring, purpose);
    let mut out = Vec::with_capacity(1 + plain.len() + TAG);
    out.push(VERSION_DETERMINISTIC);
    out.extend_from_slice(plain);
    let body = &mut out[1..];
    let tag = cipher
        .encrypt_inout_detached(&[0; NONCE].into(), &associated, body.into())
        .map_err(|_| Error::value("the blob is too long to seal"))?;
    out.extend_from_slice(&tag);
    Ok(out)
}

/// Opens what [`seal_deterministic_blob`] sealed.
///
/// # Errors
/// [`Error::Verify`] if it was altered or belongs to another purpose, context or key.
pub fn open_deterministic_blob(
    ring: &KeyRing,
    purpose: &str,
    context: &[u8],
    sealed: &[u8],
) -> Result<Vec<u8>> {
    let damaged = || Error::verify(format!("a sealed {purpose} blob was altered or moved"));
    let associated = associated(VERSION_DETERMINISTIC, purpose, context)?;
    let (&version, rest) = sealed.split_first().ok_or_else(damaged)?;
    if version != VERSION_DETERMINISTIC || rest.len() < TAG {
        return Err(damaged());
    }
    let (body, tag) = rest.split_at(rest.len() - TAG);
    let mut plain = body.to_vec();
    let tag: [u8; TAG] = tag.try_into().expect("split at its length");
    deterministic(ring, purpose)
        .decrypt_inout_detached(
            &[0; NONCE].into(),
            &associated,
            plain.as_mut_slice().into(),
            &tag.into(),
        )
        .map_err(|_| damaged())?;
    Ok(plain)
}

fn deterministic(ring: &KeyRing, purpose: &str) -> Aes256GcmSiv {
    let name = format!("deterministic-blob/{purpose}");
    let key = ring.root().derive(Purpose::whole(&name));
    Aes256GcmSiv::new_from_slice(&key[..]).expect("32 bytes")
}

/// Version, purpose with its length, context: no two triples give the same bytes.
fn associated(version: u8, purpose: &str, context: &[u8]) -> Result<Vec<u8>> {
    let length = u8::try_from(purpose.len())
        .map_err(|_| Error::value(format!("a purpose has at most {MAX_PURPOSE} bytes")))?;
    let mut out = vec![version, length];
    out.extend_from_slice(purpose.as_bytes());
    out.extend_from_slice(context);
    Ok(out)
}
