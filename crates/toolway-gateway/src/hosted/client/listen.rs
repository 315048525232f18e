//! `subscriptions/listen`: what a modern client wants to hear of, for as long as it listens.
//!
//! Owns the open listenings of one client, their acknowledgement, and that everything said over one
//! carries its id. Which lists changed is the endpoint's to say.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use toolway::types::{Era, limits};
use toolway::{CallOptions, ListKind, ResourceSubscription};
use toolway_wire::era::{meta_key, method};
use toolway_wire::{Id, envelope};

use super::super::answers;
use super::super::lists::{ServedLists, ToldLists};
use super::HostedClient;
use crate::conversation::{Answer, IncomingRequest};
use crate::outlet::Outlet;

/// The listenings of one client.
#[derive(Default)]
pub(super) struct Listeners(Mutex<Vec<Arc<Listener>>>);

/// One listening.
struct Listener {
    /// What its messages are tagged with.
    tag: Value,
    lists: Vec<ListKind>,
    /// The lists as they were when it began, or when it was last told.
    known: Mutex<ToldLists>,
    outlet: Outlet,
}

impl Listener {
    fn tell(&self, method: &str, mut params: Value) {
        params["_meta"] = json!({ (meta_key::SUBSCRIPTION_ID): self.tag });
        let params = to_raw_value(&params).ok();
        self.outlet
            .notify(envelope::notification(method, params.as_deref()));
    }
}

impl Listeners {
    fn all(&self) -> MutexGuard<'_, Vec<Arc<Listener>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// Tells those who want to hear of it.
    pub(super) fn lists_changed(&self, lists: &ServedLists) {
        for listener in self.all().iter() {
            let known = listener.known.lock();
            let changed = known.unwrap_or_else(PoisonError::into_inner).update(lists);
            for list in changed.iter().filter(|list| listener.lists.contains(list)) {
                listener.tell(super::changed_method(*list), json!({}));
            }
        }
    }
}

/// Ends a listening when its request does.
struct Listening<'a> {
    all: &'a Listeners,
    listener: Arc<Listener>,
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.all
            .all()
            .retain(|listener| !Arc::ptr_eq(listener, &self.listener));
    }
}

/// The lists that can be listened for, and their words in the filter.
const LISTS: [(&str, ListKind); 3] = [
    ("toolsListChanged", ListKind::Tools),
    ("promptsListChanged", ListKind::Prompts),
    ("resourcesListChanged", ListKind::Resources),
];

const RESOURCES: &str = "resourceSubscriptions";

/// The most resources of one listening.
const MAX_FOLLOWED: usize = limits::gateway::FOLLOWED;

impl HostedClient {
    pub(super) async fn listen(
        self: Arc<Self>,
        request: IncomingRequest,
        outlet: Outlet,
    ) -> Answer {
        let params: Value = request
            .params
            .as_ref()
            .and_then(|params| serde_json::from_str(params.get()).ok())
            .unwrap_or_default();
        let wanted = &params["notifications"];
        if !wanted.is_object() {
            return answers::invalid("`notifications` is missing");
        }
        let tag = match &request.id {
            Id::Number(number) => json!(number),
            Id::Text(text) => json!(text),
        };
        let lists: Vec<_> = LISTS
            .iter()
            .filter(|(word, _)| wanted[*word] == true)
            .collect();
        let mut granted = json!({});
        for (word, _) in &lists {
            granted[*word] = true.into();
        }
        let mut followed = FuturesUnordered::new();
        let uris = wanted[RESOURCES].as_array().cloned().unwrap_or_default();
        let mut heard = Vec::new();
        for uri in uris.iter().take(MAX_FOLLOWED).filter_map(Value::as_str) {
            if let Some(subscription) = self.subscribe(uri, &request).await {
                heard.push(uri.to_owned());
                followed.push(next_update(subscription, uri.to_owned()));
            }
        }
        if wanted[RESOURCES].is_array() {
            granted[RESOURCES] = json!(heard);
        }
        let listener = Arc::new(Listener {
            tag,
            lists: lists.iter().map(|(_, list)| *list).collect(),
            known: Mutex::new(ToldLists::of(&self.endpoint.lists())),
            outlet,
        });
        listener.tell(
            method::SUBSCRIPTION_ACKNOWLEDGED,
            json!({ "notifications": granted }),
        );
        self.listeners.all().push(Arc::clone(&listener));
        // What changed before it stood there.
        self.listeners.lists_changed(&self.endpoint.lists());
        let _listening = Listening {
            all: &self.listeners,
            listener: Arc::clone(&listener),
        };
        let ended = self.core.ended();
        let mut ended = std::pin::pin!(ended);
        loop {
            tokio::select! {
                () = &mut ended => break,
                Some(update) = followed.next() => {
                    if let Some((subscription, uri)) = update {
                        listener.tell(method::RESOURCE_UPDATED, json!({ "uri": uri }));
                        followed.push(next_update(subscription, uri));
                    }
                }
            }
        }
        let mut result = json!({});
        result["_meta"] = json!({ (meta_key::SUBSCRIPTION_ID): listener.tag });
        answers::own(&result, Era::Modern)
    }

    /// Follows a resource by the address that the client knows.
    async fn subscribe(
        &self,
        address: &str,
        request: &IncomingRequest,
    ) -> Option<ResourceSubscription> {
        let mut found = self.endpoint.resource(address);
        if found.is_none() && self.endpoint.all_came().await {
            found = self.endpoint.resource(address);
        }
        let (server, uri) = found?;
        let mut options = CallOptions::new(self.endpoint.consent());
        options.trace.clone_from(&request.trace);
        let subscribing = self.attached.subscribe_resource_as(&server, uri, &options);
        match subscribing.await {
            Ok(subscription) => Some(subscription),
            Err(error) => {
                tracing::debug!(%error, "a resource is not followed");
                None
            }
        }
    }
}

/// Waits for the next change of a resource; nothing when it is not followed any more.
async fn next_update(
    mut subscription: ResourceSubscription,
    address: String,
) -> Option<(ResourceSubscription, String)> {
    match subscription.updated().await {
        Ok(()) => Some((subscription, address)),
        Err(error) => {
            tracing::debug!(%error, "a resource is not followed any more");
            None
        }
    }
}
