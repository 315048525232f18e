//! The supervisor: which servers there are, which of them run, and the snapshot of it all.
//!
//! Owns the map of servers, starts and stops their connections, and publishes a new
//! [`HostSnapshot`] whenever a connection reports. The one place where a server's state is set.
//! Orders about one server are `reconnect.rs`. Does not own any connection's inner life
//! (`connection.rs`).

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use toolway_types::{ConnectionState, ServerName};

pub(crate) use self::apply::{ApplyPlan, PlanEffects};
use crate::builtin::{Builtin, BuiltinTools, HostHandle};
use crate::catalog::Catalog;
use crate::catalog::deferral::Deferral;
use crate::connection::clock::{self, Clock};
use crate::connection::{
    ConnectionClaim, ConnectionContext, ConnectionKey, ConnectionNews, ConnectionPool,
    ConnectionReport, Instance, LeavingConnection, RetryMode,
};
use crate::event::{self, HostEvent, LoginChange, UnknownServer};
use crate::listing::ServerLists;
use crate::reconnect::{ServerOrder, ServerOrders, Unless};
use crate::snapshot::{CallSettings, HostSnapshot, ServerWaker};
pub(crate) use crate::supervisor::managed_server::{ManagedServer, Roster, add_objects, roster};
use crate::tasks::Task;

mod apply;
mod managed_server;
pub(crate) mod recall;
mod rest;

/// How many reports may wait before connections are held back.
const REPORTS_LEN: usize = 64;
/// How many orders, and how many plans, may wait.
const ORDERS_LEN: usize = 64;
/// How long a failure stands before a call may have the server tried again.
const FAILURE_STANDS: Duration = Duration::from_secs(30);

/// Owns every server of a host.
pub(crate) struct Supervisor {
    members: Roster,
    /// Tells it from all others of its pool: what is its own is shared with none.
    number: u64,
    /// Where connections are claimed.
    pool: ConnectionPool,
    /// Connections that others took over from, on their way out.
    leaving: Vec<LeavingConnection>,
    /// Lists of servers that rest, on their way to a file.
    keeping: Vec<Task<()>>,
    /// What wakes them.
    waker: ServerWaker,
    settings: Arc<CallSettings>,
    context: Arc<ConnectionContext>,
    report_to: mpsc::Sender<ConnectionReport>,
    reports: mpsc::Receiver<ConnectionReport>,
    orders: mpsc::Receiver<ServerOrder>,
    plans: mpsc::Receiver<ApplyPlan>,
    events: broadcast::Sender<HostEvent>,
    published: Arc<watch::Sender<Arc<HostSnapshot>>>,
    /// The host's own tools.
    builtin_tools: BuiltinTools,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
}

/// The host's side of a supervisor.
pub(crate) struct SupervisorHandle {
    /// Where orders about servers go.
    pub orders: ServerOrders,
    /// Where new plans go.
    pub plans: mpsc::Sender<ApplyPlan>,
    /// Every snapshot.
    pub snapshots: watch::Receiver<Arc<HostSnapshot>>,
}

impl Supervisor {
    /// Starts every connection and publishes the first snapshot.
    pub(crate) fn start(
        members: Roster,
        settings: Arc<CallSettings>,
        context: Arc<ConnectionContext>,
        pool: ConnectionPool,
        events: broadcast::Sender<HostEvent>,
        clock: Arc<dyn Clock>,
        stop: CancellationToken,
    ) -> (Self, SupervisorHandle) {
        let (report_to, reports) = mpsc::channel(REPORTS_LEN);
        let (orders_to, orders) = ServerOrders::queue(ORDERS_LEN);
        let (plans_to, plans) = mpsc::channel(ORDERS_LEN);
        let published: Arc<watch::Sender<Arc<HostSnapshot>>> = Arc::default();
        let waker = ServerWaker {
            snapshots: Arc::downgrade(&published),
            orders: orders_to.downgrade(),
        };
        let builtin_tools = BuiltinTools::new(HostHandle {
            servers: waker.clone(),
            auth: context.auth.clone(),
            connectors: context.connectors.clone(),
            runner: Arc::clone(&context.hooks),
            caller: None,
        });
        let mut supervisor = Self {
            builtin_tools,
            members: BTreeMap::new(),
            number: pool.next_number(),
            pool,
            leaving: Vec::new(),
            keeping: Vec::new(),
            waker,
            settings,
            context,
            report_to,
            reports,
            orders,
            plans,
            events,
            published,
            clock,
            stop,
        };
        for (name, mut member) in members {
            let standing = supervisor.enter(&mut member);
            supervisor.members.insert(name, member);
            supervisor.take_standing(standing);
        }
        supervisor.publish(&[]);
        let handle = SupervisorHandle {
            orders: orders_to,
            plans: plans_to,
            snapshots: supervisor.published.subscribe(),
        };
        (supervisor, handle)
    }

    /// Adds tools of the embedding program to the host's own.
    pub(crate) fn add_builtins(&mut self, tools: Vec<Builtin>) {
        if !tools.is_empty() {
            self.builtin_tools.add(tools);
            self.publish(&[]);
        }
    }

    /// Takes reports, orders and plans until it is stopped, then waits until every connection is
    /// gone. A bug in one step costs that step and nothing else.
    pub(crate) async fn run(mut self) {
        let mut batch = Vec::new();
        let mut watch = None;
        let mut look = tokio::time::interval(clock::LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.stop.cancelled() => break,
                // Every report that waits goes into one snapshot: a start with hundreds of
                // servers must not build hundreds of catalogues in a row.
                _ = self.reports.recv_many(&mut batch, REPORTS_LEN) => {
                    let mut changed = Vec::new();
                    // A resource's content is no part of the snapshot.
                    let is_shown =
                        |report: &ConnectionReport| !matches!(report.news, ConnectionNews::Updated(_));
                    let seen = batch.iter().any(is_shown);
                    for report in batch.drain(..) {
                        self.contained(|this| this.take(report, &mut changed));
                    }
                    if seen {
                        self.contained(|this| this.publish(&changed));
                    }
                }
                _ = look.tick() => self.contained(|this| {
                    let clock = || clock::SleepDetector::new(Arc::clone(&this.clock));
                    if watch.get_or_insert_with(clock).slept() {
                        this.resume();
                    }
                    this.look_for_rest();
                }),
                Some(order) = self.orders.recv() => self.contained(|this| this.carry_out(order)),
                plan = self.plans.recv() => match plan {
                    Some(plan) => self.contained(|this| this.take_plan(plan)),
                    // The host is gone without a word; its drop aborts this task as well.
                    None => break,
                },
            }
        }
        self.stop.cancel();
        // Connections that still report must not wait for a reader that is gone.
        self.reports.close();
        let members = std::mem::take(&mut self.members).into_values();
        let claims: Vec<_> = members.filter_map(|member| member.claim).collect();
        for claim in &claims {
            claim.beside().stop();
        }
        let claims = claims.into_iter();
        let mut leaving = std::mem::take(&mut self.leaving);
        leaving.extend(claims.filter_map(ConnectionClaim::release));
        leaving.iter().for_each(LeavingConnection::stop);
        for connection in leaving {
            connection.gone().await;
        }
    }

    /// Takes one step. Everything a step changes is complete in itself, so after a bug the rest
    /// goes on; the caller of the step gets no answer.
    fn contained(&mut self, step: impl FnOnce(&mut Self)) {
        if catch_unwind(AssertUnwindSafe(|| step(self))).is_err() {
            let count = self.context.panics.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::error!(count, "a bug ended a step of the supervisor");
        }
    }

    /// The machine slept: every connection is looked after.
    fn resume(&mut self) {
        tracing::info!("the machine slept, or the program was stopped: looking after every server");
        let claims = self.members.values().filter_map(|it| it.claim.as_ref());
        claims.for_each(ConnectionClaim::resume);
    }

    // In these two the caller may be gone; what was asked for is done all the same.
    fn carry_out(&mut self, order: ServerOrder) {
        match order {
            ServerOrder::Reconnect {
                server,
                unless,
                done,
            } => {
                let _ = done.send(self.reconnect(server, unless));
            }
            ServerOrder::Revive { server, done } => {
                self.revive(&server);
                let _ = done.send(());
            }
            ServerOrder::Wake { servers, done } => {
                self.wake(&servers);
                let _ = done.send(());
            }
        }
    }

    fn take_plan(&mut self, plan: ApplyPlan) {
        let changes = self.apply(plan.members, plan.settings, plan.anew);
        let _ = plan.done.send(changes);
    }

    fn reconnect(&mut self, server: String, unless: Unless) -> Result<(), UnknownServer> {
        let Some(member) = self.member(&server) else {
            return Err(UnknownServer(server));
        };
        let is_meant = !member.overtakes(unless);
        let has_claim = member.claim.is_some();
        if is_meant && !self.wake_anew(&server) && has_claim {
            self.begin_anew(&server, RetryMode::AsFirst);
        }
        Ok(())
    }

    fn member(&mut self, server: &str) -> Option<&mut ManagedServer> {
        let mut members = self.members.iter_mut();
        members.find_map(|(name, member)| (name.as_str() == server).then_some(member))
    }

    fn begin_anew(&mut self, server: &str, tries: RetryMode) {
        let events = self.events.clone();
        if let Some(member) = self.member(server) {
            member.begin_anew(tries, &events);
            let name = member.shown.name.clone();
            self.publish(&[name]);
        }
    }

    /// Has a failed server tried once more, unless that was done a moment ago.
    fn revive(&mut self, server: &str) {
        let has_rested = |member: &mut ManagedServer| {
            let rested = member.failed_at.map(|at| at.elapsed() >= FAILURE_STANDS);
            rested.unwrap_or_default() && member.claim.is_some()
        };
        if self.member(server).is_some_and(has_rested) {
            self.begin_anew(server, RetryMode::Once);
        }
    }

    /// Claims a member's connection, if it may connect; gives what is known of it already.
    fn claim(&mut self, member: &mut ManagedServer) -> Option<ConnectionReport> {
        let source = member.source.clone()?;
        let key = ConnectionKey {
            server: member.shown.name.clone(),
            credentials: self.context.credentials.of_source(&source),
            source,
            instance: if member.is_own {
                Instance::View(self.number)
            } else {
                Instance::Shared
            },
        };
        let origin = &member.shown.origin;
        let (context, logs) = (&self.context, member.rest.logs.clone());
        let (claim, standing) = self.pool.claim(key, origin, context, &self.report_to, logs);
        if let (Some(_), Some(auth)) = (&standing, &self.context.auth) {
            auth.note_known(&claim.key().server, &claim.key().source);
        }
        member.epoch = standing.as_ref().map_or(claim.epoch(), |it| it.epoch);
        member.rest.logs = claim.logs().clone();
        claim.note_idle(member.rest.idle);
        member.claim = Some(claim);
        // One that rested offers what it last listed.
        if standing.is_none() && !member.is_recalled {
            member.recall(self.context.remembered.as_ref());
        }
        standing
    }

    /// Takes what a connection had reported before it was claimed here.
    fn take_standing(&mut self, standing: Option<ConnectionReport>) {
        if let Some(report) = standing {
            self.take(report, &mut Vec::new());
        }
    }

    /// Takes one report; the servers whose offers it changed are added to `changed`.
    fn take(&mut self, report: ConnectionReport, changed: &mut Vec<ServerName>) {
        let Some(member) = self.members.get_mut(&report.server) else {
            return;
        };
        // From before the last order, or from a connection that another one took over from.
        let claim = member.claim.as_ref();
        let is_current = claim.is_some_and(|claim| claim.number() == report.connection);
        if !is_current || report.epoch < member.epoch {
            return;
        }
        // Others that hold the connection give orders as well.
        member.epoch = report.epoch;
        member.is_touched = true;
        let had_lists = member.open_session.is_some() || member.is_recalled;
        match report.news {
            ConnectionNews::Connected(connected) => {
                let facts = connected.open_session.session.facts().clone();
                member.set_state(ConnectionState::Connected(Box::new(facts)), &self.events);
                member.stood = true;
                member.rest.note_wanted();
                member.slot.open(&connected.open_session);
                member.open_session = Some(connected.open_session);
                member.set_lists(connected.lists);
                member.instructions = connected.instructions;
                changed.push(report.server);
            }
            ConnectionNews::Offers(lists) => {
                member.set_lists(*lists);
                changed.push(report.server);
            }
            ConnectionNews::Updated(uri) => {
                let _ = self.events.send(HostEvent::ResourceUpdated {
                    server: report.server,
                    uri,
                });
            }
            ConnectionNews::Retrying { attempt, failure } => {
                // What is remembered of it holds as long as it may come.
                let is_kept = member.is_recalled;
                if !is_kept {
                    member.clear();
                }
                member.trouble = failure.map(|failure| failure.message);
                if let Some(message) = member.trouble.clone() {
                    let _ = self.events.send(HostEvent::Notice {
                        server: report.server.clone(),
                        message: format!("{message}; trying again"),
                    });
                }
                member.set_state(ConnectionState::Pending { attempt }, &self.events);
                changed.extend((had_lists && !is_kept).then_some(report.server));
            }
            ConnectionNews::Down(state) => {
                member.clear();
                member.set_state(state, &self.events);
                changed.extend(had_lists.then_some(report.server));
            }
        }
    }

    /// Makes the snapshot of this moment.
    fn publish(&mut self, changed: &[ServerName]) {
        let previous = Arc::clone(&self.published.borrow().catalog);
        let deferral = Deferral::of(&self.settings.limits);
        let members = self.members.values();
        let shown = members.map(|member| (&member.shown, member.address.as_deref()));
        let permissions = &self.settings.permissions;
        let boundaries = permissions.boundaries();
        let own = self.builtin_tools.part(deferral, boundaries, &shown);
        let members = self.members.values_mut();
        let offers = members.map(|member| member.catalog(permissions)).collect();
        let catalog = Catalog::of_host(&previous, offers, own);
        let revision = catalog.revision;
        let mut snapshot = HostSnapshot {
            servers: Vec::with_capacity(self.members.len()),
            panics: self.context.panics.load(Ordering::Relaxed),
            settings: Arc::clone(&self.settings),
            ..HostSnapshot::default()
        };
        // Both are in the order of names.
        for (member, view) in self.members.values_mut().zip(catalog.servers()) {
            let shown = member.show(view);
            snapshot.awaited |= shown.may_come();
            snapshot.is_remembered |= member.is_recalled;
            if member.stood && shown.is_pending() {
                snapshot.healing.push(shown.name.clone());
            }
            snapshot.servers.push(shown);
            snapshot.claimed.push(member.claimed());
            let connected = member.connected(&self.context, &self.waker);
            snapshot.routes.connected.extend(connected);
            member.is_touched = false;
        }
        snapshot.routes.servers.clone_from(&snapshot.servers);
        snapshot.routes.waker = Some(self.waker.clone());
        snapshot.catalog = catalog;
        self.published.send_replace(Arc::new(snapshot));
        for server in changed {
            // There may be no listener.
            let _ = self.events.send(HostEvent::CatalogChanged {
                revision,
                server: server.clone(),
            });
        }
    }
}

impl ManagedServer {
    /// Sets a state, and tells of it.
    fn set_state(&mut self, to: ConnectionState, events: &broadcast::Sender<HostEvent>) {
        if matches!(to, ConnectionState::NeedsAuth { .. }) && self.shown.state != to {
            event::tell(events, || HostEvent::LoginChanged {
                server: self.shown.name.clone(),
                login: LoginChange::Wanted,
            });
        }
        if let Some(event) = self.change_state(to) {
            let _ = events.send(event);
        }
    }

    /// The one place where a state is set. Gives what is to be told of it.
    fn change_state(&mut self, to: ConnectionState) -> Option<HostEvent> {
        let from = &self.shown.state;
        let legal = from.may_become(&to);
        debug_assert!(legal, "{from:?} cannot become {to:?}");
        if !legal {
            tracing::error!(server = %self.shown.name, ?from, ?to, "an impossible change of state");
        }
        if *from == to {
            return None;
        }
        self.failed_at = matches!(to, ConnectionState::Failed(_)).then(Instant::now);
        match &to {
            ConnectionState::Pending { .. } => self.slot.hold(),
            ConnectionState::Connected(_) => self.trouble = None,
            down => self.slot.shut(down),
        }
        let from = std::mem::replace(&mut self.shown.state, to.clone());
        Some(HostEvent::StateChanged {
            server: self.shown.name.clone(),
            from: self.outward(from),
            to: self.outward(to),
        })
    }

    /// Drops the session and everything that was learnt over it, together, so that nothing stale
    /// is ever served.
    fn clear(&mut self) {
        self.open_session = None;
        self.set_lists(ServerLists::default());
    }

    fn set_lists(&mut self, lists: ServerLists) {
        self.lists = lists;
        self.is_recalled = false;
        self.offered = None;
    }

    /// Orders a new connection from the task that runs; its older reports do not count any more.
    fn begin_anew(&mut self, tries: RetryMode, events: &broadcast::Sender<HostEvent>) {
        self.is_touched = true;
        self.clear();
        self.trouble = None;
        self.stood = false;
        self.set_state(ConnectionState::Pending { attempt: 1 }, events);
        if let Some(claim) = &self.claim {
            self.epoch = claim.reconnect(tries);
        }
    }
}

#[cfg(test)]
mod tests;
