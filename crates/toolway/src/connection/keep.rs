//! A connection while it stands.
//!
//! Owns the watch over it: when it has ended, when it is of no use any more, whether it outlived
//! the machine's sleep, and how it gives way to another. What follows is decided in
//! `connection.rs`.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{FusedFuture as _, FutureExt as _, join};
use serde_json::value::RawValue;
use toolway_config::PinPolicy;
use toolway_transport::{CloseReason, ServerLog};
use toolway_types::{Era, Failure, FailureKind, ServerFacts, Untrusted};
use toolway_wire::era::method;
use tracing::{debug, info};

use super::follow::ListFollower;
use super::{Connected, Connection, ConnectionEvent, ConnectionNews, ConnectionOrders};
use crate::connection::open_session::{Doubt, OpenSession};
use crate::error::{self, RequestError};
use crate::pins::{Difference, PinnedInstructions};
use crate::route::RequestOptions;
use crate::server_source::definition::definition;
use crate::session::Session;

/// The longest that calls in flight keep a connection that another one took over from.
const DRAIN: Duration = Duration::from_secs(30);
/// How long a connection has to prove that it outlived the machine's sleep.
const PROOF_OF_LIFE: Duration = Duration::from_secs(5);

/// How a connection that stood was lost.
pub(super) enum Loss {
    /// It ended, or requests do not get through.
    Ended(Failure),
    /// The server does not know the session any more.
    Expired(Arc<OpenSession>),
    /// It did not outlive the machine's sleep.
    Asleep,
    /// The server wants a login, where it wanted none before.
    Login(Untrusted),
}

impl Connection {
    /// How the server's instructions differ from those it had when it first connected. They go to
    /// models unasked, so the first ones are what the person gets by configuring the server.
    async fn compare_instructions(&self, facts: &ServerFacts) -> Option<Difference> {
        let judge = &self.context.hooks;
        if judge.settings().permissions.pins() == PinPolicy::Off {
            return None;
        }
        let definition = definition(&self.server, &self.source);
        let said = facts.instructions.as_ref().map(Untrusted::as_received);
        let said = PinnedInstructions::of(&self.server, &definition, said.unwrap_or_default());
        said.compare(judge.pins()).await
    }

    /// Reports the connection, and watches over it until it ends.
    pub(super) async fn keep(
        &self,
        mut connected: Connected,
        log: Option<ServerLog>,
        handled: &mut ConnectionOrders,
    ) -> ConnectionEvent {
        let open_session = Arc::clone(&connected.open_session);
        let session = &open_session.session;
        let facts = session.facts();
        info!(
            era = facts.era.as_str(),
            version = facts.protocol_version,
            "connected"
        );
        connected.instructions = self.compare_instructions(facts).await;
        let lists = connected.lists.clone();
        let mut updates = session.updates();
        self.report(ConnectionNews::Connected(Box::new(connected)))
            .await;
        let follower = ListFollower::new(
            Arc::clone(&open_session),
            lists,
            log,
            self.context.limits.usual(),
            self.context.all_lists.clone(),
        );
        let mut following = pin!(self.follow(follower).fuse());
        let following_resources = self.follow_resources(&open_session);
        let levels = self.follow_log_level(&open_session);
        let mut following_resources = pin!(join(following_resources, levels).map(drop).fuse());
        loop {
            let order = tokio::select! {
                () = self.stop.cancelled() => return ConnectionEvent::Ended,
                () = self.retire.cancelled() => {
                    self.drain(&open_session).await;
                    return ConnectionEvent::Ended;
                }
                reason = session.closed() => return ended(session, &reason),
                doubt = open_session.doubted() => return doubted(&open_session, doubt),
                () = &mut following, if !following.is_terminated() => continue,
                () = &mut following_resources, if !following_resources.is_terminated() => continue,
                // Never closed while the session is held; what a slow reader missed is missed.
                news = updates.recv() => {
                    if let Ok(uri) = news {
                        self.report(ConnectionNews::Updated(uri)).await;
                    }
                    continue;
                }
                order = self.ordered(handled) => order,
            };
            if !matches!(order, ConnectionEvent::Resumed) {
                open_session.give_way();
                return order;
            }
            let alive = tokio::select! {
                () = self.stop.cancelled() => return ConnectionEvent::Ended,
                alive = is_alive(session) => alive,
            };
            info!(alive, "looked after the connection: the machine slept");
            if !alive {
                // Calls that end with it were not cancelled by a caller.
                let why = "it did not answer after the machine slept".to_owned();
                open_session.cast_doubt(Doubt::Unreachable(why));
                return ConnectionEvent::Lost(Loss::Asleep);
            }
        }
    }

    /// Waits for the calls in flight, which came before the slot got another session.
    async fn drain(&self, open_session: &OpenSession) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = open_session.unused() => {}
            _ = open_session.session.closed() => {}
            () = tokio::time::sleep(DRAIN) => info!("calls in flight were given up"),
        }
    }
}

fn ended(session: &Session, reason: &CloseReason) -> ConnectionEvent {
    debug!(?reason, strays = ?session.strays(), "connection ended");
    ConnectionEvent::Lost(Loss::Ended(error::lost(reason)))
}

fn doubted(open_session: &Arc<OpenSession>, doubt: Doubt) -> ConnectionEvent {
    info!(?doubt, "the connection is of no use any more");
    ConnectionEvent::Lost(match doubt {
        Doubt::Expired => Loss::Expired(Arc::clone(open_session)),
        Doubt::Login(detail) => Loss::Login(detail),
        Doubt::Unreachable(message) => Loss::Ended(Failure {
            kind: FailureKind::Unreachable,
            message: format!("cannot reach the server: {message}"),
            stderr: Vec::new(),
        }),
    })
}

/// Whether the server still answers; what it answers does not matter.
async fn is_alive(session: &Session) -> bool {
    let name = match session.facts().era {
        Era::Legacy => method::PING,
        Era::Modern => method::DISCOVER,
    };
    let Ok(params) = RawValue::from_string("{}".to_owned()) else {
        return true;
    };
    let options = RequestOptions::within(PROOF_OF_LIFE);
    matches!(
        session.request(name, &params, &options).await,
        Ok(_) | Err(RequestError::Rpc(_) | RequestError::Malformed(_))
    )
}
