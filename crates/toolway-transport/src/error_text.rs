//! User-facing text for connection errors of the system, the resolver and TLS.
//!
//! Owns the wording only: errors are classified where the library is called.

use std::error::Error;
use std::io;

use crate::error::SendFailure;

/// One cause, without error numbers and without names out of a library's source. `plain` is the
/// scheme of addresses of this kind that are reached without TLS.
pub(crate) fn of(cause: &(dyn Error + 'static), plain: &str) -> String {
    match tls_error(cause) {
        Some(rustls::Error::InvalidMessage(_)) => {
            format!("it does not speak TLS: try `{plain}://` in its URL")
        }
        Some(other) => other.to_string(),
        None if cause.to_string() == "tls handshake eof" => {
            format!("it ended the TLS handshake; if it speaks no TLS, try `{plain}://` in its URL")
        }
        None => without_error_number(&cause.to_string()),
    }
}

/// An error and what it came of, outermost first.
pub(crate) fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// The innermost message: the outer ones repeat the URL, which may hold a secret.
pub(crate) fn root_cause(error: &reqwest::Error) -> String {
    match causes(error).skip(1).last() {
        Some(cause) => of(cause, "http"),
        None => "the request failed".to_owned(),
    }
}

/// What is wrong with TLS, other than with a certificate: those are told apart in `client/tls.rs`.
/// Input and output wrap it, and each other: their `source` leaves out what they wrap.
fn tls_error<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut cause = cause;
    loop {
        if let Some(found) = cause.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        cause = cause.downcast_ref::<io::Error>()?.get_ref()?;
    }
}

/// Policy does not let us go where a server leads. The host alone is said: a secret may stand in
/// the path.
pub(crate) fn denied(place: &str, why: &str) -> SendFailure {
    SendFailure::Denied {
        message: format!("policy forbids an address on `{place}` that the server leads to: {why}"),
    }
}

/// The system's words without the number behind them.
fn without_error_number(text: &str) -> String {
    let words = match text.rsplit_once(" (os error ") {
        Some((words, number)) if number.ends_with(')') => words,
        _ => text,
    };
    match words.strip_prefix("failed to lookup address information: ") {
        Some(why) => format!("the name cannot be resolved: {why}"),
        None => words.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_read_like_sentences() {
        let refused = io::Error::from_raw_os_error(rustix::io::Errno::CONNREFUSED.raw_os_error());
        let unknown =
            io::Error::other("failed to lookup address information: Name or service not known");
        let no_tls = || rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
        let wrapped = io::Error::other(io::Error::other(no_tls()));
        let plain_http = io::Error::new(io::ErrorKind::UnexpectedEof, "tls handshake eof");
        let said: Vec<String> = [
            refused,
            unknown,
            io::Error::other(no_tls()),
            wrapped,
            plain_http,
        ]
        .iter()
        .map(|error| of(error, "ws"))
        .collect();
        assert_eq!(
            said,
            [
                "Connection refused",
                "the name cannot be resolved: Name or service not known",
                "it does not speak TLS: try `ws://` in its URL",
                "it does not speak TLS: try `ws://` in its URL",
                "it ended the TLS handshake; if it speaks no TLS, try `ws://` in its URL",
            ]
        );
    }
}
