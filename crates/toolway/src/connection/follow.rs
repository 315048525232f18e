//! Keeping a standing connection's lists true.
//!
//! Owns when lists are fetched again and what is said of the server's conduct meanwhile. Does not
//! own what a list is or how it is read (`lists.rs`), nor who is told: [`Follower::next`] hands
//! out each new state of the lists and the connection reports it.

use std::time::Duration;

use tokio::sync::watch;
use toolway_transport::stdio::stderr::ServerLog;

use super::lists::Lists;
use crate::session::{ListChanges, Session};

/// What is said of a server that writes far more to stdout than messages (REL-05).
const NOISY: &str = "writes much to stdout that is not the protocol; its log belongs on stderr";

/// Watches one session and fetches again what changed.
pub(super) struct Follower {
    session: Session,
    lists: Lists,
    log: Option<ServerLog>,
    timeout: Duration,
    changes: watch::Receiver<ListChanges>,
    before: ListChanges,
}

impl Follower {
    /// Follows this session, whose lists were just fetched; `timeout` is for each request.
    pub(super) fn new(
        session: Session,
        lists: Lists,
        log: Option<ServerLog>,
        timeout: Duration,
    ) -> Self {
        let changes = session.changes();
        Self {
            session,
            lists,
            log,
            timeout,
            changes,
            before: ListChanges::default(),
        }
    }

    /// The lists, as soon as they differ from what was handed out before; `None` when the session
    /// is over. Changes during a fetch are one more fetch after it.
    pub(super) async fn next(&mut self) -> Option<Lists> {
        let log = self.log.clone();
        let noisy = async {
            match &log {
                Some(log) => log.noisy().await,
                None => std::future::pending().await,
            }
        };
        let before = self.before;
        tokio::select! {
            waited = self.changes.wait_for(|now| *now != before) => { waited.ok()?; }
            () = noisy => {
                self.log = None;
                self.lists.conduct.push(NOISY.to_owned());
                return Some(self.lists.clone());
            }
        }
        let now = *self.changes.borrow_and_update();
        self.lists
            .refresh(&self.session, self.before, now, self.timeout)
            .await;
        self.before = now;
        Some(self.lists.clone())
    }
}
