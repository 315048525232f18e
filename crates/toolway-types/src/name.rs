//! Names: of servers and accounts as people write them, and of tools as models see them.
//!
//! Owns normalisation and the flattened `mcp__<server>__<tool>` encoding. A tool's identity is
//! always the pair in [`ToolKey`]; the flattened string is only a spelling of it.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The longest exposed name that every model provider takes.
pub const MAX_EXPOSED_LEN: usize = 64;

/// The name under which the host's own tools stand. Nothing that is configured can have it.
const BUILT_IN: &str = "(built-in)";

/// Hexadecimal digits of the disambiguating suffix.
pub const SUFFIX_LEN: usize = 10;

/// A server's name as configured. Shared, because whatever a server does carries it along.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerName(Arc<str>);

/// Why a string cannot name a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is empty or white space.
    #[error("a server name must not be empty")]
    Empty,
    /// White space at an edge, which no eye sees.
    #[error("the server name `{0}` has white space at its edge")]
    HiddenSpace(String),
    /// A control or invisible character.
    #[error("the server name has an invisible character (U+{0:04X})")]
    Invisible(u32),
    /// The name under which the host's own tools stand.
    #[error("the server name `{BUILT_IN}` is the host's own")]
    Reserved,
}

/// The longest word for an account, in characters.
pub const MAX_ACCOUNT_LEN: usize = 128;

/// Why a word cannot name an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccountNameError {
    /// It is empty or white space.
    #[error("must not be empty")]
    Empty,
    /// White space at an edge, which no eye sees.
    #[error("has white space at its edge")]
    HiddenSpace,
    /// A control or invisible character.
    #[error("has an invisible character (U+{0:04X})")]
    Invisible(u32),
    /// It is too long.
    #[error("is longer than {MAX_ACCOUNT_LEN} characters")]
    Long,
}

/// Whether a user could see and type this word for an account again.
pub fn check_account(word: &str) -> Result<(), AccountNameError> {
    if word.trim().is_empty() {
        return Err(AccountNameError::Empty);
    }
    if let Some(bad) = word.chars().find(|c| crate::text::is_hidden(*c)) {
        return Err(AccountNameError::Invisible(bad as u32));
    }
    if word.trim() != word {
        return Err(AccountNameError::HiddenSpace);
    }
    if word.chars().count() > MAX_ACCOUNT_LEN {
        return Err(AccountNameError::Long);
    }
    Ok(())
}

impl ServerName {
    /// Takes a name as written, refusing what a user could not see or type again.
    pub fn new(name: impl AsRef<str>) -> Result<Self, NameError> {
        let name = name.as_ref();
        if name.trim().is_empty() {
            return Err(NameError::Empty);
        }
        if let Some(bad) = name.chars().find(|c| crate::text::is_hidden(*c)) {
            return Err(NameError::Invisible(bad as u32));
        }
        if name.trim() != name {
            return Err(NameError::HiddenSpace(name.to_owned()));
        }
        if name == BUILT_IN {
            return Err(NameError::Reserved);
        }
        Ok(Self(name.into()))
    }

    /// Who answers for the host's own tools. No server can be called this.
    pub fn built_in() -> Self {
        Self(BUILT_IN.into())
    }

    /// Whether this is the host itself.
    pub fn is_built_in(&self) -> bool {
        &*self.0 == BUILT_IN
    }

    /// The name as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name in `[A-Za-z0-9_-]`, every other character replaced by `_`.
    pub fn normalized(&self) -> String {
        normalize(&self.0)
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl TryFrom<String> for ServerName {
    type Error = NameError;

    fn try_from(name: String) -> Result<Self, NameError> {
        Self::new(name)
    }
}

impl From<ServerName> for String {
    fn from(name: ServerName) -> String {
        name.as_str().to_owned()
    }
}

/// A name as a word that can be pasted into a shell: quoted where it needs to be, and never taken
/// for a flag. People paste hints, and a repository chooses its servers' names.
pub fn as_word(name: &str) -> Cow<'_, str> {
    if name.starts_with('-') {
        return Cow::Owned(format!("-- {}", in_quotes(name)));
    }
    shell_word(name)
}

/// A word of a command line as a shell takes it.
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.:@/+%,=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(in_quotes(text))
    }
}

fn in_quotes(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Replaces every character outside `[A-Za-z0-9_-]` by `_`.
pub fn normalize(name: &str) -> String {
    name.chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect()
}

/// Normalises a connector's display name: as [`normalize`], with runs of `_` folded and trimmed.
pub fn normalize_connector(name: &str) -> String {
    let mut folded = String::new();
    for c in normalize(name).chars() {
        if c != '_' || !folded.ends_with('_') {
            folded.push(c);
        }
    }
    folded.trim_matches('_').to_owned()
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// The identity of a tool: which server, and the name that server gave it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolKey {
    /// The server.
    pub server: ServerName,
    /// The tool's own name, byte for byte.
    pub tool: String,
}

impl ToolKey {
    /// Makes a key.
    pub fn new(server: ServerName, tool: impl Into<String>) -> Self {
        Self {
            server,
            tool: tool.into(),
        }
    }

    /// `mcp__<server>__<tool>` with both parts normalised: what a user would guess. Not unique.
    pub fn spelled(&self) -> String {
        format!(
            "mcp__{}__{}",
            self.server.normalized(),
            normalize(&self.tool)
        )
    }

    /// Whether the plain spelling can be read back as this key and as no other: nothing was
    /// replaced, the border between the parts is clear, it is not too long, and it does not look
    /// like a name with a digest. Of all keys with one spelling at most one is lossless.
    pub fn is_lossless(&self) -> bool {
        let is_kept =
            self.server.normalized() == self.server.as_str() && normalize(&self.tool) == self.tool;
        let border_is_clear = !self.server.0.contains("__") && !self.server.0.ends_with('_');
        is_kept && border_is_clear && self.can_be_plain(&self.spelled())
    }

    /// The name shown to models while no other tool is spelled like it: the plain spelling, at
    /// most 64 characters of `[A-Za-z0-9_-]`. Of a lossless key it is this one's alone; others
    /// that are spelled alike go by [`ToolKey::exposed_apart`].
    pub fn exposed(&self) -> String {
        let spelled = self.spelled();
        if self.can_be_plain(&spelled) {
            spelled
        } else {
            self.suffixed(&spelled)
        }
    }

    /// The name that no other key has, and a function of this key alone: the plain spelling of a
    /// lossless one; of any other a digest of the key takes the end.
    pub fn exposed_apart(&self) -> String {
        let spelled = self.spelled();
        if self.is_lossless() {
            spelled
        } else {
            self.suffixed(&spelled)
        }
    }

    fn can_be_plain(&self, spelled: &str) -> bool {
        !self.tool.is_empty() && spelled.len() <= MAX_EXPOSED_LEN && !ends_like_suffix(spelled)
    }

    /// As [`ToolKey::exposed`], without `mcp__<server>__`: for servers inside the embedding
    /// program. Two servers may have a tool of one name, so this is not unique among servers; what
    /// could be taken for a name with a prefix keeps the prefix.
    pub fn exposed_bare(&self) -> String {
        let spelled = normalize(&self.tool);
        if self.tool.is_empty() || spelled.starts_with("mcp__") {
            return self.exposed();
        }
        let spelled = if spelled.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            // Some providers want a letter or `_` first.
            format!("_{spelled}")
        } else {
            spelled
        };
        if self.can_be_plain(&spelled) {
            spelled
        } else {
            self.suffixed(&spelled)
        }
    }

    fn suffixed(&self, spelled: &str) -> String {
        let digest = Sha256::new()
            .chain_update((self.server.0.len() as u64).to_be_bytes())
            .chain_update(self.server.as_str())
            .chain_update(&self.tool)
            .finalize();
        let suffix = &hex::encode(digest)[..SUFFIX_LEN];
        let kept = spelled.len().min(MAX_EXPOSED_LEN - SUFFIX_LEN - 1);
        format!("{}_{suffix}", &spelled[..kept])
    }
}

/// A name that [ends like](ends_like_suffix) one with a digest, without that end.
pub fn without_suffix(name: &str) -> &str {
    let end = name.len().saturating_sub(SUFFIX_LEN + 1);
    name.get(..end).unwrap_or(name)
}

/// Whether a name ends like an exposed one that a digest tells from others.
pub fn ends_like_suffix(name: &str) -> bool {
    name.len() > SUFFIX_LEN
        && name.as_bytes()[name.len() - SUFFIX_LEN - 1] == b'_'
        && name.as_bytes()[name.len() - SUFFIX_LEN..]
            .iter()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
