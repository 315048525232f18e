//! A pattern over the parts of a parsed URL.
//!
//! Owns: reading such a pattern and matching it part by part, so that no spelling of a URL
//! (credentials before an `@`, a longer host, a trailing dot, an escape) passes for another
//! (SEC-13). Patterns: `https://mcp.example.com/*`, `https://*.example.com/mcp`,
//! `*://localhost:*/*`, `*`. Hosts are in [`host`](super::host), paths in [`path`](super::path).

use url::Url;

use super::host::HostPattern;
use super::path;
use super::reading::PatternReading;
use crate::transport::TransportKind;
use crate::url_check::request_scheme;
use crate::wildcard;

/// A pattern over URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlPattern {
    /// With wildcards; absent when the pattern begins with the host.
    scheme: Option<String>,
    host: HostPattern,
    port: PortPattern,
    /// With wildcards, beginning with `/`; absent when the pattern ends with the host.
    path: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PortPattern {
    Unsaid,
    Any,
    Is(u16),
}

impl UrlPattern {
    /// Reads a pattern; the reason completes the sentence "… ".
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.contains('\\') || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(format!("`{text}` is not a URL pattern"));
        }
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(scheme.to_ascii_lowercase()), rest),
            None => (None, text),
        };
        if let Some(scheme) = &scheme
            && !TransportKind::ALL
                .iter()
                .flat_map(|kind| kind.facts().schemes)
                .any(|word| wildcard::matches(scheme, word))
        {
            return Err(format!("`{text}` has a scheme that no server can have"));
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        if authority.contains('@') {
            return Err(format!(
                "`{text}` has credentials, which are never compared"
            ));
        }
        let (host, mut port) = split_port(authority, text)?;
        let host = HostPattern::parse(host, text)?;
        // `*` and `https://*` mean everything there.
        let is_everything = host == HostPattern::Any && rest.is_empty();
        if is_everything && port == PortPattern::Unsaid {
            port = PortPattern::Any;
        }
        let path = match rest {
            "" if is_everything => Some("/*".to_owned()),
            "" => None,
            rest if rest.starts_with('/') => Some(path::clean(rest)),
            rest => Some(path::clean(&format!("/{rest}"))),
        };
        Ok(Self {
            scheme,
            host,
            port,
            path,
        })
    }

    /// Whether a URL matches.
    pub fn matches(&self, url: &Url, reading: PatternReading) -> bool {
        let port = match self.port {
            PortPattern::Any => true,
            PortPattern::Is(port) => url.port_or_known_default() == Some(port),
            PortPattern::Unsaid => reading == PatternReading::Wide || url.port().is_none(),
        };
        port && self.scheme_matches(url, reading)
            && self.host.matches(url, reading)
            && self.path_matches(url, reading)
    }

    /// Whether it could mean what a name leads to, and not only the name.
    pub(super) fn speaks_of_addresses(&self) -> bool {
        self.host.speaks_of_addresses()
    }

    fn scheme_matches(&self, url: &Url, reading: PatternReading) -> bool {
        let Some(pattern) = &self.scheme else {
            return true;
        };
        // A socket begins as a request to the same server.
        let request = request_scheme(url.scheme());
        wildcard::matches(pattern, url.scheme())
            || (reading == PatternReading::Wide && wildcard::matches(pattern, request))
    }

    fn path_matches(&self, url: &Url, reading: PatternReading) -> bool {
        match &self.path {
            Some(pattern) => path::matches(pattern, url.path(), url.query(), reading),
            None => reading == PatternReading::Wide || url.path() == "/",
        }
    }
}

fn split_port<'a>(authority: &'a str, whole: &str) -> Result<(&'a str, PortPattern), String> {
    let after_address = authority.rfind(']').map_or(0, |end| end + 1);
    let Some(colon) = authority[after_address..].find(':') else {
        return Ok((authority, PortPattern::Unsaid));
    };
    let (host, port) = authority.split_at(after_address + colon);
    match &port[1..] {
        "*" => Ok((host, PortPattern::Any)),
        digits => digits
            .parse()
            .map(|port| (host, PortPattern::Is(port)))
            .map_err(|_| format!("`{whole}` has a port that is no number")),
    }
}

#[cfg(test)]
mod tests;
