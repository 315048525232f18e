//! What a URL and a header of an entry may be, as written and once their variables are expanded.

use toolway_types::is_this_machine;
use url::Url;

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

/// Parses an address that a token may be sent to: `https`, or `http` on this machine.
pub(crate) fn confidential_url(text: &str) -> Result<Url, String> {
    if text.contains("${") {
        return Err("has a variable, which is not expanded here".to_owned());
    }
    let url = parse_url(text, &["https", "http"])?;
    if url.scheme() == "http" && !is_this_machine(&url) {
        return Err("must begin with `https://`; `http://` only leads to this machine".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold a user name or password".to_owned());
    }
    if url.fragment().is_some() {
        return Err("must not have a `#` part".to_owned());
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
