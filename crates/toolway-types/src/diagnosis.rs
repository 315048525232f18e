//! One thing that is wrong, said so that a user can fix it.
//!
//! Owns the shape: what, where, and how to fix it. Who finds what is elsewhere.

use crate::{Origin, ServerName};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; everything works.
    Warning,
    /// Something that was asked for does not happen.
    Error,
}

/// A finding about configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// How bad it is.
    pub severity: Severity,
    /// The server it concerns, when it concerns one.
    pub server: Option<ServerName>,
    /// Where it stands.
    pub origin: Option<Origin>,
    /// The column (from 1) in that line, when known.
    pub column: Option<u32>,
    /// One sentence, lower case, names in backticks, without the place.
    pub message: String,
    /// The exact next step, when there is one.
    pub hint: Option<String>,
}

impl Diagnosis {
    /// An error without place or hint yet.
    pub fn error(message: impl Into<String>) -> Self {
        Self::new(Severity::Error, message.into())
    }

    /// A warning without place or hint yet.
    pub fn warning(message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, message.into())
    }

    fn new(severity: Severity, message: String) -> Self {
        Self {
            severity,
            server: None,
            origin: None,
            column: None,
            message,
            hint: None,
        }
    }

    /// Says which server it concerns.
    #[must_use]
    pub fn of(mut self, server: &ServerName) -> Self {
        self.server = Some(server.clone());
        self
    }

    /// Says where it stands.
    #[must_use]
    pub fn at(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }

    /// Says in which column it stands.
    #[must_use]
    pub fn column(mut self, column: u32) -> Self {
        self.column = Some(column);
        self
    }

    /// Says how to fix it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
