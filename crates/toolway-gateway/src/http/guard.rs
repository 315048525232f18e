//! What may come in at all: the checks in front of every route.
//!
//! A web page in the user's browser can send requests to any loopback port. Owns telling such
//! requests from a client's: the name it used for us (DNS rebinding, SEC-23), the page it came
//! from, and a content type that a page cannot send without asking first (SEC-24). No answer of
//! ours ever carries a CORS permission.

use std::net::{IpAddr, SocketAddr};

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderName, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};

use super::lookup::{has, only};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The names by which a loopback server is rightly called.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Why a request is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GuardRejection {
    /// No `Host`, or more than one.
    #[error("exactly one Host header is needed")]
    HostCount,
    /// The target names a host of its own.
    #[error("the request target must be a path")]
    AbsoluteTarget,
    /// Another name than ours: a rebound DNS name.
    #[error("the Host header names another server")]
    Host,
    /// A page of another origin sent it.
    #[error("requests from this origin are not allowed")]
    Origin,
    /// The browser says that another site sent it.
    #[error("requests from other sites are not allowed")]
    CrossSite,
    /// Not JSON by its content type.
    #[error("the content type must be application/json")]
    ContentType,
}

impl GuardRejection {
    /// The status of the answer.
    pub fn status(self) -> StatusCode {
        match self {
            Self::HostCount | Self::AbsoluteTarget => StatusCode::BAD_REQUEST,
            Self::Host | Self::Origin | Self::CrossSite => StatusCode::FORBIDDEN,
            Self::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        }
    }
}

/// By which schemes pages of ours are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageScheme {
    /// Nobody stands between, and nothing is encrypted.
    Http,
    /// We encrypt.
    Https,
    /// A proxy decides.
    Either,
}

/// The rules for one server. They have no switch to turn them off.
#[derive(Debug, Clone)]
pub struct RequestGuard {
    port: u16,
    /// Names of ours on our port.
    names: Vec<String>,
    /// Names that the administrator gave: with a port if they said so, else with any.
    given: Vec<String>,
    scheme: PageScheme,
}

impl RequestGuard {
    /// The rules for a server at this address, which is also called by the given names.
    pub fn new(address: SocketAddr, given: &[String], scheme: PageScheme) -> Self {
        let mut names: Vec<String> = NAMES.map(str::to_owned).into();
        if !address.ip().is_unspecified() {
            names.push(in_address(address.ip()));
        }
        Self {
            port: address.port(),
            names,
            given: given.to_vec(),
            scheme,
        }
    }

    /// Whether a request may come in. `here` is the address of this machine that it came to.
    pub fn admit(&self, request: &Parts, here: Option<IpAddr>) -> Result<(), GuardRejection> {
        let headers = &request.headers;
        if request.uri.authority().is_some() {
            return Err(GuardRejection::AbsoluteTarget);
        }
        let host = only(headers, &HOST).ok_or(GuardRejection::HostCount)?;
        if !self.is_ours(host, here) {
            return Err(GuardRejection::Host);
        }
        if has(headers, &ORIGIN) {
            let origin = only(headers, &ORIGIN).and_then(|origin| self.host_of(origin));
            if !origin.is_some_and(|host| self.is_ours(host, here)) {
                return Err(GuardRejection::Origin);
            }
        }
        if has(headers, &SEC_FETCH_SITE) {
            // `same-site` is another port of this machine: not ours either.
            match only(headers, &SEC_FETCH_SITE) {
                Some("same-origin" | "none") => {}
                _ => return Err(GuardRejection::CrossSite),
            }
        }
        if request.method == Method::POST && !is_json(headers) {
            return Err(GuardRejection::ContentType);
        }
        Ok(())
    }

    /// The host of a page's origin, if its scheme is one of ours.
    fn host_of<'a>(&self, origin: &'a str) -> Option<&'a str> {
        let (scheme, host) = origin.split_once("://")?;
        let is_ours = match self.scheme {
            PageScheme::Http => scheme == "http",
            PageScheme::Https => scheme == "https",
            PageScheme::Either => matches!(scheme, "http" | "https"),
        };
        is_ours.then_some(host)
    }

    fn is_ours(&self, host: &str, here: Option<IpAddr>) -> bool {
        let (name, port) = split_port(host);
        let is = |ours: &str| ours.eq_ignore_ascii_case(name);
        // Browsers and clients leave out the scheme's own port.
        let is_on_port = match port {
            Some(port) => number(port) == Some(self.port),
            None => {
                self.port
                    == if self.scheme == PageScheme::Https {
                        443
                    } else {
                        80
                    }
            }
        };
        if is_on_port && self.names.iter().any(|ours| is(ours)) {
            return true;
        }
        // Who listens on all addresses is rightly called by the one that was reached. An address
        // cannot be rebound as a name can.
        if is_on_port && here.is_some_and(|here| is(&in_address(here))) {
            return true;
        }
        self.given.iter().any(|ours| match split_port(ours) {
            (_, Some(_)) => ours.eq_ignore_ascii_case(host),
            (ours, None) => is(ours) && port.is_none_or(|port| number(port).is_some()),
        })
    }
}

/// A name and a port. In brackets colons are part of the name.
fn split_port(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (host, None),
    }
}

/// A port, in digits alone.
fn number(port: &str) -> Option<u16> {
    let is_plain = port.bytes().all(|byte| byte.is_ascii_digit());
    port.parse().ok().filter(|_| is_plain)
}

/// As it stands in addresses of pages.
fn in_address(ip: IpAddr) -> String {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

/// `application/json`, with parameters or without, and not compressed.
fn is_json(headers: &HeaderMap) -> bool {
    let essence = only(headers, &CONTENT_TYPE).and_then(|value| value.split(';').next());
    !has(headers, &CONTENT_ENCODING)
        && essence.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn admits(guard: &RequestGuard, headers: &[(&str, &str)]) -> bool {
        let mut request = Request::get("/mcp");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        guard.admit(&parts, Some([10, 0, 0, 7].into())).is_ok()
    }

    fn guard(address: &str, given: &[&str], scheme: PageScheme) -> RequestGuard {
        let given: Vec<String> = given.iter().map(|name| (*name).to_owned()).collect();
        RequestGuard::new(address.parse().unwrap(), &given, scheme)
    }

    #[test]
    fn sec_23_given_names_are_let_in_with_their_port_or_any() {
        let guard = guard(
            "127.0.0.1:8000",
            &["tools.example", "other.example:8443"],
            PageScheme::Either,
        );
        for host in [
            "tools.example",
            "TOOLS.example:443",
            "other.example:8443",
            "localhost:8000",
        ] {
            assert!(admits(&guard, &[("host", host)]), "{host}");
        }
        for host in [
            "other.example",
            "other.example:443",
            "tools.example:x",
            "tools.example:",
            "tools.example:99999",
            "tools.example:+443",
            "localhost:+8000",
            "xtools.example",
            "localhost",
            "tools.example:443:443",
        ] {
            assert!(!admits(&guard, &[("host", host)]), "{host}");
        }
        let page = |origin| admits(&guard, &[("host", "tools.example"), ("origin", origin)]);
        assert!(page("https://tools.example"));
        assert!(page("http://tools.example"));
        assert!(!page("ftp://tools.example"));
        assert!(!page("https://tools.example.evil.example"));
    }

    #[test]
    fn sec_23_on_all_addresses_the_one_that_was_reached_is_a_name() {
        let all = guard("0.0.0.0:8000", &[], PageScheme::Https);
        assert!(admits(&all, &[("host", "10.0.0.7:8000")]));
        assert!(!admits(&all, &[("host", "10.0.0.8:8000")]));
        assert!(!admits(&all, &[("host", "10.0.0.7:8001")]));
        assert!(!admits(&all, &[("host", "0.0.0.0:8000")]));
        let one = guard("[2001:db8::1]:443", &[], PageScheme::Https);
        assert!(admits(&one, &[("host", "[2001:db8::1]")]));
        assert!(admits(
            &one,
            &[
                ("host", "[2001:db8::1]:443"),
                ("origin", "https://[2001:db8::1]")
            ]
        ));
        assert!(!admits(
            &one,
            &[
                ("host", "[2001:db8::1]"),
                ("origin", "http://[2001:db8::1]")
            ]
        ));
    }
}
