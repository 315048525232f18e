//! What went wrong with an HTTP request, told apart.
//!
//! Owns the one classification of the client library's errors and of answers that are no success.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use reqwest::Response;
use tokio::time::timeout;

use super::body::{BodyError, bounded};
use crate::client::dial::is_refusal;
use crate::client::guard::AddressesDenied;
use crate::client::{place, tls};
use crate::credentials::challenges;
use crate::error::SendFailure;
use crate::error_text::{self, causes, root_cause};

/// How much of an error's body is kept.
pub(super) const ERROR_BODY: usize = 64 * 1024;

/// How long an error's body may take.
pub(super) const ERROR_PATIENCE: Duration = Duration::from_secs(5);

/// An answer that is no success.
pub(super) async fn refused(response: Response) -> SendFailure {
    let (status, headers) = (response.status(), response.headers().clone());
    let body = match timeout(
        ERROR_PATIENCE,
        bounded(response, ERROR_BODY, Some(ERROR_PATIENCE)),
    )
    .await
    {
        Ok(Ok(body) | Err(BodyError::TooLarge(body))) => body,
        Ok(Err(BodyError::Cut(_) | BodyError::Stalled { .. })) | Err(_) => Bytes::new(),
    };
    refusal(status, &headers, body)
}

/// The same of its parts. Whether the request carried a session is known to its sender.
pub(crate) fn refusal(status: StatusCode, headers: &HeaderMap, body: Bytes) -> SendFailure {
    SendFailure::Status {
        status: status.as_u16(),
        www_authenticate: challenges(headers),
        body,
        had_session: false,
        retry_after: retry_after(headers, SystemTime::now()),
    }
}

/// How long a server asks to be left alone: in seconds, or until a date.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = httpdate::parse_http_date(text).ok()?;
    // A date that has passed asks for nothing.
    Some(until.duration_since(now).unwrap_or_default())
}

/// Why a request did not get out, or got no answer. `proxy` is the one it went through.
pub(super) fn unsent(error: &reqwest::Error, proxy: Option<&str>) -> SendFailure {
    let denied = causes(error).find_map(|cause| cause.downcast_ref::<AddressesDenied>());
    if let Some(denied) = denied {
        let place = error.url().map(place).unwrap_or_default();
        return error_text::denied(&place, &denied.to_string());
    }
    if let Some((fault, message)) = tls::fault(error) {
        return SendFailure::Certificate { fault, message };
    }
    let message = root_cause(error);
    if !error.is_connect() {
        return SendFailure::Cut(message);
    }
    let refused = causes(error)
        .filter_map(|cause| cause.downcast_ref())
        .any(is_refusal);
    let message = match (proxy, error.url().map(place)) {
        (Some(proxy), _) => format!("through the proxy {proxy}: {message}"),
        (None, Some(place)) => format!("{place}: {message}"),
        (None, None) => message,
    };
    SendFailure::Unreachable { refused, message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn rel_27_retry_after_counts_seconds_or_names_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (text, seconds) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("-1", None),
            ("soon", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(text));
            let expected = seconds.map(Duration::from_secs);
            assert_eq!(retry_after(&headers, now), expected, "{text}");
        }
    }
}
