//! Names whose values are secrets.
//!
//! Owns the lists. A name says the same wherever it stands (`--api-key`, `API_KEY`, `"apiKey"`);
//! short words (`key`, `pass`, `auth`) say it only of variables and flags.

/// Endings of names whose values are secret, without case, `-` and `_`.
const SECRET_ENDINGS: [&str; 18] = [
    "authorization",
    "token",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "apikeys",
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
const SECRET_LAST_WORDS: [&str; 22] = [
    "auth",
    "cookies",
    "creds",
    "dsn",
    "jwt",
    "key",
    "licence",
    "license",
    "mnemonic",
    "otp",
    "pass",
    "passcode",
    "passwords",
    "pat",
    "pin",
    "pw",
    "pwd",
    "secrets",
    "sig",
    "signature",
    "totp",
    "userpass",
];

/// Last words of what takes a name and a password in one, `user:password`.
const LOGINS: [&str; 4] = ["auth", "login", "user", "username"];

/// Last words of what takes a secret or a choice, and the choices.
const CHOOSING: [&str; 2] = ["auth", "pin"];
const CHOICES: [&str; 25] = [
    "api-key",
    "api_key",
    "apikey",
    "auto",
    "basic",
    "bearer",
    "browser",
    "cli",
    "default",
    "device",
    "digest",
    "env",
    "false",
    "interactive",
    "jwt",
    "none",
    "oauth",
    "oauth2",
    "off",
    "oidc",
    "on",
    "password",
    "sso",
    "token",
    "true",
];

/// Whether a name says that its value is secret.
pub fn speaks_of_a_secret(name: &str) -> bool {
    let folded = folded(name);
    SECRET_ENDINGS.iter().any(|end| folded.ends_with(end)) && !HARMLESS.contains(&folded.as_str())
}

/// Whether the name of a variable or a flag says so, where short words count too.
pub fn names_a_secret(name: &str) -> bool {
    speaks_of_a_secret(name) || SECRET_LAST_WORDS.contains(&last_word(name).as_str())
}

/// Whether a flag or a variable, without its dashes, makes a secret of this value: `--auth none` is
/// a choice, `--user me` is a name, and an address keeps its secrets in known places.
pub(super) fn makes_secret(name: &str, value: &str) -> bool {
    let last = last_word(name);
    if is_switch(name) {
        return false;
    }
    if LOGINS.contains(&last.as_str()) && is_login(value) {
        return true;
    }
    if CHOOSING.contains(&last.as_str()) {
        return !CHOICES.contains(&value.to_ascii_lowercase().as_str());
    }
    let connects = ["connectionstring", "connstring", "connstr"];
    if connects.iter().any(|end| folded(name).ends_with(end)) {
        return !value.contains("://");
    }
    names_a_secret(name)
}

/// Whether it does so of every value.
pub(super) fn makes_secrets(name: &str) -> bool {
    let is_choosing = CHOOSING.contains(&last_word(name).as_str());
    names_a_secret(name) && !is_choosing && !is_switch(name)
}

/// Whether a flag takes nothing: `--no-password`.
fn is_switch(flag: &str) -> bool {
    let starts = ["no-", "skip-", "disable-"];
    starts.iter().any(|start| flag.starts_with(start))
}

/// Whether a value is a name and a password: `user:password`. A number behind a number is an owner
/// and a group, or an address with its port.
pub(super) fn is_login(value: &str) -> bool {
    let Some((name, password)) = value.split_once(':') else {
        return false;
    };
    let is_number = |text: &str| text.bytes().all(|byte| b"0123456789.".contains(&byte));
    let is_numbers = is_number(password) && (is_number(name) || name == "localhost");
    // Whatever a variable holds, its name is no secret.
    let is_variable =
        password.starts_with("${") && password.ends_with('}') && !password.contains(":-");
    let is_place = value.contains("://") || (name.len() == 1 && password.starts_with(['/', '\\']));
    !is_numbers && !is_variable && !is_place
}

/// Whether a flag takes headers.
pub(super) fn takes_headers(flag: &str) -> bool {
    flag == "-H" || (flag.starts_with("--") && matches!(&*last_word(flag), "header" | "headers"))
}

fn folded(name: &str) -> String {
    let letters = name.chars().filter(|c| !matches!(c, '-' | '_'));
    letters.map(|c| c.to_ascii_lowercase()).collect()
}

/// The last word of `db-pass`, `DB_PASS` and `dbPass`.
fn last_word(name: &str) -> String {
    let word = name.rsplit(['-', '_', '.']).next().unwrap_or(name);
    let is_hump = |pair: &[u8]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
    let hump = word.as_bytes().windows(2).rposition(is_hump);
    let start = hump.map_or(0, |at| at + 1);
    word[start..].to_ascii_lowercase()
}
