//! With whom an instance of a server is shared.
//!
//! Owns the words of `share` in an entry and what an entry without one means. Who claims which
//! instance is the host's affair.

use std::path::{Path, PathBuf};

/// Who may share one instance of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ServerShare {
    /// Everything that runs for the same user.
    #[default]
    User,
    /// What works in this project.
    Project(PathBuf),
    /// Nobody: each caller has its own. The project, where the entry is a project's.
    Session(Option<PathBuf>),
}

impl ServerShare {
    /// The project whose server it is, if it is one's.
    pub fn project(&self) -> Option<&Path> {
        match self {
            Self::User => None,
            Self::Project(root) => Some(root),
            Self::Session(root) => root.as_deref(),
        }
    }
}

/// What an entry says in `share`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareMode {
    /// One instance for the user.
    User,
    /// One for each project.
    Project,
    /// One for each caller.
    Session,
}

impl ShareMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::User, Self::Project, Self::Session];

    /// The spelling in a configuration file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Session => "session",
        }
    }

    /// Reads the spelling of a configuration file.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == text)
    }
}
