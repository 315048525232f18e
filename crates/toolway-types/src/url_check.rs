//! Whether an address is on this machine, and whether a person may be sent to it.
//!
//! Owns both readings of "this machine", by spelling alone: what a name leads to is not known
//! here. What is permitted because it stays on this machine is read narrowly; what is denied
//! because it would lead to it, widely.

use std::net::{Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// Names that systems give this machine beside `localhost`.
const OTHER_NAMES: [&str; 5] = [
    "localhost.localdomain",
    "localhost4",
    "localhost6",
    "ip6-localhost",
    "ip6-loopback",
];

/// Whether an address surely stays on this machine: `localhost`, `127.0.0.0/8` or `[::1]`. For
/// what is permitted on this machine only, such as `http`.
pub fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Whether a host can be this machine under any of its names and addresses. For what is denied.
/// The unspecified addresses are among them: systems connect to themselves there.
pub fn could_be_this_machine<S: AsRef<str>>(host: &Host<S>) -> bool {
    let v4 = |address: Ipv4Addr| address.is_loopback() || address.is_unspecified();
    match host {
        Host::Domain(name) => {
            let name = name.as_ref().trim_end_matches('.').to_ascii_lowercase();
            name == "localhost"
                || name.ends_with(".localhost")
                || OTHER_NAMES.contains(&name.as_str())
        }
        Host::Ipv4(address) => v4(*address),
        Host::Ipv6(address) => {
            address.is_loopback()
                || address.is_unspecified()
                || carried_v4(*address).is_some_and(v4)
        }
    }
}

/// Whether a person may be sent to a page: `https`, or `http` on this machine; without a user name
/// or password, whose only use is to make one host look like another (SEC-16).
pub fn may_be_opened(page: &Url) -> bool {
    let has_login = !page.username().is_empty() || page.password().is_some();
    let is_safe = match page.scheme() {
        "https" => page.has_host(),
        "http" => is_this_machine(page),
        _ => false,
    };
    is_safe && !has_login
}

/// The address of the request that a connection begins with: a WebSocket begins as HTTP.
pub fn request_url(url: &Url) -> Url {
    let mut request = url.clone();
    // These may stand for each other in any address.
    let _ = request.set_scheme(request_scheme(url.scheme()));
    request
}

/// The scheme of such a request.
pub(crate) fn request_scheme(scheme: &str) -> &str {
    match scheme {
        "ws" => "http",
        "wss" => "https",
        other => other,
    }
}

/// The IPv4 address in an IPv6 one: mapped, compatible, or for a translator (NAT64).
pub(crate) fn carried_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            Some(Ipv4Addr::new(a, b, c, d))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec_16_only_https_pages_and_those_of_this_machine_are_opened() {
        for text in [
            "https://idp.example.com/?x=$(id)`id`;id|id&y=",
            "http://127.0.0.1:1/a",
            "http://127.1.2.3/a",
            "http://[::1]/a",
            "http://LOCALHOST/a",
        ] {
            assert!(may_be_opened(&Url::parse(text).unwrap()), "{text}");
        }
        for text in [
            "http://10.0.0.1/a",
            "http://x.localhost/",
            "http://localhost./",
            "http://localhost.example.com/",
            "http://0.0.0.0/",
            "http://[::ffff:127.0.0.1]/",
            "https://a@example.com/",
            "https://:b@example.com/",
            "file:///etc/passwd",
            "javascript:alert(1)",
        ] {
            assert!(!may_be_opened(&Url::parse(text).unwrap()), "{text}");
        }
    }

    #[test]
    fn sec_17_what_could_be_this_machine_is_known_in_every_spelling() {
        for host in [
            "localhost",
            "LOCALHOST.",
            "x.localhost",
            "ip6-loopback",
            "0x7f.1",
            "0.0.0.0",
            "[::]",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[64:ff9b::127.0.0.1]",
        ] {
            assert!(could_be_this_machine(&Host::parse(host).unwrap()), "{host}");
        }
        for host in ["localhost.example.com", "10.0.0.1", "[fe80::1]"] {
            assert!(
                !could_be_this_machine(&Host::parse(host).unwrap()),
                "{host}"
            );
        }
    }
}
