//! An answer: one JSON object, or a named reason why it is none.

use std::fmt;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, header};
use serde_json::{Map, Value};
use toolway_types::text::cut;
use toolway_wire::scan;
use url::Url;

use super::{WebError, shown};

/// A complete answer. Its body may hold tokens and is never shown.
#[derive(Clone)]
pub struct WebReply {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The address that answered, after redirects.
    pub url: Url,
}

impl fmt::Debug for WebReply {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("WebReply")
            .field("status", &self.status)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

impl WebReply {
    /// Whether the status says that it worked.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body as one JSON object in which no key stands twice.
    pub fn object(&self) -> Result<Map<String, Value>, WebError> {
        let fault = |why: String| WebError::NotJson {
            url: shown(&self.url),
            status: self.status,
            why,
        };
        // Some write a byte order mark.
        let body = self.body.strip_prefix(b"\xef\xbb\xbf");
        let body = body.unwrap_or(&self.body).trim_ascii();
        if body.is_empty() {
            return Err(fault("it is empty".to_owned()));
        }
        if self.is_page(body) {
            return Err(fault(
                "it is a web page; a network login or a proxy may stand in between".to_owned(),
            ));
        }
        if !scan::is_shallow(body) {
            return Err(fault("it nests too deeply".to_owned()));
        }
        let text = std::str::from_utf8(body).map_err(|_| fault("it is not UTF-8".to_owned()))?;
        // The parser's own message would repeat parts of the text.
        let value = serde_json::from_str(text).map_err(|error| {
            fault(format!(
                "it is not JSON (line {}, column {})",
                error.line(),
                error.column()
            ))
        })?;
        if let Some(key) = scan::doubled_key(text) {
            let key = cut(&key, 60).into_owned();
            return Err(fault(format!("{key:?} stands in it twice")));
        }
        match value {
            Value::Object(object) => Ok(object),
            _ => Err(fault("it is another kind of JSON".to_owned())),
        }
    }

    /// The server's clock.
    pub fn date(&self) -> Option<SystemTime> {
        httpdate::parse_http_date(self.text(header::DATE)?).ok()
    }

    /// How long the server asks us to stay away, in seconds or as a moment of its own clock.
    pub fn retry_after(&self) -> Option<Duration> {
        let text = self.text(header::RETRY_AFTER)?.trim();
        if let Ok(seconds) = text.parse() {
            return Some(Duration::from_secs(seconds));
        }
        let then = httpdate::parse_http_date(text).ok()?;
        let now = self.date().unwrap_or_else(SystemTime::now);
        Some(then.duration_since(now).unwrap_or_default())
    }

    fn is_page(&self, body: &[u8]) -> bool {
        let says_so = self.text(header::CONTENT_TYPE).is_some_and(|kind| {
            kind.trim_start()
                .to_ascii_lowercase()
                .starts_with("text/html")
        });
        body.starts_with(b"<") || (says_so && !body.starts_with(b"{"))
    }

    /// Where the answer sends us, when it does.
    pub(super) fn redirect(&self, from: &Url) -> Option<Url> {
        if !matches!(self.status, 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        from.join(self.text(header::LOCATION)?).ok()
    }

    fn text(&self, name: header::HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}
