//! Who asks: the caller that every request carries.
//!
//! Owns a caller's identity. What requests carry of it is `caller_side.rs`; what a caller holds of a
//! host is `host/attached.rs`; what it was permitted for its session is `dispatch/answers.rs`.

use std::fmt;
use std::sync::Arc;

/// Who asks. Two callers of one host share servers, and nothing else: no answer, no question, no
/// root and no call of one is another's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// What tells it from other callers: a process, a session, a client.
    pub id: Arc<str>,
    /// What it is.
    pub kind: CallerKind,
    /// For whom it acts: the user, the subject of a token.
    pub principal: Arc<str>,
    /// What people are shown of it, and the audit says.
    pub shown: Arc<str>,
}

impl Caller {
    /// A caller that acts for the owner of the host and is shown by this name.
    pub fn new(kind: CallerKind, name: &str) -> Self {
        let name: Arc<str> = name.into();
        Self {
            id: Arc::clone(&name),
            kind,
            principal: OWNER.into(),
            shown: name,
        }
    }
}

impl Caller {
    /// Whether it is a person who is the owner of the host, by whatever name.
    pub(crate) fn is_owner(&self) -> bool {
        self.kind == CallerKind::Person && *self.principal == *OWNER && self.id == self.shown
    }
}

impl Default for Caller {
    /// The owner of the host.
    fn default() -> Self {
        Self::new(CallerKind::Person, OWNER)
    }
}

/// The principal of all that acts for whom the host runs for.
const OWNER: &str = "owner";

/// The kinds of callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallerKind {
    /// A person at a front-end of ours, or a program that embeds the host.
    Person,
    /// A model's session that this program runs.
    Agent,
    /// A client that is served over MCP.
    Client,
    /// A hook.
    Hook,
}

impl CallerKind {
    /// The word for it in the audit and to hooks.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Agent => "agent",
            Self::Client => "client",
            Self::Hook => "hook",
        }
    }
}

impl fmt::Display for CallerKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
