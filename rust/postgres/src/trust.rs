//! Whom TLS trusts: the roots, what is checked of a server's certificate, and our own one.

use crate::error::{Error, Result};
use crate::settings::{Check, Identity, Roots, Tls};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name, Resumption};
use rustls::crypto::{ring, verify_tls12_signature, verify_tls13_signature};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The name of PostgreSQL's protocol within TLS: a server of another one is not spoken to.
const PROTOCOL: &[u8] = b"postgresql";
const MOST_KEY_BYTES: u64 = 1 << 20;

/// What a handshake is made with.
pub(crate) fn config(tls: &Tls) -> Result<Arc<ClientConfig>> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Verifier::new(tls, &provider)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Tls(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match &tls.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let (chain, key) = own(identity)?;
            builder.with_client_auth_cert(chain, key).map_err(|error| {
                let (certificate, key) = (identity.certificate.display(), identity.key.display());
                Error::Tls(format!("{certificate} and {key} do not fit: {error}"))
            })?
        }
    };
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

#[derive(Debug)]
struct Verifier {
    check: Check,
    roots: RootCertStore,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    fn new(tls: &Tls, provider: &CryptoProvider) -> Result<Self> {
        let roots = match (tls.check, &tls.roots) {
            (Check::Nothing, _) => RootCertStore::empty(),
            (_, Roots::File(path)) => of_file(path)?,
            (_, Roots::System) => of_system()?,
        };
        Ok(Self {
            check: tls.check,
            roots,
            algorithms: provider.signature_verification_algorithms,
        })
    }
}

type Verified<T> = std::result::Result<T, rustls::Error>;

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Verified<ServerCertVerified> {
        if self.check != Check::Nothing {
            let parsed = ParsedCertificate::try_from(certificate)?;
            let algorithms = self.algorithms.all;
            let roots = &self.roots;
            verify_server_cert_signed_by_trust_anchor(&parsed, roots, chain, now, algorithms)?;
            if self.check == Check::Name {
                verify_server_name(&parsed, name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Verified<HandshakeSignatureValid> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Verified<HandshakeSignatureValid> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn of_file(path: &Path) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots
            .add(certificate)
            .map_err(|error| unreadable(path, error))?;
    }
    Ok(roots)
}

/// The store of the system; of what others put there, all that can be read.
fn of_system() -> Result<RootCertStore> {
    let places = openssl_probe::probe();
    let folders = places.cert_dir.iter().flat_map(fs::read_dir).flatten();
    let files = folders.flatten().map(|entry| entry.path());
    let mut roots = RootCertStore::empty();
    if let Some(path) = &places.cert_file {
        roots.add_parsable_certificates(certificates(path)?);
    }
    if roots.is_empty() {
        for path in files {
            roots.add_parsable_certificates(certificates(&path).unwrap_or_default());
        }
    }
    if roots.is_empty() {
        return Err(Error::Tls(
            "this system has no store of certificates: install ca-certificates, or give \
             sslrootcert a file"
                .to_owned(),
        ));
    }
    Ok(roots)
}

fn own(identity: &Identity) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    let path = &identity.key;
    let mut file = File::open(path).map_err(|error| unreadable(path, error))?;
    let about = file.metadata().map_err(|error| unreadable(path, error))?;
    // As libpq holds it: root may let a group read.
    let others = if about.uid() == 0 { 0o037 } else { 0o077 };
    if !about.is_file() || about.mode() & others != 0 {
        return Err(Error::Tls(format!(
            "chmod 600 is needed, for others can read the key {}",
            path.display()
        )));
    }
    let mut text = Zeroizing::new(Vec::with_capacity(
        about.len().min(MOST_KEY_BYTES) as usize + 1,
    ));
    file.by_ref()
        .take(MOST_KEY_BYTES)
        .read_to_end(&mut text)
        .map_err(|error| unreadable(path, error))?;
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|error| {
        Error::Tls(format!(
            "{} is not a key in PEM without a passphrase: {error}",
            path.display()
        ))
    })?;
    Ok((certificates(&identity.certificate)?, key))
}

/// All certificates of a PEM file, at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let bytes = fs::read(path).map_err(|error| unreadable(path, error))?;
    let certificates = CertificateDer::pem_slice_iter(&bytes)
        .collect::<std::result::Result<Vec<_>, _>>()
        .map_err(|error| unreadable(path, error))?;
    if certificates.is_empty() {
        return Err(unreadable(path, "it holds no certificate in PEM"));
    }
    Ok(certificates)
}

fn unreadable(path: &Path, error: impl std::fmt::Display) -> Error {
    Error::Tls(format!("{} cannot be read: {error}", path.display()))
}
