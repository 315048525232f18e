//! The one HTTP client: TLS, proxies, and what it never does.
//!
//! Owns how outbound HTTP connections are made. It follows no redirect by itself, reads no
//! environment, and inflates nothing. It is built on first use: a host without remote servers never
//! loads a certificate. Trust is in [`tls`]; connections that are no HTTP for long are made in
//! [`dial`], by the same rules; what a name may lead to is asked in [`guard`].

pub(crate) mod dial;
pub(crate) mod guard;
pub(crate) mod tls;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hyper_util::client::proxy::matcher::Matcher;
use reqwest::dns::Resolve;
use toolway_types::{RemoteSpec, UrlRules, could_be_this_machine, limits};
use url::{Host, Url};

use crate::error::OpenError;
use guard::AddressGuard;

/// Never through a proxy: it could not reach these hosts.
const LOOPBACK: &str = "localhost,127.0.0.0/8,::1";

/// A connection on which nothing arrives is probed after this long; after three unanswered probes,
/// [`PROBE`] apart, it is closed (REL-12).
const IDLE: Duration = Duration::from_secs(30);

/// See [`IDLE`].
const PROBE: Duration = Duration::from_secs(10);

/// The most headers of an answer, and their size where the protocol counts it (SEC-30).
const MAX_HEADERS: usize = limits::message::HEADER_COUNT;
const MAX_HEADER_LIST: u32 = limits::message::HEADERS;

/// How to reach remote servers. Every value is explicit.
#[derive(Clone, PartialEq)]
pub struct HttpClientOptions {
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
    /// The `User-Agent`.
    pub user_agent: String,
}

impl Default for HttpClientOptions {
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
impl fmt::Debug for HttpClientOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HttpClientOptions")
            .field("extra_ca", &self.extra_ca)
            .field("client_certificate", &self.client_certificate)
            .field("no_proxy", &self.no_proxy)
            .finish_non_exhaustive()
    }
}

/// A cheap handle on the shared client.
#[derive(Clone, Default)]
pub struct HttpClient(Arc<HttpClientInner>);

#[derive(Default)]
struct HttpClientInner {
    options: HttpClientOptions,
    // Several, because loading the system's certificates takes milliseconds and can fail, and a
    // loopback server needs none.
    loopback: OnceLock<Result<reqwest::Client, String>>,
    plain: OnceLock<Result<reqwest::Client, String>>,
    secure: OnceLock<Result<reqwest::Client, String>>,
    // Shared with every client made from this one.
    tls: Arc<OnceLock<Result<Arc<rustls::ClientConfig>, String>>>,
    proxies: OnceLock<Arc<Matcher>>,
    resolver: Option<Arc<dyn Resolve>>,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("HttpClient")
            .field(&self.0.options)
            .finish()
    }
}

impl HttpClient {
    /// A client that will be built when it is first needed.
    pub fn new(options: HttpClientOptions) -> Self {
        Self(Arc::new(HttpClientInner {
            options,
            ..HttpClientInner::default()
        }))
    }

    /// A client by the same rules that finds the addresses of names, and of its proxies' names,
    /// with a resolver of the caller's, so that it connects to nothing the resolver withholds.
    /// Addresses written as numbers never reach a resolver.
    #[must_use]
    pub fn resolving(&self, resolver: Arc<dyn Resolve>) -> Self {
        Self(Arc::new(HttpClientInner {
            options: self.0.options.clone(),
            tls: Arc::clone(&self.0.tls),
            resolver: Some(resolver),
            ..HttpClientInner::default()
        }))
    }

    /// The hosts of the proxies, in lower case.
    pub fn proxy_hosts(&self) -> Vec<String> {
        let options = &self.0.options;
        [&options.http_proxy, &options.https_proxy]
            .into_iter()
            .flatten()
            .filter_map(|proxy| {
                let proxy = Url::parse(proxy).ok().filter(Url::has_host);
                Some(proxy?.host_str()?.to_ascii_lowercase())
            })
            .collect()
    }

    /// The client for a URL.
    pub fn for_url(&self, url: &Url) -> Result<reqwest::Client, OpenError> {
        let inner = &self.0;
        let built = if url.scheme() == "https" {
            inner.secure.get_or_init(|| {
                let mut tls = rustls::ClientConfig::clone(&*inner.tls()?);
                tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
                inner.build(tls, ConnectionReuse::Pooled)
            })
        } else if url.host().is_some_and(|host| could_be_this_machine(&host)) {
            let make = || inner.build(tls::trust_none()?, ConnectionReuse::Never);
            inner.loopback.get_or_init(make)
        } else {
            let make = || inner.build(tls::trust_none()?, ConnectionReuse::Pooled);
            inner.plain.get_or_init(make)
        };
        built.clone().map_err(OpenError::Client)
    }

    /// The client for requests of a server to one URL, whose name leads to no address that
    /// policy denies there. It shares no connection with others then: one that is open is not
    /// asked about again. A proxy looks names up itself.
    pub(crate) fn guarded(
        &self,
        url: &Url,
        rules: &Arc<UrlRules>,
    ) -> Result<reqwest::Client, OpenError> {
        if !self.guards(url, rules) {
            return self.for_url(url);
        }
        let guard = AddressGuard::of(url, rules).looking_up(self.0.resolver.clone());
        self.resolving(Arc::new(guard)).for_url(url)
    }

    /// Whether policy restricts the addresses of the name in a URL.
    pub(crate) fn guards(&self, url: &Url, rules: &UrlRules) -> bool {
        matches!(url.host(), Some(Host::Domain(_)))
            && rules.speak_of_addresses()
            && self.proxy_for(url).is_none()
    }

    /// The proxy on the way to a URL, as host and port.
    pub fn proxy_for(&self, url: &Url) -> Option<String> {
        let uri = url.as_str().parse().ok()?;
        let proxy = self.0.proxies().intercept(&uri)?;
        // Without user info.
        let host = proxy.uri().host()?;
        Some(match proxy.uri().port_u16() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        })
    }

    /// What makes connections that leave HTTP behind, such as a WebSocket.
    /// `url` is the one of the request that begins it.
    pub(crate) fn dialer(&self, spec: &RemoteSpec, url: &Url) -> Result<dial::Dialer, OpenError> {
        let proxy = self.0.options.http_proxy.as_deref().unwrap_or_default();
        let tls = if url.scheme() == "https" || proxy.starts_with("https:") {
            self.0.tls()
        } else {
            tls::trust_none().map(Arc::new)
        };
        Ok(dial::Dialer {
            tls: tls.map_err(OpenError::Client)?,
            proxies: self.0.proxies(),
            connect_timeout: self.0.options.connect_timeout,
            user_agent: self.0.options.user_agent.clone(),
            guard: AddressGuard::of(&spec.url, &spec.rules),
        })
    }
}

impl HttpClientInner {
    fn build(
        &self,
        tls: rustls::ClientConfig,
        reuse: ConnectionReuse,
    ) -> Result<reqwest::Client, String> {
        let options = &self.options;
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .no_proxy()
            // A lost answer must not make a call run twice.
            .retry(reqwest::retry::never())
            .connect_timeout(options.connect_timeout)
            // Small messages of ours would wait for each other.
            .tcp_nodelay(true)
            .tcp_keepalive(IDLE)
            .tcp_keepalive_interval(PROBE)
            .tcp_keepalive_retries(3)
            .http1_max_headers(MAX_HEADERS)
            .http2_max_header_list_size(MAX_HEADER_LIST)
            .http2_keep_alive_interval(IDLE)
            .http2_keep_alive_timeout(PROBE)
            .user_agent(&options.user_agent);
        if reuse == ConnectionReuse::Never {
            builder = builder.pool_max_idle_per_host(0);
        }
        if let Some(resolver) = &self.resolver {
            builder = builder.dns_resolver(Arc::clone(resolver));
        }
        let bypass = bypass(options);
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

    /// The TLS configuration, loaded once.
    fn tls(&self) -> Result<Arc<rustls::ClientConfig>, String> {
        self.tls
            .get_or_init(|| tls::trusting(&self.options).map(Arc::new))
            .clone()
    }

    fn proxies(&self) -> Arc<Matcher> {
        let make = || {
            let text = |option: &Option<String>| option.clone().unwrap_or_default();
            let matcher = Matcher::builder()
                .http(text(&self.options.http_proxy))
                .https(text(&self.options.https_proxy))
                .no(bypass(&self.options))
                .build();
            Arc::new(matcher)
        };
        Arc::clone(self.proxies.get_or_init(make))
    }
}

/// Scheme, host and port of a URL, without user info, path and query.
pub(crate) fn place(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

fn bypass(options: &HttpClientOptions) -> String {
    match &options.no_proxy {
        Some(hosts) => format!("{hosts},{LOOPBACK}"),
        None => LOOPBACK.to_owned(),
    }
}

/// Whether a connection serves several requests, one after the other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConnectionReuse {
    /// It saves a handshake each time.
    Pooled,
    /// A new one costs next to nothing on this machine, and many small servers write an answer's
    /// head and body apart: from the second request on, the system holds the body back until we
    /// acknowledge the head, which takes it 40 ms.
    Never,
}
