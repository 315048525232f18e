//! What the host shows: an immutable snapshot of every server and of the catalogue.
//!
//! Owns the values that front-ends read. They are made by the supervisor and never change; a new
//! snapshot replaces the old one as a whole, so servers and catalogue always fit together.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use toolway_config::{Hooks, Permissions, Plan, RunLimits};
use toolway_types::{
    ConnectionState, Origin, Scope, ServerFacts, ServerName, ToolKey, TransportKind,
};

use crate::call::questions::OpenQuestion;
use crate::call::{CallError, CallFault, ServerLogs, ToolRequest, ToolTarget};
use crate::catalog::Catalog;
use crate::listing::{ListKind, ServerLists};
use crate::offering::Offering;
use crate::resource_interest::ResourceInterests;
use crate::route::{GeneralLimits, Route, Routes, unavailable};
use crate::server_source::ServerSource;
use crate::server_source::definition::ServerIdentity;
use crate::server_use::ServerUse;

mod waking;

pub(crate) use self::waking::ServerWaker;

/// All servers and the catalogue at one moment.
#[derive(Clone, Default)]
pub struct HostSnapshot {
    /// Every server of the plan that is not shadowed by another, by name.
    pub servers: Vec<Arc<ServerSnapshot>>,
    /// What the connected ones offer.
    pub catalog: Arc<Catalog>,
    /// The ways to them. Not the snapshot itself: whoever has one can look, and nothing more.
    pub(crate) routes: SnapshotRoutes,
    /// What they are connections to, in the order of `servers`; none where one may not connect.
    pub(crate) claimed: Vec<Option<ClaimedServer>>,
    /// Those that were connected, are lost, and are being brought back, by name.
    pub(crate) healing: Vec<ServerName>,
    /// Whether one that is not connected may come.
    pub(crate) awaited: bool,
    /// Whether the catalogue holds what one of them offered when it was last connected.
    pub(crate) is_remembered: bool,
    /// How many bugs ended a connection since the host started. Each was contained: that connection
    /// was torn down and tried again, and nothing else was affected.
    pub panics: u64,
    /// The open questions that whoever was given this snapshot may answer, oldest first.
    pub questions: Vec<Arc<OpenQuestion>>,
    /// What the plan says about calls.
    pub(crate) settings: Arc<CallSettings>,
}

/// What the host knows of a server that may connect.
#[derive(Clone)]
pub(crate) struct ClaimedServer {
    /// What it is defined as.
    pub(crate) source: Arc<ServerSource>,
    /// Who listens to its log.
    pub(crate) logs: ServerLogs,
    /// What it last listed, while it rests.
    pub(crate) rested: Option<ServerLists>,
}

/// What the host knows of a connected server and nobody is shown.
pub(crate) struct ConnectedServer {
    pub(crate) name: ServerName,
    /// The way to it.
    pub(crate) route: Arc<dyn Route>,
    /// The digest of what it is defined as.
    pub(crate) definition: Arc<str>,
    /// What counts its requests.
    pub(crate) usage: Arc<ServerUse>,
    /// Which of its resources are followed.
    pub(crate) interests: Arc<ResourceInterests>,
    /// What it listed, as it was received.
    pub(crate) lists: ServerLists,
}

/// What a plan says about calls, beside the servers.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallSettings {
    /// Which calls may run.
    pub permissions: Permissions,
    /// What runs around calls.
    pub hooks: Hooks,
    /// The numbers that limit a run.
    pub limits: RunLimits,
}

impl From<&Plan> for CallSettings {
    fn from(plan: &Plan) -> Self {
        Self {
            permissions: plan.permissions.clone(),
            hooks: plan.hooks.clone(),
            limits: plan.limits,
        }
    }
}

impl HostSnapshot {
    /// One server, by the name it was configured under.
    pub fn server(&self, name: &str) -> Option<&ServerSnapshot> {
        let mut servers = self.servers.iter().map(|server| &**server);
        servers.find(|server| server.name.as_str() == name)
    }

    /// What is remembered of this server is known by.
    pub(crate) fn identity(&self, server: &str) -> Option<ServerIdentity> {
        let (name, claimed) = self.claimed(server)?;
        Some(ServerIdentity::of(name, &claimed.source))
    }

    fn claimed(&self, server: &str) -> Option<(&ServerName, &ClaimedServer)> {
        let mut all = self.servers.iter().zip(&self.claimed);
        let (shown, claimed) = all.find(|(shown, _)| shown.name.as_str() == server)?;
        Some((&shown.name, claimed.as_ref()?))
    }

    /// Who listens to a server's log, or why nobody here may.
    pub(crate) fn logs(&self, server: &ServerName) -> Result<&ServerLogs, CallError> {
        // What it logs is its own words, as its instructions are.
        if let Some(refusal) = self.refusal(server, Offering::ReadInstructions) {
            return Err(refusal);
        }
        match self.claimed(server.as_str()) {
            Some((_, claimed)) => Ok(&claimed.logs),
            None => Err(self.routes.no_route(server)),
        }
    }

    /// The same with these open questions.
    pub(crate) fn with_questions(self: Arc<Self>, questions: Vec<Arc<OpenQuestion>>) -> Arc<Self> {
        if questions.is_empty() {
            return self;
        }
        let snapshot = Arc::unwrap_or_clone(self);
        Arc::new(Self {
            questions,
            ..snapshot
        })
    }

    pub(crate) fn connected(&self, server: &ServerName) -> Option<&ConnectedServer> {
        self.routes.connected(server)
    }

    /// The way to one server, or why there is none.
    pub(crate) fn route(&self, server: &ServerName) -> Result<Arc<dyn Route>, CallError> {
        self.routes.route(server)
    }

    /// The same without permission, to measure what permission costs.
    #[cfg(feature = "measure")]
    pub fn route_unpermitted(&self, server: &ServerName) -> Result<Arc<dyn Route>, CallError> {
        self.route(server)
    }

    /// The server that a call means, if it is not connected but may come: a name that models see
    /// begins with its server's.
    pub(crate) fn absent(&self, target: &ToolTarget) -> Option<&ServerSnapshot> {
        if !self.awaited {
            return None;
        }
        let may_come = |server: &&ServerSnapshot| server.may_come();
        // Where servers rest, every call comes by here: those that are connected are found at once.
        let absent = |server: &ServerName| match self.connected(server) {
            Some(_) => None,
            None => self.server(server.as_str()).filter(may_come),
        };
        match target {
            ToolTarget::Key(key) => absent(&key.server),
            ToolTarget::Exposed(name) => {
                if self.catalog.has_name(name) {
                    // It may be there from memory alone.
                    let tool = self.catalog.find(target).ok()?;
                    return absent(&tool.key.server);
                }
                let servers = self.servers.iter().map(|server| &**server);
                servers.filter(may_come).find(|server| {
                    name.strip_prefix("mcp__")
                        .and_then(|rest| rest.strip_prefix(&server.name.normalized()))
                        .is_some_and(|rest| rest.starts_with("__"))
                })
            }
        }
    }

    /// Why all of this is refused of a server, where a rule says so: better to show than an empty
    /// list.
    pub fn refusal(&self, server: &ServerName, offering: Offering) -> Option<CallError> {
        let by = offering.denied(server, &self.settings.permissions)?;
        Some(CallError::Failed(
            offering.of(server),
            CallFault::Refused(by),
        ))
    }

    /// The server that a call of the host's own is about, where it is about one.
    pub(crate) fn aim(&self, request: &ToolRequest) -> Option<ToolKey> {
        let name = match &request.target {
            ToolTarget::Exposed(name) => name,
            ToolTarget::Key(key) if key.server.is_built_in() => &key.tool,
            ToolTarget::Key(_) => return None,
        };
        let offering = Offering::named(name)?;
        let wanted = request.arguments.text("server")?;
        Some(offering.of(&self.routes.named(&wanted)?))
    }

    /// The limits where neither a call nor a server's entry says.
    pub(crate) fn general_limits(&self) -> GeneralLimits {
        GeneralLimits {
            timeout: self.settings.limits.tool_timeout,
            idle: self.settings.limits.tool_idle_timeout,
            request: self.settings.limits.request_timeout,
        }
    }

    /// How long a list that is put together from those of all connected servers may be kept, and by
    /// whom: as short as any of them says, and privately if any of them does not say otherwise.
    pub fn freshness(&self, list: ListKind) -> ListFreshness {
        if self.is_remembered {
            return ListFreshness::default();
        }
        let lists = || self.routes.connected.iter().map(|server| &server.lists);
        let ttl = lists().map(|lists| lists.ttl(list).unwrap_or_default());
        ListFreshness {
            ttl: ttl.min().unwrap_or_default(),
            is_public: lists().all(|lists| lists.is_public(list)),
        }
    }

    /// Whether no server is still connecting for the first time. One that was lost and is being
    /// brought back does not count: it can take a while, and it was there. Nor does one that rests:
    /// nobody has asked for it.
    pub fn is_settled(&self) -> bool {
        !self
            .servers
            .iter()
            .any(|server| server.is_pending() && self.healing.binary_search(&server.name).is_err())
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

/// The ways to the servers of one snapshot.
///
/// A call that resolved against a snapshot is sent to the servers of that snapshot. If a server has
/// lost its connection since, the call waits in its session slot for the next one.
#[derive(Clone, Default)]
pub(crate) struct SnapshotRoutes {
    /// Every server, by name.
    pub(crate) servers: Vec<Arc<ServerSnapshot>>,
    /// The connected ones, by name.
    pub(crate) connected: Vec<Arc<ConnectedServer>>,
    /// Wakes those that rest; none where nobody runs any.
    pub(crate) waker: Option<ServerWaker>,
}

impl SnapshotRoutes {
    fn connected(&self, server: &ServerName) -> Option<&ConnectedServer> {
        let found = self
            .connected
            .binary_search_by(|connected| connected.name.cmp(server));
        found.ok().map(|place| &*self.connected[place])
    }

    fn no_route(&self, server: &ServerName) -> CallError {
        let mut known = self.servers.iter();
        let known = known.find(|known| known.name == *server);
        let none = || ConnectionState::Disabled {
            reason: "no such server".to_owned(),
        };
        let state = known.map_or_else(none, |known| known.state.clone());
        unavailable(server.clone(), state)
    }
}

impl Routes for SnapshotRoutes {
    fn named(&self, spelled: &str) -> Option<ServerName> {
        let names = || self.servers.iter().map(|server| &server.name);
        let mut alike = names().filter(|name| name.normalized() == spelled);
        let exact = names().find(|name| name.as_str() == spelled);
        match (exact, alike.next(), alike.next()) {
            (Some(name), ..) | (None, Some(name), None) => Some(name.clone()),
            _ => None,
        }
    }

    fn definition(&self, server: &ServerName) -> Option<&Arc<str>> {
        self.connected(server)
            .map(|connected| &connected.definition)
    }

    fn route(&self, server: &ServerName) -> Result<Arc<dyn Route>, CallError> {
        if let Some(connected) = self.connected(server) {
            return Ok(Arc::clone(&connected.route));
        }
        Err(self.no_route(server))
    }
}

/// How long a list may be kept, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListFreshness {
    /// How long.
    pub ttl: Duration,
    /// Whether whoever gets it may give it to others.
    pub is_public: bool,
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
    /// How much it offers, once connected; as it was then, while it rests.
    pub counts: Option<Counts>,
    /// What is wrong with it without stopping it, one line each.
    pub warnings: Vec<String>,
    /// What is known of it while it rests; nothing while it does not.
    pub rest: Option<ServerRest>,
}

/// What is known of a server that rests: its state is `pending`, nothing is tried, and it connects
/// when something is asked of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerRest {
    /// What it said of itself when it was last connected, where that was in this run.
    pub facts: Option<Box<ServerFacts>>,
}

impl ServerSnapshot {
    /// Whether it is still connecting.
    pub fn is_pending(&self) -> bool {
        matches!(self.state, ConnectionState::Pending { .. }) && !self.is_resting()
    }

    /// Whether it rests: it is offered as it was when it was last connected, and connects when it is
    /// needed. Its state is `pending` meanwhile, but nothing is on its way.
    pub fn is_resting(&self) -> bool {
        self.rest.is_some()
    }

    /// What it said of itself: now that it is connected, or when it last was, while it rests.
    pub fn facts(&self) -> Option<&ServerFacts> {
        match (&self.state, &self.rest) {
            (ConnectionState::Connected(facts), _) => Some(facts),
            (_, Some(rest)) => rest.facts.as_deref(),
            _ => None,
        }
    }

    /// Whether it is not connected, but may be by waiting, trying or asking.
    pub(crate) fn may_come(&self) -> bool {
        let has_failed = matches!(self.state, ConnectionState::Failed(_));
        self.is_pending() || self.is_resting() || has_failed
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
