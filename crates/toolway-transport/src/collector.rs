//! Handing bytes to a collector of telemetry, over the shared client.
//!
//! Owns one request: where it goes, which headers it has, how long it may take, how much of the
//! answer is read, and what the answer means. Proxies and certificates are those of servers, and no
//! redirect is followed. What the bytes say, and whether they are sent again, is the caller's.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use toolway_types::{Secret, limits};
use url::Url;

use crate::client::HttpClient;

/// A collector, and how it is asked.
#[derive(Debug)]
pub struct Collector {
    client: HttpClient,
    url: Url,
    headers: HeaderMap,
    timeout: Duration,
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandedOver {
    /// It was taken.
    Taken,
    /// It may be sent again, not before this time has passed, where the collector names one.
    Later(Option<Duration>),
    /// It will never be taken; the status says so.
    Refused(u16),
}

/// A header that a collector cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the header `{0}` for the collector of spans is none")]
pub struct BadCollectorHeader(String);

impl Collector {
    /// A collector at this address. Values of headers are secret.
    pub fn new(
        client: HttpClient,
        url: Url,
        headers: &[(String, Secret)],
        timeout: Duration,
    ) -> Result<Self, BadCollectorHeader> {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            let bad = || BadCollectorHeader(name.clone());
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
            let mut value = HeaderValue::from_str(value.expose()).map_err(|_| bad())?;
            value.set_sensitive(true);
            all.insert(name, value);
        }
        let protobuf = HeaderValue::from_static("application/x-protobuf");
        all.insert(CONTENT_TYPE, protobuf);
        Ok(Self {
            client,
            url,
            headers: all,
            timeout,
        })
    }

    /// Sends a batch, once.
    pub async fn hand_over(&self, batch: Bytes) -> HandedOver {
        let Ok(client) = self.client.for_url(&self.url) else {
            // A certificate or a proxy that cannot be used now may be mended.
            return HandedOver::Later(None);
        };
        let request = client.post(self.url.clone()).headers(self.headers.clone());
        let exchange = async {
            let mut answer = request.body(batch).send().await.ok()?;
            let (status, pause) = (answer.status(), pause(answer.headers()));
            // What it says does not matter; read so that the connection can serve again.
            let mut left = limits::spans::ANSWER;
            while let Ok(Some(part)) = answer.chunk().await {
                left = left.saturating_sub(part.len());
                if left == 0 {
                    break;
                }
            }
            Some((status, pause))
        };
        match tokio::time::timeout(self.timeout, exchange).await {
            Ok(Some((status, pause))) => read(status, pause),
            Ok(None) | Err(_) => HandedOver::Later(None),
        }
    }
}

fn read(status: StatusCode, pause: Option<Duration>) -> HandedOver {
    match status.as_u16() {
        200..=299 => HandedOver::Taken,
        // Those that OTLP names.
        429 | 502 | 503 | 504 => HandedOver::Later(pause),
        other => HandedOver::Refused(other),
    }
}

/// `Retry-After`, in seconds or as a date.
fn pause(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    date.duration_since(std::time::SystemTime::now()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_otlp_calls_passing_is_sent_again() {
        for (status, expected) in [
            (200, HandedOver::Taken),
            (202, HandedOver::Taken),
            (301, HandedOver::Refused(301)),
            (400, HandedOver::Refused(400)),
            (401, HandedOver::Refused(401)),
            (429, HandedOver::Later(None)),
            (500, HandedOver::Refused(500)),
            (503, HandedOver::Later(None)),
        ] {
            assert_eq!(read(StatusCode::from_u16(status).unwrap(), None), expected);
        }
    }

    #[test]
    fn a_pause_is_a_number_of_seconds_or_a_date() {
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            pause(&headers)
        };
        assert_eq!(of("7"), Some(Duration::from_secs(7)));
        assert_eq!(of("soon"), None);
        assert_eq!(of("Wed, 21 Oct 2015 07:28:00 GMT"), None);
        assert_eq!(pause(&HeaderMap::new()), None);
    }

    #[test]
    fn sec_08_a_header_that_is_none_is_refused_by_its_name_alone() {
        let refused = |name: &str, value: &str| {
            let headers = [(name.to_owned(), Secret::new(value))];
            let url = Url::parse("http://127.0.0.1:1/").unwrap();
            let made = Collector::new(HttpClient::default(), url, &headers, Duration::ZERO);
            made.map(|collector| format!("{collector:?}"))
        };
        let problem = refused("x-key", "hidden\r\nx: y").unwrap_err();
        assert_eq!(
            problem.to_string(),
            "the header `x-key` for the collector of spans is none"
        );
        let shown = refused("x-key", "hidden").unwrap();
        assert!(!shown.contains("hidden"), "{shown}");
    }
}
