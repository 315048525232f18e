//! Which parts of a text are secrets.
//!
//! Owns the one rule for texts in which a user may have written one: the words of a command
//! (`words.rs`), an address (`addresses.rs`), a line of a log. A part is known by the name it is
//! given to (`--api-key X`, `PASSWORD=X`, `"token": "X"`; `names.rs`), by its place (who logs in to
//! an address, the values of a query), or by a beginning that only tokens have. Does not own which
//! values are secret wherever they stand: those of `env` and `headers`, and what a journal keeps
//! back.
//!
//! Nothing here can know a secret that has a harmless name.

mod addresses;
mod names;
mod words;

use std::ops::Range;

pub use addresses::{may_be_a_token, of_addresses};
use names::makes_secrets;
pub use names::{names_a_secret, speaks_of_a_secret};
pub use words::{Words, of_line};

/// What stands in a secret's place.
pub const MARK: &str = "[redacted]";

/// What follows `Bearer` and is shorter is a word.
const SHORTEST_TOKEN: usize = 12;

/// A token with a beginning of its own is at least so long.
const SHORTEST_KNOWN: usize = 20;

/// How tokens begin that say whose they are.
const KNOWN_TOKENS: [&str; 20] = [
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "sk-",
    "sk_live_",
    "sk_test_",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "AIza",
    "eyJ",
    "npm_",
    "pypi-",
    "hf_",
    "lin_api_",
];

/// What ends a value among others.
const ENDS: &str = "\"',;&<>)}]\\";

/// The text without the parts that may not stay.
pub fn without(
    text: &str,
    parts: impl IntoIterator<Item = Range<usize>>,
    stays: impl Fn(&str) -> bool,
) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut copied = 0;
    for part in parts {
        let Some(secret) = text.get(part.clone()) else {
            continue;
        };
        if part.start < copied || secret.is_empty() || stays(secret) {
            continue;
        }
        shown.push_str(&text[copied..part.start]);
        shown.push_str(MARK);
        copied = part.end;
    }
    shown.push_str(&text[copied..]);
    shown
}

/// Tokens that are known by how they begin.
pub fn of_known_tokens(text: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut from = 0;
    while from < text.len() {
        let rest = &text[from..];
        let length = rest
            .bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
            .count();
        let is_known = KNOWN_TOKENS.iter().any(|start| rest.starts_with(start));
        if length >= SHORTEST_KNOWN && is_known {
            parts.push(from..from + length);
        }
        from += match length {
            0 => rest.chars().next().map_or(1, char::len_utf8),
            length => length,
        };
    }
    parts
}

/// What follows the word `Bearer` or `Basic`.
pub fn of_bearers(text: &str) -> Vec<Range<usize>> {
    let lower = text.to_ascii_lowercase();
    let mut found: Vec<usize> = ["bearer ", "basic "]
        .iter()
        .flat_map(|word| lower.match_indices(word).map(|(at, _)| at + word.len()))
        .collect();
    found.sort_unstable();
    let mut parts: Vec<Range<usize>> = Vec::new();
    for start in found {
        if parts.last().is_some_and(|last| start < last.end) {
            continue;
        }
        let length = text[start..]
            .bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(byte))
            .count();
        // English prose has bearers and basics too.
        if length >= SHORTEST_TOKEN {
            parts.push(start..start + length);
        }
    }
    parts
}

/// What is given to a name that speaks of a secret: `token=…`, `"password": "…"`.
pub fn of_assignments(text: &str) -> Vec<Range<usize>> {
    assigned(text, &['=', ':'], speaks_of_a_secret)
}

/// What is given to the name of a variable or a setting: `Server=h;Pwd=…`.
pub fn of_settings(text: &str) -> Vec<Range<usize>> {
    assigned(text, &['='], |name| {
        makes_secrets(name.trim_start_matches('-'))
    })
}

/// What is given to such names by such signs.
fn assigned(text: &str, signs: &[char], is_such: impl Fn(&str) -> bool) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    for (at, sign) in text.match_indices(signs) {
        if parts.last().is_some_and(|last| at < last.end) {
            continue;
        }
        let name = text[..at].trim_end_matches(['"', '\'', ' ', '\\']);
        let start = name
            .rfind(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')))
            .map_or(0, |index| {
                index + name[index..].chars().next().map_or(1, char::len_utf8)
            });
        if !is_such(&name[start..]) {
            continue;
        }
        let behind = &text[at + 1..];
        let value = behind.trim_start_matches([' ', '"', '\'', '\\']);
        let is_bare =
            behind.starts_with(' ') && !behind.trim_start().starts_with(['"', '\'', '\\']);
        let first = at + 1 + (behind.len() - value.len());
        let ends = |c: char| c.is_whitespace() || ENDS.contains(c);
        let mut length = match value.strip_prefix("${").and_then(|rest| rest.find('}')) {
            // A variable is whole with its brace.
            Some(end) => "${".len() + end + 1,
            None => value.find(ends).unwrap_or(value.len()),
        };
        // `Authorization: Token abc`: the scheme is not the secret.
        if let Some(rest) = value[length..].strip_prefix(' ')
            && ["bearer", "basic", "token", "digest"]
                .contains(&value[..length].to_ascii_lowercase().as_str())
        {
            length += 1 + if rest.starts_with(MARK) {
                MARK.len()
            } else {
                rest.find(ends).unwrap_or(rest.len())
            };
        }
        // "the token: missing" is prose.
        let is_prose = sign == ":"
            && is_bare
            && value[..length]
                .bytes()
                .all(|byte| byte.is_ascii_lowercase());
        if length == 0 || is_prose || value.starts_with(MARK) {
            continue;
        }
        parts.push(first..first + length);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a command as they are shown.
    fn shown(words: &[&str]) -> String {
        let mut read = Words::default();
        let shown = words
            .iter()
            .map(|word| without(word, read.read(word), |_| false));
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_a_flag_or_a_variable_speaks_of_is_secret() {
        for (words, expected) in [
            (&["--access-token=X"][..], "--access-token=[redacted]"),
            (&["--password", "X y"], "--password [redacted]"),
            (&["--api-key", "-X1"], "--api-key [redacted]"),
            (&["--key", "X"], "--key [redacted]"),
            (&["--password", "X=y"], "--password [redacted]"),
            (&["--token", "WFg=="], "--token [redacted]"),
            (&["-e", "DB_PASS=a=b"], "-e DB_PASS=[redacted]"),
            (&["-H", "X-Mine: X"], "-H X-Mine: [redacted]"),
            (
                &["--header=Authorization: Bearer X"],
                "--header=Authorization: Bearer [redacted]",
            ),
            (&["Authorization:X"], "Authorization:[redacted]"),
        ] {
            assert_eq!(shown(words), expected);
        }
    }

    #[test]
    fn a_line_is_read_word_by_word() {
        for (line, expected) in [
            ("a --token X  b", "a --token [redacted]  b"),
            ("A_TOKEN='X' b", "A_TOKEN=[redacted] b"),
            ("--password   \"X\"", "--password   \"[redacted]\""),
            ("A_TOKEN='X y' b", "A_TOKEN=[redacted] b"),
            ("-H \"X-Mine: X y\" b", "-H \"X-Mine: [redacted]\" b"),
            (
                "sh -c 'a --token X' 'b'",
                "sh -c 'a --token [redacted]' 'b'",
            ),
            ("don't --token X can't", "don't --token [redacted] can't"),
            ("mysql -phunter ; a -port", "mysql -p[redacted] ; a -port"),
            ("no secret here", "no secret here"),
            ("", ""),
        ] {
            assert_eq!(without(line, of_line(line), |_| false), expected);
        }
    }

    #[test]
    fn what_says_nothing_of_a_secret_stays() {
        for words in [
            &["--use-token", "--port", "80"][..],
            &["--no-password", "server.js"],
            &["--token-file", "/run/t"],
            &["--mode=key"],
            &["-H", "Accept: text/plain"],
            &["C:\\x", "a:b", "--keyboard", "de"],
        ] {
            assert_eq!(shown(words), words.join(" "));
        }
    }

    #[test]
    fn addresses_keep_their_place_and_lose_their_secrets() {
        for (text, expected) in [
            (
                "http://me:X@h:1/p?key=X&x=1",
                "http://[redacted]@h:1/p?key=[redacted]&x=[redacted]",
            ),
            (
                "--db=postgres://u:X@db/y",
                "--db=postgres://[redacted]@db/y",
            ),
            ("http://h/?X", "http://h/?[redacted]"),
            ("http://h/a@b", "http://h/a@b"),
            (
                "see \"ws://X@h\" and https://h/#t=X",
                "see \"ws://[redacted]@h\" and https://h/#t=[redacted]",
            ),
            ("postgres://u@v:X/y@h/z", "postgres://[redacted]@h/z"),
            ("http://[::1]:80/a@b", "http://[::1]:80/a@b"),
            (
                "http://h/?a=X&b=http://u:X@h",
                "http://h/?a=[redacted]&b=[redacted]",
            ),
            ("h.example/?sig=X", "h.example/?sig=[redacted]"),
            ("why? a=b", "why? a=b"),
            ("://", "://"),
        ] {
            assert_eq!(without(text, of_addresses(text), |_| false), expected);
        }
    }

    #[test]
    fn a_part_of_a_path_that_is_no_plain_word_may_be_a_token() {
        for part in [
            "",
            "simple",
            "v4",
            "cu126",
            "nexus3",
            "npm-remote",
            "12345678",
            "_packaging",
            "InternalPackageFeed",
        ] {
            assert!(!may_be_a_token(part), "{part}");
        }
        for part in [
            "hunter2",
            "aB3-dE5_gH7",
            "0f8fad5b-d9cb-469f-a165-70867728950e",
            "kJhGfDsAqWeRtY",
            "abcdefghijklmnopqrstuvwxyz",
            "1234567890123",
            "token",
            "api-key",
        ] {
            assert!(may_be_a_token(part), "{part}");
        }
    }

    #[test]
    fn settings_in_one_text_are_known_by_their_names() {
        let text = "Server=h;Uid=sa;Pwd=X;sharedAccessKey=X==;auth=basic";
        assert_eq!(
            without(text, of_settings(text), |_| false),
            "Server=h;Uid=sa;Pwd=[redacted];sharedAccessKey=[redacted];auth=basic"
        );
    }

    #[test]
    fn tokens_are_known_by_how_they_begin() {
        let text = "run ghp_0123456789012345678901 sk-short eyes AKIA";
        assert_eq!(
            without(text, of_known_tokens(text), |_| false),
            "run [redacted] sk-short eyes AKIA"
        );
    }
}
