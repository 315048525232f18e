//! Credentials: what a request says about who sends it, and what happens when that is refused.
//!
//! Owns the interface between a transport and a source of credentials (a headers helper, a login),
//! how often a refused request is sent again, and that nothing of it leaves the origin it is meant
//! for or takes the place of what belongs to the protocol.
//! Does not own: where credentials come from. That is `toolway-auth`'s and the host's.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, Method, StatusCode};
use tokio::time::timeout;
use url::{Origin, Url};

/// Names that belong to the protocol or to HTTP itself and cannot be set.
const PROTECTED_NAMES: [&str; 15] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The same, by how they begin.
const PROTECTED_PREFIXES: [&str; 2] = ["mcp-", "sec-websocket-"];

/// A source of credentials for one server.
pub trait Credentials: Send + Sync + fmt::Debug {
    /// What a request carries now. Beats configured headers of the same name.
    fn present<'a>(
        &'a self,
        request: CredentialRequest<'a>,
    ) -> BoxFuture<'a, Result<CredentialHeaders, CredentialsError>>;

    /// The server answered 401 or 403: whether to present something else. Asked once for each
    /// request, and once more when the first answer was [`RetryDecision::WithNonce`].
    fn refused<'a>(
        &'a self,
        presented: &'a CredentialHeaders,
        refusal: CredentialRefusal<'a>,
    ) -> BoxFuture<'a, RetryDecision>;

    /// The server took a request that was sent again with something else to present.
    fn taken(&self) {}

    /// The headers of every other answer: a server may say there what its next request must
    /// carry.
    fn heard(&self, _request: CredentialRequest<'_>, _headers: &HeaderMap) {}
}

/// The request that credentials are wanted for.
#[derive(Debug, Clone, Copy)]
pub struct CredentialRequest<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Where it goes: an `http` or `https` URL, for a `ws` server as well.
    pub url: &'a Url,
}

/// What a request carries. Its `Debug` shows names only.
#[derive(Clone, Default)]
pub struct CredentialHeaders(HeaderMap);

impl CredentialHeaders {
    /// Headers, without those that belong to the protocol.
    pub fn new(headers: HeaderMap) -> Self {
        let mut kept = HeaderMap::with_capacity(headers.len());
        let mut last = None;
        for (name, mut value) in headers {
            // A repeated name is given once.
            last = name.or(last);
            let Some(name) = &last else { continue };
            if is_protected(name.as_str()) {
                continue;
            }
            value.set_sensitive(true);
            kept.append(name.clone(), value);
        }
        Self(kept)
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.0
    }

    /// Puts them in the place of others of the same names.
    pub(crate) fn put(&self, headers: &mut HeaderMap) {
        for name in self.0.keys() {
            headers.remove(name);
        }
        for (name, value) in &self.0 {
            headers.append(name.clone(), value.clone());
        }
    }
}

impl fmt::Debug for CredentialHeaders {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.0.keys()).finish()
    }
}

/// A server's refusal of what a request carried.
#[derive(Debug, Clone, Copy)]
pub struct CredentialRefusal<'a> {
    /// The request.
    pub request: CredentialRequest<'a>,
    /// 401 or 403.
    pub status: u16,
    /// The headers of the answer.
    pub headers: &'a HeaderMap,
}

impl CredentialRefusal<'_> {
    /// The challenges of the answer, as one list.
    pub fn challenges(&self) -> Option<String> {
        challenges(self.headers)
    }
}

/// All challenges of an answer. Several lines of this header are one list; a stray byte in one
/// must not lose the rest.
pub(crate) fn challenges(headers: &HeaderMap) -> Option<String> {
    let lines: Vec<_> = headers
        .get_all(WWW_AUTHENTICATE)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}

/// Whether a refused request is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    /// There is something else to present.
    Again,
    /// The same credentials, with the nonce that the answer brought (RFC 9449, 9).
    WithNonce,
    /// The refusal stands.
    GiveUp,
}

/// Why there is nothing to present. The message says what failed and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialsError {
    /// A user has to log in.
    #[error("{0}")]
    Login(String),
    /// They cannot be had now; later they may.
    #[error("{0}")]
    Unavailable(String),
    /// They cannot be had until the configuration changes.
    #[error("{0}")]
    Broken(String),
}

/// Whether a header's name belongs to the protocol or to HTTP itself.
pub fn is_protected(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    PROTECTED_NAMES.contains(&name.as_str())
        || PROTECTED_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// The credentials of one channel, for its origin only.
#[derive(Debug, Clone)]
pub(crate) struct ChannelCredentials {
    credentials: Option<Arc<dyn Credentials>>,
    origin: Origin,
    patience: Duration,
}

/// How often one request was sent again.
#[derive(Debug, Default)]
pub(crate) struct RetryState {
    again: bool,
    with_nonce: bool,
}

impl ChannelCredentials {
    pub(crate) fn new(
        credentials: Option<Arc<dyn Credentials>>,
        url: &Url,
        patience: Duration,
    ) -> Self {
        Self {
            credentials,
            origin: url.origin(),
            patience,
        }
    }

    fn at(&self, url: &Url) -> Option<&dyn Credentials> {
        self.credentials
            .as_deref()
            .filter(|_| url.origin() == self.origin)
    }

    /// What a request carries.
    pub(crate) async fn present(
        &self,
        request: CredentialRequest<'_>,
    ) -> Result<CredentialHeaders, CredentialsError> {
        let Some(credentials) = self.at(request.url) else {
            return Ok(CredentialHeaders::default());
        };
        timeout(self.patience, credentials.present(request))
            .await
            .unwrap_or_else(|_| {
                let message = "the credentials for the server were not there in time";
                Err(CredentialsError::Unavailable(message.to_owned()))
            })
    }

    /// Looks at an answer: whether its request is to be sent again.
    pub(crate) async fn is_again(
        &self,
        tries: &mut RetryState,
        presented: &CredentialHeaders,
        request: CredentialRequest<'_>,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> bool {
        let Some(credentials) = self.at(request.url) else {
            return false;
        };
        let is_refusal = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if !is_refusal || tries.again {
            if tries.again && status.is_success() {
                credentials.taken();
            }
            credentials.heard(request, headers);
            return false;
        }
        let refusal = CredentialRefusal {
            request,
            status: status.as_u16(),
            headers,
        };
        let asking = timeout(self.patience, credentials.refused(presented, refusal));
        match asking.await.unwrap_or(RetryDecision::GiveUp) {
            RetryDecision::Again => !std::mem::replace(&mut tries.again, true),
            RetryDecision::WithNonce => !std::mem::replace(&mut tries.with_nonce, true),
            RetryDecision::GiveUp => false,
        }
    }
}
