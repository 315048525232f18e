//! URL rules against the tricks that beat string comparison, and against a naive reference.

use proptest::prelude::*;

use super::*;

fn matches(pattern: &str, url: &str, reading: PatternReading) -> bool {
    UrlPattern::parse(pattern)
        .unwrap()
        .matches(&Url::parse(url).unwrap(), reading)
}

#[test]
fn sec_13_look_alikes_of_an_allowed_host_do_not_match() {
    let pattern = "https://trusted.com/*";
    for url in [
        "https://trusted.com.evil.com/mcp",
        "https://trusted.com@evil.com/mcp",
        "https://trusted.com%2f@evil.com/mcp",
        "https://user:trusted.com@evil.com/",
        "https://eviltrusted.com/",
        "https://evil.com/trusted.com/",
        "https://evil.com/?https://trusted.com/",
        "https://evil.com/#trusted.com/",
        "https://evil.com\\@trusted.com/",
        "http://trusted.com/mcp",
        "wss://trusted.com/mcp",
        "https://trusted.com:8443/mcp",
        "https://sub.trusted.com/",
        "https://trustеd.com/", // a Cyrillic е
    ] {
        assert!(!matches(pattern, url, PatternReading::Narrow), "{url}");
    }
    for url in [
        "https://trusted.com/mcp",
        "https://TRUSTED.com/mcp",
        "https://trusted.com./mcp",
        "https://trusted.com:443/mcp",
        "https://user@trusted.com/mcp",
        "https://trusted.com",
        "https://trusted。com/",
    ] {
        assert!(matches(pattern, url, PatternReading::Narrow), "{url}");
    }
}

#[test]
fn sec_13_no_spelling_of_a_denied_url_escapes() {
    for url in [
        "https://evil.com/mcp",
        "https://EVIL.com/mcp",
        "https://evil.com./mcp",
        "https://evil.com:8443/mcp",
        "https://good.com@evil.com/mcp",
        "https://evil.com/%6dcp",
        "https://evil.com/x/../mcp",
        "https://evil.com/%2e%2e/mcp",
        "https://evil.com//mcp",
        "https://evil.com/MCP",
        "https://evil.com/mcp/",
        "https://evil.com/mcp?x=1#y",
    ] {
        assert!(
            matches("https://evil.com/mcp", url, PatternReading::Wide),
            "{url}"
        );
    }
    assert!(matches(
        "https://evil.com",
        "https://evil.com/any",
        PatternReading::Wide
    ));
    assert!(matches(
        "https://127.0.0.1/*",
        "https://0x7f.1/",
        PatternReading::Wide
    ));
    assert!(matches(
        "https://bücher.example/*",
        "https://xn--bcher-kva.example/",
        PatternReading::Wide
    ));
}

#[test]
fn a_leading_wildcard_stops_at_a_dot() {
    let pattern = "https://*.example.com/*";
    assert!(matches(
        pattern,
        "https://a.example.com/",
        PatternReading::Narrow
    ));
    assert!(matches(
        pattern,
        "https://a.b.example.com/x/y",
        PatternReading::Narrow
    ));
    assert!(!matches(
        pattern,
        "https://example.com/",
        PatternReading::Narrow
    ));
    assert!(!matches(
        pattern,
        "https://evilexample.com/",
        PatternReading::Narrow
    ));
    assert!(!matches(
        "https://api-*.example.com/*",
        "https://api-x.evil.example.com/",
        PatternReading::Narrow
    ));
    assert!(matches(
        "https://api-*.example.com/*",
        "https://api-x.example.com/",
        PatternReading::Narrow
    ));
}

#[test]
fn schemes_ports_and_paths_are_parts_of_their_own() {
    assert!(matches("*", "ws://any.host:1/x", PatternReading::Narrow));
    assert!(matches(
        "*://localhost:*/*",
        "http://localhost:3000/mcp",
        PatternReading::Narrow
    ));
    assert!(matches(
        "localhost:3000/*",
        "http://localhost:3000/mcp",
        PatternReading::Narrow
    ));
    assert!(matches(
        "https://[::1]:8080/mcp",
        "https://[0:0::1]:8080/mcp",
        PatternReading::Narrow
    ));
    assert!(!matches(
        "https://a.com/mcp",
        "https://a.com/mcp/other",
        PatternReading::Narrow
    ));
    assert!(!matches(
        "https://a.com",
        "https://a.com/mcp",
        PatternReading::Narrow
    ));
    assert!(matches(
        "https://a.com/mcp",
        "https://a.com/mcp?token=1",
        PatternReading::Narrow
    ));
    assert!(!matches(
        "https://a.com/mcp?v=1",
        "https://a.com/mcp?v=2",
        PatternReading::Narrow
    ));
}

#[test]
fn a_pattern_that_cannot_match_is_refused() {
    for pattern in [
        "",
        "https://",
        "https://a b/",
        "ftp://a/",
        "https://u@a/",
        "https://a:x/",
        "https://a\\b/",
    ] {
        assert!(UrlPattern::parse(pattern).is_err(), "{pattern}");
    }
}

/// The same rules over strings that were never a URL: parts in, answer out.
#[derive(Debug, Clone)]
struct Parts {
    scheme: &'static str,
    labels: Vec<&'static str>,
    port: Option<u16>,
    path: Vec<&'static str>,
}

fn naive_glob(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|skip| naive_glob(rest, &text[skip..])),
        Some((byte, rest)) => text.first() == Some(byte) && naive_glob(rest, &text[1..]),
    }
}

fn naive(pattern: &Parts, url: &Parts) -> bool {
    let default = if url.scheme == "https" { 443 } else { 80 };
    let port = match pattern.port {
        Some(port) => url.port.unwrap_or(default) == port,
        None => url.port.unwrap_or(default) == default,
    };
    let each = |patterns: &[&str], labels: &[&str]| {
        patterns.len() == labels.len()
            && std::iter::zip(patterns, labels)
                .all(|(pattern, label)| naive_glob(pattern.as_bytes(), label.as_bytes()))
    };
    // A leading `*` may swallow any number of labels but none.
    let host = if pattern.labels[0] == "*" {
        (1..=url.labels.len()).any(|from| each(&pattern.labels[1..], &url.labels[from..]))
            || pattern.labels.len() == 1
    } else {
        each(&pattern.labels, &url.labels)
    };
    let text = |path: &[&str]| format!("/{}", path.join("/"));
    let (wanted, path) = (text(&pattern.path), text(&url.path));
    let path = naive_glob(wanted.as_bytes(), path.as_bytes())
        || wanted.trim_end_matches('/') == path.trim_end_matches('/');
    pattern.scheme == url.scheme && port && host && path
}

fn parts(words: &'static [&'static str]) -> impl Strategy<Value = Parts> {
    (
        prop::sample::select(vec!["http", "https"]),
        prop::collection::vec(prop::sample::select(words), 1..4),
        prop::sample::select(vec![None, Some(80), Some(443), Some(8080)]),
        prop::collection::vec(prop::sample::select(words), 0..3),
    )
        .prop_map(|(scheme, labels, port, path)| Parts {
            scheme,
            labels,
            port,
            path,
        })
}

fn written(parts: &Parts) -> String {
    let port = parts
        .port
        .map_or_else(String::new, |port| format!(":{port}"));
    format!(
        "{}://{}{port}/{}",
        parts.scheme,
        parts.labels.join("."),
        parts.path.join("/")
    )
}

proptest! {
    #[test]
    fn url_rules_agree_with_a_naive_reference(
        pattern in parts(&["a", "ab", "*", "a*"]),
        url in parts(&["a", "ab", "b"]),
    ) {
        let found = matches(&written(&pattern), &written(&url), PatternReading::Narrow);
        prop_assert_eq!(found, naive(&pattern, &url), "{} {}", written(&pattern), written(&url));
    }

    #[test]
    fn a_wide_reading_matches_whatever_a_narrow_one_does(
        pattern in parts(&["a", "ab", "*", "a*"]),
        url in parts(&["a", "ab", "b"]),
    ) {
        let (pattern, url) = (written(&pattern), written(&url));
        if matches(&pattern, &url, PatternReading::Narrow) {
            prop_assert!(matches(&pattern, &url, PatternReading::Wide));
        }
    }
}

#[test]
fn sec_13_a_denial_sees_through_escapes_and_mapped_addresses() {
    for (pattern, url) in [
        ("https://a.example/admin/*", "https://a.example/admin%2fmcp"),
        ("http://127.0.0.1:*/*", "http://[::ffff:127.0.0.1]:80/mcp"),
        ("http://127.0.0.1:*/*", "http://[::ffff:7f00:1]/mcp"),
    ] {
        assert!(matches(pattern, url, PatternReading::Wide), "{url}");
        assert!(!matches(pattern, url, PatternReading::Narrow), "{url}");
    }
}

#[test]
fn sec_13_an_allowed_path_cannot_be_left_by_escaped_dots() {
    let pattern = "https://a.example/safe/*";
    for url in [
        "https://a.example/safe/..%2fadmin",
        "https://a.example/safe/%2e%2e%2Fadmin",
        "https://a.example/safe/..%5cadmin",
    ] {
        assert!(!matches(pattern, url, PatternReading::Narrow), "{url}");
    }
    assert!(matches(
        pattern,
        "https://a.example/safe/a..b",
        PatternReading::Narrow
    ));
}

#[test]
fn sec_53_no_spelling_of_a_denied_path_escapes() {
    let pattern = "https://a.example/admin/*";
    for path in [
        "/x/..%2fadmin/mcp",
        "/x/..%2Fadmin/mcp",
        "/x/%2e%2e%2fadmin/mcp",
        "/x/%2e%2e%2f%2e%2fadmin/mcp",
        "/x/..%5cadmin/mcp",
        "/x/..%5Cadmin%5cmcp",
        "/x%5c..%5cadmin/mcp",
        "/.%2fadmin/mcp",
        "/%2e%2fadmin/mcp",
        "/%2fadmin/mcp",
        "/x/..%252fadmin/mcp",
        "/x/%252e%252e%252fadmin/mcp",
        "/x/..%25252fadmin/mcp",
        "/admin;a=b/mcp",
        "/admin;/mcp",
        "/;a=b/admin/mcp",
        "/admin%3ba=b/mcp",
        "/x/..;/admin/mcp",
        "/x/..;a=b/admin/mcp",
        "/x/%2e%2e;/admin/mcp",
        "/x;a/..%2fadmin/mcp",
        "//admin/mcp",
        "/%2f%2fadmin%2f/mcp",
        "/ADMIN/mcp",
        "/%41dmin/mcp",
        "/%61%64%6d%69%6e/mcp",
        "/admin%2fmcp",
        "/admin%2Fmcp",
        "/admin%5cmcp",
        "/admin/",
        "/admin",
        "/admin%20/mcp",
        "/admin./mcp",
        "/admin%00/mcp",
        "/x/%c0%ae%c0%ae/admin/mcp",
        "/x/..%c0%afadmin/mcp",
        "/x/..%u2215admin/mcp",
        "/%zzadmin/mcp",
        "/x/%",
        "/x/%ff/admin",
        "/x/..%ef%bc%8fadmin/mcp",
    ] {
        let url = format!("https://a.example{path}");
        assert!(matches(pattern, &url, PatternReading::Wide), "{url}");
    }
    for path in [
        "/",
        "/x",
        "/x/admin/mcp",
        "/administer/mcp",
        "/caf%C3%A9/x",
        "/my%20x",
    ] {
        let url = format!("https://a.example{path}");
        assert!(!matches(pattern, &url, PatternReading::Wide), "{url}");
    }
}

#[test]
fn sec_53_a_permission_knows_nothing_that_is_odd() {
    let pattern = "https://a.example/safe/*";
    for path in [
        "/safe/..%2fadmin",
        "/safe/.%2fx",
        "/safe/..%252fadmin",
        "/safe/..;/admin",
        "/safe/..%3b/admin",
        "/safe;a=b/x",
        "/safe/x;a=b",
        "/safe/a%2fb",
        "/safe/a%5cb",
        "/safe//x",
        "/safe/%00",
        "/safe/%0a",
        "/safe/%zz",
        "/safe/%",
        "/safe/%c0%ae%c0%ae/x",
        "/safe/%ff",
        "/safe/%2541",
    ] {
        let url = format!("https://a.example{path}");
        assert!(!matches(pattern, &url, PatternReading::Narrow), "{url}");
    }
    for path in [
        "/safe/x",
        "/safe/",
        "/safe/a%20b",
        "/safe/caf%C3%A9",
        "/safe/%7Eme",
    ] {
        let url = format!("https://a.example{path}");
        assert!(matches(pattern, &url, PatternReading::Narrow), "{url}");
    }
    // A rule for a whole host allows every path.
    let all = "https://a.example/*";
    assert!(matches(
        all,
        "https://a.example/x;a=b//y",
        PatternReading::Narrow
    ));
}

#[test]
fn sec_53_a_denial_of_this_machine_covers_every_name_of_it() {
    let spellings = [
        "localhost",
        "LOCALHOST",
        "localhost.",
        "mcp.localhost",
        "a.b.localhost.",
        "localhost.localdomain",
        "ip6-localhost",
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "127.8.9.10",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0.0.0.0",
        "0",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:0.0.0.0]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
    ];
    for denied in [
        "localhost",
        "*.localhost",
        "127.0.0.1",
        "127.*.*.*",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "localhost.",
    ] {
        let pattern = format!("*://{denied}:*/*");
        for host in spellings {
            let url = format!("http://{host}:8080/mcp");
            assert!(
                matches(&pattern, &url, PatternReading::Wide),
                "{denied}: {url}"
            );
        }
        for host in [
            "a.example",
            "localhost.example",
            "128.0.0.1",
            "[2001:db8::1]",
            "10.0.0.1",
        ] {
            let url = format!("http://{host}:8080/mcp");
            assert!(
                !matches(&pattern, &url, PatternReading::Wide),
                "{denied}: {url}"
            );
        }
    }
    // A permission means what it says.
    for host in ["[::1]", "127.0.0.2", "x.localhost", "0.0.0.0"] {
        let url = format!("http://{host}:8080/mcp");
        assert!(
            !matches("http://localhost:*/*", &url, PatternReading::Narrow),
            "{url}"
        );
    }
    // A path or a port that is denied on this machine is denied under all its names.
    assert!(matches(
        "http://localhost:80/admin/*",
        "http://[::1]/admin/x",
        PatternReading::Wide
    ));
    assert!(!matches(
        "http://localhost:80/admin/*",
        "http://[::1]:81/admin/x",
        PatternReading::Wide
    ));
}

#[test]
fn sec_53_a_denial_of_a_web_address_covers_the_sockets_that_begin_there() {
    assert!(matches(
        "https://a.example/*",
        "wss://a.example/mcp",
        PatternReading::Wide
    ));
    assert!(matches(
        "http://a.example/*",
        "ws://a.example/mcp",
        PatternReading::Wide
    ));
    assert!(!matches(
        "https://a.example/*",
        "ws://a.example/mcp",
        PatternReading::Wide
    ));
    assert!(!matches(
        "https://a.example/*",
        "wss://a.example/mcp",
        PatternReading::Narrow
    ));
}
