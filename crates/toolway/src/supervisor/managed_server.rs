//! The servers of a plan and the objects of the embedding program.
//!
//! Owns what is known of one server between reports, and the roster that a plan gives. The only
//! reader of a plan's servers in this crate. Does not own when anything starts or stops
//! (`supervisor.rs`).

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use tokio::time::Instant;
use toolway_config::{Curation, Plan, PlannedServer, ServerIdle, ServerVerdict};
use toolway_types::{
    ConnectionState, Origin, ProtocolMode, Scope, ServerName, TransportKind, TransportSpec,
};

use crate::auth::{self, written};
use crate::builtin::address;
use crate::catalog::ServerView;
use crate::connection::open_session::OpenSession;
use crate::connection::server_route::{ServedUse, makes_tasks, route_through};
use crate::connection::session_slot::SessionSlot;
use crate::connection::{ConnectionClaim, ConnectionContext, OwnInstances};
use crate::listing::ServerLists;
use crate::pins::Difference;
use crate::pool::Loading;
use crate::reconnect::Unless;
use crate::server_source::definition::definition;
use crate::server_source::{InProcessServer, ServerSource};
use crate::snapshot::{ClaimedServer, ConnectedServer, Counts, ServerSnapshot, ServerWaker};

mod offered;
mod rest;

use self::offered::OfferedServer;
use self::rest::MemberRest;

/// One server, and what to connect to if it may connect.
pub(crate) struct ManagedServer {
    pub(super) shown: ServerSnapshot,
    pub(super) source: Option<Arc<ServerSource>>,
    /// Whether a view brought it, which shares it with none and ends it with itself.
    pub(super) is_own: bool,
    /// Its hold on the connection, if it may connect.
    pub(super) claim: Option<ConnectionClaim>,
    /// Of the newest order or definition; reports from before it do not count.
    pub(super) epoch: u64,
    /// Where calls come in.
    pub(super) slot: SessionSlot,
    /// The session, while it is connected.
    pub(super) open_session: Option<Arc<OpenSession>>,
    pub(super) lists: ServerLists,
    /// How its instructions changed since it first connected.
    pub(super) instructions: Option<Difference>,
    /// Whether it has been connected since that was last ordered.
    pub(super) stood: bool,
    /// Since when it has failed.
    pub(super) failed_at: Option<Instant>,
    /// Why the attempt before this one failed.
    pub(super) trouble: Option<String>,
    /// What its entry says about when its tools are listed.
    pub(super) loading: Loading,
    /// Where it is, as its entry says, without secrets.
    pub(super) address: Option<String>,
    /// Whether it rests, and what decides that.
    pub(super) rest: MemberRest,
    /// What its entry changes about its tools.
    pub(super) curation: Arc<Curation>,
    /// Whether a server inside this program shows its tools by their own names.
    pub(super) no_prefix: bool,
    /// The digest of what it is defined as, made once.
    pub(super) definition: OnceLock<Arc<str>>,
    /// Whether its lists are those of an earlier run.
    pub(super) is_recalled: bool,
    /// Whether anything here changed since it was last published.
    pub(super) is_touched: bool,
    /// What it offers; none when its lists are new.
    pub(super) offered: Option<OfferedServer>,
    /// What was last shown of it, beside which part of the catalogue.
    last_shown: Option<(ServerView, Arc<ServerSnapshot>)>,
    last_connected: Option<Arc<ConnectedServer>>,
}

/// The servers of a host or a view, by name.
pub(crate) type Roster = BTreeMap<ServerName, ManagedServer>;

/// The plan's servers that are not shadowed, and the objects of the embedding program.
pub(crate) fn roster(
    plan: &Plan,
    objects: &[(ServerName, InProcessServer)],
    only: Option<&[ServerName]>,
) -> Roster {
    let mut members = BTreeMap::new();
    for planned in &plan.servers {
        // The winner of a name comes first; what it shadows is shown from the plan.
        if !matches!(planned.verdict, ServerVerdict::Shadowed { .. }) {
            members
                .entry(planned.name.clone())
                .or_insert_with(|| ManagedServer::planned(planned));
        }
    }
    add_objects(&mut members, plan, objects);
    for (name, member) in &mut members {
        member.no_prefix = plan.no_prefix;
        if member.source.is_some() && only.is_some_and(|only| !only.contains(name)) {
            member.source = None;
            let reason = "not selected for this run".to_owned();
            member.shown.state = ConnectionState::Disabled { reason };
        }
    }
    members
}

/// Adds objects of the embedding program to the servers of a plan.
pub(crate) fn add_objects(
    members: &mut Roster,
    plan: &Plan,
    objects: &[(ServerName, InProcessServer)],
) {
    for (name, object) in objects {
        let blocked = plan
            .blocked
            .as_ref()
            .map(|diagnosis| diagnosis.message.clone());
        if let Some(member) = members.get_mut(name) {
            member.take_object(object);
        } else {
            let mut member = ManagedServer::object(name, object, blocked);
            member.curation = Arc::new(plan.curation_of_object(name));
            members.insert(name.clone(), member);
        }
    }
}

impl ManagedServer {
    fn new(shown: ServerSnapshot, source: Option<ServerSource>) -> Self {
        Self {
            shown,
            source: source.map(Arc::new),
            is_own: false,
            claim: None,
            epoch: 0,
            slot: SessionSlot::new(),
            open_session: None,
            lists: ServerLists::default(),
            instructions: None,
            stood: false,
            failed_at: None,
            trouble: None,
            loading: Loading::Usual,
            address: None,
            rest: MemberRest::new(None),
            curation: Arc::default(),
            no_prefix: false,
            definition: OnceLock::new(),
            is_recalled: false,
            is_touched: true,
            offered: None,
            last_shown: None,
            last_connected: None,
        }
    }

    fn planned(planned: &PlannedServer) -> Self {
        let reason = planned.verdict.reason().map(ToOwned::to_owned);
        let (state, source) = match &planned.verdict {
            ServerVerdict::Admitted(spec) => (
                ConnectionState::Pending { attempt: 1 },
                Some(ServerSource::Spec(spec.clone())),
            ),
            refused => {
                let reason = reason.clone().unwrap_or_else(|| refused.word().to_owned());
                (ConnectionState::Disabled { reason }, None)
            }
        };
        let shown = ServerSnapshot {
            name: planned.name.clone(),
            scope: planned.scope,
            origin: planned.origin.clone(),
            transport: planned.transport,
            state,
            verdict_word: planned.verdict.word(),
            reason,
            counts: None,
            warnings: Vec::new(),
            rest: None,
        };
        let url = planned.definition.get("url").and_then(Value::as_str);
        Self {
            loading: Loading::of(&planned.definition),
            rest: MemberRest::new(ServerIdle::of(&planned.definition)),
            address: url.map(address),
            curation: Arc::clone(&planned.curation),
            ..Self::new(shown, source)
        }
    }

    /// The view whose roster it is brought it.
    pub(crate) fn make_own(&mut self) {
        self.is_own = true;
    }

    /// Has it not connect, for this reason.
    pub(crate) fn switch_off(&mut self, reason: &str) {
        if self.source.take().is_some() {
            let reason = reason.to_owned();
            self.shown.state = ConnectionState::Disabled { reason };
        }
    }

    /// Has it log in to this account, where it logs in at all.
    pub(crate) fn use_account(&mut self, account: &str) {
        if let Some(source) = &self.source
            && auth::target(&self.shown.name, source).is_some()
        {
            self.source = Some(Arc::new(source.as_account(account)));
        }
    }

    fn object(name: &ServerName, object: &InProcessServer, blocked: Option<String>) -> Self {
        // A policy that cannot be read admits nothing, an object of the program neither.
        let (state, source, verdict_word) = if let Some(reason) = blocked.clone() {
            (ConnectionState::Disabled { reason }, None, "refused")
        } else {
            let source = ServerSource::Object {
                server: Arc::clone(object),
                timeout: None,
                protocol: ProtocolMode::Auto,
            };
            (
                ConnectionState::Pending { attempt: 1 },
                Some(source),
                "admitted",
            )
        };
        let shown = ServerSnapshot {
            name: name.clone(),
            scope: Scope::Dynamic,
            origin: Origin::Program,
            transport: Some(TransportKind::Sdk),
            state,
            verdict_word,
            reason: blocked,
            counts: None,
            warnings: Vec::new(),
            rest: None,
        };
        Self::new(shown, source)
    }

    /// Puts the object behind the entry that names it. An entry that may not connect, or that is
    /// reached in another way, stays as it is: an object never gets around the plan.
    fn take_object(&mut self, object: &InProcessServer) {
        let Some(ServerSource::Spec(spec)) = self.source.as_deref() else {
            return;
        };
        if spec.transport == TransportSpec::Sdk {
            self.source = Some(Arc::new(ServerSource::Object {
                server: Arc::clone(object),
                timeout: spec.timeout,
                protocol: spec.protocol,
            }));
        } else {
            let word = spec.transport.kind().as_str();
            self.shown.warnings.push(format!(
                "the program's own server of this name is not used: the name is configured as `{word}`"
            ));
        }
    }

    /// Whether an order has been overtaken by what this server is now.
    pub(super) fn overtakes(&self, unless: Unless) -> bool {
        match unless {
            Unless::Never => false,
            Unless::LoggedIn => !matches!(self.shown.state, ConnectionState::NeedsAuth { .. }),
        }
    }

    /// A state of it as it is shown. What the server says to models is remembered, for the next
    /// plan may let it speak, and shown nowhere while this one does not.
    pub(super) fn outward(&self, mut state: ConnectionState) -> ConnectionState {
        if let ConnectionState::Connected(facts) = &mut state
            && self.curation.instructions_dropped.is_some()
        {
            facts.instructions = None;
        }
        state
    }

    /// How much it offers.
    fn counts(&self, view: &ServerView) -> Counts {
        Counts {
            tools: view.tools().len(),
            resources: self.lists.resources.items.len(),
            prompts: self.lists.prompts.items.len(),
        }
    }

    /// What is shown of it beside this part of the catalogue; the same value as before, while
    /// nothing has changed.
    pub(super) fn show(&mut self, view: &ServerView) -> Arc<ServerSnapshot> {
        if let Some((of, shown)) = &self.last_shown
            && !self.is_touched
            && of.is(view)
        {
            return Arc::clone(shown);
        }
        let shown = Arc::new(self.describe_now(view));
        self.last_shown = Some((view.clone(), Arc::clone(&shown)));
        shown
    }

    fn describe_now(&self, view: &ServerView) -> ServerSnapshot {
        let mut shown = self.shown.clone();
        shown.state = self.outward(shown.state);
        shown.rest = self.outward_rest();
        if self.open_session.is_none() {
            if shown.is_pending() {
                shown.warnings.extend(self.trouble.clone());
            }
            if !self.is_recalled {
                return shown;
            }
        }
        shown.counts = Some(self.counts(view));
        if self.open_session.is_some() {
            shown.warnings.extend(self.lists.warnings());
            let left_out = view.warnings().map(|warning| warning.message.clone());
            shown.warnings.extend(left_out);
        }
        shown
    }

    /// What it is a connection to, if it may connect.
    pub(super) fn claimed(&self) -> Option<ClaimedServer> {
        let logs = match &self.claim {
            Some(claim) => claim.logs(),
            None if self.is_resting() => &self.rest.logs,
            None => return None,
        };
        Some(ClaimedServer {
            source: Arc::clone(self.source.as_ref()?),
            logs: logs.clone(),
            rested: self.is_resting().then(|| self.lists.clone()),
        })
    }

    /// The way to it and what it listed, while it is connected.
    pub(super) fn connected(
        &mut self,
        context: &Arc<ConnectionContext>,
        waker: &ServerWaker,
    ) -> Option<Arc<ConnectedServer>> {
        if self.is_touched {
            self.last_connected = self.connect_to(context, waker).map(Arc::new);
        }
        self.last_connected.clone()
    }

    fn connect_to(
        &self,
        context: &Arc<ConnectionContext>,
        waker: &ServerWaker,
    ) -> Option<ConnectedServer> {
        let facts = self.open_session.as_ref()?.session.facts();
        let (name, source) = (&self.shown.name, self.source.as_ref()?);
        let refused = written::refused(source, &self.shown.origin);
        let digest = || definition(name, source).into();
        let claim = self.claim.as_ref()?;
        let instances = OwnInstances {
            key: claim.key().clone(),
            owner: Arc::clone(claim.caller()),
            origin: self.shown.origin.clone(),
            context: Arc::clone(context),
            pool: claim.pool().clone(),
            beside: Arc::clone(claim.beside()),
            habits: Arc::clone(claim.habits()),
        };
        Some(ConnectedServer {
            name: name.clone(),
            route: route_through(
                &self.slot,
                source,
                context.widener(name, source),
                refused,
                Some(instances),
                Some(ServedUse {
                    usage: Arc::clone(self.rest.usage()),
                    makes_tasks: makes_tasks(facts),
                    server: name.clone(),
                    waker: waker.clone(),
                }),
            ),
            definition: Arc::clone(self.definition.get_or_init(digest)),
            usage: Arc::clone(self.rest.usage()),
            interests: Arc::clone(claim.interests()),
            lists: self.lists.clone(),
        })
    }
}
