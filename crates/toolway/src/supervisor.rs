//! The supervisor: which servers there are, which of them run, and the snapshot of it all.
//!
//! Owns the map of servers, starts and stops their connections, and publishes a new
//! [`HostSnapshot`] whenever a connection reports. The one place where a server's state is set.
//! Orders about one server are `reconnect.rs`. Does not own any connection's inner life
//! (`connection.rs`).

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use toolway_types::{ConnectionState, ServerName};
use tracing::info_span;

pub(crate) use self::apply::{ApplyPlan, PlanEffects};
use crate::builtin::{Builtin, BuiltinTools, HostHandle};
use crate::call::questions::PartyId;
use crate::catalog::Catalog;
use crate::catalog::deferral::Deferral;
use crate::connection::clock::{self, Clock};
use crate::connection::{
    Connection, ConnectionContext, ConnectionNews, ConnectionOrders, ConnectionReport, RetryMode,
};
use crate::event::{self, HostEvent, LoginChange, UnknownServer};
use crate::listing::ServerLists;
use crate::reconnect::{ServerOrder, ServerOrders, Unless};
use crate::snapshot::{CallSettings, HostSnapshot};
pub(crate) use crate::supervisor::managed_server::{ManagedServer, roster};
use crate::tasks::{self, Task};

mod apply;
mod managed_server;
pub(crate) mod recall;

/// How many reports may wait before connections are held back.
const REPORTS_LEN: usize = 64;
/// How many orders, and how many plans, may wait.
const ORDERS_LEN: usize = 64;
/// How long a failure stands before a call may have the server tried again.
const FAILURE_STANDS: Duration = Duration::from_secs(30);

/// A connection's task, and the ways to speak to it.
pub(crate) struct RunningConnection {
    orders: watch::Sender<ConnectionOrders>,
    retire: CancellationToken,
    task: Task<()>,
}

/// Owns every server of a host.
pub(crate) struct Supervisor {
    members: BTreeMap<ServerName, ManagedServer>,
    /// The newest epoch of any server. Epochs are never used twice, not even for another server
    /// of the same name, so nothing need be remembered of servers that are gone.
    epoch: u64,
    /// Connections that others took over from, on their way out.
    leaving: Vec<Task<()>>,
    settings: Arc<CallSettings>,
    context: Arc<ConnectionContext>,
    report_to: mpsc::Sender<ConnectionReport>,
    reports: mpsc::Receiver<ConnectionReport>,
    orders: mpsc::Receiver<ServerOrder>,
    plans: mpsc::Receiver<ApplyPlan>,
    events: broadcast::Sender<HostEvent>,
    published: watch::Sender<Arc<HostSnapshot>>,
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
        members: BTreeMap<ServerName, ManagedServer>,
        settings: Arc<CallSettings>,
        context: Arc<ConnectionContext>,
        events: broadcast::Sender<HostEvent>,
        clock: Arc<dyn Clock>,
        stop: CancellationToken,
    ) -> (Self, SupervisorHandle) {
        let (report_to, reports) = mpsc::channel(REPORTS_LEN);
        let (orders_to, orders) = ServerOrders::queue(ORDERS_LEN);
        let (plans_to, plans) = mpsc::channel(ORDERS_LEN);
        let published: watch::Sender<Arc<HostSnapshot>> = watch::Sender::default();
        let builtin_tools = BuiltinTools::new(HostHandle {
            snapshots: published.subscribe(),
            orders: orders_to.downgrade(),
            auth: context.auth.clone(),
            connectors: context.connectors.clone(),
            runner: Arc::clone(&context.hooks),
            caller: None,
        });
        let mut supervisor = Self {
            builtin_tools,
            members,
            epoch: 0,
            leaving: Vec::new(),
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
        for member in supervisor.members.values_mut() {
            member.connect(&supervisor.context, &supervisor.report_to, &supervisor.stop);
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
        let mut questions = self.context.questions.changes();
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
                    let is_shown = |report: &ConnectionReport| {
                        let news = &report.news;
                        !matches!(news, ConnectionNews::Updated(_) | ConnectionNews::AsksQuestions)
                    };
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
                }),
                // Never an error: the context holds the book.
                Ok(()) = questions.changed() => self.contained(|this| {
                    let seen = this.context.questions.seen_by(PartyId::OWNER);
                    this.published.send_if_modified(|shown| {
                        let fresh = Arc::clone(shown).with_questions(seen);
                        let changed = !Arc::ptr_eq(shown, &fresh);
                        *shown = fresh;
                        changed
                    });
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
        let running = std::mem::take(&mut self.members).into_values();
        let tasks = running.filter_map(|member| member.running.map(|running| running.task));
        for connection in tasks.chain(std::mem::take(&mut self.leaving)) {
            if let Err(failure) = connection.join().await {
                tracing::warn!(%failure, "a connection did not end by itself");
            }
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
        for running in self.members.values().filter_map(|it| it.running.as_ref()) {
            running.orders.send_modify(|orders| orders.resumed += 1);
        }
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
        if member.running.is_some() && !member.overtakes(unless) {
            self.begin_anew(&server, RetryMode::AsFirst);
        }
        Ok(())
    }

    fn member(&mut self, server: &str) -> Option<&mut ManagedServer> {
        let mut members = self.members.iter_mut();
        members.find_map(|(name, member)| (name.as_str() == server).then_some(member))
    }

    fn begin_anew(&mut self, server: &str, tries: RetryMode) {
        self.epoch += 1;
        let (epoch, events) = (self.epoch, self.events.clone());
        if let Some(member) = self.member(server) {
            member.begin_anew(epoch, tries, &events);
            let name = member.shown.name.clone();
            self.publish(&[name]);
        }
    }

    /// Has a failed server tried once more, unless that was done a moment ago.
    fn revive(&mut self, server: &str) {
        let has_rested = |member: &mut ManagedServer| {
            let rested = member.failed_at.map(|at| at.elapsed() >= FAILURE_STANDS);
            rested.unwrap_or_default() && member.running.is_some()
        };
        if self.member(server).is_some_and(has_rested) {
            self.begin_anew(server, RetryMode::Once);
        }
    }

    /// Takes one report; the servers whose offers it changed are added to `changed`.
    fn take(&mut self, report: ConnectionReport, changed: &mut Vec<ServerName>) {
        let Some(member) = self.members.get_mut(&report.server) else {
            return;
        };
        // From before the last order, or from a connection that another one took over from.
        if report.epoch != member.epoch {
            return;
        }
        member.is_touched = true;
        let had_lists = member.open_session.is_some();
        match report.news {
            ConnectionNews::Connected(connected) => {
                let facts = connected.open_session.session.facts().clone();
                member.set_state(ConnectionState::Connected(Box::new(facts)), &self.events);
                member.stood = true;
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
            ConnectionNews::AsksQuestions => member.note_asking(),
            ConnectionNews::Retrying { attempt, failure } => {
                member.clear();
                member.trouble = failure.map(|failure| failure.message);
                if let Some(message) = member.trouble.clone() {
                    let _ = self.events.send(HostEvent::Notice {
                        server: report.server.clone(),
                        message: format!("{message}; trying again"),
                    });
                }
                member.set_state(ConnectionState::Pending { attempt }, &self.events);
                changed.extend(had_lists.then_some(report.server));
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
        let own = self.builtin_tools.part(deferral, &shown);
        let permissions = &self.settings.permissions;
        let members = self.members.values_mut();
        let offers = members.map(|member| member.catalog(permissions)).collect();
        let catalog = Catalog::of_host(&previous, offers, own);
        let revision = catalog.revision;
        let mut snapshot = HostSnapshot {
            servers: Vec::with_capacity(self.members.len()),
            connected: Vec::with_capacity(self.members.len()),
            panics: self.context.panics.load(Ordering::Relaxed),
            questions: self.context.questions.seen_by(PartyId::OWNER),
            settings: Arc::clone(&self.settings),
            ..HostSnapshot::default()
        };
        // Both are in the order of names.
        for (member, view) in self.members.values_mut().zip(catalog.servers()) {
            let shown = member.show(view);
            snapshot.awaited |= shown.may_come();
            if member.stood && shown.is_pending() {
                snapshot.healing.push(shown.name.clone());
            }
            snapshot.servers.push(shown);
            snapshot.connected.extend(member.connected(&self.context));
            member.is_touched = false;
        }
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
    /// Starts its connection, if it may connect.
    fn connect(
        &mut self,
        context: &Arc<ConnectionContext>,
        reports: &mpsc::Sender<ConnectionReport>,
        stop: &CancellationToken,
    ) {
        let Some(source) = self.source.clone() else {
            return;
        };
        let (orders, received) = watch::channel(ConnectionOrders {
            epoch: self.epoch,
            ..ConnectionOrders::default()
        });
        let retire = CancellationToken::new();
        let server = self.shown.name.clone();
        let journal = context.journal.as_ref();
        let journal = journal.map(|journal| journal.open(&server, source.secrets()));
        let span = info_span!("connection", %server);
        let connection = Connection {
            server,
            source,
            origin: self.shown.origin.clone(),
            context: Arc::clone(context),
            journal,
            reports: reports.clone(),
            epoch: AtomicU64::new(self.epoch),
            orders: received,
            stop: stop.clone(),
            retire: retire.clone(),
        };
        let task = span.in_scope(|| tasks::spawn("connection", connection.run()));
        self.running = Some(RunningConnection {
            orders,
            retire,
            task,
        });
    }

    /// The one place where a state is set.
    fn set_state(&mut self, to: ConnectionState, events: &broadcast::Sender<HostEvent>) {
        let from = &self.shown.state;
        let legal = from.may_become(&to);
        debug_assert!(legal, "{from:?} cannot become {to:?}");
        if !legal {
            tracing::error!(server = %self.shown.name, ?from, ?to, "an impossible change of state");
        }
        if *from == to {
            return;
        }
        self.failed_at = matches!(to, ConnectionState::Failed(_)).then(Instant::now);
        if matches!(to, ConnectionState::NeedsAuth { .. }) {
            event::tell(events, || HostEvent::LoginChanged {
                server: self.shown.name.clone(),
                login: LoginChange::Wanted,
            });
        }
        match &to {
            ConnectionState::Pending { .. } => self.slot.hold(),
            ConnectionState::Connected(_) => self.trouble = None,
            down => self.slot.shut(down),
        }
        let from = std::mem::replace(&mut self.shown.state, to.clone());
        let _ = events.send(HostEvent::StateChanged {
            server: self.shown.name.clone(),
            from: self.outward(from),
            to: self.outward(to),
        });
    }

    /// The server asks without saying whom: from now on callers should not share an instance of it.
    fn note_asking(&mut self) {
        if !std::mem::replace(&mut self.asks, true) {
            tracing::info!(server = %self.shown.name, "remembered as a server that asks");
        }
    }

    /// Drops the session and everything that was learnt over it, together, so that nothing stale
    /// is ever served.
    fn clear(&mut self) {
        self.open_session = None;
        self.set_lists(ServerLists::default());
    }

    fn set_lists(&mut self, lists: ServerLists) {
        self.lists = lists;
        self.offered = None;
    }

    /// Orders a new connection from the task that runs; its older reports do not count any more.
    fn begin_anew(&mut self, epoch: u64, tries: RetryMode, events: &broadcast::Sender<HostEvent>) {
        self.is_touched = true;
        self.clear();
        self.trouble = None;
        self.stood = false;
        self.set_state(ConnectionState::Pending { attempt: 1 }, events);
        self.epoch = epoch;
        if let Some(running) = &self.running {
            running.orders.send_modify(|orders| {
                orders.epoch = self.epoch;
                orders.tries = tries;
            });
        }
    }
}

#[cfg(test)]
mod tests;
