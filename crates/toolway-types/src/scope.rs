//! The scopes a server can be configured in, in order of precedence.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A source of configuration. The derived order *is* the precedence: a later variant wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Fetched from an account's connector directory.
    Connector,
    /// Brought by an installed plugin.
    Plugin,
    /// `settings.json` in the config home.
    User,
    /// `.mcp.json` of a directory between the working directory and the home directory.
    Project,
    /// `.toolway/settings.local.json` of the project.
    Local,
    /// `--mcp-config`, `--mcp-server`, or the embedding program.
    Dynamic,
    /// `managed-settings.json` in the system directory.
    Managed,
    /// `managed-mcp.json` in the system directory: excludes every other scope.
    Enterprise,
}

impl Scope {
    /// Every scope, lowest precedence first.
    pub const ALL: [Scope; 8] = [
        Scope::Connector,
        Scope::Plugin,
        Scope::User,
        Scope::Project,
        Scope::Local,
        Scope::Dynamic,
        Scope::Managed,
        Scope::Enterprise,
    ];

    /// The word shown to people and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Connector => "connector",
            Scope::Plugin => "plugin",
            Scope::User => "user",
            Scope::Project => "project",
            Scope::Local => "local",
            Scope::Dynamic => "dynamic",
            Scope::Managed => "managed",
            Scope::Enterprise => "enterprise",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
