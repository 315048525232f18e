//! A self-signed certificate for loopback.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::PrivateKeyDer;

/// A configuration with a fresh certificate, and the certificate in PEM.
pub(super) fn fresh() -> (Arc<ServerConfig>, String) {
    let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate is made");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key is read");
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has the usual versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("the key fits the certificate");
    (Arc::new(config), made.cert.pem())
}
