//! The host's own tools as they stand in a catalogue.
//!
//! Owns what a catalogue and the pipeline know of them. The tools themselves, and the route to
//! them, are `builtin.rs`.

use std::fmt;
use std::sync::Arc;

use toolway_types::{ServerName, ToolKey};

use crate::offering::Offering;
use crate::route::Route;

/// When a built-in tool is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Always,
    /// When any server has resources.
    WithResources,
    /// When any tool is deferred.
    WithDeferred,
}

/// A built-in tool on its way into a catalogue.
#[derive(Debug, Clone)]
pub(crate) struct CatalogBuiltin {
    /// Its identity.
    pub(crate) key: ToolKey,
    /// The name models see, and the one it has among the host's offers.
    pub(crate) name: String,
    pub(crate) answers: BuiltinBackend,
}

/// Who answers a built-in tool.
#[derive(Clone)]
pub(crate) struct BuiltinBackend {
    pub(crate) route: Arc<dyn Route>,
    pub(crate) presence: Presence,
    /// Whether it may run unless a rule or a hook has something against it.
    pub(crate) free: bool,
    /// What it asks of a server that it names.
    pub(crate) aim: Option<AimedOffering>,
}

/// What a built-in tool asks of a server.
#[derive(Clone)]
pub(crate) struct AimedOffering {
    pub(crate) offering: Offering,
    /// The way to it for one server alone.
    pub(crate) route: Arc<dyn Fn(AimedServer) -> Arc<dyn Route> + Send + Sync>,
}

/// The server that a call was judged for, and the way there.
#[derive(Clone)]
pub(crate) struct AimedServer {
    pub(crate) server: ServerName,
    pub(crate) route: Option<Arc<dyn Route>>,
}

impl fmt::Debug for AimedServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Aimed({})", self.server)
    }
}

impl BuiltinBackend {
    /// The same, for this server alone.
    pub(crate) fn aimed_at(
        &self,
        aim: &AimedOffering,
        server: ServerName,
        route: Option<Arc<dyn Route>>,
    ) -> Self {
        Self {
            route: (aim.route)(AimedServer { server, route }),
            presence: self.presence,
            free: self.free,
            aim: None,
        }
    }
}

impl fmt::Debug for BuiltinBackend {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Answers {{ free: {} }}", self.free)
    }
}
