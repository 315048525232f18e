//! The one HTTP client: TLS, proxies, and what it never does.
//!
//! Owns how outbound HTTP connections are made. It follows no redirect by itself, reads no
//! environment, and inflates nothing. It is built on first use: a host without remote servers
//! never loads a certificate.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use url::Url;

use crate::error::OpenError;

/// Never through a proxy: it could not reach them, and what runs on this machine stays on it.
const LOOPBACK: &str = "localhost,127.0.0.0/8,::1";

/// How to reach remote servers. Every value is explicit.
#[derive(Clone)]
pub struct ClientOptions {
    /// PEM files of certificate authorities to trust beside the system's.
    pub extra_ca: Vec<PathBuf>,
    /// A PEM file with our own certificate chain.
    pub client_certificate: Option<PathBuf>,
    /// A PEM file with the key of that certificate; the certificate's own file when absent.
    pub client_key: Option<PathBuf>,
    /// The proxy for `http:` URLs.
    pub http_proxy: Option<String>,
    /// The proxy for `https:` URLs.
    pub https_proxy: Option<String>,
    /// Hosts that are reached without a proxy, comma separated.
    pub no_proxy: Option<String>,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// What we call ourselves.
    pub user_agent: String,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            extra_ca: Vec::new(),
            client_certificate: None,
            client_key: None,
            http_proxy: None,
            https_proxy: None,
            no_proxy: None,
            connect_timeout: Duration::from_secs(30),
            user_agent: concat!("toolway/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

/// A proxy's URL may hold a password.
impl fmt::Debug for ClientOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ClientOptions")
            .field("extra_ca", &self.extra_ca)
            .field("client_certificate", &self.client_certificate)
            .field("no_proxy", &self.no_proxy)
            .finish_non_exhaustive()
    }
}

/// A cheap handle on the shared client.
#[derive(Clone, Default)]
pub struct Client(Arc<Inner>);

#[derive(Default)]
struct Inner {
    options: ClientOptions,
    // Two of them, because loading the system's certificates takes milliseconds and can fail,
    // and a loopback server needs none.
    plain: OnceLock<Result<reqwest::Client, String>>,
    secure: OnceLock<Result<reqwest::Client, String>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Client")
            .field(&self.0.options)
            .finish()
    }
}

impl Client {
    /// A client that will be built when it is first needed.
    pub fn new(options: ClientOptions) -> Self {
        Self(Arc::new(Inner {
            options,
            ..Inner::default()
        }))
    }

    /// The client for a URL.
    pub fn for_url(&self, url: &Url) -> Result<reqwest::Client, OpenError> {
        let options = &self.0.options;
        let built = if url.scheme() == "https" {
            self.0
                .secure
                .get_or_init(|| build(options, secure(options)?))
        } else {
            self.0.plain.get_or_init(|| build(options, plain()?))
        };
        built.clone().map_err(OpenError::Client)
    }
}

fn build(options: &ClientOptions, tls: rustls::ClientConfig) -> Result<reqwest::Client, String> {
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .no_proxy()
        // A lost answer must not make a call run twice.
        .retry(reqwest::retry::never())
        .connect_timeout(options.connect_timeout)
        // Small loopback messages stall for 40 ms per call without it.
        .tcp_nodelay(true)
        .user_agent(&options.user_agent);
    let bypass = match &options.no_proxy {
        Some(hosts) => format!("{hosts},{LOOPBACK}"),
        None => LOOPBACK.to_owned(),
    };
    let proxies = [
        options.http_proxy.as_deref().map(reqwest::Proxy::http),
        options.https_proxy.as_deref().map(reqwest::Proxy::https),
    ];
    for proxy in proxies.into_iter().flatten() {
        // The library's message would repeat the URL, password and all.
        let proxy = proxy.map_err(|_| "a proxy's URL is not valid".to_owned())?;
        builder = builder.proxy(proxy.no_proxy(reqwest::NoProxy::from_string(&bypass)));
    }
    builder.build().map_err(|error| error.to_string())
}

type TlsBuilder = rustls::ConfigBuilder<rustls::ClientConfig, rustls::WantsVerifier>;

fn tls(provider: &Arc<rustls::crypto::CryptoProvider>) -> Result<TlsBuilder, String> {
    rustls::ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())
}

/// Trusts nobody: used for `http:` only.
fn plain() -> Result<rustls::ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let nobody = rustls::RootCertStore::empty();
    Ok(tls(&provider)?
        .with_root_certificates(nobody)
        .with_no_client_auth())
}

fn secure(options: &ClientOptions) -> Result<rustls::ClientConfig, String> {
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
    let mut config = match &options.client_certificate {
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
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
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
