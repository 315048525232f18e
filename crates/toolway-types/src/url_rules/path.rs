//! The path of a URL pattern: all that a server may take a path for, and what is odd about one.
//!
//! Owns undoing escapes, dots, parameters and slashes. Servers and what stands before them
//! disagree about each, so a denial counts with every reading and a permission with none.

use unicode_normalization::UnicodeNormalization as _;

use super::reading::PatternReading;
use crate::{replace_placeholders, wildcard};

/// How often escapes are undone. Whatever is escaped more often than that could be anything.
const DEPTH: usize = 4;

/// The most readings of one path. Whatever has more could be anything.
const MOST: usize = 200;

/// Whether a path, with what is asked of it, matches a pattern. `pattern` begins with `/`.
pub(super) fn matches(
    pattern: &str,
    path: &str,
    query: Option<&str>,
    reading: PatternReading,
) -> bool {
    // All paths include the odd ones.
    if pattern == "/*" {
        return true;
    }
    let query = query.filter(|_| pattern.contains('?'));
    if reading == PatternReading::Narrow && is_odd(path) {
        return false;
    }
    let asked = |path: &str, query: Option<&str>| match query {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let whole = known(&asked(&clean(path), query));
    let trimmed = |text: &str| text.trim_end_matches('/').to_owned();
    if wildcard::matches(pattern, &whole) || trimmed(pattern) == trimmed(&whole) {
        return true;
    }
    if reading == PatternReading::Narrow {
        return false;
    }
    let Some(readings) = readings(path) else {
        return true;
    };
    let pattern = pattern.to_lowercase();
    let queries = match query {
        None => vec![None],
        Some(query) => vec![
            Some(query.to_lowercase()),
            decode(query).map(|query| query.to_lowercase()),
        ],
    };
    readings.iter().any(|path| {
        queries.iter().any(|query| {
            let query = query.as_deref();
            [path.clone(), format!("{path}/")]
                .iter()
                .any(|path| wildcard::could_match(&pattern, &known(&asked(path, query))))
        })
    })
}

/// Undoes escapes of characters that need none, so that `%6dcp` is `mcp`.
pub(super) fn clean(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut clean = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let plain =
            escape(bytes, at).filter(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(byte));
        clean.push(plain.unwrap_or(bytes[at]));
        at += if plain.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&clean).into_owned()
}

/// Of a secret that is looked up later it is known that it is a part of this path, no more.
fn known(path: &str) -> String {
    replace_placeholders(path, |_| Some(wildcard::UNKNOWN.to_string()))
}

/// The byte that an escape stands for.
fn escape(bytes: &[u8], at: usize) -> Option<u8> {
    if bytes[at] != b'%' {
        return None;
    }
    let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
    u8::try_from(digit(at + 1)? * 16 + digit(at + 2)?).ok()
}

/// A path with its escapes undone, once; nothing where one is none, or where they are no text:
/// that is how longer forms of a dot or a slash are smuggled.
fn decode(path: &str) -> Option<String> {
    let bytes = path.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'%' {
            decoded.push(escape(bytes, at)?);
            at += 3;
        } else {
            decoded.push(bytes[at]);
            at += 1;
        }
    }
    let text = String::from_utf8(decoded).ok()?;
    (!text.contains(char::is_control)).then_some(text)
}

/// Whether a path is one that servers may read differently.
fn is_odd(path: &str) -> bool {
    let Some(decoded) = decode(path) else {
        return true;
    };
    decoded.contains(['\\', ';', '?', '#'])
        || decoded.contains("//")
        || decoded.matches('/').count() != path.matches('/').count()
        || decoded.split('/').any(|part| part == "." || part == "..")
        || decode(&decoded).is_none_or(|again| again != decoded)
}

/// Every way to read a path, in lower case; nothing when it can be read in any way. One server
/// resolves dots before it undoes escapes and hands the rest to the next, so each reading is read
/// again.
fn readings(path: &str) -> Option<Vec<String>> {
    let mut all: Vec<String> = Vec::new();
    let mut layer = vec![path.to_owned()];
    for _ in 0..=DEPTH {
        let mut next = Vec::new();
        for form in layer.iter().flat_map(|text| forms(text)) {
            if all.contains(&form) {
                continue;
            }
            let decoded = decode(&form)?;
            if decoded != form {
                next.push(decoded);
            }
            all.push(form);
            if all.len() > MOST {
                return None;
            }
        }
        if next.is_empty() {
            return Some(all);
        }
        layer = next;
    }
    None
}

/// What a path may be taken for without undoing an escape, in lower case. `text` begins with a
/// slash.
pub fn forms(text: &str) -> Vec<String> {
    let mut forms: Vec<String> = Vec::new();
    let mut add = |parts: &[&str]| {
        let parts: Vec<&str> = parts
            .iter()
            .copied()
            .filter(|part| !part.is_empty())
            .collect();
        let path = format!("/{}", parts.join("/"));
        if !forms.contains(&path) {
            forms.push(path);
        }
    };
    let text = text.to_lowercase();
    // Letters in other widths are the same to some.
    let folded = (!text.is_ascii()).then(|| text.nfkc().collect::<String>().to_lowercase());
    for text in [Some(text), folded].into_iter().flatten() {
        let slashed = text.contains('\\').then(|| text.replace('\\', "/"));
        for text in [Some(text), slashed].into_iter().flatten() {
            // What was escaped may begin a query or a fragment for the next who reads it.
            let ends = ['?', '#'].map(|end| text.find(end));
            for end in ends.into_iter().flatten().chain([text.len()]) {
                let parts: Vec<&str> = text[..end].split('/').skip(1).collect();
                let bare: Vec<&str> = parts.iter().map(|part| without_parameters(part)).collect();
                for parts in [parts, bare] {
                    // An empty part is one that `..` takes back, or none.
                    let full: Vec<&str> = parts
                        .iter()
                        .copied()
                        .filter(|part| !part.is_empty())
                        .collect();
                    add(&resolved(&parts));
                    add(&resolved(&full));
                    add(&parts);
                }
            }
        }
    }
    forms
}

/// A part of a path without what some servers take off its end: `;name=value`, blanks, dots.
fn without_parameters(part: &str) -> &str {
    let part = part.split(';').next().unwrap_or_default().trim_end();
    match part {
        "." | ".." => part,
        _ => part.trim_end_matches(['.', ' ']),
    }
}

/// A path without its dots.
fn resolved<'a>(parts: &[&'a str]) -> Vec<&'a str> {
    let mut kept = Vec::new();
    for part in parts {
        match *part {
            "." => {}
            ".." => drop(kept.pop()),
            part => kept.push(part),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::super::UrlPattern;
    use super::*;

    fn matches(pattern: &str, url: &str, reading: PatternReading) -> bool {
        let url = Url::parse(url).unwrap();
        UrlPattern::parse(pattern).unwrap().matches(&url, reading)
    }

    #[test]
    fn sec_53_tricks_that_hide_a_denied_path_do_not_add_up() {
        let pattern = "*://*/admin/*";
        for path in [
            "/x%252fz%2f..%2f%2561dmin/y",
            "/admin%3fy/z",
            "/admin%23/y",
            "/admin%253fy/z",
            "/x%2f..%2fadmin%23%3f",
            "/x;%2f..%2f%61dmin;a%2fy",
            "/y%5cb%2f..%2fadmin/x",
            "/x%2f..%2fadmin%2f%2f..%2fz",
            "/x%252f..%2f..%5c%2541dmin%3b%3fa/y",
            "/%EF%BD%81dmin%EF%BC%9Fy/z",
        ] {
            let url = format!("https://a.example{path}");
            assert!(matches(pattern, &url, PatternReading::Wide), "{url}");
        }
        for path in [
            "/x%3fy/z",
            "/x%23/admin2",
            "/a%20b;c=d/%7Eme",
            "/x?/admin/y",
        ] {
            let url = format!("https://a.example{path}");
            assert!(!matches(pattern, &url, PatternReading::Wide), "{url}");
        }
        for path in ["/safe/x%3fy", "/safe/x%23y"] {
            let url = format!("https://a.example{path}");
            assert!(
                !matches("https://a.example/safe/*", &url, PatternReading::Narrow),
                "{url}"
            );
        }
    }

    #[test]
    fn the_readings_of_a_path_are_few_or_not_counted() {
        for part in ["%2f..;%5c%25252e", "/a;b%3fc%23d", "%5cx%252f..%2f"] {
            let path = format!("/{}", part.repeat(300));
            assert!(
                readings(&path).is_none_or(|all| all.len() <= MOST),
                "{part}"
            );
        }
        let long = "/a/b-c/d".repeat(500);
        assert_eq!(readings(&long), Some(vec![long]));
    }
}
