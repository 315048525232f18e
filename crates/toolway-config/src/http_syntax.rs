//! What a URL and a header of an entry may be, as written and once their variables are expanded.

use toolway_types::TransportKind;
use url::Url;

/// The URL schemes a transport speaks.
pub(crate) fn schemes(kind: TransportKind) -> &'static [&'static str] {
    match kind {
        TransportKind::Ws | TransportKind::WsIde => &["wss", "ws"],
        _ => &["https", "http"],
    }
}

/// Reads a URL. The reason never repeats the text, which may hold a secret.
pub(crate) fn parse_url(text: &str, schemes: &[&str]) -> Result<Url, String> {
    let wanted = || {
        schemes
            .iter()
            .rev()
            .map(|scheme| format!("`{scheme}://`"))
            .collect::<Vec<_>>()
            .join(" or ")
    };
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(url::ParseError::RelativeUrlWithoutBase) => {
            return Err(format!("must begin with {}", wanted()));
        }
        Err(error) => return Err(format!("is not a URL: {error}")),
    };
    if !schemes.contains(&url.scheme()) {
        return Err(format!(
            "must begin with {}, not `{}:`",
            wanted(),
            url.scheme()
        ));
    }
    Ok(url)
}

/// Whether a header value can be sent without becoming two headers.
pub(crate) fn header_value(text: &str) -> Result<(), &'static str> {
    if text.contains(['\r', '\n']) {
        Err("has a line break, which would start another header")
    } else if text.chars().any(|c| c.is_control() && c != '\t') {
        Err("has a control character")
    } else {
        Ok(())
    }
}

/// Whether a name can stand before the colon of a header.
pub(crate) fn is_header_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}
