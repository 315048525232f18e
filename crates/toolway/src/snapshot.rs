//! What the host shows: an immutable picture of every server and of the catalogue.
//!
//! Owns the values that front-ends read. They are made by the supervisor and never change; a new
//! picture replaces the old one as a whole, so servers and catalogue always fit together.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use toolway_types::{ConnectionState, Origin, Scope, ServerName, TransportKind};

use crate::call::CallError;
use crate::catalog::Catalog;
use crate::dispatch::send::{Line, Lines};

/// All servers and the catalogue at one moment.
#[derive(Clone, Default)]
pub struct HostSnapshot {
    /// Every server of the plan that is not shadowed by another, by name.
    pub servers: Vec<ServerSnapshot>,
    /// What the connected ones offer.
    pub catalog: Arc<Catalog>,
    /// The ways to the connected ones.
    pub(crate) lines: BTreeMap<ServerName, Arc<dyn Line>>,
}

impl HostSnapshot {
    /// One server, by the name it was configured under.
    pub fn server(&self, name: &str) -> Option<&ServerSnapshot> {
        self.servers
            .iter()
            .find(|server| server.name.as_str() == name)
    }

    /// Whether no server is still connecting.
    pub fn is_settled(&self) -> bool {
        !self.servers.iter().any(ServerSnapshot::is_pending)
    }
}

impl fmt::Debug for HostSnapshot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HostSnapshot")
            .field("servers", &self.servers)
            .field("revision", &self.catalog.revision)
            .finish_non_exhaustive()
    }
}

/// A call that resolved against this picture is sent over the lines of this picture.
impl Lines for HostSnapshot {
    fn line(&self, server: &ServerName) -> Result<Arc<dyn Line>, CallError> {
        if let Some(line) = self.lines.get(server) {
            return Ok(Arc::clone(line));
        }
        let server = server.clone();
        match self
            .server(server.as_str())
            .map(|known| known.state.clone())
        {
            Some(ConnectionState::NeedsAuth { .. }) => Err(CallError::NeedsAuth { server }),
            Some(state) => Err(CallError::Unavailable { server, state }),
            None => {
                let reason = "no such server".to_owned();
                Err(CallError::Unavailable {
                    server,
                    state: ConnectionState::Disabled { reason },
                })
            }
        }
    }
}

/// One server at one moment.
#[derive(Debug, Clone)]
pub struct ServerSnapshot {
    /// Its name.
    pub name: ServerName,
    /// The scope it is configured in.
    pub scope: Scope,
    /// Where its entry stands.
    pub origin: Origin,
    /// How it is reached; unknown for an entry that could not be read.
    pub transport: Option<TransportKind>,
    /// Where its connection stands.
    pub state: ConnectionState,
    /// What the plan says of it, in one word: `admitted`, `refused`, `pending-approval`, …
    pub verdict_word: &'static str,
    /// Why the plan does not admit it.
    pub reason: Option<String>,
    /// How much it offers, once connected.
    pub counts: Option<Counts>,
    /// What is wrong with it without stopping it, one line each.
    pub warnings: Vec<String>,
}

impl ServerSnapshot {
    /// Whether it is still connecting.
    pub fn is_pending(&self) -> bool {
        matches!(self.state, ConnectionState::Pending { .. })
    }
}

/// How much a server offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Tools.
    pub tools: usize,
    /// Resources, templates not counted.
    pub resources: usize,
    /// Prompts.
    pub prompts: usize,
}
