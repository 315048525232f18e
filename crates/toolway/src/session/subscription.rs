//! `subscriptions/listen`: the one long request over which a modern server says what changed.
//!
//! Owns opening it, and opening the one about lists again when it ends, with a budget. Its
//! notifications are told from those of others by `inbound/subscriptions.rs`. What a change leads
//! to is `follow.rs`'s; that changes between two subscriptions are lost is told to it by
//! [`SubscriptionState::openings`]. The one about single resources, which stands beside it, is kept
//! by `connection/interest.rs`.
//!
//! The request is none of a caller's: it has no time limit, and the end of the channel is its end.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use toolway_transport::SendFailure;
use toolway_types::{Era, MessageDelivery, Untrusted};
use toolway_wire::TraceContext;
use toolway_wire::era::method;
use toolway_wire::error::METHOD_NOT_FOUND;

use super::correlator::Deadline;
use super::freshness::spread;
use super::modern::{self, ModernRequest};
use super::{Session, refine};
use crate::error::RequestError;
use crate::listing::ListKind;

/// How long the acknowledgement, the first thing a server sends, may take.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(30);

/// The pause before the first reopening; it doubles with each one.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How often in a row a subscription may fail to be acknowledged.
const BUDGET: u32 = 5;

/// A subscription that lived this long was no failure.
const LIVED: Duration = Duration::from_mins(1);

/// Which lists' changes are asked for, or acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SubscriptionFilter([bool; 3]);

/// How the subscription stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SubscriptionState {
    /// What the server promised to announce, while a subscription is open.
    pub acknowledged: SubscriptionFilter,
    /// How many subscriptions were acknowledged so far. What changed before the newest of them
    /// may never have been announced.
    pub openings: u64,
    /// What is wrong with it.
    pub trouble: Option<String>,
}

impl SubscriptionFilter {
    /// Whether changes of this list are in it.
    pub(crate) fn covers(self, list: ListKind) -> bool {
        self.0[list as usize]
    }

    fn select(chosen: impl Fn(ListKind) -> bool) -> Self {
        Self(ListKind::ALL.map(chosen))
    }

    fn lists(self) -> impl Iterator<Item = ListKind> {
        ListKind::ALL
            .into_iter()
            .filter(move |list| self.covers(*list))
    }

    fn read(notifications: &Value) -> Self {
        Self::select(|list| notifications[key(list)] == true)
    }

    fn write(self) -> Value {
        self.lists()
            .map(|list| (key(list).to_owned(), Value::Bool(true)))
            .collect::<Map<_, _>>()
            .into()
    }
}

fn key(list: ListKind) -> &'static str {
    match list {
        ListKind::Tools => "toolsListChanged",
        ListKind::Resources => "resourcesListChanged",
        ListKind::Prompts => "promptsListChanged",
    }
}

/// How one subscription ended.
pub(crate) enum SubscriptionEnd {
    /// With the channel.
    Channel,
    /// The server does not have the method; it will not learn it.
    Unknown(RequestError),
    /// Before it was acknowledged, by the server's own doing.
    Unacknowledged(String),
    /// The server could not be reached.
    Unreachable(RequestError),
    /// After it lived this long.
    Lived(Duration),
}

impl Session {
    /// What this server offers to announce over a subscription: nothing in the legacy era, where
    /// it speaks unasked.
    pub(crate) fn announces(&self) -> SubscriptionFilter {
        let facts = &self.inner.facts;
        if facts.era == Era::Legacy {
            return SubscriptionFilter::default();
        }
        SubscriptionFilter::select(|list| facts.capabilities[list.word()]["listChanged"] == true)
    }

    /// Keeps one subscription open for as long as the channel lives and the budget lasts. Without
    /// anything to ask for it ends at once. A server that cannot be reached does not use up the
    /// budget: `failed` hears of it, and it is tried again until the connection ends.
    pub(crate) async fn subscribe(
        self,
        state: watch::Sender<SubscriptionState>,
        failed: impl Fn(&RequestError),
    ) {
        let wanted = self.announces();
        if wanted == SubscriptionFilter::default() {
            return;
        }
        let mut unacknowledged = 0;
        let mut pause = PAUSE;
        loop {
            let filter = wanted.write();
            let end = self.listen(&filter, None, |notifications| {
                let filter = SubscriptionFilter::read(notifications);
                state.send_modify(|state| {
                    state.acknowledged = filter;
                    state.openings += 1;
                    state.trouble = shortfall(wanted, filter);
                });
            });
            let end = end.await;
            state.send_modify(|state| state.acknowledged = SubscriptionFilter::default());
            match end {
                SubscriptionEnd::Channel => return,
                SubscriptionEnd::Unknown(error) => {
                    give_up(&state, &error.to_string());
                    return;
                }
                SubscriptionEnd::Unacknowledged(why) => {
                    unacknowledged += 1;
                    tracing::debug!(why, unacknowledged, "the subscription was not acknowledged");
                    if unacknowledged == BUDGET {
                        give_up(&state, &why);
                        return;
                    }
                }
                SubscriptionEnd::Unreachable(error) => {
                    tracing::debug!(%error, "no subscription: the server cannot be reached");
                    failed(&error);
                }
                SubscriptionEnd::Lived(lived) => {
                    unacknowledged = 0;
                    tracing::debug!(?lived, "the subscription ended");
                    if lived > LIVED {
                        pause = PAUSE;
                    }
                }
            }
            tokio::time::sleep(spread(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Opens one subscription and stays until it ends. `trace` is that of whoever caused it;
    /// `acknowledged` hears what of the wanted the server will announce. Dropping the future ends it.
    pub(crate) async fn listen(
        &self,
        wanted: &Value,
        trace: Option<Arc<TraceContext>>,
        acknowledged: impl FnOnce(&Value),
    ) -> SubscriptionEnd {
        let correlator = &self.inner.correlator;
        let unsent =
            |problem: &dyn std::fmt::Display| SubscriptionEnd::Unacknowledged(problem.to_string());
        let params = match to_raw_value(&json!({ "notifications": wanted })) {
            Ok(params) => params,
            Err(error) => return unsent(&error),
        };
        let params = match &trace {
            Some(trace) => trace.told_in(params),
            None => params,
        };
        let deadline = Deadline::new(Duration::MAX, None);
        let request = ModernRequest::new(method::SUBSCRIPTIONS_LISTEN, &params, deadline);
        let shaped = modern::shape(
            correlator,
            &self.inner.client,
            self.inner.delivery,
            request,
            None,
        );
        let mut exchange = match shaped {
            Ok(exchange) => exchange,
            Err(error) => return unsent(&error),
        };
        if self.inner.delivery == MessageDelivery::PerRequest {
            let trace = trace.iter().flat_map(|trace| trace.headers());
            exchange.headers.extend(trace);
        }
        let (_opened, answer) = correlator.reception().subscriptions().open(exchange.id);
        let mut ended = std::pin::pin!(correlator.request(exchange));
        let notifications = tokio::select! {
            biased;
            Ok(notifications) = answer => notifications,
            outcome = &mut ended => return match outcome.map_err(refine) {
                Err(RequestError::Closed(_)) => SubscriptionEnd::Channel,
                Err(error) if is_unknown(&error) => SubscriptionEnd::Unknown(error),
                Err(error) if is_unreachable(&error) => SubscriptionEnd::Unreachable(error),
                Err(error) => unsent(&error),
                Ok(_) => unsent(&"it ended before it was acknowledged"),
            },
            () = tokio::time::sleep(ACKNOWLEDGED_WITHIN) => {
                return unsent(&"it was not acknowledged in time");
            }
        };
        let opened = Instant::now();
        acknowledged(&notifications);
        match ended.await {
            Err(RequestError::Closed(_)) => SubscriptionEnd::Channel,
            _ => SubscriptionEnd::Lived(opened.elapsed()),
        }
    }
}

fn is_unknown(error: &RequestError) -> bool {
    matches!(error, RequestError::Rpc(rpc) if rpc.code == METHOD_NOT_FOUND)
}

/// Whether the network, or what stands before the server, failed rather than the server.
fn is_unreachable(error: &RequestError) -> bool {
    matches!(
        error,
        RequestError::Send(
            SendFailure::Unreachable { .. }
                | SendFailure::Certificate { .. }
                | SendFailure::Cut(_)
                | SendFailure::TimedOut { .. }
                | SendFailure::Credentials(_)
                | SendFailure::Status {
                    status: 429 | 500..,
                    ..
                }
        )
    )
}

fn give_up(state: &watch::Sender<SubscriptionState>, why: &str) {
    let why = Untrusted::new(why);
    state.send_modify(|state| {
        state.trouble = Some(format!(
            "does not announce changes of what it offers, although it says that it does: \
             `{}` failed: {why}",
            method::SUBSCRIPTIONS_LISTEN
        ));
    });
}

/// What a server does not announce although it said that it would.
fn shortfall(wanted: SubscriptionFilter, acknowledged: SubscriptionFilter) -> Option<String> {
    let missing: Vec<&str> = wanted
        .lists()
        .filter(|list| !acknowledged.covers(*list))
        .map(ListKind::word)
        .collect();
    (!missing.is_empty()).then(|| {
        format!(
            "does not announce changes of its {}, although it says that it does",
            missing.join(" and ")
        )
    })
}
