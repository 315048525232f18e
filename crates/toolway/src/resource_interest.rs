//! The resources of one server that somebody follows.
//!
//! Owns who wants to hear of which, and what the server made of it. It outlives the sessions of its
//! connection. Subscribing at the server is `connection/interest.rs`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::sync::watch;
use toolway_wire::TraceContext;

use crate::error::RequestError;
use crate::lock::lock;

/// What a server made of a wish.
#[derive(Debug, Clone, Default)]
pub(crate) enum SubscribeResult {
    /// Nothing yet.
    #[default]
    Awaited,
    /// It says when the resource changes.
    Granted,
    /// It does not offer that.
    NotOffered,
    /// It was asked, and did not agree.
    Refused(RequestError),
}

/// One resource that is wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct WantedResource {
    holders: usize,
    /// Grows when it is asked for again after a refusal.
    pub(crate) round: u64,
    /// What the server made of it.
    pub(crate) answer: watch::Sender<SubscribeResult>,
    /// The trace of whoever caused it to be asked for, until it was.
    trace: Arc<Mutex<Option<Arc<TraceContext>>>>,
}

/// All that are wanted of one server, by URI.
pub(crate) type WantedResources = BTreeMap<String, WantedResource>;

/// The resources that are followed over one connection.
#[derive(Debug, Default)]
pub(crate) struct ResourceInterests(watch::Sender<WantedResources>);

impl ResourceInterests {
    /// Wants to hear of this resource, for as long as what is returned is held. The trace is told to
    /// the server if it is asked because of this.
    pub(crate) fn register(
        self: &Arc<Self>,
        uri: &str,
        trace: Option<Arc<TraceContext>>,
    ) -> ResourceInterest {
        let mut answer = None;
        self.0.send_modify(|wishes| {
            let wish = wishes.entry(uri.to_owned()).or_default();
            wish.holders += 1;
            let is_turned_down = wish.is_turned_down();
            if wish.holders == 1 || is_turned_down {
                *lock(&wish.trace) = trace;
            }
            // A refusal is an answer to those who asked then.
            if is_turned_down {
                wish.round += 1;
                wish.answer.send_replace(SubscribeResult::Awaited);
            }
            answer = Some(wish.answer.subscribe());
        });
        ResourceInterest {
            interests: Arc::clone(self),
            uri: uri.to_owned(),
            answer: answer.unwrap_or_else(|| watch::channel(SubscribeResult::NotOffered).1),
        }
    }

    /// What is wanted, now and later.
    pub(crate) fn watch(&self) -> watch::Receiver<WantedResources> {
        self.0.subscribe()
    }

    /// Whether nobody follows any.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    fn release(&self, uri: &str) {
        self.0.send_if_modified(|wishes| {
            let Some(wish) = wishes.get_mut(uri) else {
                return false;
            };
            wish.holders -= 1;
            let last = wish.holders == 0;
            if last {
                wishes.remove(uri);
            }
            last
        });
    }
}

/// One followed resource. Dropping it ends the subscription at the server.
#[derive(Debug)]
pub(crate) struct ResourceInterest {
    interests: Arc<ResourceInterests>,
    pub(crate) uri: String,
    /// What the server made of it, now and later.
    pub(crate) answer: watch::Receiver<SubscribeResult>,
}

impl ResourceInterest {
    /// Whether it is registered at these.
    pub(crate) fn is_of(&self, interests: &Arc<ResourceInterests>) -> bool {
        Arc::ptr_eq(&self.interests, interests)
    }
}

impl Drop for ResourceInterest {
    fn drop(&mut self) {
        self.interests.release(&self.uri);
    }
}

impl WantedResource {
    /// The trace that asking for it belongs to: once, for what is asked again after a new connection
    /// belongs to nobody's.
    pub(crate) fn take_trace(&self) -> Option<Arc<TraceContext>> {
        lock(&self.trace).take()
    }

    /// Whether the server does not say when it changes.
    pub(crate) fn is_turned_down(&self) -> bool {
        matches!(
            *self.answer.borrow(),
            SubscribeResult::NotOffered | SubscribeResult::Refused(_)
        )
    }
}
