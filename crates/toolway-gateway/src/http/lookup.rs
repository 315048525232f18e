//! Looking up headers of a request.
//!
//! Owns how: one after the other. A request has a few headers, and to compare them all costs less than
//! to hash one name; how many there can be is bounded by the parser of heads.

use http::{HeaderMap, HeaderName, HeaderValue};

/// Every value of this header, in order.
#[inline]
pub(super) fn values<'h, 'n>(
    headers: &'h HeaderMap,
    name: &'n HeaderName,
) -> impl Iterator<Item = &'h HeaderValue> + use<'h, 'n> {
    let of_name = headers.iter().filter(move |(other, _)| *other == name);
    of_name.map(|(_, value)| value)
}

/// Whether it stands there at all.
#[inline]
pub(super) fn has(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers.keys().any(|other| other == name)
}

/// The header's value when it stands exactly once and is text.
pub(super) fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = values(headers, name);
    let value = values.next()?;
    if values.next().is_some() {
        None
    } else {
        value.to_str().ok()
    }
}

#[cfg(test)]
mod tests {
    use http::header::{ACCEPT, HOST};

    use super::*;

    #[test]
    fn a_header_is_found_by_any_spelling_and_once_only_where_it_stands_once() {
        let mut headers = HeaderMap::new();
        let session = HeaderName::from_static("mcp-session-id");
        assert!(!has(&headers, &HOST));
        assert_eq!(only(&headers, &HOST), None);
        headers.insert("HOST", HeaderValue::from_static("here"));
        headers.append("Accept", HeaderValue::from_static("a/b"));
        headers.append(ACCEPT, HeaderValue::from_static("c/d"));
        headers.insert("Mcp-Session-Id", HeaderValue::from_static("s"));
        assert_eq!(only(&headers, &HOST), Some("here"));
        assert_eq!(only(&headers, &session), Some("s"));
        assert_eq!(only(&headers, &ACCEPT), None, "it stands twice");
        assert!(values(&headers, &ACCEPT).eq(["a/b", "c/d"]));
        assert!(has(&headers, &ACCEPT) && has(&headers, &session));
    }
}
