//! `serverUrl` rules: a pattern over the parts of a parsed URL.
//!
//! Owns: reading such a pattern and matching it part by part, so that no spelling of a URL
//! (credentials before an `@`, a longer host, a trailing dot, an escape) passes for another
//! (SEC-13). Patterns: `https://mcp.example.com/*`, `https://*.example.com/mcp`,
//! `*://localhost:*/*`, `*`.

use toolway_types::replace_placeholders;
use url::{Host, Url};

use super::pattern;

/// How to read what a rule leaves open: a denial widely, a permission narrowly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// In doubt the rule matches.
    Wide,
    /// In doubt it does not.
    Narrow,
}

/// A pattern over URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UrlPattern {
    /// With wildcards; absent when the pattern begins with the host.
    scheme: Option<String>,
    host: HostPattern,
    port: PortPattern,
    /// With wildcards, beginning with `/`; absent when the pattern ends with the host.
    path: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostPattern {
    Any,
    /// Any host below this one.
    Below(String),
    /// Label by label; a wildcard stays inside its label.
    Labels(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PortPattern {
    Unsaid,
    Any,
    Is(u16),
}

impl UrlPattern {
    /// Reads a pattern; the reason completes the sentence "… ".
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.contains('\\') || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(format!("`{text}` is not a URL pattern"));
        }
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(scheme.to_ascii_lowercase()), rest),
            None => (None, text),
        };
        if let Some(scheme) = &scheme
            && !["http", "https", "ws", "wss"]
                .iter()
                .any(|word| pattern::matches(scheme, word))
        {
            return Err(format!("`{text}` has a scheme that no server can have"));
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(format!(
                "`{text}` has credentials, which are never compared"
            ));
        }
        let (host, mut port) = split_port(authority, text)?;
        let host = HostPattern::parse(host, text)?;
        // `*` and `https://*` mean everything there.
        let is_everything = host == HostPattern::Any && path.is_empty();
        if is_everything && port == PortPattern::Unsaid {
            port = PortPattern::Any;
        }
        let path = match path {
            "" if is_everything => Some("/*".to_owned()),
            "" => None,
            path if path.starts_with('/') => Some(clean_path(path)),
            path => Some(clean_path(&format!("/{path}"))),
        };
        Ok(Self {
            scheme,
            host,
            port,
            path,
        })
    }

    /// Whether a URL matches.
    pub(crate) fn matches(&self, url: &Url, reading: Reading) -> bool {
        let scheme = self
            .scheme
            .as_ref()
            .is_none_or(|scheme| pattern::matches(scheme, url.scheme()));
        let host = url
            .host_str()
            .unwrap_or_default()
            .trim_end_matches('.')
            .to_ascii_lowercase();
        let port = match self.port {
            PortPattern::Any => true,
            PortPattern::Is(port) => url.port_or_known_default() == Some(port),
            PortPattern::Unsaid => reading == Reading::Wide || url.port().is_none(),
        };
        // The same machine in the other family's notation; no permission reaches that far.
        let mapped = match url.host() {
            Some(Host::Ipv6(address)) if reading == Reading::Wide => address.to_ipv4_mapped(),
            _ => None,
        };
        let host = self.host.matches(&host)
            || mapped.is_some_and(|address| self.host.matches(&address.to_string()));
        scheme && port && host && self.path_matches(url, reading)
    }

    fn path_matches(&self, url: &Url, reading: Reading) -> bool {
        let Some(pattern) = &self.path else {
            return reading == Reading::Wide || url.path() == "/";
        };
        // A parsed path climbs nowhere, except behind an escape that its server may undo.
        let whole = unescape(url.path(), |_| true);
        if reading == Reading::Narrow && whole.split(['/', '\\']).any(|part| part == "..") {
            return false;
        }
        let mut path = clean_path(url.path());
        if let Some(query) = url.query().filter(|_| pattern.contains('?')) {
            path = format!("{path}?{query}");
        }
        // Of a secret that is looked up later it is known that it is a part of this path, no more.
        let path = replace_placeholders(&path, |_| Some(pattern::UNKNOWN.to_string()));
        let trimmed = |text: &str| text.trim_end_matches('/').to_owned();
        if pattern::matches(pattern, &path) || trimmed(pattern) == trimmed(&path) {
            return true;
        }
        if reading == Reading::Narrow {
            return false;
        }
        // Servers differ in case, doubled slashes and escapes; a denial does not rely on any.
        let pattern = pattern.to_lowercase();
        [unescape(&path, |_| true), path].iter().any(|path| {
            let folded = fold_slashes(&path.to_lowercase());
            pattern::could_match(&pattern, &folded)
                || pattern::could_match(&pattern, &format!("{folded}/"))
        })
    }
}

impl HostPattern {
    fn parse(host: &str, whole: &str) -> Result<Self, String> {
        let host = host.trim_end_matches('.');
        if host == "*" {
            return Ok(Self::Any);
        }
        if host.is_empty() {
            return Err(format!("`{whole}` has no host"));
        }
        if let Some(parent) = host.strip_prefix("*.")
            && !parent.contains('*')
        {
            return Ok(Self::Below(plain_host(parent, whole)?));
        }
        if !host.contains('*') {
            return Ok(Self::Labels(labels(&plain_host(host, whole)?)));
        }
        if !host.is_ascii() || host.starts_with('[') {
            return Err(format!(
                "`{whole}` has a wildcard inside a host that cannot have one"
            ));
        }
        Ok(Self::Labels(labels(&host.to_ascii_lowercase())))
    }

    fn matches(&self, host: &str) -> bool {
        match self {
            HostPattern::Any => !host.is_empty(),
            HostPattern::Below(parent) => host
                .strip_suffix(parent.as_str())
                .is_some_and(|below| below.len() > 1 && below.ends_with('.')),
            HostPattern::Labels(patterns) => {
                let labels = split_labels(host);
                // A leading `*` stands for one label or more, whatever follows it.
                let (patterns, labels) = match patterns.split_first() {
                    Some((first, rest)) if first == "*" && labels.len() > rest.len() => {
                        (rest, &labels[labels.len() - rest.len()..])
                    }
                    _ => (patterns.as_slice(), labels.as_slice()),
                };
                patterns.len() == labels.len()
                    && patterns
                        .iter()
                        .zip(labels)
                        .all(|(pattern, label)| pattern::matches(pattern, label))
            }
        }
    }
}

fn labels(host: &str) -> Vec<String> {
    split_labels(host).into_iter().map(str::to_owned).collect()
}

fn split_labels(host: &str) -> Vec<&str> {
    // An address in brackets is one thing.
    if host.starts_with('[') {
        vec![host]
    } else {
        host.split('.').collect()
    }
}

/// A host in the spelling that parsed URLs have: lower case, Punycode, numbers in normal form.
fn plain_host(host: &str, whole: &str) -> Result<String, String> {
    Url::parse(&format!("http://{host}/"))
        .ok()
        .and_then(|url| {
            url.host_str()
                .map(|host| host.trim_end_matches('.').to_owned())
        })
        .ok_or_else(|| format!("`{whole}` has a host that no server can have"))
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

/// Undoes escapes of characters that need none, so that `%6dcp` is `mcp`.
fn clean_path(path: &str) -> String {
    unescape(path, |byte| {
        byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
    })
}

fn unescape(path: &str, wanted: impl Fn(u8) -> bool) -> String {
    let bytes = path.as_bytes();
    let mut clean = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%')
            .then(|| bytes.get(at + 1..at + 3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
            .filter(|byte| wanted(*byte));
        clean.push(escaped.unwrap_or(bytes[at]));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&clean).into_owned()
}

fn fold_slashes(path: &str) -> String {
    let mut folded = String::with_capacity(path.len());
    for c in path.chars() {
        if c != '/' || !folded.ends_with('/') {
            folded.push(c);
        }
    }
    folded
}

#[cfg(test)]
mod tests;
