//! What every connection of a server shares.
//!
//! Owns putting it together from the options, and finding out who sent a request.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::StatusCode;
use http::request::Parts;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::access::{self, Access, Identity};
use super::body::BodyBudget;
use super::counters::{Counter as _, FrontCounters};
use super::guard::RequestGuard;
use super::options::{FrontObserver, HttpLimits, HttpOptions, SessionPolicy};
use super::quota::{Counted, Permit, Quotas};
use super::respond::{self, HttpResponse};
use super::sessions::HttpSessions;
use crate::conversation::{Endpoint, NoConversation, Peer, Service};
use crate::error::RequestRefusal;
use toolway_wire::Id;

/// Work that goes on without its connection.
pub(super) type LoneWork = BoxFuture<'static, ()>;

/// The shared part of a server.
pub(super) struct Front {
    pub(super) service: Arc<dyn Service>,
    pub(super) guard: RequestGuard,
    /// The rules of the address for metrics alone.
    pub(super) metrics_guard: Option<RequestGuard>,
    pub(super) limits: HttpLimits,
    pub(super) policy: SessionPolicy,
    pub(super) has_old_transport: bool,
    pub(super) body_budget: Arc<BodyBudget>,
    pub(super) counters: Arc<FrontCounters>,
    pub(super) quotas: Quotas,
    pub(super) sessions: HttpSessions,
    pub(super) observer: Option<Arc<dyn FrontObserver>>,
    /// Cancelled when the server is about to end: streams that never end by themselves end then.
    pub(super) closing: CancellationToken,
    pub(super) access: Access,
    anybody: Arc<Identity>,
    work: mpsc::UnboundedSender<LoneWork>,
}

impl Front {
    /// The shared part, and the work that its requests leave behind.
    pub(super) fn new(
        service: Arc<dyn Service>,
        options: &HttpOptions,
        guard: RequestGuard,
        metrics_guard: Option<RequestGuard>,
        closing: CancellationToken,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<LoneWork>) {
        let (work, left) = mpsc::unbounded_channel();
        let counters = Arc::clone(&options.counters);
        let front = Arc::new(Self {
            service,
            guard,
            metrics_guard,
            limits: options.limits,
            policy: options.sessions,
            has_old_transport: options.old_transport,
            body_budget: BodyBudget::new(),
            quotas: Quotas::new(Arc::clone(&counters)),
            sessions: HttpSessions::new(options.limits, Arc::clone(&counters)),
            counters,
            observer: options.observer.clone(),
            closing,
            access: options.access.clone(),
            anybody: Arc::new(Identity::anybody()),
            work,
        });
        (front, left)
    }

    /// Lets work go on that no connection waits for. At the end of the server there is none.
    pub(super) fn carry_on(&self, work: LoneWork) {
        drop(self.work.send(work));
    }

    /// Who sent a request, or how it is answered.
    pub(super) async fn identify(&self, request: &Parts) -> Result<Arc<Identity>, HttpResponse> {
        let authenticator = match &self.access {
            Access::Open => return Ok(Arc::clone(&self.anybody)),
            Access::Checked(authenticator) => authenticator,
        };
        let refusal = match access::shown_token(&request.headers, request.uri.query()) {
            Err(refusal) => refusal,
            Ok(token) => match authenticator.check(token).await {
                Ok(identity) => return Ok(identity),
                Err(refusal) => refusal,
            },
        };
        tracing::debug!(why = %refusal, "a request was turned away");
        self.counters.unauthorized.up();
        let mut response = respond::text(refusal.status, format!("{refusal}\n"));
        if let Some(challenge) = refusal.challenge {
            response = respond::challenge(response, challenge);
        }
        if let Some(seconds) = refusal.retry_after {
            response = respond::retry_after(response, seconds);
        }
        Err(response)
    }

    /// Room for one more of something, or why there is none.
    pub(super) fn permit(
        &self,
        principal: &Arc<str>,
        what: Counted,
    ) -> Result<Permit, RequestRefusal> {
        let (limit, name) = match what {
            Counted::Call => (self.limits.calls, "calls"),
            Counted::Stream => (self.limits.streams, "event streams"),
            Counted::Session => (self.limits.sessions, "sessions"),
        };
        let permit = self.quotas.of(principal).take(what, limit);
        permit.ok_or(RequestRefusal::TooMany { what: name })
    }

    /// How a refused request is answered.
    pub(super) fn refuse(&self, refusal: &RequestRefusal, id: Option<&Id>) -> HttpResponse {
        let counter = match refusal.status() {
            StatusCode::TOO_MANY_REQUESTS => &self.counters.limited,
            _ => &self.counters.refused,
        };
        counter.up();
        let response = respond::json(refusal.status(), refusal.answer(id));
        match refusal.retry_after() {
            Some(seconds) => respond::retry_after(response, seconds),
            None => response,
        }
    }
}

/// The peer that an identity is at an endpoint.
pub(super) fn peer(identity: &Identity, endpoint: Endpoint) -> Peer {
    Peer {
        principal: Arc::clone(&identity.principal),
        shown: Arc::clone(&identity.shown),
        endpoint,
        profile: identity.profile.clone(),
        lease: identity.lease.clone(),
    }
}

impl From<NoConversation> for RequestRefusal {
    fn from(none: NoConversation) -> Self {
        match none {
            NoConversation::NoEndpoint => Self::NoEndpoint,
            NoConversation::Crowded => Self::NoRoom,
        }
    }
}
