//! Orders to connect one server again.
//!
//! Owns their shapes, so that logins and built-in tools can give them. The supervisor carries them
//! out.

use tokio::sync::{mpsc, oneshot};
use toolway_types::ServerName;

use crate::event::UnknownServer;

/// Where orders about servers go; clones lead to the same supervisor.
#[derive(Debug, Clone)]
pub(crate) struct ServerOrders(mpsc::Sender<ServerOrder>);

/// The same without keeping the supervisor alive.
#[derive(Debug, Clone)]
pub(crate) struct WeakServerOrders(mpsc::WeakSender<ServerOrder>);

/// The answer to an order to connect anew.
type Reconnected = Result<(), UnknownServer>;

impl ServerOrders {
    /// A queue of this length.
    pub(crate) fn queue(len: usize) -> (Self, mpsc::Receiver<ServerOrder>) {
        let (orders, queue) = mpsc::channel(len);
        (Self(orders), queue)
    }

    pub(crate) fn downgrade(&self) -> WeakServerOrders {
        WeakServerOrders(self.0.downgrade())
    }

    /// Has a server connected anew; `None` when the supervisor is gone.
    pub(crate) async fn reconnect(&self, server: &str, unless: Unless) -> Option<Reconnected> {
        let (done, answer) = oneshot::channel();
        let server = server.to_owned();
        let order = ServerOrder::Reconnect {
            server,
            unless,
            done,
        };
        self.0.send(order).await.ok()?;
        answer.await.ok()
    }

    /// Has a server that failed tried again; returns when that was begun, or the supervisor is
    /// gone.
    pub(crate) async fn revive(&self, server: &str) {
        let (done, answer) = oneshot::channel();
        let server = server.to_owned();
        if self
            .0
            .send(ServerOrder::Revive { server, done })
            .await
            .is_ok()
        {
            answer.await.ok();
        }
    }

    /// Wakes these servers, all of them when none is named, as far as they rest; returns when that was
    /// begun, or the supervisor is gone.
    pub(crate) async fn wake(&self, servers: &[ServerName]) {
        let (done, answer) = oneshot::channel();
        let servers = servers.to_vec();
        if self
            .0
            .send(ServerOrder::Wake { servers, done })
            .await
            .is_ok()
        {
            answer.await.ok();
        }
    }
}

impl WeakServerOrders {
    pub(crate) fn upgrade(&self) -> Option<ServerOrders> {
        self.0.upgrade().map(ServerOrders)
    }
}

/// An order about one server.
pub(crate) enum ServerOrder {
    /// End what is there and connect anew.
    Reconnect {
        server: String,
        unless: Unless,
        done: oneshot::Sender<Reconnected>,
    },
    /// A call wants a server that failed.
    Revive {
        server: String,
        done: oneshot::Sender<()>,
    },
    /// Somebody wants servers that may rest; all of them when none is named.
    Wake {
        servers: Vec<ServerName>,
        done: oneshot::Sender<()>,
    },
}

/// What makes an order to connect anew stale by the time that it is carried out. A connection that
/// stands must not be ended, with the calls on it, by what was true before it stood.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unless {
    /// Nothing: a user asked for it.
    Never,
    /// The server does not wait for a login any more.
    LoggedIn,
}
