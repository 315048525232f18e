//! The supervisor: which servers there are, which of them run, and the picture of it all.
//!
//! Owns the map of servers, starts and stops their connections, and publishes a new
//! [`HostSnapshot`] whenever a connection reports. The only reader of a plan's servers in this
//! crate.
//! Does not own any connection's inner life (`connection.rs`).

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use toolway_config::{Plan, PlannedServer, Verdict};
use toolway_types::{
    ConnectionState, Origin, ProtocolMode, Scope, ServerName, TransportKind, TransportSpec,
};
use tracing::info_span;

use crate::catalog::Catalog;
use crate::connection::{self, Connection, Context, InProcessServer, Lists, News, Report, Source};
use crate::session::Session;
use crate::snapshot::{Counts, HostSnapshot, ServerSnapshot};
use crate::tasks::{self, Task};

/// How many reports may wait before connections are held back.
const REPORTS_LEN: usize = 64;

/// One server, and what to connect to if it may connect.
pub(crate) struct Member {
    shown: ServerSnapshot,
    source: Option<Source>,
    session: Option<Session>,
    lists: Lists,
}

/// Owns every server of a host.
pub(crate) struct Supervisor {
    members: BTreeMap<ServerName, Member>,
    connections: Vec<Task<()>>,
    reports: mpsc::Receiver<Report>,
    published: watch::Sender<Arc<HostSnapshot>>,
    stop: CancellationToken,
}

/// Who is in: the plan's servers that nobody shadows, and the objects of the embedding program.
pub(crate) fn roster(
    plan: &Plan,
    objects: &[(ServerName, InProcessServer)],
    only: Option<&[ServerName]>,
) -> BTreeMap<ServerName, Member> {
    let mut members = BTreeMap::new();
    for planned in &plan.servers {
        // The winner of a name comes first; what it shadows is shown from the plan.
        if !matches!(planned.verdict, Verdict::Shadowed { .. }) {
            members
                .entry(planned.name.clone())
                .or_insert_with(|| Member::planned(planned));
        }
    }
    for (name, object) in objects {
        let blocked = plan
            .blocked
            .as_ref()
            .map(|diagnosis| diagnosis.message.clone());
        match members.get_mut(name) {
            Some(member) => member.take_object(object),
            None => {
                members.insert(name.clone(), Member::object(name, object, blocked));
            }
        }
    }
    for (name, member) in &mut members {
        if member.source.is_some() && only.is_some_and(|only| !only.contains(name)) {
            member.source = None;
            let reason = "not selected for this run".to_owned();
            member.shown.state = ConnectionState::Disabled { reason };
        }
    }
    members
}

impl Member {
    fn planned(planned: &PlannedServer) -> Self {
        let reason = planned.verdict.reason().map(ToOwned::to_owned);
        let (state, source) = match &planned.verdict {
            Verdict::Admitted(spec) => (
                ConnectionState::Pending { attempt: 1 },
                Some(Source::Spec(spec.clone())),
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
        Self {
            shown,
            source,
            session: None,
            lists: Lists::default(),
        }
    }

    fn object(name: &ServerName, object: &InProcessServer, blocked: Option<String>) -> Self {
        // A policy that cannot be read admits nothing, whoever brings it.
        let (state, source, verdict_word) = if let Some(reason) = blocked.clone() {
            (ConnectionState::Disabled { reason }, None, "refused")
        } else {
            let source = Source::Object {
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
        Self {
            shown,
            source,
            session: None,
            lists: Lists::default(),
        }
    }

    /// Puts the object behind the entry that names it. An entry that may not connect, or that is
    /// reached in another way, stays as it is: an object never gets around the plan.
    fn take_object(&mut self, object: &InProcessServer) {
        let Some(Source::Spec(spec)) = &self.source else {
            return;
        };
        if spec.transport == TransportSpec::Sdk {
            self.source = Some(Source::Object {
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
}

impl Supervisor {
    /// Starts every connection and publishes the first picture.
    pub(crate) fn start(
        members: BTreeMap<ServerName, Member>,
        context: &Arc<Context>,
        stop: CancellationToken,
    ) -> (Self, watch::Receiver<Arc<HostSnapshot>>) {
        let (sender, reports) = mpsc::channel(REPORTS_LEN);
        let connections = members
            .iter()
            .filter_map(|(name, member)| member.source.clone().map(|source| (name, source)))
            .map(|(name, source)| {
                let connection = Connection {
                    server: name.clone(),
                    source,
                    context: Arc::clone(context),
                    reports: sender.clone(),
                    stop: stop.clone(),
                };
                let span = info_span!("connection", server = %name);
                span.in_scope(|| tasks::spawn("connection", connection.run()))
            })
            .collect();
        let published = watch::Sender::default();
        let mut supervisor = Self {
            members,
            connections,
            reports,
            published,
            stop,
        };
        supervisor.publish();
        let pictures = supervisor.published.subscribe();
        (supervisor, pictures)
    }

    /// Takes reports until it is stopped, then waits until every connection is gone.
    pub(crate) async fn run(mut self) {
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                () = self.stop.cancelled() => break,
                // Every report that waits goes into one picture: a start with hundreds of
                // servers must not build hundreds of catalogues in a row.
                count = self.reports.recv_many(&mut batch, REPORTS_LEN) => {
                    if count == 0 {
                        // Every connection has ended; the picture stays as it is.
                        self.stop.cancelled().await;
                        break;
                    }
                    for report in batch.drain(..) {
                        self.take(report);
                    }
                    self.publish();
                }
            }
        }
        // Connections that still report must not wait for a reader that is gone.
        self.reports.close();
        for connection in std::mem::take(&mut self.connections) {
            if let Err(failure) = connection.join().await {
                tracing::warn!(%failure, "a connection did not end by itself");
            }
        }
    }

    fn take(&mut self, report: Report) {
        let Some(member) = self.members.get_mut(&report.server) else {
            return;
        };
        match report.news {
            News::Connected(connected) => {
                let facts = connected.session.facts().clone();
                member.shown.state = ConnectionState::Connected(Box::new(facts));
                member.session = Some(connected.session);
                member.lists = connected.lists;
            }
            News::Offers(lists) => member.lists = *lists,
            News::Down(state) => {
                // Connection and lists go together, so that nothing stale is ever served.
                member.shown.state = state;
                member.session = None;
                member.lists = Lists::default();
            }
        }
    }

    fn publish(&mut self) {
        let revision = self.published.borrow().catalog.revision + 1;
        let standing = || {
            self.members
                .iter()
                .filter(|(_, member)| member.session.is_some())
        };
        let catalog = Catalog::build(
            revision,
            standing().map(|(name, member)| member.lists.offer(name)),
        );
        let lines = standing()
            .filter_map(|(name, member)| {
                let session = member.session.clone()?;
                let source = member.source.as_ref()?;
                Some((name.clone(), connection::line::of(session, source)))
            })
            .collect();
        let servers = self
            .members
            .values()
            .map(|member| member.show(&catalog))
            .collect();
        self.published.send_replace(Arc::new(HostSnapshot {
            servers,
            catalog,
            lines,
        }));
    }
}

impl Member {
    fn show(&self, catalog: &Catalog) -> ServerSnapshot {
        let mut shown = self.shown.clone();
        if self.session.is_none() {
            return shown;
        }
        shown.counts = Some(Counts {
            tools: catalog.tools_of(&shown.name).len(),
            resources: self.lists.resources.items.len(),
            prompts: self.lists.prompts.items.len(),
        });
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
