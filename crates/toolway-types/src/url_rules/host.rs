//! The host of a URL pattern.
//!
//! Owns matching hosts on label boundaries, and the one rule that a denial of this machine means
//! it under every name and address it has. What a name leads to is not known here.

use url::{Host, Url};

use super::reading::PatternReading;
use crate::url_check::{carried_v4, could_be_this_machine};
use crate::wildcard;

/// Spellings of this machine, to find out whether a pattern with wildcards means it.
const SPELLINGS: [&str; 5] = ["localhost", "127.0.0.1", "0.0.0.0", "[::1]", "[::]"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostPattern {
    Any,
    /// Any host below this one.
    Below(String),
    /// Label by label; a wildcard stays inside its label.
    Labels(Vec<String>),
}

impl HostPattern {
    pub(super) fn parse(host: &str, whole: &str) -> Result<Self, String> {
        let host = host.trim_end_matches('.');
        if host == "*" {
            return Ok(Self::Any);
        }
        if host.is_empty() {
            return Err(format!("`{whole}` has no host"));
        }
        let lower = host.to_ascii_lowercase();
        if host.contains('*') && is_numeric(&lower) {
            let labels = labels(&lower);
            if could_be_address(&labels) {
                return Ok(Self::Labels(labels));
            }
            return Err(format!(
                "`{whole}` has numbers for a host that are no address; a network is `10.*`"
            ));
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
        Ok(Self::Labels(labels(&lower)))
    }

    /// Whether it means the host of a URL.
    pub(super) fn matches(&self, url: &Url, reading: PatternReading) -> bool {
        let Some(host) = url.host() else {
            return false;
        };
        let text = host.to_string();
        if self.has(&text.trim_end_matches('.').to_ascii_lowercase(), reading) {
            return true;
        }
        if reading == PatternReading::Narrow {
            return false;
        }
        // The same machine in the other family's notation; no permission reaches that far.
        let carried = match host {
            Host::Ipv6(address) => carried_v4(address),
            _ => None,
        };
        carried.is_some_and(|address| self.has(&address.to_string(), reading))
            || (could_be_this_machine(&host) && self.means_this_machine())
    }

    /// Whether it could mean an address, which a name may lead to.
    pub(super) fn speaks_of_addresses(&self) -> bool {
        let is_number = |label: &String| label.bytes().all(|b| b.is_ascii_digit() || b == b'*');
        match self {
            // Said of every name, so that nothing is left to be found out.
            Self::Any => false,
            Self::Below(_) => self.means_this_machine(),
            Self::Labels(labels) => {
                labels.iter().all(is_number)
                    || labels.iter().any(|label| label.starts_with('['))
                    || self.means_this_machine()
            }
        }
    }

    fn means_this_machine(&self) -> bool {
        let written = match self {
            Self::Any => return true,
            Self::Below(parent) => parent.clone(),
            Self::Labels(labels) => labels.join("."),
        };
        SPELLINGS
            .iter()
            .any(|spelling| self.has(spelling, PatternReading::Wide))
            || Host::parse(&written).is_ok_and(|host| could_be_this_machine(&host))
    }

    fn has(&self, host: &str, reading: PatternReading) -> bool {
        match self {
            Self::Any => !host.is_empty(),
            Self::Below(parent) => host
                .strip_suffix(parent.as_str())
                .is_some_and(|below| below.len() > 1 && below.ends_with('.')),
            Self::Labels(patterns) => labels_match(patterns, &split_labels(host), reading),
        }
    }
}

/// A leading `*` stands for one label or more, whatever follows it. A `*` at the end does so in a
/// denial only: allowing `intern.*` does not allow `intern.evil.example`.
fn labels_match(patterns: &[String], labels: &[&str], reading: PatternReading) -> bool {
    let each = |patterns: &[String], labels: &[&str]| {
        patterns.len() == labels.len()
            && std::iter::zip(patterns, labels)
                .all(|(pattern, label)| wildcard::matches(pattern, label))
    };
    // How many labels there are beyond one for each pattern.
    let Some(more) = labels.len().checked_sub(patterns.len()) else {
        return false;
    };
    let is_star = |label: Option<&String>| label.is_some_and(|label| label == "*");
    let at_front = if is_star(patterns.first()) { more } else { 0 };
    let at_end = if reading == PatternReading::Wide && is_star(patterns.last()) {
        more
    } else {
        0
    };
    (0..=at_front).any(|skipped| {
        let left_over = more - skipped;
        left_over <= at_end && each(patterns, &labels[skipped..labels.len() - left_over])
    })
}

/// Whether a host with wildcards can only mean an address: it is all numbers, or ends with one,
/// which no name does.
fn is_numeric(host: &str) -> bool {
    let is_digits = |label: &str| {
        let digits = label.strip_prefix("0x").filter(|hex| !hex.is_empty());
        match digits {
            Some(hex) => hex.bytes().all(|b| b.is_ascii_hexdigit() || b == b'*'),
            None => label.bytes().all(|b| b.is_ascii_digit() || b == b'*'),
        }
    };
    let ends_with_number = host
        .rsplit('.')
        .next()
        .is_some_and(|last| !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()));
    ends_with_number
        || (host.contains(|c: char| c.is_ascii_digit()) && host.split('.').all(is_digits))
}

/// Whether there is an IPv4 address that a denial with these labels means.
fn could_be_address(labels: &[String]) -> bool {
    let is_octet =
        |label: &String| (0..=u8::MAX).any(|octet| wildcard::matches(label, &octet.to_string()));
    let is_open = [labels.first(), labels.last()]
        .into_iter()
        .flatten()
        .any(|label| label == "*");
    labels.iter().all(is_octet) && (labels.len() == 4 || (labels.len() < 4 && is_open))
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

#[cfg(test)]
mod tests {
    use super::super::UrlPattern;
    use super::*;

    fn matches(pattern: &str, url: &str, reading: PatternReading) -> bool {
        let url = Url::parse(url).unwrap();
        UrlPattern::parse(pattern).unwrap().matches(&url, reading)
    }

    #[test]
    fn sec_53_a_denial_of_a_network_covers_every_address_in_it() {
        for (denied, host) in [
            ("10.*", "10.1.2.3"),
            ("10.*", "[::ffff:10.1.2.3]"),
            ("192.168.*", "192.168.7.9"),
            ("192.*", "192.168.7.9"),
            ("10.*.*", "10.1.2.3"),
            ("10.*.*.*", "10.1.2.3"),
            ("1*.2.3.4", "10.2.3.4"),
            ("*.0.0.1", "10.0.0.1"),
            ("127.*", "127.0.0.1"),
            ("127.*", "localhost"),
            ("127.*", "[::1]"),
            ("intern.*", "intern.corp.example"),
            ("*.corp.*", "a.b.corp.example.com"),
        ] {
            let (pattern, url) = (format!("*://{denied}:*/*"), format!("http://{host}:80/mcp"));
            assert!(
                matches(&pattern, &url, PatternReading::Wide),
                "{denied}: {host}"
            );
        }
        for (denied, host) in [
            ("10.*", "11.1.2.3"),
            ("10.*", "1.10.2.3"),
            ("192.168.*", "192.169.7.9"),
            ("intern.*", "intern"),
            ("intern.*", "x.intern.example"),
        ] {
            let (pattern, url) = (format!("*://{denied}:*/*"), format!("http://{host}:80/mcp"));
            assert!(
                !matches(&pattern, &url, PatternReading::Wide),
                "{denied}: {host}"
            );
        }
        // A permission stays inside its labels: `intern.*` does not allow other hosts whose name
        // begins so.
        for (allowed, host) in [
            ("10.*", "10.1.2.3"),
            ("intern.*", "intern.evil.example"),
            ("intern.*", "intern.corp.example"),
        ] {
            let (pattern, url) = (
                format!("*://{allowed}:*/*"),
                format!("http://{host}:80/mcp"),
            );
            assert!(
                !matches(&pattern, &url, PatternReading::Narrow),
                "{allowed}: {host}"
            );
        }
    }

    #[test]
    fn sec_53_numbers_that_are_no_address_are_a_fault() {
        for host in [
            "10*",
            "1*",
            "10.0*",
            "10.1*.2",
            "300.*",
            "10.256.*.*",
            "010.*",
            "0x7f.*",
            "0X7F.*",
            "10.*.*.*.*",
            "1.2.3.4.*",
            "*.256",
            "*.1.2.3.4",
            "a*.10",
        ] {
            let pattern = format!("*://{host}:*/*");
            assert!(UrlPattern::parse(&pattern).is_err(), "{host}");
        }
        for host in [
            "10.*",
            "*.0.0.1",
            "1*.2*.3.4",
            "*.*",
            "1*.example",
            "127.0.0.1",
            "127.1",
        ] {
            let pattern = format!("*://{host}:*/*");
            assert!(UrlPattern::parse(&pattern).is_ok(), "{host}");
        }
    }
}
