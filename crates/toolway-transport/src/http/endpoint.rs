//! One HTTP endpoint: how a request is made and how its answer is classified.
//!
//! Owns configured headers and their binding to the origin, redirects, sending once more what was
//! refused for its credentials, and what kind of answer came. Knows nothing of streams or
//! sessions.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use http::{HeaderMap, Method, StatusCode};
use reqwest::Response;
use toolway_types::{RemoteSpec, UrlRules};
use url::Url;

use super::body::{bounded, within};
use super::failure::{ERROR_BODY, ERROR_PATIENCE, refused, unsent};
use crate::channel::ChannelLimits;
use crate::client::{HttpClient, place};
use crate::credentials::{self, ChannelCredentials, RetryState, is_protected};
use crate::error::{OpenError, SendFailure};
use crate::error_text;
use crate::options::OpenOptions;

/// How often a redirect within the origin is followed.
const MAX_REDIRECTS: usize = 3;

/// A server's endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    /// What clients are made of.
    source: HttpClient,
    client: reqwest::Client,
    /// The client for where the server redirected to last.
    elsewhere: Arc<Mutex<Option<(Url, reqwest::Client)>>>,
    /// What stands between, if anything: a failure may be its fault.
    proxy: Option<String>,
    url: Url,
    configured: HeaderMap,
    credentials: ChannelCredentials,
    /// What policy says about where the server leads.
    rules: Arc<UrlRules>,
    pub(crate) limits: ChannelLimits,
}

/// What kind of answer came.
pub(crate) enum HttpAnswer {
    /// A JSON document.
    Json(Response),
    /// An event stream.
    Stream(Response),
    /// Accepted, nothing to read.
    Empty(HeaderMap),
}

impl Endpoint {
    pub(crate) fn new(spec: &RemoteSpec, options: &OpenOptions) -> Result<Self, OpenError> {
        Ok(Self {
            source: options.client.clone(),
            elsewhere: Arc::default(),
            client: options.client.guarded(&spec.url, &spec.rules)?,
            proxy: options.client.proxy_for(&spec.url),
            url: spec.url.clone(),
            configured: configured(spec)?,
            credentials: channel_credentials(&spec.url, options),
            rules: Arc::clone(&spec.rules),
            limits: options.limits.clone(),
        })
    }

    /// The same server at another URL of its origin.
    pub(crate) fn at(&self, url: Url) -> Result<Self, OpenError> {
        Ok(Self {
            client: self.source.guarded(&url, &self.rules)?,
            elsewhere: Arc::default(),
            url,
            ..self.clone()
        })
    }

    /// The client for a URL of this origin. Policy may deny one path of an address and not
    /// another, so what the name leads to is asked about for each.
    fn client_for(&self, url: &Url) -> Result<reqwest::Client, OpenError> {
        if *url == self.url || !self.source.guards(url, &self.rules) {
            return Ok(self.client.clone());
        }
        let mut last = self
            .elsewhere
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = last.as_ref().filter(|(at, _)| at == url) {
            return Ok(client.clone());
        }
        let client = self.source.guarded(url, &self.rules)?;
        *last = Some((url.clone(), client.clone()));
        Ok(client)
    }

    /// Whether policy lets us go where the server leads.
    pub(crate) fn admits(&self, target: &Url) -> Result<(), SendFailure> {
        let admitted = self.rules.admits(target);
        admitted.map_err(|why| error_text::denied(&place(target), &format!("it is {why}")))
    }

    /// Sends one request and looks at how the answer begins, `limit` after it was sent at the
    /// latest.
    pub(crate) async fn send(
        &self,
        method: &Method,
        own: &HeaderMap,
        body: Option<&Bytes>,
        limit: Option<Duration>,
    ) -> Result<HttpAnswer, SendFailure> {
        classify(self.begin(method, own, body, limit).await?).await
    }

    /// Posts a message whose answer comes another way.
    pub(crate) async fn deliver(
        &self,
        own: &HeaderMap,
        body: &Bytes,
        limit: Option<Duration>,
    ) -> Result<(), SendFailure> {
        let response = self.begin(&Method::POST, own, Some(body), limit).await?;
        let content_type = content_type(&response);
        // Servers acknowledge in many ways, but not with an HTML page.
        if essence(&content_type) == "text/html" && !is_empty(response.status()) {
            return Err(SendFailure::NotMcp { content_type });
        }
        drain(response).await;
        Ok(())
    }

    /// Sends one request; gives its answer when it is a success that can be read.
    async fn begin(
        &self,
        method: &Method,
        own: &HeaderMap,
        body: Option<&Bytes>,
        limit: Option<Duration>,
    ) -> Result<Response, SendFailure> {
        let mut tries = RetryState::default();
        let response = loop {
            let (response, is_again) = self.follow(method, own, body, limit, &mut tries).await?;
            if !is_again {
                break response;
            }
            drain(response).await;
        };
        require_success(response).await
    }

    /// Sends, following redirects that stay within the origin and keep method and body. Nothing is
    /// ever sent to another origin: configured headers may be credentials (SEC-20). Nor to a place
    /// that policy forbids (SEC-53). Gives the answer, and whether it asks for other credentials
    /// that are there.
    async fn follow(
        &self,
        method: &Method,
        own: &HeaderMap,
        body: Option<&Bytes>,
        limit: Option<Duration>,
        tries: &mut RetryState,
    ) -> Result<(Response, bool), SendFailure> {
        let mut url = self.url.clone();
        let mut last = String::new();
        for _ in 0..=MAX_REDIRECTS {
            let asked = credentials::CredentialRequest { method, url: &url };
            let presented = self.credentials.present(asked).await;
            let presented = presented.map_err(SendFailure::Credentials)?;
            let mut headers = self.configured.clone();
            presented.put(&mut headers);
            let client = self
                .client_for(&url)
                .map_err(|error| SendFailure::lost(error.to_string()))?;
            let request = client.request(method.clone(), url.clone());
            let mut request = request.headers(headers).headers(own.clone());
            if let Some(body) = body {
                request = request.body(body.clone());
            }
            let response = within(limit, request.send())
                .await
                .map_err(|after| SendFailure::TimedOut { after })?
                .map_err(|error| unsent(&error, self.proxy.as_deref()))?;
            let (status, heard) = (response.status(), response.headers());
            let judged = self
                .credentials
                .is_again(tries, &presented, asked, status, heard);
            let is_again = judged.await;
            if !response.status().is_redirection() {
                return Ok((response, is_again));
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
            self.admits(&target)?;
            (url, last) = (target, location);
        }
        Err(SendFailure::Redirected { location: last })
    }
}

/// Fails unless the answer is a success that can be read.
pub(super) async fn require_success(response: Response) -> Result<Response, SendFailure> {
    if !response.status().is_success() {
        return Err(refused(response).await);
    }
    match encoding(response.headers()) {
        Some(encoding) => Err(SendFailure::Encoded { encoding }),
        None => Ok(response),
    }
}

/// Classifies an answer by its head.
pub(super) async fn classify(response: Response) -> Result<HttpAnswer, SendFailure> {
    let content_type = content_type(&response);
    match essence(&content_type).as_str() {
        "text/event-stream" => Ok(HttpAnswer::Stream(response)),
        _ if is_empty(response.status()) => {
            let headers = response.headers().clone();
            drain(response).await;
            Ok(HttpAnswer::Empty(headers))
        }
        "application/json" | "" => Ok(HttpAnswer::Json(response)),
        json if json.ends_with("+json") => Ok(HttpAnswer::Json(response)),
        _ => Err(SendFailure::NotMcp { content_type }),
    }
}

/// The credentials for a server at a URL.
pub(crate) fn channel_credentials(url: &Url, options: &OpenOptions) -> ChannelCredentials {
    ChannelCredentials::new(options.credentials.clone(), url, options.limits.first_byte)
}

fn is_empty(status: StatusCode) -> bool {
    matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT)
}

/// Reads and discards a body, so that the connection can be used again.
async fn drain(response: Response) {
    let _ = bounded(response, ERROR_BODY, Some(ERROR_PATIENCE)).await;
}

fn content_type(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE);
    value.map_or_else(String::new, |value| {
        String::from_utf8_lossy(value.as_bytes()).into_owned()
    })
}

/// A content type without its parameters.
fn essence(content_type: &str) -> String {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// How an answer is compressed, when it is.
fn encoding(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_ENCODING)?;
    let value = String::from_utf8_lossy(value.as_bytes()).trim().to_owned();
    (!value.is_empty() && !value.eq_ignore_ascii_case("identity")).then_some(value)
}

/// The headers of an entry, without those that are not its to set.
pub(crate) fn configured(spec: &RemoteSpec) -> Result<HeaderMap, OpenError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &spec.headers {
        if is_protected(name) {
            tracing::warn!(header = %name, "a configured header belongs to the protocol: left out");
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
