//! A certificate authority of our own, for servers and clients.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto};
use toolway_transport::OpenOptions;
use toolway_transport::client::{HttpClient, HttpClientOptions};

/// A test authority, and certificates of its own.
pub(crate) struct Authority {
    directory: TempDir,
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a certificate");
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("ca.pem"), certificate.pem()).expect("written");
        let certificate = certificate.der().clone();
        Self {
            directory,
            certificate,
            issuer: Issuer::new(params, key),
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Options that trust it.
    pub(crate) fn trusted(&self) -> OpenOptions {
        let options = HttpClientOptions {
            extra_ca: vec![self.file("ca.pem")],
            ..HttpClientOptions::default()
        };
        OpenOptions {
            client: HttpClient::new(options),
            ..OpenOptions::default()
        }
    }

    pub(crate) fn leaf(&self) -> (rcgen::Certificate, KeyPair) {
        self.sign(&["localhost", "127.0.0.1"], |_| ())
    }

    fn sign(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().expect("a key");
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("parameters");
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer);
        (certificate.expect("a certificate"), key)
    }

    /// A server whose certificate has run out.
    pub(crate) fn expired(&self) -> ServerConfig {
        let expire = |params: &mut CertificateParams| {
            params.not_before = rcgen::date_time_ymd(2001, 1, 1);
            params.not_after = rcgen::date_time_ymd(2002, 1, 1);
        };
        self.serving(false, self.sign(&["127.0.0.1"], expire))
    }

    /// A server with the certificate of another host.
    pub(crate) fn misnamed(&self) -> ServerConfig {
        self.serving(false, self.sign(&["elsewhere.invalid"], |_| ()))
    }

    pub(crate) fn server(&self, client_must_show: bool) -> ServerConfig {
        self.serving(client_must_show, self.leaf())
    }

    fn serving(
        &self,
        client_must_show: bool,
        (certificate, key): (rcgen::Certificate, KeyPair),
    ) -> ServerConfig {
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("versions");
        let builder = if client_must_show {
            let mut roots = RootCertStore::empty();
            roots.add(self.certificate.clone()).expect("a root");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
        } else {
            builder.with_no_client_auth()
        };
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        builder
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("a configuration")
    }
}
