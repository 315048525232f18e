//! The servers of a plan and the objects of the embedding program.
//!
//! Owns what is known of one server between reports, and the roster that a plan gives. The only
//! reader of a plan's servers in this crate. Does not own when anything starts or stops
//! (`supervisor.rs`).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;
use toolway_config::{Curation, Permissions, PinPolicy, Plan, PlannedServer, ServerVerdict};
use toolway_types::name::as_word;
use toolway_types::{
    ConnectionState, Origin, ProtocolMode, Scope, ServerName, TransportKind, TransportSpec,
};

use crate::auth::written;
use crate::builtin::address;
use crate::catalog::{Catalog, EDITOR_TOOLS, ServerOffer};
use crate::connection::ConnectionContext;
use crate::connection::open_session::OpenSession;
use crate::connection::session_slot::SessionSlot;
use crate::listing::ServerLists;
use crate::offering::Offering;
use crate::pins::{Against, Difference};
use crate::pool::Loading;
use crate::reconnect::Unless;
use crate::route::Route;
use crate::server_source::definition::definition;
use crate::server_source::{InProcessServer, ServerSource};
use crate::snapshot::{Counts, ServerSnapshot};
use crate::supervisor::RunningConnection;

/// One server, and what to connect to if it may connect.
pub(crate) struct ManagedServer {
    pub(super) shown: ServerSnapshot,
    pub(super) source: Option<ServerSource>,
    /// The task that connects it, if it may connect.
    pub(super) running: Option<RunningConnection>,
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
    /// What its entry changes about its tools.
    pub(super) curation: Arc<Curation>,
    /// Whether a server inside this program shows its tools by their own names.
    pub(super) no_prefix: bool,
}

/// The plan's servers that are not shadowed, and the objects of the embedding program.
pub(crate) fn roster(
    plan: &Plan,
    objects: &[(ServerName, InProcessServer)],
    only: Option<&[ServerName]>,
) -> BTreeMap<ServerName, ManagedServer> {
    let mut members = BTreeMap::new();
    for planned in &plan.servers {
        // The winner of a name comes first; what it shadows is shown from the plan.
        if !matches!(planned.verdict, ServerVerdict::Shadowed { .. }) {
            members
                .entry(planned.name.clone())
                .or_insert_with(|| ManagedServer::planned(planned));
        }
    }
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

impl ManagedServer {
    /// The digest of what it is defined as.
    pub(super) fn definition(&self, name: &ServerName) -> Option<Arc<str>> {
        let source = self.source.as_ref()?;
        Some(definition(name, source).into())
    }

    fn new(shown: ServerSnapshot, source: Option<ServerSource>) -> Self {
        Self {
            shown,
            source,
            running: None,
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
            curation: Arc::default(),
            no_prefix: false,
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
        };
        let url = planned.definition.get("url").and_then(Value::as_str);
        Self {
            loading: Loading::of(&planned.definition),
            address: url.map(address),
            curation: Arc::clone(&planned.curation),
            ..Self::new(shown, source)
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
        };
        Self::new(shown, source)
    }

    /// Puts the object behind the entry that names it. An entry that may not connect, or that is
    /// reached in another way, stays as it is: an object never gets around the plan.
    fn take_object(&mut self, object: &InProcessServer) {
        let Some(ServerSource::Spec(spec)) = &self.source else {
            return;
        };
        if spec.transport == TransportSpec::Sdk {
            self.source = Some(ServerSource::Object {
                server: Arc::clone(object),
                timeout: spec.timeout,
                protocol: spec.protocol,
            });
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
            Unless::Later(epoch) => self.epoch != epoch,
            Unless::LoggedIn => !matches!(self.shown.state, ConnectionState::NeedsAuth { .. }),
        }
    }

    /// The way to it.
    pub(super) fn route(
        &self,
        server: &ServerName,
        context: &ConnectionContext,
    ) -> Option<Arc<dyn Route>> {
        let source = self.source.as_ref()?;
        let refused = written::refused(source, &self.shown.origin);
        Some((self.slot).route(source, context.widener(server, source), refused))
    }

    /// What it offers, without what a rule denies as a whole, so that lists need not ask.
    pub(super) fn offer(&self, name: &ServerName, permissions: &Permissions) -> ServerOffer {
        let mut offer = self.lists.offer(name);
        if self.shown.transport.is_some_and(TransportKind::is_editor) {
            offer.listed = Some(&EDITOR_TOOLS);
        }
        offer.loading = self.loading;
        offer.curation = Arc::clone(&self.curation);
        offer.bare_names = self.no_prefix && self.shown.transport == Some(TransportKind::Sdk);
        if let ConnectionState::Connected(facts) = &self.shown.state {
            let said = facts.instructions.as_ref();
            offer.instructions = said.map(|said| said.as_received().to_owned());
            let resources = facts.capabilities.get("resources");
            offer.declares_resources = resources.is_some_and(|said| !said.is_null());
        }
        self.leave_out_denied(&mut offer, permissions);
        self.hold_back(&mut offer, permissions.pins());
        offer
    }

    /// Leaves out what a rule denies as a whole, and says so once.
    fn leave_out_denied(&self, offer: &mut ServerOffer, permissions: &Permissions) {
        let name = &self.shown.name;
        let mut refused = None;
        let mut left_out = Vec::new();
        let mut denies = |offering: Offering, has_any: bool, what: &'static str| {
            let by = has_any
                .then(|| offering.denied(name, permissions))
                .flatten();
            let is_denied = by.is_some();
            if is_denied {
                left_out.push(what);
                refused = refused.take().or(by);
            }
            is_denied
        };
        let has_resources = !(offer.resources.is_empty() && offer.resource_templates.is_empty());
        if denies(Offering::ListResources, has_resources, "resources") {
            offer.resources.clear();
            offer.resource_templates.clear();
        }
        // What is not listed can still be read, unless that is denied too.
        let is_read = Offering::ReadResource.denied(name, permissions).is_none();
        offer.declares_resources &= is_read;
        if denies(Offering::ListPrompts, !offer.prompts.is_empty(), "prompts") {
            offer.prompts.clear();
        }
        let has_instructions = offer.instructions.is_some();
        if denies(Offering::ReadInstructions, has_instructions, "instructions") {
            offer.instructions = None;
        }
        if let Some(by) = refused {
            offer.remarks.push(format!(
                "its {} are left out: refused {by}",
                left_out.join(" and its ")
            ));
        }
    }

    /// Holds back instructions that changed, where a change takes a person's word (SEC-33).
    fn hold_back(&self, offer: &mut ServerOffer, policy: PinPolicy) {
        let (Some(change), Some(_)) = (&self.instructions, &offer.instructions) else {
            return;
        };
        let lines = change.lines.join(" | ");
        let found = if change.against == Against::Permitted {
            "what it says to models is not what it said when it first connected"
        } else {
            "nobody can tell whether what it says to models is what it said when it first connected"
        };
        let server = as_word(offer.server.as_str()).into_owned();
        let remark = match policy {
            PinPolicy::Off => return,
            PinPolicy::Warn => format!("{found}: {lines}"),
            PinPolicy::Ask => {
                offer.instructions = None;
                format!(
                    "{found}, so it is held back until you accept it with `toolway tools {server} \
                     --instructions --accept-change`: {lines}"
                )
            }
        };
        offer.remarks.push(remark);
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
    pub(super) fn counts(&self, catalog: &Catalog) -> Counts {
        Counts {
            tools: catalog.tools_of(&self.shown.name).len(),
            resources: self.lists.resources.items.len(),
            prompts: self.lists.prompts.items.len(),
        }
    }

    /// What is shown of it.
    pub(super) fn show(&self, catalog: &Catalog) -> ServerSnapshot {
        let mut shown = self.shown.clone();
        shown.state = self.outward(shown.state);
        if self.open_session.is_none() {
            if shown.is_pending() {
                shown.warnings.extend(self.trouble.clone());
            }
            return shown;
        }
        shown.counts = Some(self.counts(catalog));
        shown.warnings.extend(self.lists.warnings());
        let left_out = catalog
            .warnings
            .iter()
            .filter(|warning| warning.server == shown.name);
        shown
            .warnings
            .extend(left_out.map(|warning| warning.message.clone()));
        shown
    }
}
