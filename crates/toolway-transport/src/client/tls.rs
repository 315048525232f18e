//! Whom we trust over TLS, and who we say we are.
//!
//! Owns certificates and keys, read from the files the options name. The system's own authorities
//! are always trusted; files add to them.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::ClientOptions;

type TlsBuilder = rustls::ConfigBuilder<rustls::ClientConfig, rustls::WantsVerifier>;

fn tls(provider: &Arc<rustls::crypto::CryptoProvider>) -> Result<TlsBuilder, String> {
    rustls::ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())
}

/// Trusts nobody: used for `http:` only.
pub(super) fn nobody() -> Result<rustls::ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let nobody = rustls::RootCertStore::empty();
    Ok(tls(&provider)?
        .with_root_certificates(nobody)
        .with_no_client_auth())
}

/// Trusts the system's authorities and those of the options.
pub(super) fn trusting(options: &ClientOptions) -> Result<rustls::ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut extra = Vec::new();
    for path in &options.extra_ca {
        extra.extend(certificates(path)?);
    }
    let verifier =
        rustls_platform_verifier::Verifier::new_with_extra_roots(extra, Arc::clone(&provider))
            .map_err(|error| format!("cannot load the system's certificates: {error}"))?;
    let builder = tls(&provider)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let config = match &options.client_certificate {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let key_path = options.client_key.as_deref().unwrap_or(path);
            let key = PrivateKeyDer::from_pem_file(key_path).map_err(|error| {
                format!("cannot read the key in `{}`: {error}", key_path.display())
            })?;
            builder
                .with_client_auth_cert(certificates(path)?, key)
                .map_err(|error| format!("`{}` is not usable: {error}", path.display()))?
        }
    };
    Ok(config)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unreadable = |error: &dyn fmt::Display| {
        format!(
            "cannot read certificates from `{}`: {error}",
            path.display()
        )
    };
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| unreadable(&error))?;
    if certificates.is_empty() {
        return Err(unreadable(&"it holds none"));
    }
    Ok(certificates)
}
