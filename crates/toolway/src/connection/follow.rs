//! Keeping an open connection's lists true.
//!
//! Owns which lists are being fetched again, the subscription of a modern server, and what is
//! said of the server's conduct meanwhile; when a list is fetched is `follow/pace.rs`'s. Does not
//! own what a list is or how it is read (`lists.rs`), nor who is told: [`ListFollower::next`] hands
//! out each new state of the lists and the connection reports it.
//!
//! Invariants: of each list at most one fetch is under way; lists do not wait for each other; the
//! last change is never lost.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, OptionFuture};
use futures_util::stream::FuturesUnordered;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use toolway_transport::ServerLog;
use toolway_types::{BytePool, Era};

use self::pace::{FetchOutcome, Pace};
use super::lists::{RefetchedList, fetch_again};
use super::open_session::OpenSession;
use crate::error::RequestError;
use crate::listing::{ListKind, ServerLists};
use crate::session::subscription::SubscriptionState;
use crate::session::{ListChanges, Session};

mod pace;

/// What is said of a server that writes far more to stdout than messages (REL-05).
const NOISY: &str = "writes much to stdout that is not the protocol; its log belongs on stderr";

/// Watches one session and fetches again what changed.
pub(super) struct ListFollower {
    open_session: Arc<OpenSession>,
    lists: ServerLists,
    log: Option<ServerLog>,
    timeout: Duration,
    all_lists: BytePool,
    changes: watch::Receiver<ListChanges>,
    paces: [Pace; 3],
    fetches: FuturesUnordered<BoxFuture<'static, RefetchedList>>,
    subscription: Option<BoxFuture<'static, ()>>,
    announcing: watch::Receiver<SubscriptionState>,
    openings: u64,
    noisy: bool,
}

/// Why the follower woke.
enum Woken {
    /// Something changed, or a wait is over.
    Look,
    Fetched(RefetchedList),
    SubscriptionOver,
    Noise,
}

impl ListFollower {
    /// Follows this session, whose lists were just fetched; `timeout` is for each request. What
    /// fails on the way is judged like a call that fails.
    pub(super) fn new(
        open_session: Arc<OpenSession>,
        lists: ServerLists,
        log: Option<ServerLog>,
        timeout: Duration,
        all_lists: BytePool,
    ) -> Self {
        let now = Instant::now();
        let (report, announcing) = watch::channel(SubscriptionState::default());
        let paces = ListKind::ALL.map(|list| Pace::new(now, lists.ttl(list)));
        let session = open_session.session.clone();
        let judge = Arc::clone(&open_session);
        let subscription = async move {
            let failed = |error: &RequestError| judge.note_failure(error);
            session.subscribe(report, failed).await;
        };
        Self {
            changes: open_session.session.changes(),
            subscription: Some(Box::pin(subscription)),
            open_session,
            lists,
            log,
            timeout,
            all_lists,
            paces,
            fetches: FuturesUnordered::new(),
            announcing,
            openings: 0,
            noisy: false,
        }
    }

    /// The lists, as soon as they differ from what was handed out before. Runs for as long as the
    /// session does; `None` when nothing can change any more.
    pub(super) async fn next(&mut self) -> Option<ServerLists> {
        loop {
            if self.look() {
                return Some(self.lists.clone());
            }
            match self.wake().await? {
                Woken::Look => {}
                Woken::SubscriptionOver => self.subscription = None,
                Woken::Noise => {
                    self.log = None;
                    self.noisy = true;
                    self.judge_conduct();
                    return Some(self.lists.clone());
                }
                Woken::Fetched(fetched) => {
                    if self.take(fetched) {
                        return Some(self.lists.clone());
                    }
                }
            }
        }
    }

    /// Takes in what was announced and starts the fetches that are due. True when the server's
    /// conduct is seen differently.
    fn look(&mut self) -> bool {
        let now = Instant::now();
        let counts = *self.changes.borrow_and_update();
        let subscription = self.announcing.borrow_and_update().clone();
        for list in ListKind::ALL {
            let pace = &mut self.paces[list as usize];
            if subscription.openings != self.openings && subscription.acknowledged.covers(list) {
                pace.demand(now);
            }
            pace.note(now, counts.of(list));
            let announced = is_announced(&self.open_session.session, &subscription, list);
            if pace.due(announced).is_some_and(|due| due <= now) {
                pace.begin();
                let (session, all_lists) =
                    (self.open_session.session.clone(), self.all_lists.clone());
                let fetch = fetch_again(session, list, self.timeout, all_lists);
                self.fetches.push(Box::pin(fetch));
            }
        }
        self.openings = subscription.openings;
        self.judge_conduct()
    }

    /// Waits until there is something to look at.
    async fn wake(&mut self) -> Option<Woken> {
        let due = {
            let subscription = self.announcing.borrow();
            let dues = ListKind::ALL.into_iter().filter_map(|list| {
                let announced = is_announced(&self.open_session.session, &subscription, list);
                self.paces[list as usize].due(announced)
            });
            dues.min()
        };
        let noise = OptionFuture::from(self.log.as_ref().map(ServerLog::noisy));
        let subscribed = self.subscription.is_some();
        let over = OptionFuture::from(self.subscription.as_mut());
        tokio::select! {
            changed = self.changes.changed() => changed.ok().map(|()| Woken::Look),
            changed = self.announcing.changed(), if subscribed => {
                // The sender goes with the subscription, which is waited for below.
                let _ = changed;
                Some(Woken::Look)
            }
            Some(()) = over => Some(Woken::SubscriptionOver),
            Some(fetched) = self.fetches.next() => Some(Woken::Fetched(fetched)),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                Some(Woken::Look)
            }
            Some(()) = noise => Some(Woken::Noise),
        }
    }

    /// Takes a list that was fetched. True when anything is seen differently.
    fn take(&mut self, fetched: RefetchedList) -> bool {
        let list = fetched.list;
        if let Some(error) = fetched.failure() {
            self.open_session.note_failure(error);
        }
        let taken = self.lists.take(fetched);
        let outcome = match &taken.failure {
            Some(why) => {
                tracing::debug!(list = list.word(), why, "kept the old list");
                FetchOutcome::Failed
            }
            None if taken.changed => FetchOutcome::Changed,
            None => FetchOutcome::Same,
        };
        let ttl = self.lists.ttl(list);
        self.paces[list as usize].end(Instant::now(), outcome, ttl);
        taken.changed
    }

    /// Says what is wrong with the server itself; true when that is something else than before.
    fn judge_conduct(&mut self) -> bool {
        let noisy = self.noisy.then(|| NOISY.to_owned());
        let trouble = self.announcing.borrow().trouble.clone();
        let conduct: Vec<String> = noisy.into_iter().chain(trouble).collect();
        let otherwise = conduct != self.lists.conduct;
        self.lists.conduct = conduct;
        otherwise
    }
}

/// Whether the server announces when this list changes, so that it need not be polled.
fn is_announced(session: &Session, subscription: &SubscriptionState, list: ListKind) -> bool {
    session.facts().era == Era::Legacy || subscription.acknowledged.covers(list)
}
