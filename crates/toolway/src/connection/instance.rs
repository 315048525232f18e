//! Instances of a server for callers that cannot share the host's.
//!
//! Owns who needs one: every other caller of a server whose entry says `share: session`, or that was
//! seen to ask without saying whom; and callers whose roots are others than the owner's, where the
//! server asked for roots. Of hosts that share a connection only the first is its owner. Such an
//! instance starts with the first request that needs it and ends with its callers, or with the host's
//! hold on its own. Starting and sharing are the pool's.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use toolway_types::{ConnectionState, Origin, ServerShare};

use super::pool::{ClaimsBeside, HeldClaim};
use super::session_slot::{SessionSlot, SlotState};
use super::{
    ConnectionContext, ConnectionKey, ConnectionNews, ConnectionPool, ConnectionReport, Instance,
    RetryMode,
};
use crate::call::{CallerSide, ServerLogs};
use crate::lock::lock;
use crate::session::ServerHabits;
use crate::tasks::{self, Task};

/// How long a failure stands before a request has the instance tried again.
const FAILURE_STANDS: Duration = Duration::from_secs(30);
/// How many reports of one instance may wait.
const REPORTS_LEN: usize = 16;

/// The instances of one server beside the one that the host uses.
pub(crate) struct OwnInstances {
    pub(crate) key: ConnectionKey,
    /// Whose the shared one is.
    pub(crate) owner: Arc<CallerSide>,
    pub(crate) origin: Origin,
    pub(crate) context: Arc<ConnectionContext>,
    pub(crate) pool: ConnectionPool,
    /// What ends with the host's own.
    pub(crate) beside: Arc<ClaimsBeside>,
    pub(crate) habits: Arc<ServerHabits>,
}

/// One of them, as long as its caller is there.
pub(crate) struct CallerInstance {
    key: ConnectionKey,
    slot: Arc<SessionSlot>,
    failed_at: Arc<Mutex<Option<Instant>>>,
    claim: Arc<HeldClaim>,
    _following: Task<()>,
}

impl OwnInstances {
    /// The instance for requests of this caller; none: it shares the host's.
    pub(super) fn of(&self, caller: &CallerSide) -> Option<Arc<CallerInstance>> {
        let own = &self.owner;
        if own.is_same(caller) {
            return None;
        }
        let spec = self.key.source.spec();
        let is_apart = spec.is_some_and(|spec| matches!(spec.share, ServerShare::Session(_)))
            || self.habits.asks_unclearly();
        let roots = (self.habits.asks_for_roots() && self.key.source.roots().is_empty())
            .then(|| Arc::clone(&caller.roots.borrow()))
            .filter(|roots| **roots != **own.roots.borrow());
        if !is_apart && roots.is_none() {
            return None;
        }
        let mut held = lock(&caller.instances);
        let present = held.get(&self.key.server).cloned();
        let present = present.and_then(|held| held.downcast::<CallerInstance>().ok());
        if let Some(present) = present
            && present.is_for(&self.key, is_apart, roots.as_ref())
        {
            present.revive();
            return Some(present);
        }
        let mut key = self.key.clone();
        let context = match roots {
            Some(roots) if !is_apart => {
                key.instance = Instance::Roots(Arc::clone(&roots));
                // Others with these roots share it, so it is nobody's to ask.
                let side = CallerSide::new(caller.caller.clone(), None, roots.to_vec());
                self.context_of(Arc::new(side))
            }
            _ => {
                key.instance = Instance::Caller(self.pool.next_number());
                self.context_of(Arc::new(caller.as_owner_of_instance()))
            }
        };
        let started = Arc::new(self.start(key, &context));
        held.insert(self.key.server.clone(), Arc::clone(&started) as _);
        Some(started)
    }

    /// A request has ended. A server that was told another caller's roots because of it hears that
    /// there are others again: the shared one must not go on by them.
    pub(super) fn note_end_of_request(&self) {
        if self.habits.take_others_roots() {
            self.owner.roots.send_modify(|_| ());
        }
    }

    fn context_of(&self, caller: Arc<CallerSide>) -> Arc<ConnectionContext> {
        Arc::new(ConnectionContext {
            caller,
            ..(*self.context).clone()
        })
    }

    fn start(&self, key: ConnectionKey, context: &Arc<ConnectionContext>) -> CallerInstance {
        let (reports, received) = mpsc::channel(REPORTS_LEN);
        let (claim, standing) = self.pool.claim(
            key.clone(),
            &self.origin,
            context,
            &reports,
            ServerLogs::default(),
        );
        let claim = HeldClaim::new(claim);
        if !self.beside.add(&claim) {
            drop(claim.take());
        }
        let slot = Arc::new(SessionSlot::new());
        let failed_at = Arc::default();
        let follower = Follower {
            slot: Arc::clone(&slot),
            failed_at: Arc::clone(&failed_at),
        };
        if let Some(report) = standing {
            follower.take(report.news);
        }
        CallerInstance {
            key,
            slot,
            failed_at,
            claim,
            _following: tasks::spawn("instance", follower.follow(received)),
        }
    }
}

impl CallerInstance {
    /// Where its requests enter.
    pub(super) fn entrance(&self) -> watch::Receiver<SlotState> {
        self.slot.entrance()
    }

    /// Whether it is what a caller needs of the server of this key.
    fn is_for(
        &self,
        key: &ConnectionKey,
        is_apart: bool,
        roots: Option<&Arc<[crate::client_handler::Root]>>,
    ) -> bool {
        !self.claim.is_over()
            && self.key.source == key.source
            && match &self.key.instance {
                Instance::Shared | Instance::View(_) => false,
                // One of its own serves whatever roots it has: it is asked for them itself.
                Instance::Caller(_) => true,
                Instance::Roots(of) => !is_apart && roots.is_some_and(|roots| **roots == **of),
            }
    }

    /// Has one that failed a while ago tried again.
    fn revive(&self) {
        let mut failed_at = lock(&self.failed_at);
        if failed_at.is_some_and(|at| at.elapsed() >= FAILURE_STANDS) {
            *failed_at = None;
            self.slot.hold();
            self.claim.reconnect(RetryMode::Once);
        }
    }
}

/// Lets requests in and out as the connection comes and goes.
struct Follower {
    slot: Arc<SessionSlot>,
    failed_at: Arc<Mutex<Option<Instant>>>,
}

impl Follower {
    async fn follow(self, mut reports: mpsc::Receiver<ConnectionReport>) {
        while let Some(report) = reports.recv().await {
            self.take(report.news);
        }
        // The host does not have the server any more.
        self.slot.shut(&ConnectionState::Disabled {
            reason: "no longer configured".to_owned(),
        });
    }

    fn take(&self, news: ConnectionNews) {
        match news {
            ConnectionNews::Connected(connected) => self.slot.open(&connected.open_session),
            ConnectionNews::Retrying { .. } => self.slot.hold(),
            ConnectionNews::Down(state) => {
                let has_failed = matches!(state, ConnectionState::Failed(_));
                *lock(&self.failed_at) = has_failed.then(Instant::now);
                self.slot.shut(&state);
            }
            // What there is to list is the host's to say.
            ConnectionNews::Offers(_) | ConnectionNews::Updated(_) => {}
        }
    }
}
