//! The subscriptions of one channel, by their ids, and what the server says over them.
//!
//! Owns telling their notifications from those of others. Opening them is `subscription.rs`'s.

use std::collections::VecDeque;
use std::sync::Mutex;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use toolway_wire::Id;
use toolway_wire::era::{meta_key, method};

use super::InboundMessage;
use crate::lock::lock;
use crate::session::raw;

/// Where the subscriptions of one channel are known by their ids.
#[derive(Debug, Default)]
pub(in crate::session) struct Subscriptions(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    /// The subscriptions that are open, and who hears of the acknowledgement: one about lists and
    /// one about resources at most.
    open: Vec<(u64, Option<oneshot::Sender<Value>>)>,
    /// Those that were: messages of theirs may still be under way.
    past: VecDeque<u64>,
}

/// How many ids of earlier subscriptions are known.
const REMEMBERED_IDS: usize = 16;

impl Subscriptions {
    /// Expects messages of this subscription until the first of what is returned is dropped; the
    /// second hears of the acknowledgement.
    pub(in crate::session) fn open(
        &self,
        id: u64,
    ) -> (OpenSubscription<'_>, oneshot::Receiver<Value>) {
        let (sender, receiver) = oneshot::channel();
        lock(&self.0).open.push((id, Some(sender)));
        (OpenSubscription(self, id), receiver)
    }

    fn acknowledge(&self, id: u64, notifications: Value) {
        let mut entries = lock(&self.0);
        let opened = entries.open.iter_mut().find(|(open, _)| *open == id);
        if let Some(waiting) = opened.and_then(|(_, waiting)| waiting.take()) {
            let _ = waiting.send(notifications);
        }
    }

    fn knows(&self, id: u64) -> bool {
        let entries = lock(&self.0);
        entries.open.iter().any(|(open, _)| *open == id) || entries.past.contains(&id)
    }
}

/// A subscription that is open for as long as this is held.
pub(in crate::session) struct OpenSubscription<'a>(&'a Subscriptions, u64);

impl Drop for OpenSubscription<'_> {
    fn drop(&mut self) {
        let Self(Subscriptions(entries), id) = self;
        let mut entries = lock(entries);
        entries.open.retain(|(open, _)| open != id);
        if entries.past.len() == REMEMBERED_IDS {
            entries.past.pop_front();
        }
        entries.past.push_back(*id);
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SubscriptionParams<'a> {
    #[serde(default, rename = "_meta")]
    meta: Option<Map<String, Value>>,
    #[serde(default)]
    notifications: Value,
    #[serde(default, borrow)]
    request_id: Option<&'a RawValue>,
}

/// Takes what belongs to a subscription; `None` leaves the notification to others.
pub(super) fn hear(
    name: &str,
    params: Option<&RawValue>,
    subscriptions: &Subscriptions,
) -> Option<InboundMessage> {
    let is_change = matches!(
        name,
        method::TOOLS_CHANGED | method::RESOURCES_CHANGED | method::PROMPTS_CHANGED
    );
    if !is_change && name != method::SUBSCRIPTION_ACKNOWLEDGED && name != method::CANCELLED {
        return None;
    }
    let params: SubscriptionParams<'_> = serde_json::from_str(params?.get()).ok()?;
    if name == method::CANCELLED {
        // Only for a subscription may a server say this of a request of ours, and it ends it.
        let id = Id::read(params.request_id?).ok()??.as_ours()?;
        return subscriptions.knows(id).then(|| InboundMessage::Answer {
            id,
            outcome: Ok(raw("{}").into()),
        });
    }
    let tag = params.meta?.remove(meta_key::SUBSCRIPTION_ID)?;
    let ours = subscription_id(&tag).filter(|id| subscriptions.knows(*id));
    match ours {
        Some(id) if !is_change => {
            subscriptions.acknowledge(id, params.notifications);
            Some(InboundMessage::Nothing)
        }
        Some(_) => None,
        // A change on a subscription that we did not open.
        None => Some(InboundMessage::Stray),
    }
}

fn subscription_id(tag: &Value) -> Option<u64> {
    match tag {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => Id::Text(text.clone()).as_ours(),
        _ => None,
    }
}
