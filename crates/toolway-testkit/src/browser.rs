//! A user at a browser, as far as a login needs one: goes where it is sent, keeps cookies, fills
//! forms in.
//!
//! Speaks plain HTTP, to loopback only. No scripts, no images.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::chaos::http;

/// How long an answer may take. Far above any expected wait.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often one is sent on before one gives up.
const HOPS: usize = 20;

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserPage {
    /// The status.
    pub status: u16,
    /// Where it sends the browser on.
    pub location: Option<String>,
    /// The body as text.
    pub body: String,
    cookies: Vec<String>,
}

/// Fetches a page from loopback over plain HTTP, following nothing. `None` when the address is
/// another one or does not answer.
pub fn fetch(url: &str) -> Option<BrowserPage> {
    exchange(url, "", None)
}

/// Sends a form there, following nothing.
pub fn post(url: &str, fields: &[(&str, &str)]) -> Option<BrowserPage> {
    let pairs: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
        .collect();
    exchange(url, "", Some(&pairs.join("&")))
}

/// Goes to an address and wherever it is sent from there. Every page on the way, the last one
/// last.
pub fn browse(url: &str) -> Vec<BrowserPage> {
    let mut pages = Vec::new();
    let mut next = Some(url.to_owned());
    while let Some(url) = next.take()
        && pages.len() < HOPS
        && let Some(page) = fetch(&url)
    {
        next = page.location.as_ref().map(|to| join(&url, to));
        pages.push(page);
    }
    pages
}

/// A browser with cookies, at one page at a time.
///
/// ```
/// use toolway_testkit::authority::{Authority, ConsentMode, KnownClient, AuthoritySettings};
/// use toolway_testkit::browser::TestBrowser;
///
/// let authority = Authority::start(AuthoritySettings::default());
/// let mut browser = TestBrowser::new();
/// let page = browser.open(&format!("{}/device", authority.issuer())).expect("a page");
/// assert!(page.body.contains("Connect a device"));
/// let page = browser.submit(&[("user_code", "NOBODY"), ("decision", "allow")]).expect("a page");
/// assert_eq!(page.status, 404);
/// ```
#[derive(Debug, Clone, Default)]
pub struct TestBrowser {
    url: String,
    body: String,
    cookies: Vec<Cookie>,
    out_of_reach: Option<String>,
}

#[derive(Debug, Clone)]
struct Cookie {
    host: String,
    path: String,
    name: String,
    value: String,
}

impl TestBrowser {
    /// A browser that was nowhere yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A browser on another machine, which cannot reach addresses that begin like this.
    pub fn elsewhere(out_of_reach: &str) -> Self {
        Self {
            out_of_reach: Some(out_of_reach.to_owned()),
            ..Self::default()
        }
    }

    /// Where it is: the last page, or the address that did not answer.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Goes to an address and wherever it is sent from there; the page it comes to. None when the
    /// way ends at an address that does not answer: a callback that is gone, or no loopback.
    pub fn open(&mut self, url: &str) -> Option<BrowserPage> {
        self.go(url, None)
    }

    /// Sends the first form of the page with these fields, and what stands in it already.
    pub fn submit(&mut self, fields: &[(&str, &str)]) -> Option<BrowserPage> {
        let form = HtmlForm::first(&self.body)?;
        let mut pairs = form.fields;
        for (name, value) in fields {
            pairs.retain(|(found, _)| found != name);
            pairs.push(((*name).to_owned(), (*value).to_owned()));
        }
        let pairs: Vec<String> = pairs
            .iter()
            .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
            .collect();
        let to = join(&self.url, &form.action);
        self.go(&to, Some(&pairs.join("&")))
    }

    /// Goes to an address and sends one form after the other, until a page has none: a whole login
    /// with its consent. Fields of a form that are not among these stay as they are.
    pub fn log_in(&mut self, url: &str, fields: &[(&str, &str)]) -> Option<BrowserPage> {
        let mut page = self.open(url)?;
        for _ in 0..HOPS {
            let Some(form) = HtmlForm::first(&page.body) else {
                return Some(page);
            };
            let asked: Vec<(&str, &str)> = fields
                .iter()
                .filter(|(name, _)| form.asks(name))
                .copied()
                .collect();
            page = self.submit(&asked)?;
        }
        None
    }

    fn go(&mut self, url: &str, form: Option<&str>) -> Option<BrowserPage> {
        url.clone_into(&mut self.url);
        let mut form = form;
        for _ in 0..HOPS {
            let out_of_reach = self.out_of_reach.as_deref();
            if out_of_reach.is_some_and(|start| self.url.starts_with(start)) {
                return None;
            }
            let page = exchange(&self.url, &self.cookies_for(), form.take())?;
            for cookie in &page.cookies {
                self.keep(cookie);
            }
            let Some(to) = &page.location else {
                self.body.clone_from(&page.body);
                return Some(page);
            };
            self.url = join(&self.url, to);
        }
        None
    }

    fn cookies_for(&self) -> String {
        let (host, path) = place(&self.url);
        let cookies: Vec<String> = self
            .cookies
            .iter()
            .filter(|cookie| cookie.host == host && path.starts_with(&cookie.path))
            .map(|cookie| format!("{}={}", cookie.name, cookie.value))
            .collect();
        cookies.join("; ")
    }

    fn keep(&mut self, text: &str) {
        let (host, _) = place(&self.url);
        let mut parts = text.split(';').map(str::trim);
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else {
            return;
        };
        let mut path = "/".to_owned();
        let mut gone = value.is_empty();
        for part in parts {
            match part.split_once('=') {
                Some((key, given)) if key.eq_ignore_ascii_case("path") => {
                    given.clone_into(&mut path);
                }
                Some((key, given)) if key.eq_ignore_ascii_case("expires") => {
                    gone |= given.contains(" 1970 ");
                }
                _ => {}
            }
        }
        self.cookies
            .retain(|kept| (&kept.host, &kept.path, kept.name.as_str()) != (&host, &path, name));
        if !gone {
            self.cookies.push(Cookie {
                host,
                path,
                name: name.to_owned(),
                value: value.to_owned(),
            });
        }
    }
}

/// The host without its port, as cookies see it, and the path.
fn place(url: &str) -> (String, String) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (address, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let path = path.split('?').next().unwrap_or_default();
    (
        host.to_owned(),
        if path.is_empty() { "/" } else { path }.to_owned(),
    )
}

/// An address, seen from another one.
fn join(from: &str, to: &str) -> String {
    if to.is_empty() {
        return from.to_owned();
    }
    if to
        .split(['/', '?'])
        .next()
        .is_some_and(|start| start.contains(':'))
    {
        return to.to_owned();
    }
    let start = from.find("://").map_or(0, |at| at + 3);
    let host = from[start..]
        .find(['/', '?'])
        .map_or(from.len(), |at| start + at);
    if to.starts_with('/') {
        return format!("{}{to}", &from[..host]);
    }
    let path = from.split('?').next().unwrap_or(from);
    let folder = path[host.min(path.len())..]
        .rfind('/')
        .map_or(path.len(), |at| host + at);
    format!("{}/{to}", &path[..folder])
}

fn encode(text: &str) -> String {
    crate::authority::encode(text)
}

/// A form of a page.
struct HtmlForm {
    action: String,
    fields: Vec<(String, String)>,
    names: Vec<String>,
}

impl HtmlForm {
    fn first(page: &str) -> Option<Self> {
        let start = page.find("<form")?;
        let form = page[start..].split("</form").next()?;
        let head = form.split('>').next()?;
        let mut fields = Vec::new();
        let mut names = Vec::new();
        for tag in form.split('<').skip(1) {
            let Some(tag) = tag.split('>').next() else {
                continue;
            };
            let Some(name) = attribute(tag, "name") else {
                continue;
            };
            if tag.starts_with("input") && attribute(tag, "type").as_deref() != Some("submit") {
                let value = attribute(tag, "value").unwrap_or_default();
                fields.push((name.clone(), value));
            }
            names.push(name);
        }
        Some(Self {
            action: attribute(head, "action").unwrap_or_default(),
            fields,
            names,
        })
    }

    fn asks(&self, name: &str) -> bool {
        self.names.iter().any(|found| found == name)
    }
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let start = tag.find(&format!(" {name}=\""))? + name.len() + 3;
    let value = tag[start..].split('"').next()?;
    let plain = value
        .replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&amp;", "&");
    Some(plain)
}

fn exchange(url: &str, cookies: &str, form: Option<&str>) -> Option<BrowserPage> {
    let rest = url.strip_prefix("http://")?;
    let (address, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let loopback = ["127.0.0.1", "localhost", "[::1]"];
    if !loopback.contains(&address.rsplit_once(':')?.0) {
        return None;
    }
    let path = path.split('#').next().unwrap_or(path);
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut head = format!("host: {address}\r\nconnection: close\r\n");
    if !cookies.is_empty() {
        head.push_str(&["cookie: ", cookies, "\r\n"].concat());
    }
    let method = match form {
        None => "GET",
        Some(form) => {
            let length = form.len().to_string();
            let kind = "content-type: application/x-www-form-urlencoded\r\n";
            head.push_str(&[kind, "content-length: ", &length, "\r\n"].concat());
            "POST"
        }
    };
    let body = form.unwrap_or_default();
    write!(
        stream,
        "{method} {slash}{path} HTTP/1.1\r\n{head}\r\n{body}"
    )
    .ok()?;
    let mut reader = BufReader::new(stream);
    let head = http::read_head(&mut reader).ok()??;
    let status = head.first.split(' ').nth(1)?.parse().ok()?;
    let all = |name: &str| -> Vec<String> {
        let named = |(found, _): &&(String, String)| found.eq_ignore_ascii_case(name);
        let found = head.headers.iter().filter(named);
        found.map(|(_, value)| value.clone()).collect()
    };
    let mut body = Vec::new();
    match all("content-length")
        .first()
        .and_then(|length| length.parse().ok())
    {
        Some(length) => {
            body.resize(length, 0);
            reader.read_exact(&mut body).ok()?;
        }
        None => drop(reader.read_to_end(&mut body)),
    }
    Some(BrowserPage {
        status,
        location: all("location").into_iter().next(),
        body: String::from_utf8_lossy(&body).into_owned(),
        cookies: all("set-cookie"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_seen_from_another_one() {
        let from = "http://127.0.0.1:1/a/b?x=/y";
        for (to, expected) in [
            ("http://localhost:2/z", "http://localhost:2/z"),
            ("/c?d", "http://127.0.0.1:1/c?d"),
            ("c", "http://127.0.0.1:1/a/c"),
            ("", from),
        ] {
            assert_eq!(join(from, to), expected);
        }
        assert_eq!(join("http://127.0.0.1:1", "c"), "http://127.0.0.1:1/c");
    }

    #[test]
    fn cookies_go_back_where_they_came_from() {
        let mut browser = TestBrowser::new();
        browser.url = "http://127.0.0.1:1/login".to_owned();
        browser.keep("a=1; path=/; httponly");
        browser.keep("b=2; Path=/login; expires=Thu, 01 Jan 2099 00:00:00 GMT");
        assert_eq!(browser.cookies_for(), "a=1; b=2");
        browser.url = "http://127.0.0.1:2/other".to_owned();
        assert_eq!(browser.cookies_for(), "a=1", "a port makes no difference");
        browser.keep("a=; path=/; expires=Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(browser.cookies_for(), "");
        browser.url = "http://localhost:1/login".to_owned();
        assert_eq!(browser.cookies_for(), "");
    }

    #[test]
    fn a_form_keeps_what_stands_in_it() {
        let page = "<p><form method=\"post\" action=\"/go?a&amp;b\"><input type=\"hidden\" \
            name=\"x\" value=\"&lt;1&quot;\"><input name=\"user\"><button type=\"submit\" \
            name=\"stop\" value=\"yes\">Stop</button></form><form action=\"/no\"></form>";
        let form = HtmlForm::first(page).unwrap();
        assert_eq!(form.action, "/go?a&b");
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(form.fields, [field("x", "<1\""), field("user", "")]);
        assert!(form.asks("stop") && !form.asks("other"));
        assert!(HtmlForm::first("<p>none").is_none());
        assert_eq!(
            fetch("http://example.com:80/"),
            None,
            "nobody beyond loopback is asked"
        );
    }
}
