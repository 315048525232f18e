//! What a server may take a text for: a path without `..`, or an address in its plainest spelling.
//!
//! Only a denial uses these forms, besides the text itself, so reading something else as a path
//! does no harm. The forms of a path are `toolway_types::url_rules`.

use toolway_types::url_rules::path_forms;

/// How often an escape may itself be escaped.
const ROUNDS: usize = 4;

/// Schemes whose address always begins with a host, however many slashes stand there, and their
/// ports.
const WEB: [(&str, &str); 5] = [
    ("http", ":80"),
    ("https", ":443"),
    ("ws", ":80"),
    ("wss", ":443"),
    ("ftp", ":21"),
];

/// Every reading of a text that differs from it.
pub(super) fn text_forms(text: &str) -> Vec<String> {
    let mut all = vec![resolved(text)];
    let mut plain = text.to_owned();
    for _ in 0..=ROUNDS {
        // Some readers stop at the first control character.
        for text in [Some(plain.as_str()), plain.split(char::is_control).next()] {
            all.extend(text.into_iter().flat_map(addresses));
        }
        let next = unescaped(&plain);
        if next == plain {
            break;
        }
        plain = next;
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Whether a `..` stands as a path segment, also percent-encoded.
pub(super) fn climbs(text: &str) -> bool {
    decoded(text)
        .split(['/', '\\'])
        .any(|segment| segment == "..")
}

/// The text as a path, without detours: `/tmp/..//./etc` is `/etc`.
fn resolved(text: &str) -> String {
    let decoded = decoded(text);
    let mut segments: Vec<&str> = Vec::new();
    for segment in decoded.split(['/', '\\']) {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            name => segments.push(name),
        }
    }
    let root = if decoded.starts_with(['/', '\\']) {
        "/"
    } else {
        ""
    };
    format!("{root}{}", segments.join("/"))
}

/// The text in lower case with the characters of a path decoded.
fn decoded(text: &str) -> String {
    text.to_lowercase()
        .replace("%2e", ".")
        .replace("%2f", "/")
        .replace("%5c", "\\")
}

/// The text read as an address: `file:/x/../etc` is `file:///etc`, and so is `/etc`.
fn addresses(text: &str) -> Vec<String> {
    const SLASHES: [char; 2] = ['/', '\\'];
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let scheme = text
        .split_once(':')
        .filter(|(scheme, _)| !scheme.is_empty() && scheme.chars().all(is_scheme));
    let Some((scheme, rest)) = scheme else {
        if !text.starts_with(SLASHES) {
            return Vec::new();
        }
        let paths = path_forms(text);
        let addresses: Vec<_> = paths.iter().map(|path| format!("file://{path}")).collect();
        return [paths, addresses].concat();
    };
    let scheme = scheme.to_ascii_lowercase();
    let port = WEB.iter().find(|it| it.0 == scheme).map(|it| it.1);
    let rest = match port {
        Some(_) => Some(rest.trim_start_matches(SLASHES)),
        None => rest
            .strip_prefix(SLASHES)
            .and_then(|rest| rest.strip_prefix(SLASHES)),
    }
    .map_or(("", rest), |rest| {
        rest.split_at(rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len()))
    });
    let host = host(rest.0, port.unwrap_or_default());
    let mut origins = match port {
        Some(port) if !host.contains(':') => vec![
            format!("{scheme}://{host}"),
            format!("{scheme}://{host}{port}"),
        ],
        // Which machine a file is on is often ignored.
        None if scheme == "file" => vec!["file://".to_owned()],
        _ => vec![format!("{scheme}://{host}")],
    };
    if port.is_none() && host.is_empty() {
        // So is the scheme, by readers that only want the path.
        origins.push("file://".to_owned());
    }
    path_forms(&format!("/{}", rest.1))
        .iter()
        .flat_map(|path| origins.iter().map(move |origin| format!("{origin}{path}")))
        .collect()
}

/// The host without user, default port and trailing dot.
fn host<'a>(authority: &'a str, port: &str) -> &'a str {
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = host.strip_suffix(port).unwrap_or(host);
    host.trim_end_matches(':').trim_end_matches('.')
}

/// The text with every escape undone once.
fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        plain.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}
