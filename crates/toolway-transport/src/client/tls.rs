//! Trusted certificate authorities and client certificates.
//!
//! Owns certificates and keys, read from the files the options name, and what a failure says
//! about a certificate. The system's own authorities are always trusted; files add to them.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{AlertDescription, CertificateError};
use toolway_types::CertificateFault;

use super::HttpClientOptions;

type TlsBuilder = rustls::ConfigBuilder<rustls::ClientConfig, rustls::WantsVerifier>;

fn tls(provider: &Arc<rustls::crypto::CryptoProvider>) -> Result<TlsBuilder, String> {
    rustls::ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())
}

/// Trusts no certificate: used for `http:` only.
pub(super) fn trust_none() -> Result<rustls::ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let trust_none = rustls::RootCertStore::empty();
    Ok(tls(&provider)?
        .with_root_certificates(trust_none)
        .with_no_client_auth())
}

/// Trusts the system's authorities and those of the options.
pub(super) fn trusting(options: &HttpClientOptions) -> Result<rustls::ClientConfig, String> {
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

/// What an error says about a certificate, and its words for it; `None` when it is about something
/// else.
pub(crate) fn fault(error: &(dyn Error + 'static)) -> Option<(CertificateFault, String)> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return classify(error).map(|fault| (fault, error.to_string()));
        }
        // Its `source` is what comes after the error it wraps, not that error.
        cause = match error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
        {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    None
}

fn classify(error: &rustls::Error) -> Option<CertificateFault> {
    use AlertDescription as Alert;
    use CertificateError as Bad;
    match error {
        rustls::Error::InvalidCertificate(bad) => Some(match bad {
            // The second is what an authority of a trusted one's name, but not its key, leaves.
            Bad::UnknownIssuer | Bad::BadSignature => CertificateFault::Untrusted,
            Bad::Expired | Bad::ExpiredContext { .. } => CertificateFault::Expired,
            Bad::NotValidYet | Bad::NotValidYetContext { .. } => CertificateFault::NotYet,
            Bad::NotValidForName | Bad::NotValidForNameContext { .. } => {
                CertificateFault::OtherName
            }
            _ => CertificateFault::Unusable,
        }),
        rustls::Error::NoCertificatesPresented => Some(CertificateFault::Unusable),
        // Only a server that asked for a client certificate complains about one.
        rustls::Error::AlertReceived(
            Alert::CertificateRequired
            | Alert::NoCertificate
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA,
        ) => Some(CertificateFault::Ours),
        _ => None,
    }
}
