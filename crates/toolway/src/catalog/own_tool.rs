//! The host's own tools as they stand in a catalogue.
//!
//! Owns what a catalogue and the pipeline know of them. The tools themselves, and the route to
//! them, are `builtin.rs`.

use std::fmt;
use std::sync::Arc;

use toolway_types::{ServerName, ToolKey};

use crate::offering::Offering;
use crate::route::Line;

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
pub(crate) struct OwnTool {
    /// The name it has among the host's offers.
    pub(crate) offered_as: String,
    /// Its identity.
    pub(crate) key: ToolKey,
    /// The name models see.
    pub(crate) name: String,
    pub(crate) presence: Presence,
    pub(crate) answers: Answers,
}

/// Who answers a built-in tool.
#[derive(Clone)]
pub(crate) struct Answers {
    pub(crate) line: Arc<dyn Line>,
    /// Whether it may run unless a rule or a hook has something against it.
    pub(crate) free: bool,
    /// What it asks of a server that it names.
    pub(crate) aim: Option<Aim>,
}

/// What a built-in tool asks of a server.
#[derive(Clone)]
pub(crate) struct Aim {
    pub(crate) offering: Offering,
    /// The way to it for one server alone.
    pub(crate) line: Arc<dyn Fn(Aimed) -> Arc<dyn Line> + Send + Sync>,
}

/// The server that a call was judged for, and the way there.
#[derive(Clone)]
pub(crate) struct Aimed {
    pub(crate) server: ServerName,
    pub(crate) line: Option<Arc<dyn Line>>,
}

impl fmt::Debug for Aimed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Aimed({})", self.server)
    }
}

impl Answers {
    /// The same, for this server alone.
    pub(crate) fn aimed_at(
        &self,
        aim: &Aim,
        server: ServerName,
        line: Option<Arc<dyn Line>>,
    ) -> Self {
        Self {
            line: (aim.line)(Aimed { server, line }),
            free: self.free,
            aim: None,
        }
    }
}

impl fmt::Debug for Answers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Answers {{ free: {} }}", self.free)
    }
}
