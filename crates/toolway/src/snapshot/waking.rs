//! Waking a server that rests, for whoever holds a snapshot or a way that was made of one.
//!
//! Owns asking for it and waiting. Who wakes it is the supervisor (`supervisor/rest.rs`); when it
//! rests is decided there too.

use std::fmt;
use std::sync::{Arc, Weak};

use tokio::sync::watch;
use toolway_types::{ConnectionState, ServerName};

use super::{HostSnapshot, ServerSnapshot};
use crate::error::RequestError;
use crate::reconnect::WeakServerOrders;
use crate::route::{Route, Routes as _};

/// Wakes the servers of one supervisor. Weak in both, because snapshots and ways hold it.
#[derive(Clone)]
pub(crate) struct ServerWaker {
    pub(crate) snapshots: Weak<watch::Sender<Arc<HostSnapshot>>>,
    pub(crate) orders: WeakServerOrders,
}

impl ServerWaker {
    /// Wakes a server, if it rests, and waits until it is not on its way any more. Gives the snapshot
    /// of then; none when the supervisor is gone.
    pub(crate) async fn wake(&self, server: &ServerName) -> Option<Arc<HostSnapshot>> {
        let orders = self.orders.upgrade()?;
        orders.wake(std::slice::from_ref(server)).await;
        drop(orders);
        let mut snapshots = self.snapshots.upgrade()?.subscribe();
        let is_there = |snapshot: &Arc<HostSnapshot>| {
            let shown = snapshot.server(server.as_str());
            !shown.is_some_and(ServerSnapshot::is_pending)
        };
        let snapshot = snapshots.wait_for(is_there).await.ok()?;
        Some(Arc::clone(&snapshot))
    }

    /// The same; gives the way to it, or why there is none.
    pub(crate) async fn wake_route(
        &self,
        server: &ServerName,
    ) -> Result<Arc<dyn Route>, RequestError> {
        let gone = || ConnectionState::Disabled {
            reason: "the host has ended".to_owned(),
        };
        let snapshot = self.wake(server).await;
        let snapshot = snapshot.ok_or_else(|| RequestError::Unavailable(gone()))?;
        snapshot.routes.route(server).map_err(|_| {
            let shown = snapshot.server(server.as_str());
            let state = shown.map_or_else(gone, |shown| shown.state.clone());
            RequestError::Unavailable(state)
        })
    }
}

impl fmt::Debug for ServerWaker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ServerWaker")
    }
}
