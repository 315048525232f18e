//! The keys of an entry and of a settings file, and the mistakes people make with them.
//!
//! Owns the tables that the checks and the schema both read, so that they cannot drift apart.

use std::fmt;

use toolway_types::nearest;
use toolway_types::text::is_hidden;
pub(crate) use toolway_types::text::spelled_out;

/// What a key's value must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueShape {
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
    /// A whole number of seconds, at least 1, or `never`.
    Idle,
    /// The `oauth` object.
    Oauth,
    /// An object with these keys, exactly one of the second list among them.
    Object(
        &'static [(&'static str, ValueShape)],
        &'static [&'static str],
    ),
    /// A TCP port.
    Port,
    /// The `tools` object: what is said of single tools.
    Tools,
    /// A string of scopes separated by spaces, or an array of them.
    Scopes,
}

impl ValueShape {
    /// What a message says was expected.
    pub(crate) fn expected(self) -> &'static str {
        match self {
            ValueShape::Text | ValueShape::Word => "a string",
            ValueShape::Texts => "an array of strings",
            ValueShape::TextMap => "an object with string values",
            ValueShape::Switch => "`true` or `false`",
            ValueShape::Milliseconds => "a whole number of milliseconds",
            ValueShape::Idle => "a whole number of seconds, or `never`",
            ValueShape::Oauth | ValueShape::Object(..) | ValueShape::Tools => "an object",
            ValueShape::Port => "a port number from 1 to 65535",
            ValueShape::Scopes => "a string or an array of strings",
        }
    }
}

/// The keys of a server's entry.
pub(crate) const ENTRY: [(&str, ValueShape); 26] = [
    ("type", ValueShape::Word),
    ("command", ValueShape::Text),
    ("args", ValueShape::Texts),
    ("env", ValueShape::TextMap),
    ("cwd", ValueShape::Text),
    ("roots", ValueShape::Texts),
    ("url", ValueShape::Text),
    ("headers", ValueShape::TextMap),
    ("headersHelper", ValueShape::Text),
    ("sessionTokenFile", ValueShape::Text),
    ("oauth", ValueShape::Oauth),
    ("timeout", ValueShape::Milliseconds),
    ("requestTimeout", ValueShape::Milliseconds),
    ("protocol", ValueShape::Word),
    ("shield", ValueShape::Word),
    ("share", ValueShape::Word),
    ("idle", ValueShape::Idle),
    ("disabled", ValueShape::Switch),
    ("enabled", ValueShape::Switch),
    ("alwaysLoad", ValueShape::Switch),
    ("deferTools", ValueShape::Switch),
    ("includeTools", ValueShape::Texts),
    ("excludeTools", ValueShape::Texts),
    ("alias", ValueShape::TextMap),
    ("tools", ValueShape::Tools),
    ("instructions", ValueShape::Switch),
];

/// The names of the keys of a server's entry, in the order in which they are shown.
pub fn entry_keys() -> impl Iterator<Item = &'static str> {
    ENTRY.iter().map(|(key, _)| *key)
}

/// The keys of a tool in `tools`.
pub(crate) const TOOL: [(&str, ValueShape); 1] = [("description", ValueShape::Text)];

/// The keys of `oauth`.
pub(crate) const OAUTH: [(&str, ValueShape); 9] = [
    ("clientId", ValueShape::Text),
    ("clientSecret", ValueShape::Text),
    ("callbackPort", ValueShape::Port),
    ("authServerMetadataUrl", ValueShape::Text),
    ("scopes", ValueShape::Scopes),
    ("xaa", ValueShape::Switch),
    ("account", ValueShape::Text),
    ("workload", ValueShape::Object(&WORKLOAD, &WORKLOAD_WAYS)),
    ("allowUnannouncedPkce", ValueShape::Switch),
];

/// The keys of `workload` in `oauth`.
const WORKLOAD: [(&str, ValueShape); 4] = [
    ("tokenFile", ValueShape::Text),
    ("token", ValueShape::Text),
    ("githubActions", ValueShape::Switch),
    ("audience", ValueShape::Text),
];

/// The ways to a platform's token.
pub(crate) const WORKLOAD_WAYS: [&str; 3] = ["tokenFile", "token", "githubActions"];

/// What editors say about a key of an entry, or of an object in it.
pub(crate) fn about(key: &str) -> &'static str {
    match key {
        "type" => "The transport; `stdio` when there is a `command`.",
        "command" => "The program to start. No shell is involved.",
        "args" => "Its arguments.",
        "env" => "Its environment, beyond a short list that is inherited.",
        "cwd" => "Its working directory.",
        "url" => "The endpoint of a remote server; an editor's is found by its lock file.",
        "headers" => "Headers sent with every request.",
        "headersHelper" => "A program that prints a JSON object of headers.",
        "sessionTokenFile" => "A file whose text is sent as `Authorization: Bearer`.",
        "oauth" => "How to log in.",
        "timeout" => "The longest a call may take, in milliseconds.",
        "requestTimeout" => {
            "How long the answer to an HTTP request may take to begin, in milliseconds."
        }
        "protocol" => "Which era of the protocol to speak.",
        "shield" => {
            "Whether it is kept from writing Toolway's own files: `off`, `best-effort` or `required`."
        }
        "share" => {
            "Who shares one instance of it: `user`, `project` or `session` (each caller has its own)."
        }
        "idle" => {
            "How long it may go unused before it rests, in seconds, where one Toolway serves many; `never` keeps it connected."
        }
        "disabled" => "`true` switches the server off.",
        "enabled" => "`false` switches the server off.",
        "alwaysLoad" => "Its tools are never deferred.",
        "deferTools" => "Its tools stay out of the list until a search finds them.",
        "includeTools" => {
            "Only these of its tools are offered; `*` stands for any characters of a tool's own name."
        }
        "excludeTools" => {
            "These of its tools are not offered, even if `includeTools` has them; `*` stands for any characters."
        }
        "alias" => {
            "Other names for its tools, by their own: `{\"list_all_issues\": \"issues\"}` shows `mcp__<server>__issues`."
        }
        "tools" => "What is changed about single tools, by their own names.",
        "roots" => {
            "Directories that the server is told of as its roots; `${workspace}` is the one in which Toolway runs."
        }
        "instructions" => "`false` drops what the server says to models about itself.",
        "description" => "What models read instead of the server's description.",
        "clientId" => "A client id registered beforehand.",
        "clientSecret" => {
            "The secret of that client: a reference or a variable, never the secret itself."
        }
        "workload" => {
            "The platform's token that is the login, for machines with an identity. User, local and managed settings only."
        }
        "tokenFile" => "The file that the platform keeps the token in; it is read each time.",
        "token" => "The token: a variable or a reference, never the token itself.",
        "githubActions" => "`true` asks GitHub Actions for the job's token.",
        "audience" => "Whom the token is for, when that is not the authorization server.",
        "callbackPort" => "The fixed port of the login callback.",
        "authServerMetadataUrl" => "Where the authorization server's metadata lies.",
        "scopes" => "The scopes to ask for.",
        "account" => "Which of your logins it uses, by your word for the account.",
        "allowUnannouncedPkce" => {
            "`true` logs in where the authorization server does not say that it knows PKCE. User, local and managed settings and flags only."
        }
        "xaa" => "Log in by cross-app access; counts where `TOOLWAY_ENABLE_XAA=1` is set.",
        _ => "",
    }
}

/// The keys of a settings file that this crate understands, besides `mcpServers`.
pub(crate) const SETTINGS: [&str; 22] = [
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
    "profiles",
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

/// Spellings of other programs, too far from ours for `nearest`.
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

/// Names in backticks, separated by commas.
pub(crate) fn listed<T: fmt::Display>(names: impl IntoIterator<Item = T>) -> String {
    let names = names.into_iter().map(|name| format!("`{name}`"));
    names.collect::<Vec<_>>().join(", ")
}

/// The key as it looks, when it has hidden characters.
pub(crate) fn visible(key: &str) -> Option<String> {
    let seen: String = key.chars().filter(|c| !is_hidden(*c)).collect();
    let seen = seen.trim();
    (seen != key).then(|| seen.to_owned())
}
