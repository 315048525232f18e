//! The host of a URL pattern, and what counts as this machine.
//!
//! Owns matching hosts on label boundaries, and the one rule that a denial of this machine means
//! it under every name and address it has. What a name leads to is not known here.

use std::net::{Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use super::pattern::Reading;
use crate::wildcard;

/// Names of this machine that systems give it beside `localhost`.
const NAMES: [&str; 5] = [
    "localhost.localdomain",
    "localhost4",
    "localhost6",
    "ip6-localhost",
    "ip6-loopback",
];

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

    /// Whether it means the host of a URL.
    pub(super) fn matches(&self, url: &Url, reading: Reading) -> bool {
        let Some(host) = url.host() else {
            return false;
        };
        let text = host.to_string();
        if self.has(&text.trim_end_matches('.').to_ascii_lowercase()) {
            return true;
        }
        if reading == Reading::Narrow {
            return false;
        }
        // The same machine in the other family's notation; no permission reaches that far.
        let carried = match host {
            Host::Ipv6(address) => carried(address),
            _ => None,
        };
        carried.is_some_and(|address| self.has(&address.to_string()))
            || (is_this_machine(&host) && self.means_this_machine())
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
        SPELLINGS.iter().any(|spelling| self.has(spelling))
            || Host::parse(&written).is_ok_and(|host| is_this_machine(&host))
    }

    fn has(&self, host: &str) -> bool {
        match self {
            Self::Any => !host.is_empty(),
            Self::Below(parent) => host
                .strip_suffix(parent.as_str())
                .is_some_and(|below| below.len() > 1 && below.ends_with('.')),
            Self::Labels(patterns) => {
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
                        .all(|(pattern, label)| wildcard::matches(pattern, label))
            }
        }
    }
}

/// Whether a host is the machine that asks, as far as its spelling shows. The unspecified
/// addresses are: systems connect to themselves there.
fn is_this_machine<S: AsRef<str>>(host: &Host<S>) -> bool {
    let v4 = |address: Ipv4Addr| address.is_loopback() || address.is_unspecified();
    match host {
        Host::Domain(name) => {
            let name = name.as_ref().trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost") || NAMES.contains(&name.as_str())
        }
        Host::Ipv4(address) => v4(*address),
        Host::Ipv6(address) => {
            address.is_loopback() || address.is_unspecified() || carried(*address).is_some_and(v4)
        }
    }
}

/// The IPv4 address in an IPv6 one: mapped, compatible, or for a translator (NAT64).
fn carried(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            Some(Ipv4Addr::new(a, b, c, d))
        }
        _ => None,
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
