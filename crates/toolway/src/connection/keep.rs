//! A connection while it stands.
//!
//! Owns the watch over it: when it has ended, when it is of no use any more, whether it outlived
//! the machine's sleep, and how it gives way to another. What follows is decided in
//! `connection.rs`.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{FusedFuture as _, FutureExt as _};
use serde_json::value::RawValue;
use toolway_config::PinPolicy;
use toolway_transport::CloseReason;
use toolway_transport::stdio::stderr::ServerLog;
use toolway_types::{Era, Failure, FailureKind, ServerFacts, Untrusted};
use toolway_wire::era::method;
use tracing::{debug, info};

use super::follow::Follower;
use super::standing::{Doubt, Standing};
use super::{Connected, Connection, Event, News, Orders};
use crate::error::{self, RequestError};
use crate::pins::{Difference, Instructions};
use crate::server_source::definition::definition;
use crate::session::{RequestOptions, Session};

/// The longest that calls in flight keep a connection that another one took over from.
const DRAIN: Duration = Duration::from_secs(30);
/// How long a connection has to prove that it outlived the machine's sleep.
const PROOF_OF_LIFE: Duration = Duration::from_secs(5);

/// How a connection that stood was lost.
pub(super) enum Loss {
    /// It ended, or requests do not get through.
    Ended(Failure),
    /// The server does not know the session any more.
    Expired(Arc<Standing>),
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
        let said = Instructions::of(&self.server, &definition, said.unwrap_or_default());
        said.compare(judge.pins()).await
    }

    /// Reports the connection, and watches over it until it ends.
    pub(super) async fn keep(
        &self,
        mut connected: Connected,
        log: Option<ServerLog>,
        handled: &mut Orders,
    ) -> Event {
        let standing = Arc::clone(&connected.standing);
        let session = &standing.session;
        let facts = session.facts();
        info!(
            era = facts.era.as_str(),
            version = facts.protocol_version,
            "connected"
        );
        connected.instructions = self.compare_instructions(facts).await;
        let lists = connected.lists.clone();
        let mut updates = session.updates();
        self.report(News::Connected(Box::new(connected))).await;
        let follower = Follower::new(
            Arc::clone(&standing),
            lists,
            log,
            self.context.limits.usual(),
            self.context.all_lists.clone(),
        );
        let mut following = pin!(self.follow(follower).fuse());
        let mut attending = pin!(self.attend(&standing).fuse());
        loop {
            let order = tokio::select! {
                () = self.stop.cancelled() => return Event::Ended,
                () = self.retire.cancelled() => {
                    self.drain(&standing).await;
                    return Event::Ended;
                }
                reason = session.closed() => return ended(session, &reason),
                doubt = standing.doubted() => return doubted(&standing, doubt),
                () = &mut following, if !following.is_terminated() => continue,
                () = &mut attending, if !attending.is_terminated() => continue,
                // Never closed while the session is held; what a slow reader missed is missed.
                news = updates.recv() => {
                    if let Ok(uri) = news {
                        self.report(News::Updated(uri)).await;
                    }
                    continue;
                }
                order = self.ordered(handled) => order,
            };
            if !matches!(order, Event::Resumed) {
                standing.give_way();
                return order;
            }
            let alive = tokio::select! {
                () = self.stop.cancelled() => return Event::Ended,
                alive = is_alive(session) => alive,
            };
            info!(alive, "looked after the connection: the machine slept");
            if !alive {
                // Calls that end with it were not cancelled by anybody.
                let why = "it did not answer after the machine slept".to_owned();
                standing.cast_doubt(Doubt::Unreachable(why));
                return Event::Lost(Loss::Asleep);
            }
        }
    }

    /// Waits for the calls in flight, which came before the door led elsewhere.
    async fn drain(&self, standing: &Standing) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = standing.unused() => {}
            _ = standing.session.closed() => {}
            () = tokio::time::sleep(DRAIN) => info!("calls in flight were given up"),
        }
    }
}

fn ended(session: &Session, reason: &CloseReason) -> Event {
    debug!(?reason, strays = ?session.strays(), "connection ended");
    Event::Lost(Loss::Ended(error::lost(reason)))
}

fn doubted(standing: &Arc<Standing>, doubt: Doubt) -> Event {
    info!(?doubt, "the connection is of no use any more");
    Event::Lost(match doubt {
        Doubt::Expired => Loss::Expired(Arc::clone(standing)),
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
        session.ask(name, &params, options).await,
        Ok(_) | Err(RequestError::Rpc(_) | RequestError::Malformed(_))
    )
}
