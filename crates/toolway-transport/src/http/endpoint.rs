//! One HTTP endpoint: how a request is made and what its answer is worth.
//!
//! Owns configured headers and their binding to the origin, redirects, and the classification of
//! failures. Knows nothing of streams or sessions.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use http::{HeaderMap, Method, StatusCode};
use reqwest::Response;
use tokio::time::timeout;
use toolway_types::RemoteSpec;
use url::Url;

use crate::error::{OpenError, SendFailure};
use crate::{Limits, OpenOptions};

/// How often a redirect within the origin is followed.
const MAX_REDIRECTS: usize = 3;

/// How much of an error's body is kept.
const ERROR_BODY: usize = 64 * 1024;

/// How long an error's body may take.
const ERROR_PATIENCE: Duration = Duration::from_secs(5);

/// Names that belong to the protocol or to HTTP itself, whatever a configuration says.
const PROTECTED: [&str; 14] = [
    "accept",
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

/// A server's endpoint.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    client: reqwest::Client,
    url: Url,
    configured: HeaderMap,
    pub(super) limits: Limits,
}

/// What kind of answer came.
pub(super) enum Answer {
    /// A JSON document.
    Json(Response),
    /// An event stream.
    Stream(Response),
    /// Accepted, nothing to read.
    Empty(HeaderMap),
}

impl Endpoint {
    pub(super) fn new(spec: &RemoteSpec, options: &OpenOptions) -> Result<Self, OpenError> {
        Ok(Self {
            client: options.client.for_url(&spec.url)?,
            url: spec.url.clone(),
            configured: configured(spec)?,
            limits: options.limits.clone(),
        })
    }

    /// Sends one request and looks at how the answer begins.
    pub(super) async fn send(
        &self,
        method: &Method,
        own: &HeaderMap,
        body: Option<&Bytes>,
    ) -> Result<Answer, SendFailure> {
        let begun = self.follow(method, own, body);
        // Some servers send nothing on a GET stream, not even its head, before they have
        // something to say.
        let response = if method == Method::GET {
            begun.await?
        } else {
            let too_late = |_| SendFailure::TimedOut;
            timeout(self.limits.first_byte, begun)
                .await
                .map_err(too_late)??
        };
        let status = response.status();
        if !status.is_success() {
            return Err(refused(response).await);
        }
        let content_type = response
            .headers()
            .get(CONTENT_TYPE)
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let essence = content_type
            .as_deref()
            .unwrap_or_default()
            .split(';')
            .next();
        match essence
            .map(|text| text.trim().to_ascii_lowercase())
            .as_deref()
        {
            Some("text/event-stream") => Ok(Answer::Stream(response)),
            _ if status == StatusCode::ACCEPTED || status == StatusCode::NO_CONTENT => {
                let headers = response.headers().clone();
                // Read to its end, so that the connection can be used again.
                let _ = bounded(response, ERROR_BODY, ERROR_PATIENCE).await;
                Ok(Answer::Empty(headers))
            }
            Some("application/json" | "") => Ok(Answer::Json(response)),
            Some(json) if json.ends_with("+json") => Ok(Answer::Json(response)),
            _ => Err(SendFailure::NotMcp {
                content_type: content_type.unwrap_or_default(),
            }),
        }
    }

    /// Sends, following redirects that stay within the origin and keep method and body. Nothing
    /// is ever sent to another origin: configured headers may be credentials (SEC-20).
    async fn follow(
        &self,
        method: &Method,
        own: &HeaderMap,
        body: Option<&Bytes>,
    ) -> Result<Response, SendFailure> {
        let mut url = self.url.clone();
        let mut last = String::new();
        for _ in 0..=MAX_REDIRECTS {
            let mut request = self.client.request(method.clone(), url.clone());
            request = request
                .headers(self.configured.clone())
                .headers(own.clone());
            if let Some(body) = body {
                request = request.body(body.clone());
            }
            let response = request.send().await.map_err(|error| unsent(&error))?;
            if !response.status().is_redirection() {
                return Ok(response);
            }
            let location = response.headers().get(LOCATION).map(HeaderValue::as_bytes);
            let location = String::from_utf8_lossy(location.unwrap_or_default()).into_owned();
            let keeps_method = matches!(
                response.status(),
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
            );
            let target = url.join(&location).ok().filter(|target| {
                keeps_method && !location.is_empty() && target.origin() == self.url.origin()
            });
            let Some(target) = target else {
                return Err(SendFailure::Redirected { location });
            };
            (url, last) = (target, location);
        }
        Err(SendFailure::Redirected { location: last })
    }
}

/// The headers of an entry, without those that are not its to set.
fn configured(spec: &RemoteSpec) -> Result<HeaderMap, OpenError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &spec.headers {
        let lower = name.to_ascii_lowercase();
        if lower.starts_with("mcp-") || PROTECTED.contains(&lower.as_str()) {
            tracing::warn!(header = %lower, "a configured header belongs to the protocol: left out");
            continue;
        }
        let invalid =
            |what| OpenError::Client(format!("the {what} of header `{name}` is not valid"));
        let name = HeaderName::try_from(name).map_err(|_| invalid("name"))?;
        let mut value = HeaderValue::from_str(value.expose()).map_err(|_| invalid("value"))?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}

/// An answer that is no success.
async fn refused(response: Response) -> SendFailure {
    let status = response.status().as_u16();
    // Several lines of this header are one list; a stray byte in one must not lose the rest.
    let challenges = response.headers().get_all(WWW_AUTHENTICATE).iter();
    let challenges: Vec<_> = challenges
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .collect();
    let www_authenticate = (!challenges.is_empty()).then(|| challenges.join(", "));
    let body = match timeout(
        ERROR_PATIENCE,
        bounded(response, ERROR_BODY, ERROR_PATIENCE),
    )
    .await
    {
        Ok(Ok(body) | Err(Unread::TooLarge(body))) => body,
        Ok(Err(Unread::Cut(_) | Unread::Stalled)) | Err(_) => Bytes::new(),
    };
    // Whether it carried a session is known to who made it.
    SendFailure::Status {
        status,
        www_authenticate,
        body,
        had_session: false,
    }
}

/// Why a body was not read whole.
pub(super) enum Unread {
    /// It is larger than asked for; this is its beginning.
    TooLarge(Bytes),
    /// Nothing came for too long.
    Stalled,
    /// The connection broke.
    Cut(String),
}

/// Reads a body up to a cap, however slowly it flows, as long as it flows.
pub(super) async fn bounded(
    mut response: Response,
    limit: usize,
    idle: Duration,
) -> Result<Bytes, Unread> {
    let mut first = None;
    let mut whole = BytesMut::new();
    loop {
        let chunk = match timeout(idle, response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            // One chunk is the usual case and is not copied.
            Ok(Ok(None)) if whole.is_empty() => return Ok(first.unwrap_or_default()),
            Ok(Ok(None)) => return Ok(whole.freeze()),
            Ok(Err(error)) => return Err(Unread::Cut(root_cause(&error))),
            Err(_) => return Err(Unread::Stalled),
        };
        if let Some(first) = first.take() {
            let first: Bytes = first;
            whole.extend_from_slice(&first);
        }
        let room = limit - whole.len();
        if chunk.len() > room {
            whole.extend_from_slice(&chunk[..room]);
            return Err(Unread::TooLarge(whole.freeze()));
        }
        if whole.is_empty() {
            first = Some(chunk);
        } else {
            whole.extend_from_slice(&chunk);
        }
    }
}

/// Why a request did not get out, or got no answer.
fn unsent(error: &reqwest::Error) -> SendFailure {
    if error.is_timeout() && !error.is_connect() {
        return SendFailure::TimedOut;
    }
    let message = root_cause(error);
    if !error.is_connect() {
        return SendFailure::Cut(message);
    }
    let mut cause = error.source();
    let mut refused = false;
    while let Some(error) = cause {
        refused |= error.downcast_ref::<io::Error>().is_some_and(|error| {
            matches!(
                error.kind(),
                io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::HostUnreachable
                    | io::ErrorKind::NetworkUnreachable
            )
        });
        cause = error.source();
    }
    SendFailure::Unreachable { refused, message }
}

/// The innermost message: the outer ones repeat the URL, which may hold a secret.
pub(super) fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    if std::ptr::addr_eq(cause, error) {
        "the request failed".to_owned()
    } else {
        cause.to_string()
    }
}
