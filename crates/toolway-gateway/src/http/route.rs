//! Which route a path names.
//!
//! Owns the whole inventory: what is not here does not exist, and nothing here takes a command, a
//! path of this machine or a definition of a server (SEC-09).

use std::borrow::Cow;

use crate::conversation::Endpoint;

/// The longest name of a server or profile in a path, as written there.
const MAX_NAME: usize = 512;

/// A route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HttpRoute {
    /// `/mcp`, `/mcp/<server>`, `/mcp/p/<profile>`
    Exchange(Endpoint),
    /// `/sse` and the same below it: the stream of the oldest transport.
    OldStream(Endpoint),
    /// `/messages`: what its clients send.
    OldMessages,
    /// `/healthz`
    Health,
    /// `/readyz`
    Readiness,
    /// `/metrics`
    Metrics,
    /// `/.well-known/oauth-protected-resource`, alone or with the path of a resource.
    ResourceMetadata,
}

/// Where the document about a protected resource is looked for.
const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource";

impl HttpRoute {
    /// The route of a path.
    pub(super) fn of(path: &str) -> Option<Self> {
        match path {
            "/mcp" => return Some(Self::Exchange(Endpoint::All)),
            "/sse" => return Some(Self::OldStream(Endpoint::All)),
            "/messages" => return Some(Self::OldMessages),
            "/healthz" => return Some(Self::Health),
            "/readyz" => return Some(Self::Readiness),
            "/metrics" => return Some(Self::Metrics),
            RESOURCE_METADATA => return Some(Self::ResourceMetadata),
            _ => {}
        }
        if let Some(name) = path.strip_prefix("/mcp/") {
            return Some(Self::Exchange(endpoint(name)?));
        }
        if let Some(name) = path.strip_prefix("/sse/") {
            return Some(Self::OldStream(endpoint(name)?));
        }
        let resource = path.strip_prefix(RESOURCE_METADATA)?.strip_prefix('/')?;
        let is_ours = resource == "mcp" || resource.starts_with("mcp/");
        is_ours.then_some(Self::ResourceMetadata)
    }
}

fn endpoint(rest: &str) -> Option<Endpoint> {
    match rest.split_once('/') {
        None => Some(Endpoint::Server(name(rest)?.into())),
        Some(("p", profile)) => Some(Endpoint::Profile(name(profile)?.into())),
        Some(_) => None,
    }
}

/// One segment of a path as the name that it is.
fn name(segment: &str) -> Option<Cow<'_, str>> {
    if segment.is_empty() || segment.len() > MAX_NAME || segment.contains('/') {
        return None;
    }
    let name = decoded(segment)?;
    // Names are shown to people.
    let is_plain = !name.chars().any(toolway_types::text::is_hidden);
    is_plain.then_some(name)
}

/// Without percent signs. What is no text, or not encoded by the rules, is no name.
fn decoded(segment: &str) -> Option<Cow<'_, str>> {
    if !segment.contains('%') {
        return Some(Cow::Borrowed(segment));
    }
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, behind @ ..] = rest else {
            return None;
        };
        let digit = |byte: u8| char::from(byte).to_digit(16);
        bytes.push(u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?);
        rest = behind;
    }
    let text = String::from_utf8(bytes).ok()?;
    // What stands for a border of segments in one reading must not be part of a name in another.
    (!text.contains('/')).then_some(Cow::Owned(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str) -> HttpRoute {
        HttpRoute::Exchange(Endpoint::Server(name.into()))
    }

    #[test]
    fn paths_name_endpoints() {
        let route = HttpRoute::of;
        assert_eq!(route("/mcp"), Some(HttpRoute::Exchange(Endpoint::All)));
        assert_eq!(route("/mcp/github"), Some(server("github")));
        assert_eq!(route("/mcp/p"), Some(server("p")));
        assert_eq!(route("/mcp/gr%C3%BC%C3%9Fe"), Some(server("grüße")));
        assert_eq!(route("/mcp/a%20b"), Some(server("a b")));
        let profile = Endpoint::Profile("work".into());
        assert_eq!(
            route("/mcp/p/work"),
            Some(HttpRoute::Exchange(profile.clone()))
        );
        assert_eq!(route("/sse/p/work"), Some(HttpRoute::OldStream(profile)));
        let document = Some(HttpRoute::ResourceMetadata);
        assert_eq!(route("/.well-known/oauth-protected-resource"), document);
        assert_eq!(
            route("/.well-known/oauth-protected-resource/mcp/p/work"),
            document
        );
    }

    #[test]
    fn whatever_is_not_in_the_inventory_is_not_there() {
        for path in [
            "",
            "/",
            "/MCP",
            "/mcp/",
            "/mcp//",
            "/mcp/a/b",
            "/mcp/p/",
            "/mcp/p/a/b",
            "/mcp/%",
            "/mcp/%2",
            "/mcp/%zz",
            "/mcp/%+1",
            "/mcp/%ff",
            "/mcp/a%2Fb",
            "/mcp/a%00",
            "/mcp/a%0a",
            "/mcpx",
            "/messages/",
            "/healthz/",
            "/.well-known/oauth-protected-resource/",
            "/.well-known/oauth-protected-resource/other",
            "/.well-known/oauth-protected-resourcemcp",
            "/.well-known/oauth-authorization-server",
        ] {
            assert_eq!(HttpRoute::of(path), None, "{path}");
        }
        let long = format!("/mcp/{}", "x".repeat(MAX_NAME + 1));
        assert_eq!(HttpRoute::of(&long), None);
    }
}
