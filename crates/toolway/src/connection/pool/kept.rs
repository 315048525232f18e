//! Connections that nobody claims and that are kept for whoever comes next.
//!
//! Owns for how long. Only what others can claim is kept, and only what stands: a server that failed, or that wants a login, is asked
//! anew by the next one to claim it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::runtime::Handle;
use toolway_config::ServerIdle;
use toolway_types::ServerName;

use super::{
    ConnectionNews, ConnectionPool, Followers, Instance, LeavingConnection, PoolState,
    PooledConnection,
};
use crate::connection::RetryMode;
use crate::lock::lock;
use crate::tasks;

/// A connection of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolEntry {
    /// To which server.
    pub server: ServerName,
    /// By how many it is claimed; a kept one by none.
    pub claims: usize,
}

impl ConnectionPool {
    /// A pool that keeps connections for so long after the last claim on them has gone.
    pub fn keeping(unclaimed: Duration) -> Self {
        Self(Arc::new(PoolState {
            keeps_for: Some(unclaimed),
            ..PoolState::default()
        }))
    }

    /// What there is: each connection's server, and whether somebody claims it.
    pub fn connections(&self) -> Vec<PoolEntry> {
        let connections = lock(&self.0.connections);
        let entry = |one: &Arc<PooledConnection>| PoolEntry {
            server: one.key.server.clone(),
            claims: one.followers.len(),
        };
        connections.iter().map(entry).collect()
    }

    /// Ends what nobody claims; returns when it is gone.
    pub async fn end_unclaimed(&self) {
        self.end_unclaimed_of(|_| true).await;
    }

    /// The same of these servers alone.
    pub async fn end_unclaimed_of(&self, which: impl Fn(&ServerName) -> bool) {
        let unclaimed: Vec<_> = {
            let mut connections = lock(&self.0.connections);
            let unclaimed = |one: &mut Arc<PooledConnection>| {
                one.followers.len() == 0 && which(&one.key.server)
            };
            connections.extract_if(.., unclaimed).collect()
        };
        for connection in unclaimed {
            if let Some(leaving) = connection.retired() {
                leaving.stop();
                leaving.gone().await;
            }
        }
    }

    /// Has these servers connect anew for everybody who claims them; what nobody claims is ended.
    pub async fn connect_anew(&self, which: impl Fn(&ServerName) -> bool) {
        self.end_unclaimed_of(&which).await;
        let connections = lock(&self.0.connections);
        let meant = connections.iter().filter(|one| which(&one.key.server));
        for connection in meant {
            connection.order(self.next_number(), RetryMode::AsFirst);
        }
    }

    /// Keeps a connection that nobody claims any more, if it is worth that.
    pub(super) fn keep(&self, connection: &Arc<PooledConnection>) -> bool {
        // Nobody could ever claim it again.
        if let Instance::Caller(_) | Instance::View(_) = connection.key.instance {
            return false;
        }
        let Some(usual) = self.0.keeps_for.filter(|_| connection.followers.stands()) else {
            return false;
        };
        let keeps_for = match *lock(&connection.idle) {
            None => usual,
            Some(ServerIdle::After(idle)) => idle,
            Some(ServerIdle::Never) => return true,
        };
        // Without a runtime nothing could end it later.
        if Handle::try_current().is_err() {
            return false;
        }
        let time = connection.unclaimed.fetch_add(1, Ordering::Relaxed) + 1;
        // Weak: a pool that is gone has nothing to keep.
        let (pool, kept) = (Arc::downgrade(&self.0), Arc::downgrade(connection));
        let keeping = tasks::spawn("kept connection", async move {
            tokio::time::sleep(keeps_for).await;
            if let (Some(pool), Some(kept)) = (pool.upgrade(), kept.upgrade()) {
                ConnectionPool(pool).end_kept(&kept, time);
            }
        });
        *lock(&connection.keeping) = Some(keeping);
        true
    }

    /// Ends a connection that nobody has claimed since that time.
    fn end_kept(&self, connection: &Arc<PooledConnection>, time: u64) {
        let leaving = {
            let mut connections = lock(&self.0.connections);
            let is_unused = connection.unclaimed.load(Ordering::Relaxed) == time
                && connection.followers.len() == 0;
            let place = connections
                .iter()
                .position(|one| Arc::ptr_eq(one, connection));
            let Some(place) = place.filter(|_| is_unused) else {
                return;
            };
            connections.swap_remove(place);
            connection.retired()
        };
        if let Some(leaving) = &leaving {
            leaving.stop();
        }
        self.see_off(leaving);
    }
}

impl PooledConnection {
    /// Has it end; none where somebody else waits for that.
    fn retired(&self) -> Option<LeavingConnection> {
        let task = lock(&self.task).take()?;
        self.retire.cancel();
        Some(LeavingConnection {
            stop: self.stop.clone(),
            task,
        })
    }
}

impl Followers {
    fn len(&self) -> usize {
        lock(&self.0).reports.len()
    }

    /// Whether the server was connected when it was last heard of.
    fn stands(&self) -> bool {
        let last = &lock(&self.0).last;
        last.as_ref()
            .is_some_and(|report| matches!(report.news, ConnectionNews::Connected(_)))
    }
}
