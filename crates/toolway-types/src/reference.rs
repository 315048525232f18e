//! A secret that a definition names and does not hold.
//!
//! Owns the reference, the word that stands for its value until a connection is made, and putting
//! values in place of those words in a text. Finding references is `toolway-config`'s work, finding
//! their values `toolway-auth`'s, and which parts of a definition hold some `server/secrets.rs`'s.

use std::fmt;
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};
use url::Url;

use crate::Secret;

/// What every word that stands for a secret begins with, and how many hexadecimal digits follow.
const WORD: &str = "toolwaysecret";
const DIGITS: usize = 32;

/// What need not be escaped in a path, and what need not anywhere else.
const IN_A_PATH: &[u8] = b"-._~!$&'()*+,;=:@";
const ANYWHERE: &[u8] = b"-._~";

/// Where the value of a reference comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReferenceKind {
    /// `${keychain:name}`: from the vault.
    Keychain,
    /// `${file:path}`: the text of a file.
    File,
    /// `${cmd:line}`: what a command prints.
    Command,
}

impl ReferenceKind {
    /// Every kind.
    pub const ALL: [ReferenceKind; 3] = [
        ReferenceKind::Keychain,
        ReferenceKind::File,
        ReferenceKind::Command,
    ];

    /// The word before the colon.
    pub fn as_str(self) -> &'static str {
        match self {
            ReferenceKind::Keychain => "keychain",
            ReferenceKind::File => "file",
            ReferenceKind::Command => "cmd",
        }
    }
}

/// A secret that is looked up when a connection is made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SecretReference {
    /// Where it comes from.
    pub kind: ReferenceKind,
    /// The name, the absolute path or the command line.
    pub target: String,
    /// The part of the definition that needs it, e.g. `headers.Authorization`.
    pub place: String,
    /// The file that the definition is in.
    pub file: Option<PathBuf>,
}

impl SecretReference {
    /// Whether a login needs it, and a connection does not.
    pub fn is_for_login(&self) -> bool {
        self.place.starts_with("oauth.")
    }

    /// Whether it stands in an address.
    pub fn is_in_address(&self) -> bool {
        self.place == "url"
    }

    /// The value in all the spellings that it is sent in: as it is, and in an address escaped.
    pub fn spellings(&self, value: &Secret) -> Vec<Secret> {
        let mut spellings = vec![value.clone()];
        if self.is_in_address() {
            for plain in [IN_A_PATH, ANYWHERE] {
                let escaped = Secret::new(escaped(value.expose(), plain));
                if !spellings.contains(&escaped) {
                    spellings.push(escaped);
                }
            }
        }
        spellings
    }

    /// The word that stands for the value. It is the same for the same reference, so that two
    /// readings of one file are equal, and has letters and digits only, so that it can stand
    /// anywhere.
    pub fn placeholder(&self) -> String {
        let mut digest = Sha256::new();
        digest.update(self.kind.as_str());
        digest.update([0]);
        digest.update(&self.target);
        format!("{WORD}{}", hex::encode(&digest.finalize()[..DIGITS / 2]))
    }
}

/// As it is written, but of a command only its first word: the others may be anything.
impl fmt::Display for SecretReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.as_str();
        match self.kind {
            ReferenceKind::Keychain | ReferenceKind::File => {
                write!(formatter, "${{{kind}:{}}}", self.target)
            }
            ReferenceKind::Command => {
                let mut words = self.target.split_whitespace();
                let first = words.next().unwrap_or_default();
                let rest = if words.next().is_some() { " …" } else { "" };
                write!(formatter, "${{{kind}:{first}{rest}}}")
            }
        }
    }
}

/// A text with something else in place of every word that stands for a secret.
pub fn replace_placeholders(text: &str, mut with: impl FnMut(&str) -> Option<String>) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(WORD) {
        let end = at + WORD.len() + DIGITS;
        let is_word = |word: &&str| {
            let mut digits = word.bytes().skip(WORD.len());
            digits.all(|byte| byte.is_ascii_hexdigit())
        };
        let found = rest.get(at..end).filter(is_word).and_then(&mut with);
        let end = if found.is_some() { end } else { at + 1 };
        replaced.push_str(&rest[..at]);
        replaced.push_str(found.as_deref().unwrap_or(&rest[at..end]));
        rest = &rest[end..];
    }
    replaced.push_str(rest);
    replaced
}

/// Values, each by the word that stands for it. One is never looked for inside another.
pub(crate) struct ReferenceValues<'a>(Vec<(String, &'a str)>);

impl<'a> ReferenceValues<'a> {
    pub(crate) fn new(references: &[SecretReference], values: &'a [Secret]) -> Self {
        let words = references.iter().map(SecretReference::placeholder);
        Self(words.zip(values.iter().map(Secret::expose)).collect())
    }

    fn of(&self, word: &str) -> Option<&'a str> {
        let found = self.0.iter().find(|(known, _)| known == word);
        found.map(|(_, value)| *value)
    }

    pub(crate) fn text(&self, text: &str) -> String {
        replace_placeholders(text, |word| self.of(word).map(str::to_owned))
    }

    pub(crate) fn secret(&self, text: &mut Secret) {
        *text = Secret::new(self.text(text.expose()));
    }

    fn part(&self, text: &str, plain: &[u8]) -> Option<String> {
        let filled = replace_placeholders(text, |word| {
            self.of(word).map(|value| escaped(value, plain))
        });
        (filled != text).then_some(filled)
    }

    /// A value is escaped, so that it is a part of an address and leads nowhere else.
    pub(crate) fn address(&self, url: &mut Url) {
        if let Some(path) = self.part(url.path(), IN_A_PATH) {
            url.set_path(&path);
        }
        if let Some(query) = url.query().and_then(|query| self.part(query, ANYWHERE)) {
            url.set_query(Some(&query));
        }
        // An address with a host, as every server has, can have both.
        if let Some(name) = self.part(url.username(), ANYWHERE) {
            let _ = url.set_username(&name);
        }
        let password = url.password().and_then(|word| self.part(word, ANYWHERE));
        if let Some(password) = password {
            let _ = url.set_password(Some(&password));
        }
    }
}

impl Secret {
    /// A text with the values of its references, in their order.
    #[must_use]
    pub fn with_secrets(&self, references: &[SecretReference], values: &[Secret]) -> Secret {
        let mut filled = self.clone();
        ReferenceValues::new(references, values).secret(&mut filled);
        filled
    }
}

fn escaped(value: &str, plain: &[u8]) -> String {
    use fmt::Write as _;
    let mut escaped = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || plain.contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            // Nothing can go wrong with a string.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}
