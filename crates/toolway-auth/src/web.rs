//! Every request that OAuth makes: where it may go, and how much may come back.
//!
//! Owns the rules of SEC-17: `https` only (or `http` that stays on this machine or in this
//! network), no address that the server in question could not have meant, each redirect checked
//! like a first address, 1 MiB, 10 s (`web/deadline.rs`). It runs on the shared client, so proxies
//! and trusted certificates are those of the servers. Which addresses count as what is in
//! [`address`].
//! Does not own: what is asked for, and what an answer means beyond being one JSON object.

pub mod address;
mod deadline;
mod filter;
mod reply;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, header};
use toolway_transport::client::HttpClient;
use toolway_types::text::cut;
use toolway_types::{UrlRules, could_be_this_machine, limits};
use url::{Host, Url, form_urlencoded};

use address::{AddressClass, classify};
pub use deadline::{DEADLINE, SlowListener};
use filter::{FilteringResolver, NoAllowedAddress, PolicyFilter};
pub use filter::{NameLookup, SystemLookup};
pub use reply::WebReply;

/// The largest answer.
pub const MAX_BODY: usize = limits::login::BODY;

/// The most redirects that are followed for a document.
pub const MAX_REDIRECTS: usize = limits::login::REDIRECTS;

/// The longest address that is asked or opened.
pub const MAX_URL: usize = limits::login::URL;

/// Which addresses may be reached. Link-local ones, where clouds keep their metadata, never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkReach {
    /// Only the public internet.
    Public,
    /// Private networks too: the MCP server is in one.
    Private,
    /// This machine too: the MCP server is on it.
    Loopback,
}

impl NetworkReach {
    /// What a server may send us to: no further in than it is itself. Every address of its name
    /// must be that far in, so a name with a public address gives no way in.
    pub async fn of(server: &Url) -> Self {
        Self::by(server, &SystemLookup).await
    }

    /// The same with a lookup of the caller's.
    pub async fn by(server: &Url, lookup: &dyn NameLookup) -> Self {
        let addresses = match server.host() {
            Some(Host::Ipv4(address)) => vec![address.into()],
            Some(Host::Ipv6(address)) => vec![address.into()],
            Some(Host::Domain(name)) => lookup.lookup(name).await.unwrap_or_default(),
            None => Vec::new(),
        };
        if addresses.is_empty() {
            return NetworkReach::Public;
        }
        let every = |classes: &[AddressClass]| {
            addresses
                .iter()
                .all(|address| classes.contains(&classify(*address)))
        };
        if every(&[AddressClass::Loopback]) {
            NetworkReach::Loopback
        } else if every(&[AddressClass::Loopback, AddressClass::Private]) {
            NetworkReach::Private
        } else {
            NetworkReach::Public
        }
    }

    fn admits(self, class: AddressClass, secure: bool) -> Result<(), &'static str> {
        match class {
            AddressClass::Never => Err("this address is never asked"),
            AddressClass::Loopback if self != NetworkReach::Loopback => {
                Err("the address is on this machine")
            }
            AddressClass::Private if self == NetworkReach::Public => {
                Err("the address is in a private network")
            }
            AddressClass::Public if !secure => Err("only `https` leaves this network"),
            AddressClass::Loopback | AddressClass::Private | AddressClass::Public => Ok(()),
        }
    }
}

/// Why a request failed. No message holds what was sent or what came back.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The address is one that is not asked.
    #[error("{url} is not asked: {why}")]
    Forbidden {
        /// The address without its query.
        url: String,
        /// The rule.
        why: String,
    },
    /// No connection came about, so nothing was sent.
    #[error("{url} cannot be reached: {why}")]
    Unreachable {
        /// The address without its query.
        url: String,
        /// The innermost reason.
        why: String,
    },
    /// The request was sent and the answer never came, or only a part of it.
    #[error("the connection to {url} was lost before its answer was complete")]
    Lost {
        /// The address without its query.
        url: String,
    },
    /// The answer took too long. Whether the request was carried out is not known.
    #[error("{url} did not answer within {} s", DEADLINE.as_secs())]
    TimedOut {
        /// The address without its query.
        url: String,
    },
    /// The answer is larger than [`MAX_BODY`].
    #[error("the answer of {url} is larger than {} KiB", MAX_BODY / 1024)]
    TooLarge {
        /// The address without its query.
        url: String,
    },
    /// A redirect where none is followed, or one too many.
    #[error("{url} redirects elsewhere, which is not followed")]
    Redirected {
        /// The address without its query.
        url: String,
    },
    /// The answer is not the JSON object it should be.
    #[error("the answer of {url} (HTTP {status}) is not a JSON object: {why}")]
    NotJson {
        /// The address without its query.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What it is instead.
        why: String,
    },
    /// An answer with a status that says nothing about what was asked for.
    #[error("{url} answered with HTTP {status}")]
    Status {
        /// The address without its query.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// The client could not be built, e.g. for a certificate that cannot be read.
    #[error("{0}")]
    Client(String),
}

/// An address for people: no query, no fragment, no login.
pub fn shown(url: &Url) -> String {
    let mut bare = url.clone();
    bare.set_query(None);
    bare.set_fragment(None);
    // Neither fails for an address with a host, and others have no login.
    let _ = bare.set_username("");
    let _ = bare.set_password(None);
    cut(bare.as_str(), 200).into_owned()
}

/// Makes the HTTP requests of OAuth.
#[derive(Clone)]
pub struct WebClient {
    client: HttpClient,
    lookup: Arc<dyn NameLookup>,
    reach: NetworkReach,
    /// See [`Self::pinned`].
    pinned: Option<Arc<str>>,
    secure: HttpClient,
    plain: HttpClient,
    /// What policy denies to the server in question.
    rules: Arc<UrlRules>,
    /// Notified of slow answers.
    tell: Option<SlowListener>,
}

impl fmt::Debug for WebClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("WebClient");
        shown.field("reach", &self.reach).finish_non_exhaustive()
    }
}

impl WebClient {
    /// Requests to addresses that a server named.
    pub fn new(client: HttpClient, reach: NetworkReach) -> Self {
        Self::resolving(client, reach, Arc::new(SystemLookup))
    }

    /// Requests to addresses that the user or the administrator wrote: wherever they lead but
    /// link-local, and `http` still only on this machine or in this network.
    pub fn trusted(client: HttpClient) -> Self {
        Self::new(client, NetworkReach::Loopback)
    }

    /// The same with a lookup of the caller's.
    pub fn resolving(client: HttpClient, reach: NetworkReach, lookup: Arc<dyn NameLookup>) -> Self {
        Self::build(client, reach, lookup, None)
    }

    fn build(
        client: HttpClient,
        reach: NetworkReach,
        lookup: Arc<dyn NameLookup>,
        pinned: Option<Arc<str>>,
    ) -> Self {
        let mut web = Self {
            reach,
            pinned,
            secure: client.clone(),
            plain: client.clone(),
            rules: Arc::default(),
            tell: None,
            client,
            lookup,
        };
        web.secure = web.filtered(true, None);
        web.plain = web.filtered(false, None);
        web
    }

    /// A client whose names lead only where they may.
    fn filtered(&self, secure: bool, denied: Option<PolicyFilter>) -> HttpClient {
        self.client.resolving(Arc::new(FilteringResolver {
            reach: self.reach,
            secure,
            pinned: self.pinned.clone(),
            proxies: self.client.proxy_hosts().into(),
            lookup: Arc::clone(&self.lookup),
            denied,
        }))
    }

    /// The client for one address. Where policy denies addresses, it has no connection that was
    /// made for another one: a rule may speak of a path.
    fn client_for(&self, url: &Url) -> HttpClient {
        let secure = url.scheme() == "https";
        if self.rules.speak_of_addresses() {
            let (url, rules) = (url.clone(), Arc::clone(&self.rules));
            return self.filtered(secure, Some(PolicyFilter { url, rules }));
        }
        if secure { &self.secure } else { &self.plain }.clone()
    }

    /// The same, but nothing is asked that policy denies: a host that may not be connected to gets
    /// no credentials either. Its allow lists are about servers, not about logins.
    #[must_use]
    pub fn within(mut self, rules: &Arc<UrlRules>) -> Self {
        self.rules = Arc::clone(rules);
        self
    }

    /// The same for addresses that the user or the administrator wrote.
    #[must_use]
    pub fn trusting(&self) -> Self {
        let lookup = Arc::clone(&self.lookup);
        let web = Self::resolving(self.client.clone(), NetworkReach::Loopback, lookup);
        web.within(&self.rules).telling(self.tell.clone())
    }

    /// The same, but the server's own name must lead to this network or this machine where its
    /// reach was taken from that. Otherwise a name could resolve to an internal address while the
    /// reach is determined and to an external one afterwards, and that host could send us to
    /// internal addresses.
    #[must_use]
    pub fn pinned(&self, server: &Url) -> Self {
        let host = match server.host() {
            Some(Host::Domain(name)) if self.reach != NetworkReach::Public => Some(Arc::from(name)),
            _ => None,
        };
        let lookup = Arc::clone(&self.lookup);
        let web = Self::build(self.client.clone(), self.reach, lookup, host);
        web.within(&self.rules).telling(self.tell.clone())
    }

    /// What may be reached.
    pub fn reach(&self) -> NetworkReach {
        self.reach
    }

    /// Whether an address may be asked, as far as it shows without looking up its name.
    pub fn check(&self, url: &Url) -> Result<(), WebError> {
        let forbidden = |why: &str| WebError::Forbidden {
            url: shown(url),
            why: why.to_owned(),
        };
        let secure = match url.scheme() {
            "https" => true,
            "http" => false,
            other => return Err(forbidden(&format!("`{}:` is not `https:`", cut(other, 20)))),
        };
        self.rules
            .denies(url)
            .map_err(|why| forbidden(&format!("it is {why}")))?;
        if url.as_str().len() > MAX_URL {
            return Err(forbidden("the address is too long"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(forbidden("the address holds a login"));
        }
        let class = match url.host() {
            Some(Host::Ipv4(address)) => classify(address.into()),
            Some(Host::Ipv6(address)) => classify(address.into()),
            Some(host @ Host::Domain(_)) if could_be_this_machine(&host) => AddressClass::Loopback,
            // Looked up when it is connected to. A proxy looks names up itself, so a plain
            // request for a name could leave this network unseen.
            Some(Host::Domain(_)) => {
                if !secure && self.plain.proxy_for(url).is_some() {
                    return Err(forbidden("only `https` leaves this network"));
                }
                return Ok(());
            }
            None => return Err(forbidden("the address has no host")),
        };
        self.reach.admits(class, secure).map_err(forbidden)
    }

    /// Gets a document. Redirects are followed, each checked; no credential is ever sent.
    pub async fn get(&self, url: &Url) -> Result<WebReply, WebError> {
        let following = async {
            let mut url = url.clone();
            for _ in 0..=MAX_REDIRECTS {
                let reply = self
                    .send(Method::GET, &url, HeaderMap::new(), Bytes::new())
                    .await?;
                match reply.redirect(&url) {
                    None => return Ok(reply),
                    Some(next) if url.scheme() == "https" && next.scheme() != "https" => {
                        return Err(WebError::Forbidden {
                            url: shown(&next),
                            why: "a redirect leads away from `https`".to_owned(),
                        });
                    }
                    Some(next) => url = next,
                }
            }
            Err(WebError::Redirected { url: shown(&url) })
        };
        self.in_time(url, following).await
    }

    /// Gets a document with credentials. Redirects are not followed, because the credentials must
    /// not leave the address they are meant for.
    pub async fn get_with(&self, url: &Url, headers: HeaderMap) -> Result<WebReply, WebError> {
        self.send_once(Method::GET, url, headers, Bytes::new())
            .await
    }

    /// Posts a form. Redirects are not followed.
    pub async fn post_form(
        &self,
        url: &Url,
        form: &[(&str, &str)],
        mut headers: HeaderMap,
    ) -> Result<WebReply, WebError> {
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(header::CONTENT_TYPE, kind);
        self.send_once(Method::POST, url, headers, body.into())
            .await
    }

    /// Posts a JSON document. Redirects are not followed.
    pub async fn post_json(
        &self,
        url: &Url,
        body: &serde_json::Value,
        mut headers: HeaderMap,
    ) -> Result<WebReply, WebError> {
        let kind = HeaderValue::from_static("application/json");
        headers.insert(header::CONTENT_TYPE, kind);
        self.send_once(Method::POST, url, headers, body.to_string().into())
            .await
    }

    async fn send_once(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<WebReply, WebError> {
        let sending = async {
            let reply = self.send(method, url, headers, body).await?;
            if (300..400).contains(&reply.status) {
                return Err(WebError::Redirected { url: shown(url) });
            }
            Ok(reply)
        };
        self.in_time(url, sending).await
    }

    async fn send(
        &self,
        method: Method,
        url: &Url,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<WebReply, WebError> {
        self.check(url)?;
        let client = self
            .client_for(url)
            .for_url(url)
            .map_err(|error| WebError::Client(error.to_string()))?;
        headers
            .entry(header::ACCEPT)
            .or_insert(HeaderValue::from_static("application/json"));
        let request = client
            .request(method, url.clone())
            .headers(headers)
            .body(body);
        let mut answer = request.send().await.map_err(|error| fault(url, &error))?;
        if answer
            .content_length()
            .is_some_and(|length| length > MAX_BODY as u64)
        {
            return Err(WebError::TooLarge { url: shown(url) });
        }
        let mut body = BytesMut::new();
        while let Some(chunk) = answer
            .chunk()
            .await
            .map_err(|_| WebError::Lost { url: shown(url) })?
        {
            if body.len() + chunk.len() > MAX_BODY {
                return Err(WebError::TooLarge { url: shown(url) });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(WebReply {
            status: answer.status().as_u16(),
            headers: std::mem::take(answer.headers_mut()),
            body: body.freeze(),
            url: url.clone(),
        })
    }
}

/// What a failed request was, by the innermost of its causes.
fn fault(url: &Url, error: &reqwest::Error) -> WebError {
    let url = shown(url);
    let mut cause: &(dyn Error + 'static) = error;
    loop {
        if let Some(withheld) = cause.downcast_ref::<NoAllowedAddress>() {
            let why = withheld.0.clone();
            return WebError::Forbidden { url, why };
        }
        match cause.source() {
            Some(next) => cause = next,
            None => break,
        }
    }
    if error.is_connect() {
        let why = cause.to_string();
        WebError::Unreachable { url, why }
    } else if error.is_timeout() {
        WebError::TimedOut { url }
    } else {
        WebError::Lost { url }
    }
}
