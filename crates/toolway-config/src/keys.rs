//! The keys of an entry and of a settings file, and the mistakes people make with them.
//!
//! Owns the tables that the checks and the schema both read, so that they cannot drift apart.

use toolway_types::nearest;
use toolway_types::text::is_hidden;
pub(crate) use toolway_types::text::spelled_out;

/// What a key's value must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A string that is not empty.
    Text,
    /// A string among fixed ones.
    Word,
    /// An array of strings.
    Texts,
    /// An object whose values are strings.
    TextMap,
    /// `true` or `false`.
    Switch,
    /// A whole number of milliseconds, at least 1,000.
    Milliseconds,
    /// The `oauth` object.
    Oauth,
    /// The `workload` object of `oauth`.
    Workload,
    /// A TCP port.
    Port,
    /// The `tools` object: what is said of single tools.
    Tools,
    /// A string of scopes separated by spaces, or an array of them.
    Scopes,
}

impl Shape {
    /// What a message says was expected.
    pub(crate) fn expected(self) -> &'static str {
        match self {
            Shape::Text | Shape::Word => "a string",
            Shape::Texts => "an array of strings",
            Shape::TextMap => "an object with string values",
            Shape::Switch => "`true` or `false`",
            Shape::Milliseconds => "a whole number of milliseconds",
            Shape::Oauth | Shape::Workload | Shape::Tools => "an object",
            Shape::Port => "a port number from 1 to 65535",
            Shape::Scopes => "a string or an array of strings",
        }
    }
}

/// The keys of a server's entry.
pub(crate) const ENTRY: [(&str, Shape); 24] = [
    ("type", Shape::Word),
    ("command", Shape::Text),
    ("args", Shape::Texts),
    ("env", Shape::TextMap),
    ("cwd", Shape::Text),
    ("roots", Shape::Texts),
    ("url", Shape::Text),
    ("headers", Shape::TextMap),
    ("headersHelper", Shape::Text),
    ("sessionTokenFile", Shape::Text),
    ("oauth", Shape::Oauth),
    ("timeout", Shape::Milliseconds),
    ("requestTimeout", Shape::Milliseconds),
    ("protocol", Shape::Word),
    ("shield", Shape::Word),
    ("disabled", Shape::Switch),
    ("enabled", Shape::Switch),
    ("alwaysLoad", Shape::Switch),
    ("deferTools", Shape::Switch),
    ("includeTools", Shape::Texts),
    ("excludeTools", Shape::Texts),
    ("alias", Shape::TextMap),
    ("tools", Shape::Tools),
    ("instructions", Shape::Switch),
];

/// The names of the keys of a server's entry, in the order in which they are shown.
pub fn entry_keys() -> impl Iterator<Item = &'static str> {
    ENTRY.iter().map(|(key, _)| *key)
}

/// The keys of a tool in `tools`.
pub(crate) const TOOL: [(&str, Shape); 1] = [("description", Shape::Text)];

/// The keys of `oauth`.
pub(crate) const OAUTH: [(&str, Shape); 9] = [
    ("clientId", Shape::Text),
    ("clientSecret", Shape::Text),
    ("callbackPort", Shape::Port),
    ("authServerMetadataUrl", Shape::Text),
    ("scopes", Shape::Scopes),
    ("xaa", Shape::Switch),
    ("account", Shape::Text),
    ("workload", Shape::Workload),
    ("allowUnannouncedPkce", Shape::Switch),
];

/// The keys of `workload` in `oauth`.
pub(crate) const WORKLOAD: [(&str, Shape); 4] = [
    ("tokenFile", Shape::Text),
    ("token", Shape::Text),
    ("githubActions", Shape::Switch),
    ("audience", Shape::Text),
];

/// The keys of a settings file that this crate understands, besides `mcpServers`.
pub(crate) const SETTINGS: [&str; 21] = [
    "enabledMcpjsonServers",
    "disabledMcpjsonServers",
    "enableAllProjectMcpServers",
    "enabledMcpServers",
    "disabledMcpServers",
    "enabledPlugins",
    "projectVariables",
    "safeDirectories",
    "autoConnectIde",
    "permissions",
    "hooks",
    "allowedMcpServers",
    "deniedMcpServers",
    "allowedMcpInstructions",
    "deniedMcpInstructions",
    "env",
    "account",
    "connectors",
    "identityProvider",
    "requireCrossAppAccess",
    "insecureStorage",
];

/// What the organisation's policy is written in.
pub(crate) const POLICY_LISTS: [&str; 5] = [
    "allowedMcpServers",
    "deniedMcpServers",
    "allowedMcpInstructions",
    "deniedMcpInstructions",
    "requireCrossAppAccess",
];

/// Keys under which other programs keep their servers.
pub(crate) const FOREIGN_ROOTS: [&str; 6] = [
    "servers",
    "mcp",
    "context_servers",
    "mcp_servers",
    "mcpservers",
    "mcpServer",
];

/// Spellings that people bring from elsewhere, too far from ours for a distance to find.
const FAMILIAR: [(&str, &str); 14] = [
    ("cmd", "command"),
    ("arg", "args"),
    ("arguments", "args"),
    ("argv", "args"),
    ("environment", "env"),
    ("envs", "env"),
    ("httpUrl", "url"),
    ("serverUrl", "url"),
    ("uri", "url"),
    ("endpoint", "url"),
    ("transport", "type"),
    ("transportType", "type"),
    ("workingDirectory", "cwd"),
    ("http_headers", "headers"),
];

/// The known key an unknown one was probably meant to be.
pub(crate) fn meant(
    key: &str,
    known: impl IntoIterator<Item = &'static str>,
) -> Option<&'static str> {
    let known: Vec<_> = known.into_iter().collect();
    let familiar = FAMILIAR
        .iter()
        .find(|(wrong, _)| *wrong == key)
        .map(|(_, right)| *right);
    familiar
        .filter(|right| known.contains(right))
        .or_else(|| nearest(key, known))
}

/// The key as its writer sees it, when what they see is not what stands there.
pub(crate) fn visible(key: &str) -> Option<String> {
    let seen: String = key.chars().filter(|c| !is_hidden(*c)).collect();
    let seen = seen.trim();
    (seen != key).then(|| seen.to_owned())
}
