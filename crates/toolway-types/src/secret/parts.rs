//! Which parts of a text are secrets.
//!
//! Owns the one rule for texts in which a person may have written one: the words of a command, an
//! address, a line of a log. A part is known by the name it is given to (`--api-key X`,
//! `PASSWORD=X`, `"token": "X"`), by its place (who logs in to an address, the values of a query),
//! or by a beginning that only tokens have. Does not own which values are secret wherever they
//! stand: those of `env` and `headers`, and what a journal keeps back.
//!
//! Nothing here can know a secret that has a harmless name.

use std::ops::Range;

/// What stands in a secret's place.
pub const MARK: &str = "[redacted]";

/// What follows `Bearer` and is shorter is a word.
const SHORTEST_TOKEN: usize = 12;

/// A token with a beginning of its own is at least so long.
const SHORTEST_KNOWN: usize = 20;

/// Endings of names whose values are secret, without case, `-` and `_`.
const SECRET_ENDINGS: [&str; 17] = [
    "authorization",
    "token",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "cookie",
    "credential",
    "credentials",
    "sessionid",
    "codeverifier",
    "clientassertion",
    "bearer",
];

/// Names that end so and are none: they are the protocol's own, or a list's page.
const HARMLESS: [&str; 4] = ["progresstoken", "pagetoken", "nextpagetoken", "nexttoken"];

/// Last words that mean a secret in the name of a variable or a flag, and much else in JSON.
const SECRET_LAST_WORDS: [&str; 7] = ["key", "pass", "pwd", "pat", "dsn", "auth", "pin"];

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

/// Whether a name says that its value is secret.
pub fn speaks_of_a_secret(name: &str) -> bool {
    let folded: String = name
        .chars()
        .filter(|c| !matches!(c, '-' | '_'))
        .map(|c| c.to_ascii_lowercase())
        .collect();
    SECRET_ENDINGS.iter().any(|end| folded.ends_with(end)) && !HARMLESS.contains(&folded.as_str())
}

/// Whether the name of a variable or a flag says so, where short words count too.
pub fn names_a_secret(name: &str) -> bool {
    let mut words = SECRET_LAST_WORDS.iter();
    speaks_of_a_secret(name) || words.any(|word| last_word(name).eq_ignore_ascii_case(word))
}

fn last_word(name: &str) -> &str {
    name.rsplit(['-', '_']).next().unwrap_or(name)
}

/// What of one word of a command is a secret as a whole: the value behind `--token=`, `TOKEN=` or
/// `X-Api-Key:`, or all of it behind a flag `--token` or `--header`.
pub fn of_argument(previous: &str, word: &str) -> Option<Range<usize>> {
    if let Some((name, value)) = word.split_once('=')
        && is_name(name)
    {
        let start = word.len() - value.len();
        let flag = name.trim_start_matches('-');
        if is_header_flag(name) {
            return header(value).map(|part| start + part.start..start + part.end);
        }
        return takes_a_secret(flag).then_some(start..word.len());
    }
    if is_header_flag(previous) {
        return header(word);
    }
    let flag = previous.trim_start_matches('-');
    let is_flag = flag.len() < previous.len() && is_name(previous);
    // A flag that takes no value may stand before another.
    if is_flag && takes_a_secret(flag) && !is_flag_itself(word) {
        return Some(0..word.len());
    }
    // `--header "Authorization: Bearer …"`, as bridges take it, under whichever flag.
    let (name, _) = word.split_once(':')?;
    (is_name(name) && speaks_of_a_secret(name))
        .then(|| header(word))
        .flatten()
}

/// The same for all words of a line, of which only the blanks and the quotes are known.
pub fn of_line(line: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut previous, mut at) = ("", 0);
    for word in line.split(char::is_whitespace) {
        let quotes = ['"', '\''];
        let inner = quotes
            .iter()
            .find_map(|quote| word.strip_prefix(*quote)?.strip_suffix(*quote));
        let bare = inner.unwrap_or_else(|| word.trim_start_matches(quotes));
        let start = at + word.find(bare).unwrap_or_default();
        if let Some(part) = of_argument(previous, bare) {
            parts.push(start + part.start..start + part.end);
        }
        at += word.len();
        at += line[at..].chars().next().map_or(0, char::len_utf8);
        if !bare.is_empty() {
            previous = bare;
        }
    }
    parts
}

/// The value of `Name: value`, without the scheme of an `Authorization`.
fn header(word: &str) -> Option<Range<usize>> {
    let (name, value) = word.split_once(':')?;
    let plain = ["accept", "content-type", "user-agent"];
    if plain
        .iter()
        .any(|name_of| name.trim().eq_ignore_ascii_case(name_of))
    {
        return None;
    }
    let value = value.trim_start();
    let bare = ["Bearer ", "Basic ", "Token "]
        .iter()
        .find_map(|scheme| {
            let start = value.get(..scheme.len())?;
            start
                .eq_ignore_ascii_case(scheme)
                .then(|| value[scheme.len()..].trim_start())
        })
        .unwrap_or(value);
    (!bare.is_empty()).then(|| word.len() - bare.len()..word.len())
}

fn is_header_flag(flag: &str) -> bool {
    matches!(flag, "-H" | "--header" | "--headers")
}

/// Whether what a flag is given is a secret. `--no-password` takes nothing, and `--auth none` is a
/// choice.
fn takes_a_secret(flag: &str) -> bool {
    let is_switch = ["no-", "skip-", "disable-"]
        .iter()
        .any(|start| flag.starts_with(start));
    let is_choice = ["auth", "pin"].contains(&last_word(flag).to_ascii_lowercase().as_str());
    names_a_secret(flag) && !is_switch && !is_choice
}

fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !text.is_empty() && text.chars().all(is_plain)
}

/// Whether a word is plainly a flag and no value that begins with a dash.
fn is_flag_itself(word: &str) -> bool {
    let Some(name) = word.strip_prefix("--") else {
        return word.len() == 2 && word.starts_with('-');
    };
    let name = name.split('=').next().unwrap_or(name);
    let is_plain = |c: char| c.is_ascii_lowercase() || c == '-';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_plain)
}

/// The secret parts of the addresses in a text: who logs in, and the values of queries, which often
/// are keys. By letters, because an address with variables in it is no URL yet.
pub fn of_addresses(text: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut from = 0;
    while let Some(found) = text[from..].find("://") {
        let start = from + found + "://".len();
        let length = text[start..]
            .find(|c: char| c.is_whitespace() || "\"'<>`".contains(c))
            .unwrap_or(text.len() - start);
        let end = start + length;
        let address = &text[start..end];
        let authority = address.find(['/', '\\', '?', '#']).unwrap_or(length);
        if let Some(at) = address[..authority].rfind('@')
            && at > 0
        {
            parts.push(start..start + at);
        }
        if let Some(mark) = address.find(['?', '#']) {
            let mut at = start + mark + 1;
            for pair in text[at..end].split(['&', '#', '?']) {
                let value = pair.split_once('=').map_or(pair, |(_, value)| value);
                if !value.is_empty() {
                    parts.push(at + pair.len() - value.len()..at + pair.len());
                }
                at += pair.len() + 1;
            }
        }
        from = end;
    }
    parts
}

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
    let mut parts: Vec<Range<usize>> = Vec::new();
    for (at, sign) in text.match_indices(['=', ':']) {
        if parts.last().is_some_and(|last| at < last.end) {
            continue;
        }
        let name = text[..at].trim_end_matches(['"', '\'', ' ', '\\']);
        let start = name
            .rfind(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')))
            .map_or(0, |index| {
                index + name[index..].chars().next().map_or(1, char::len_utf8)
            });
        if !speaks_of_a_secret(&name[start..]) {
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
        let mut previous = "";
        let mut line = Vec::new();
        for word in words {
            line.push(without(word, of_argument(previous, word), |_| false));
            previous = word;
        }
        line.join(" ")
    }

    #[test]
    fn what_a_flag_or_a_variable_speaks_of_is_secret() {
        for (words, expected) in [
            (&["--access-token=X"][..], "--access-token=[redacted]"),
            (&["--password", "X y"], "--password [redacted]"),
            (&["--api-key", "-X1"], "--api-key [redacted]"),
            (&["--key", "X"], "--key [redacted]"),
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
            ("://", "://"),
        ] {
            assert_eq!(without(text, of_addresses(text), |_| false), expected);
        }
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
