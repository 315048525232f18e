//! What an endpoint shows: all servers of its view, or one.
//!
//! Owns the choice, and which servers belong to it.

use toolway::config::NameForm;
use toolway::types::ServerName;

/// What an endpoint shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EndpointScope {
    /// All servers of its view.
    Merged(NameForm),
    /// One server, under its own names.
    One(ServerName),
}

impl EndpointScope {
    pub(super) fn has(&self, server: &ServerName) -> bool {
        match self {
            Self::Merged(_) => true,
            Self::One(only) => only == server,
        }
    }

    pub(super) fn is_merged(&self) -> bool {
        matches!(self, Self::Merged(_))
    }

    pub(super) fn names(&self) -> NameForm {
        match self {
            Self::Merged(names) => *names,
            Self::One(_) => NameForm::Mcp,
        }
    }
}
