//! What may come in at all: the checks in front of every route.
//!
//! A web page in the user's browser can send requests to any loopback port. Owns telling such
//! requests from a client's: the name it used for us (DNS rebinding, SEC-23), the page it came
//! from, and a content type that a page cannot send without asking first (SEC-24). No answer of
//! ours ever carries a CORS permission.

use axum::extract::{Request, State};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderName, ORIGIN};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The names by which a loopback server is rightly called.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Why a request is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GuardRejection {
    /// No `Host`, or more than one.
    #[error("exactly one Host header is needed")]
    HostCount,
    /// The target names a host of its own.
    #[error("the request target must be a path")]
    AbsoluteTarget,
    /// Another name than ours: a rebound DNS name.
    #[error("the Host header names another server")]
    Host,
    /// A page of another origin sent it.
    #[error("requests from this origin are not allowed")]
    Origin,
    /// The browser says that another site sent it.
    #[error("requests from other sites are not allowed")]
    CrossSite,
    /// Not JSON by its content type.
    #[error("the content type must be application/json")]
    ContentType,
}

impl GuardRejection {
    fn status(self) -> StatusCode {
        match self {
            Self::HostCount | Self::AbsoluteTarget => StatusCode::BAD_REQUEST,
            Self::Host | Self::Origin | Self::CrossSite => StatusCode::FORBIDDEN,
            Self::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        }
    }
}

/// The rules for one server. They have no switch to turn them off.
#[derive(Debug, Clone)]
pub struct RequestGuard {
    port: u16,
}

impl RequestGuard {
    /// The rules for a server on this port.
    pub fn new(port: u16) -> Self {
        Self { port }
    }

    fn admit(&self, request: &Request) -> Result<(), GuardRejection> {
        let headers = request.headers();
        if request.uri().authority().is_some() {
            return Err(GuardRejection::AbsoluteTarget);
        }
        let host = only(headers, &HOST).ok_or(GuardRejection::HostCount)?;
        if !self.is_ours(host) {
            return Err(GuardRejection::Host);
        }
        if headers.contains_key(ORIGIN) {
            let origin = only(headers, &ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
            if !origin.is_some_and(|host| self.is_ours(host)) {
                return Err(GuardRejection::Origin);
            }
        }
        if headers.contains_key(SEC_FETCH_SITE) {
            // `same-site` is another port of this machine: not ours either.
            match only(headers, &SEC_FETCH_SITE) {
                Some("same-origin" | "none") => {}
                _ => return Err(GuardRejection::CrossSite),
            }
        }
        if request.method() == Method::POST && !is_json(headers) {
            return Err(GuardRejection::ContentType);
        }
        Ok(())
    }

    fn is_ours(&self, host: &str) -> bool {
        let suffix = format!(":{}", self.port);
        let name = match host.strip_suffix(&suffix) {
            Some(name) => name,
            // Browsers and clients leave out the scheme's own port.
            None if self.port == 80 => host,
            None => return false,
        };
        NAMES.iter().any(|ours| ours.eq_ignore_ascii_case(name))
    }
}

/// The middleware: lets a request through to its route, or answers it.
pub async fn check(State(guard): State<RequestGuard>, request: Request, next: Next) -> Response {
    match guard.admit(&request) {
        Ok(()) => next.run(request).await,
        Err(rejection) => {
            tracing::debug!(%rejection, "a request was not let in");
            (rejection.status(), format!("{rejection}\n")).into_response()
        }
    }
}

/// The header's value when it stands exactly once and is text.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() {
        None
    } else {
        value.to_str().ok()
    }
}

/// `application/json`, with parameters or without, and not compressed.
fn is_json(headers: &HeaderMap) -> bool {
    let essence = only(headers, &CONTENT_TYPE).and_then(|value| value.split(';').next());
    !headers.contains_key(CONTENT_ENCODING)
        && essence.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}
