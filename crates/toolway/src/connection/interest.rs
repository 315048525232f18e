//! Subscribing to the resources of a server that somebody follows (`resource_interest.rs`).
//!
//! Owns what a connection does about them:
//! `resources/subscribe` in the legacy era, one `subscriptions/listen` in the modern one. What the
//! server then says is reported as any other news. A subscription that is made again, in a new
//! session or a new stream, counts as an update: what happened in between was not announced.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::sync::watch;
use toolway_types::{Era, Untrusted};
use toolway_wire::TraceContext;
use toolway_wire::era::method;

use super::{Connection, ConnectionNews};
use crate::connection::open_session::OpenSession;
use crate::error::RequestError;
use crate::resource_interest::{SubscribeResult, WantedResource, WantedResources};
use crate::route::RequestOptions;
use crate::session::Session;
use crate::session::subscription::SubscriptionEnd;

/// The pause before a stream that ended is opened again; it doubles with each time.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often in a row a stream may fail to be acknowledged.
const BUDGET: u32 = 3;

impl Connection {
    /// Sees to the wishes about this server for as long as the session stands.
    pub(super) async fn follow_resources(&self, open_session: &OpenSession) {
        let wishes = self.interests.watch();
        let session = &open_session.session;
        match session.facts().era {
            Era::Legacy => self.attend_each(session, wishes).await,
            Era::Modern => self.attend_all(session, wishes).await,
        }
    }

    /// The legacy way: a request for each.
    async fn attend_each(&self, session: &Session, mut wishes: watch::Receiver<WantedResources>) {
        let offered = session.facts().capabilities["resources"]["subscribe"] == true;
        let mut subscribed = BTreeSet::new();
        loop {
            let wanted = wishes.borrow_and_update().clone();
            let gone: Vec<String> = subscribed
                .iter()
                .filter(|uri| !wanted.contains_key(*uri))
                .cloned()
                .collect();
            for uri in gone {
                // Its answer is not needed any more.
                let _ = self
                    .say(session, method::RESOURCES_UNSUBSCRIBE, &uri, None)
                    .await;
                subscribed.remove(&uri);
            }
            for (uri, wish) in &wanted {
                if subscribed.contains(uri) {
                    // Dropped and asked for again before the connection looked.
                    wish.answer.send_replace(SubscribeResult::Granted);
                    continue;
                }
                if wish.is_turned_down() {
                    continue;
                }
                if !offered {
                    wish.answer.send_replace(SubscribeResult::NotOffered);
                    continue;
                }
                let trace = wish.take_trace();
                let said = self.say(session, method::RESOURCES_SUBSCRIBE, uri, trace);
                match said.await {
                    Ok(()) => {
                        subscribed.insert(uri.clone());
                        self.grant(session, uri, wish).await;
                    }
                    Err(RequestError::Closed(_)) => return,
                    Err(error) => {
                        wish.answer.send_replace(SubscribeResult::Refused(error));
                    }
                }
            }
            if wishes.changed().await.is_err() {
                return;
            }
        }
    }

    async fn say(
        &self,
        session: &Session,
        method: &str,
        uri: &str,
        trace: Option<Arc<TraceContext>>,
    ) -> Result<(), RequestError> {
        let params = to_raw_value(&json!({ "uri": uri }))
            .map_err(|error| RequestError::Malformed(error.to_string()))?;
        let params = match &trace {
            Some(trace) => trace.told_in(params),
            None => params,
        };
        let options = RequestOptions {
            trace,
            ..RequestOptions::within(self.context.limits.usual())
        };
        session.request(method, &params, &options).await.map(drop)
    }

    /// The modern way: one stream for all, opened anew when they change.
    async fn attend_all(&self, session: &Session, mut wishes: watch::Receiver<WantedResources>) {
        let mut pause = PAUSE;
        let mut failures = 0;
        loop {
            let wanted = wishes.borrow_and_update().clone();
            let uris: Vec<&String> = wanted
                .iter()
                .filter(|(_, wish)| !wish.is_turned_down())
                .map(|(uri, _)| uri)
                .collect();
            if uris.is_empty() {
                if wishes.changed().await.is_err() {
                    return;
                }
                continue;
            }
            let filter = json!({ "resourceSubscriptions": uris });
            let (acknowledge, acknowledged) = tokio::sync::oneshot::channel();
            // One stream for several: it is opened because of those that are new.
            let mut trace = None;
            for uri in &uris {
                trace = wanted[*uri].take_trace().or(trace);
            }
            let listening = session.listen(&filter, trace, |notifications| {
                let _ = acknowledge.send(notifications["resourceSubscriptions"].clone());
            });
            let granting = async {
                if let Ok(granted) = acknowledged.await {
                    for uri in &uris {
                        let wish = &wanted[*uri];
                        let is_granted = granted
                            .as_array()
                            .is_some_and(|granted| granted.iter().any(|one| one == *uri));
                        if is_granted {
                            self.grant(session, uri, wish).await;
                        } else {
                            wish.answer.send_replace(SubscribeResult::NotOffered);
                        }
                    }
                }
                std::future::pending::<()>().await;
            };
            let end = tokio::select! {
                end = listening => end,
                () = granting => continue,
                changed = others(&mut wishes, &wanted) => match changed {
                    Ok(()) => continue,
                    Err(_) => return,
                },
            };
            let turned_down = match end {
                SubscriptionEnd::Channel => return,
                SubscriptionEnd::Unknown(_) => Some(SubscribeResult::NotOffered),
                SubscriptionEnd::Unacknowledged(why) => {
                    failures += 1;
                    let why = RequestError::Malformed(why);
                    (failures == BUDGET).then_some(SubscribeResult::Refused(why))
                }
                SubscriptionEnd::Unreachable(_) => None,
                SubscriptionEnd::Lived(lived) => {
                    failures = 0;
                    if lived > LONGEST_PAUSE {
                        pause = PAUSE;
                    }
                    None
                }
            };
            if let Some(answer) = turned_down {
                failures = 0;
                for uri in uris {
                    wanted[uri].answer.send_replace(answer.clone());
                }
            } else {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }

    /// The server agreed. Where it had agreed before, something may have been missed.
    async fn grant(&self, session: &Session, uri: &str, wish: &WantedResource) {
        let before = wish.answer.send_replace(SubscribeResult::Granted);
        if matches!(before, SubscribeResult::Granted) {
            session.forget_resource(uri);
            self.report(ConnectionNews::Updated(Untrusted::new(uri)))
                .await;
        }
    }
}

/// Waits until other resources are wanted.
async fn others(
    wishes: &mut watch::Receiver<WantedResources>,
    wanted: &WantedResources,
) -> Result<(), watch::error::RecvError> {
    let moved = |wishes: &WantedResources| {
        let asked_for = |(uri, wish): (&String, &WantedResource)| {
            wanted.get(uri).is_some_and(|known| {
                known.round == wish.round && known.answer.same_channel(&wish.answer)
            })
        };
        let still_wanted = |(uri, wish): (&String, &WantedResource)| {
            wish.is_turned_down() || wishes.contains_key(uri)
        };
        !wishes.iter().all(asked_for) || !wanted.iter().all(still_wanted)
    };
    wishes.wait_for(|wishes| moved(wishes)).await.map(drop)
}
