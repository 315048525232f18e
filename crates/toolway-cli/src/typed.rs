//! What is typed in place of a configured server's name: an address, or a command.
//!
//! Owns telling addresses from other words, and showing both again without secrets.

use std::net::Ipv4Addr;

use toolway_config::{address_without_secrets, words_without_secrets};
use toolway_types::TransportKind;
use toolway_types::name::shell_word;

/// Last parts of a name that are a file's rather than a host's.
const FILES: [&str; 14] = [
    "py", "js", "ts", "mjs", "cjs", "sh", "rb", "pl", "php", "jar", "exe", "go", "rs", "json",
];

/// The words of this run's command line, without those that are not UTF-8.
pub(crate) fn typed_words() -> impl Iterator<Item = String> {
    let words = std::env::args_os().skip(1);
    words.filter_map(|word| word.into_string().ok())
}

/// Words as they are typed, without secrets.
pub(crate) fn shown_line(words: &[impl AsRef<str>]) -> String {
    let shown = words_without_secrets(words.iter().map(AsRef::as_ref));
    let shown: Vec<_> = shown.iter().map(|word| shell_word(word)).collect();
    shown.join(" ")
}

/// Whether a word is a URL rather than a command.
pub(crate) fn is_url(word: &str) -> bool {
    let scheme = word.split_once("://").map(|(scheme, _)| scheme);
    scheme.and_then(TransportKind::of_scheme).is_some()
}

/// The address that a host without a scheme was meant for.
pub(crate) fn as_address(word: &str) -> Option<String> {
    let authority = word.split(['/', '?', '#']).next()?;
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok();
    let is_name = |label: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        !label.is_empty() && !label.starts_with('-') && label.chars().all(is_plain)
    };
    if !host.split('.').all(is_name) || !port.is_none_or(is_port) {
        return None;
    }
    let is_bare = authority == word && port.is_none();
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_address = host.parse::<Ipv4Addr>().is_ok();
    let is_domain = host.contains('.')
        && last.len() > 1
        && last.chars().all(|c| c.is_ascii_alphabetic())
        && !(is_bare && FILES.contains(&last));
    let scheme = if is_address || (host == "localhost" && !is_bare) {
        "http"
    } else if is_domain {
        "https"
    } else {
        return None;
    };
    Some(format!("{scheme}://{word}"))
}

/// A server that no entry describes.
#[derive(Debug, Clone)]
pub(crate) enum TypedTarget {
    Url(String),
    Command(Vec<String>),
}

impl TypedTarget {
    /// As words to type, without secrets.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Url(url) => shell_word(&address_without_secrets(url)).into_owned(),
            Self::Command(words) => shown_line(words),
        }
    }

    /// Whether all of it is shown.
    pub(crate) fn is_plain(&self) -> bool {
        match self {
            Self::Url(url) => address_without_secrets(url) == *url,
            Self::Command(words) => {
                words_without_secrets(words.iter().map(String::as_str)) == *words
            }
        }
    }

    /// The command that makes an entry of it.
    pub(crate) fn adding(&self) -> String {
        let dashes = match self {
            Self::Url(_) => "",
            Self::Command(_) => "-- ",
        };
        format!("`toolway add <name> {dashes}{}`", self.shown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_scheme_is_told_from_a_program() {
        for (word, address) in [
            ("mcp.example.com/mcp", Some("https://mcp.example.com/mcp")),
            ("mcp.example.com", Some("https://mcp.example.com")),
            ("localhost:3000/mcp", Some("http://localhost:3000/mcp")),
            ("127.0.0.1:9", Some("http://127.0.0.1:9")),
            ("10.0.0.1", Some("http://10.0.0.1")),
            ("localhost", None),
            ("server.py", None),
            ("./a.example/x", None),
            ("/usr/bin/a.b", None),
            ("npx", None),
            ("C:/server.exe", None),
            ("@scope/pkg", None),
            ("a b.example/x", None),
            ("", None),
        ] {
            assert_eq!(as_address(word).as_deref(), address, "{word}");
        }
    }
}
