//! What the system, the resolver and TLS say when a connection fails, in words for people.
//!
//! Owns the wording only: which error it is was decided where the library was called.

use std::error::Error;
use std::io;

/// One cause, without error numbers and without names out of a library's source.
pub(crate) fn of(cause: &(dyn Error + 'static)) -> String {
    let io_error = cause.downcast_ref::<io::Error>();
    let inner = io_error.and_then(io::Error::get_ref);
    let tls = cause
        .downcast_ref::<rustls::Error>()
        .or_else(|| inner?.downcast_ref::<rustls::Error>());
    match tls {
        Some(error) => of_tls(error),
        None if cause.to_string() == "tls handshake eof" => {
            "it ended the TLS handshake; if it speaks no TLS, its URL begins with `http:`"
                .to_owned()
        }
        None => plain(&cause.to_string()),
    }
}

/// Policy does not let us go where a server leads. The host alone is said: a secret may stand in
/// the path.
pub(crate) fn denied(place: &str, why: &str) -> String {
    format!("policy forbids an address on `{place}` that the server leads to: {why}")
}

/// The system's words without the number behind them.
fn plain(text: &str) -> String {
    let words = match text.rsplit_once(" (os error ") {
        Some((words, number)) if number.ends_with(')') => words,
        _ => text,
    };
    match words.strip_prefix("failed to lookup address information: ") {
        Some(why) => format!("the name cannot be resolved: {why}"),
        None => words.to_owned(),
    }
}

/// What is wrong with TLS, other than with a certificate: those are told apart in `client/tls.rs`.
fn of_tls(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidMessage(_) => {
            "it does not speak TLS; if it should not, its URL begins with `http:`".to_owned()
        }
        other => other.to_string(),
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
        let no_tls = rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
        let plain_http = io::Error::new(io::ErrorKind::UnexpectedEof, "tls handshake eof");
        let said: Vec<String> = [refused, unknown, io::Error::other(no_tls), plain_http]
            .iter()
            .map(|error| of(error))
            .collect();
        assert_eq!(
            said,
            [
                "Connection refused",
                "the name cannot be resolved: Name or service not known",
                "it does not speak TLS; if it should not, its URL begins with `http:`",
                "it ended the TLS handshake; if it speaks no TLS, its URL begins with `http:`",
            ]
        );
    }
}
