//! Hearing that a resource changed.
//!
//! Owns the subscription that an embedding program holds. Telling the server, also after every
//! new connection, is `connection/interest.rs`.

use std::sync::Arc;

use serde_json::Map;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};
use toolway_types::{ServerName, ToolKey, Untrusted};

use super::Attached;
use crate::call::{CallError, CallOptions, brief};
use crate::dispatch::send;
use crate::error::RequestError;
use crate::event::HostEvent;
use crate::offering::Offering;
use crate::resource_interest::{ResourceInterest, ResourceInterests, SubscribeResult};
use crate::snapshot::HostSnapshot;

/// Why a resource cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum SubscribeError {
    /// A request came to nothing. Where it names a tool, that is the URI.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The server does not say when this resource changes.
    #[error("server `{server}` does not say when `{}` changes: read it again instead", brief(.uri))]
    NotOffered {
        /// The server.
        server: ServerName,
        /// The resource.
        uri: Untrusted,
    },
    /// The host has ended.
    #[error("the host has ended")]
    Ended,
}

/// A resource that is followed. It is subscribed to anew with every new connection; dropping this
/// ends the subscription.
#[derive(Debug)]
pub struct ResourceSubscription {
    server: ServerName,
    interest: ResourceInterest,
    snapshots: watch::Receiver<Arc<HostSnapshot>>,
    events: broadcast::Receiver<HostEvent>,
    timeout: std::time::Duration,
}

impl ResourceSubscription {
    /// The server.
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// The resource.
    pub fn uri(&self) -> &str {
        &self.interest.uri
    }

    /// Waits until the resource may have changed: the server said so, or could not have been
    /// heard for a while. Several changes at once are one. An error is the end of it.
    pub async fn updated(&mut self) -> Result<(), SubscribeError> {
        loop {
            let mut answer = self.interest.answer.clone();
            let turned_down = answer.wait_for(|answer| {
                matches!(
                    answer,
                    SubscribeResult::NotOffered | SubscribeResult::Refused(_)
                )
            });
            let (server, interest) = (&self.server, &self.interest);
            let mut snapshots = self.snapshots.clone();
            let moved =
                snapshots.wait_for(|snapshot| moved_to(snapshot, server, interest).is_some());
            let heard = tokio::select! {
                heard = self.events.recv() => heard,
                moved = moved => {
                    let Ok(snapshot) = moved.map(|snapshot| Arc::clone(&snapshot)) else {
                        return Err(SubscribeError::Ended);
                    };
                    if let Some(interests) = moved_to(&snapshot, server, interest) {
                        self.interest = interests.register(&self.interest.uri, None);
                    }
                    // What happened in between was not announced.
                    return Ok(());
                }
                answer = turned_down => {
                    let answer = answer.map(|answer| answer.clone());
                    return Err(match answer {
                        Ok(answer) => self.refusal(answer),
                        Err(_) => SubscribeError::Ended,
                    });
                }
            };
            match heard {
                Ok(event) if !self.is_meant(&event) => {}
                // What was missed may have been about this one.
                Ok(_) | Err(RecvError::Lagged(_)) => {
                    self.drain();
                    return Ok(());
                }
                Err(RecvError::Closed) => return Err(SubscribeError::Ended),
            }
        }
    }

    /// A server may name a part of what is followed.
    fn is_meant(&self, event: &HostEvent) -> bool {
        let HostEvent::ResourceUpdated { server, uri } = event else {
            return false;
        };
        let part = uri.as_received().strip_prefix(self.uri());
        *server == self.server
            && part.is_some_and(|part| {
                part.is_empty() || part.starts_with(['/', '?', '#']) || self.uri().ends_with('/')
            })
    }

    /// Takes what has happened already.
    fn drain(&mut self) {
        while let Ok(_) | Err(TryRecvError::Lagged(_)) = self.events.try_recv() {}
    }

    fn refusal(&self, answer: SubscribeResult) -> SubscribeError {
        let server = self.server.clone();
        let error = match answer {
            SubscribeResult::Refused(error) => error,
            SubscribeResult::NotOffered => {
                let uri = Untrusted::new(self.uri());
                return SubscribeError::NotOffered { server, uri };
            }
            SubscribeResult::Awaited | SubscribeResult::Granted => RequestError::TimedOut,
        };
        let key = ToolKey::new(server, self.uri());
        SubscribeError::Call(send::explain(error, &key, self.timeout))
    }
}

/// Where the server's resources are followed now, if that is not where this one is: another
/// definition took over.
fn moved_to<'a>(
    snapshot: &'a HostSnapshot,
    server: &ServerName,
    interest: &ResourceInterest,
) -> Option<&'a Arc<ResourceInterests>> {
    let interests = &snapshot.connected(server)?.interests;
    (!interest.is_of(interests)).then_some(interests)
}

impl Attached {
    /// Asks a server to say when a resource changes, and waits until it agreed. A server that is
    /// still connecting is waited for.
    pub async fn subscribe_resource(
        &self,
        server: &ServerName,
        uri: &str,
    ) -> Result<ResourceSubscription, SubscribeError> {
        self.subscribe_resource_as(server, uri, &self.usual_options())
            .await
    }

    /// As [`Attached::subscribe_resource`], under these conditions.
    pub async fn subscribe_resource_as(
        &self,
        server: &ServerName,
        uri: &str,
        options: &CallOptions,
    ) -> Result<ResourceSubscription, SubscribeError> {
        // Who may not read it may not follow it either.
        let params = Map::from_iter([("uri".to_owned(), uri.into())]);
        let permitted = self.permit_offering(Offering::ReadResource, server, params, options);
        let permitted = permitted.await?;
        let uri = permitted.text("uri").unwrap_or(uri);
        let mut snapshot = self.snapshot_with(server, options).await?;
        let is_awake = |snapshot: &HostSnapshot| {
            let connected = snapshot.connected(server);
            connected.is_some_and(|connected| connected.usage.enter().is_some())
        };
        if !is_awake(&snapshot) {
            self.wake(std::slice::from_ref(server)).await;
            snapshot = self.snapshot_with(server, options).await?;
        }
        let timeout = snapshot.general_limits().whole();
        let connected = snapshot.connected(server).ok_or(SubscribeError::Ended)?;
        // It does not go to rest meanwhile; once it is asked, the subscription itself keeps it awake.
        let _in_use = connected.usage.enter();
        let trace = options.trace.as_ref();
        let trace = trace.map(|trace| Arc::new(trace.context().clone()));
        let view = &self.party.view;
        // Heard from before it is asked for, so that the first word is not missed.
        let mut subscription = ResourceSubscription {
            server: server.clone(),
            events: view.subscribe(),
            snapshots: view.watch(),
            interest: connected.interests.register(uri, trace),
            timeout,
        };
        let answered = subscription
            .interest
            .answer
            .wait_for(|answer| !matches!(answer, SubscribeResult::Awaited));
        let answer = match tokio::time::timeout(timeout, answered).await {
            Ok(Ok(answer)) => answer.clone(),
            Ok(Err(_)) => return Err(SubscribeError::Ended),
            Err(_) => SubscribeResult::Awaited,
        };
        match answer {
            SubscribeResult::Granted => Ok(subscription),
            other => Err(subscription.refusal(other)),
        }
    }
}
