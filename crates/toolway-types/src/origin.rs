//! Where a piece of configuration was written.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The place a definition came from, precise enough to open an editor at.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// A file, with the line (from 1) where the entry's key stands.
    File {
        /// The file as it was opened; shared, because all that it says carries it along.
        path: Arc<Path>,
        /// The line of the entry's key, counted from 1.
        line: u32,
    },
    /// A command-line flag whose value held the definition itself.
    Flag {
        /// The flag, e.g. `--mcp-config`.
        flag: &'static str,
        /// The line inside the flag's value, counted from 1.
        line: u32,
    },
    /// The embedding program, through the library.
    Program,
    /// The directory of connectors of an account's provider, by the provider's host.
    Directory(Arc<str>),
}

impl Origin {
    /// A line of a file, counted from 1.
    pub fn file(path: impl AsRef<Path>, line: u32) -> Self {
        let path = path.as_ref().into();
        Origin::File { path, line }
    }

    /// What `--json` shows as `source.path`: the file, or the flag's name.
    pub fn path(&self) -> String {
        match self {
            Origin::File { path, .. } => path.display().to_string(),
            Origin::Flag { flag, .. } => (*flag).to_owned(),
            Origin::Program => "(program)".to_owned(),
            Origin::Directory(host) => format!("(connectors of {host})"),
        }
    }

    /// What `--json` shows as `source.line`.
    pub fn line(&self) -> Option<u32> {
        match self {
            Origin::File { line, .. } | Origin::Flag { line, .. } => Some(*line),
            Origin::Program | Origin::Directory(_) => None,
        }
    }
}

impl fmt::Display for Origin {
    /// For people: a directory's name may hold anything, a line end or an escape included.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = crate::text::spelled_out(&self.path());
        match self.line() {
            Some(line) => write!(formatter, "{path}:{line}"),
            None => formatter.write_str(&path),
        }
    }
}
