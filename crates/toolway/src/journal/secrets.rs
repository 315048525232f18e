//! Which values of a definition must never stand in a journal.
//!
//! Owns the choice. Redacting too much only makes a log harder to read, so a value is left alone
//! only when it is plainly none:
//!
//! - headers: every value but those of `Accept`, `Content-Type` and `User-Agent`; also the words
//!   of one (`Bearer …`) and the password inside `Basic …`;
//! - the URL: user and password, also as the header they are sent in, every value of the query,
//!   and long parts of the path with letters and digits mixed, as hosted servers like to put a
//!   key there;
//! - variables that the entry declares: every value of four characters whose name speaks of a
//!   secret, and every other value of eight, except paths, addresses without a secret of their
//!   own, numbers, and short words of lower-case letters (`production`);
//! - arguments: what is given to a flag that speaks of a secret, and addresses' secrets;
//! - inherited variables: only addresses' secrets (a proxy's password).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use toolway_types::secret::parts::{Words, names_a_secret};
use toolway_types::{
    RemoteSpec, Secret, ServerSpec, ShieldMode, StdioSpec, TransportSpec, WorkingDirectory,
};
use url::Url;

use super::redact::{SHORTEST, speaks_of_a_secret};

/// A value of a name that says nothing is a secret from this length on.
const LONG: usize = 8;

/// A word of lower-case letters up to this length is a word.
const LONGEST_WORD: usize = 12;

/// A part of a path that is this long, with letters and digits, is a key.
const KEY_IN_A_PATH: usize = 20;

/// Headers that are never secret.
const PLAIN_HEADERS: [&str; 3] = ["accept", "content-type", "user-agent"];

/// The values of a definition that a journal must not show.
pub fn secrets_of(spec: &ServerSpec) -> Vec<Secret> {
    let mut found = Vec::new();
    match &spec.transport {
        TransportSpec::Stdio(spec) => of_process(spec, &mut found),
        TransportSpec::Remote(_, spec) => of_remote(spec, &mut found),
        TransportSpec::Sdk => {}
    }
    found.into_iter().map(Secret::new).collect()
}

/// The same for a process that no definition describes: its words, and the variables that it declares
/// and inherits.
pub fn secrets_of_process(
    words: impl IntoIterator<Item = String>,
    declared: BTreeMap<String, Secret>,
    inherited: BTreeMap<String, Secret>,
) -> Vec<Secret> {
    let mut words = words.into_iter();
    let spec = StdioSpec {
        command: words.next().unwrap_or_default(),
        program: None,
        args: words.collect(),
        inherited: Arc::new(inherited),
        env: declared,
        cwd: WorkingDirectory::At(PathBuf::new()),
        shield: ShieldMode::Off,
        umask: None,
    };
    let mut found = Vec::new();
    of_process(&spec, &mut found);
    found.into_iter().map(Secret::new).collect()
}

fn of_process(spec: &StdioSpec, found: &mut Vec<String>) {
    for (name, value) in &spec.env {
        let value = value.expose();
        let speaks = names_a_secret(name);
        if (speaks && value.len() >= SHORTEST) || (value.len() >= LONG && !is_plain(value)) {
            found.push(value.to_owned());
        }
        of_address(value, found);
    }
    for value in spec.inherited.values() {
        of_address(value.expose(), found);
    }
    let mut words = Words::default();
    words.read(&spec.command);
    let mut previous = "";
    for word in &spec.args {
        let part = words.read(word).map(|part| &word[part]);
        // What `-p` is given is a password in doubt, and a word in a log or a tool's name is not.
        let doubtful = std::mem::replace(&mut previous, word) == "-p";
        if let Some(value) = part.filter(|value| !(doubtful && is_plain(value))) {
            found.push(value.to_owned());
            // `--user me:word`: the password may stand alone.
            found.extend(value.split_once(':').map(|(_, word)| word.to_owned()));
        }
        // `--header "Authorization: Bearer …"`, as bridges take it.
        if let Some((name, value)) = word.split_once(':')
            && speaks_of_a_secret(name)
        {
            of_header(value.trim(), found);
        }
        of_address(word, found);
    }
}

fn of_remote(spec: &RemoteSpec, found: &mut Vec<String>) {
    of_url(&spec.url, found);
    collect_headers(&spec.headers, found);
    if let Some(helper) = &spec.headers_helper {
        of_process(&helper.process, found);
    }
}

/// The values of headers that a journal must not show.
pub(super) fn of_headers(headers: &[(String, Secret)]) -> Vec<Secret> {
    let mut found = Vec::new();
    collect_headers(headers, &mut found);
    found.into_iter().map(Secret::new).collect()
}

fn collect_headers(headers: &[(String, Secret)], found: &mut Vec<String>) {
    for (name, value) in headers {
        if !PLAIN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            of_header(value.expose(), found);
        }
    }
}

fn of_header(value: &str, found: &mut Vec<String>) {
    found.push(value.to_owned());
    let words: Vec<&str> = value.split_whitespace().collect();
    if words.len() < 2 {
        return;
    }
    for (index, word) in words.iter().enumerate() {
        // What follows a scheme is a secret however short it is.
        if word.len() >= LONG || (index == 1 && words.len() == 2 && word.len() >= SHORTEST) {
            found.push((*word).to_owned());
        }
    }
    if let [scheme, encoded] = words.as_slice()
        && scheme.eq_ignore_ascii_case("basic")
        && let Ok(pair) = base64::engine::general_purpose::STANDARD.decode(encoded)
        && let Ok(pair) = String::from_utf8(pair)
    {
        if let Some((_, password)) = pair.split_once(':') {
            found.push(password.to_owned());
        }
        found.push(pair);
    }
}

/// The secrets inside a value that is an address.
fn of_address(value: &str, found: &mut Vec<String>) {
    if value.contains("://")
        && let Ok(url) = Url::parse(value)
    {
        of_url(&url, found);
    }
}

fn of_url(url: &Url, found: &mut Vec<String>) {
    if let Some(password) = url.password() {
        found.push(password.to_owned());
        found.push(decoded(password));
        // As it is sent.
        let pair = format!("{}:{}", decoded(url.username()), decoded(password));
        found.push(base64::engine::general_purpose::STANDARD.encode(pair));
    }
    if url.username().len() >= LONG {
        found.push(url.username().to_owned());
        found.push(decoded(url.username()));
    }
    for pair in url.query().unwrap_or_default().split('&') {
        let (name, value) = pair.split_once('=').unwrap_or(("", pair));
        if value.len() >= LONG || speaks_of_a_secret(name) {
            found.push(value.to_owned());
            found.push(decoded(value));
        }
    }
    for part in url.path().split('/').chain(url.fragment()) {
        let mixed = part.bytes().any(|byte| byte.is_ascii_digit())
            && part.bytes().any(|byte| byte.is_ascii_alphabetic());
        if part.len() >= KEY_IN_A_PATH && mixed {
            found.push(part.to_owned());
            found.push(decoded(part));
        }
    }
}

fn decoded(text: &str) -> String {
    // The one decoder at hand reads forms, where a plus is a space.
    let form = format!("v={}", text.replace('+', "%2B"));
    url::form_urlencoded::parse(form.as_bytes())
        .next()
        .map_or_else(String::new, |(_, value)| value.into_owned())
}

fn is_plain(value: &str) -> bool {
    let path_like = |c: char| c.is_ascii_alphanumeric() || "/._-~ @:".contains(c);
    let is_path = (value.starts_with('/') || value.starts_with("./") || value.starts_with("~/"))
        && value[1..].contains('/')
        && value.chars().all(path_like);
    let is_number = value
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b".-:".contains(&byte));
    let is_word =
        value.len() <= LONGEST_WORD && value.bytes().all(|byte| byte.is_ascii_lowercase());
    // Its own secrets are found apart.
    let is_address = value.contains("://") && Url::parse(value).is_ok();
    is_path || is_number || is_word || is_address
}

#[cfg(test)]
mod tests;
