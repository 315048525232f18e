//! Where a configuration text comes from, and which keys a file of each kind may hold.

use std::path::Path;
use std::sync::Arc;

use toolway_types::Origin;

/// Where a text comes from.
#[derive(Debug, Clone)]
pub(crate) enum TextSource {
    /// A file.
    File(Arc<Path>),
    /// The value of a flag.
    Flag(&'static str),
    /// The embedding program.
    Program,
    /// A provider's directory of connectors.
    Directory(Arc<str>),
}

impl TextSource {
    /// A file.
    pub(crate) fn file(path: impl AsRef<Path>) -> Self {
        TextSource::File(path.as_ref().into())
    }

    /// The text that an origin points into.
    pub(crate) fn of(origin: &Origin) -> Self {
        match origin {
            Origin::File { path, .. } => TextSource::File(Arc::clone(path)),
            Origin::Flag { flag, .. } => TextSource::Flag(flag),
            Origin::Program => TextSource::Program,
            Origin::Directory(host) => TextSource::Directory(Arc::clone(host)),
        }
    }

    pub(crate) fn origin(&self, line: u32) -> Origin {
        match self {
            TextSource::File(path) => Origin::File {
                path: Arc::clone(path),
                line,
            },
            TextSource::Flag(flag) => Origin::Flag { flag, line },
            TextSource::Program => Origin::Program,
            TextSource::Directory(host) => Origin::Directory(Arc::clone(host)),
        }
    }
}

/// Which keys a file may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// The user's `settings.json`.
    User,
    /// `.toolway/settings.local.json`.
    Local,
    /// `.mcp.json`: servers only. Settings about trust are ignored with a warning (SEC-03).
    Project,
    /// `.toolway/settings.json`, which a repository may ship and Toolway does not use.
    Repository,
    /// A file or text given by `--mcp-config`: servers only.
    Flag,
    /// A plugin's `.mcp.json`, which may be a bare map of servers.
    Plugin,
    /// A plugin's manifest, of which only `mcpServers` is read.
    PluginManifest,
    /// `managed-settings.json`.
    Managed,
    /// `managed-mcp.json`.
    Enterprise,
}
