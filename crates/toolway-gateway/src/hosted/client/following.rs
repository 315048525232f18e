//! What a legacy client follows as long as its session lasts: resources, and the log of servers.
//!
//! Owns the futures that bring the news; they run beside the service (`background.rs`) and end with
//! the client.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;
use serde_json::json;
use serde_json::value::to_raw_value;
use toolway::types::{Era, ServerName, limits};
use toolway::{LogLevel, LogNews, LogStream};
use toolway_wire::era::method;
use toolway_wire::{envelope, request_head};

use super::super::answers;
use super::super::endpoint::connected;
use super::HostedClient;
use crate::conversation::{Answer, IncomingRequest};

/// The most resources that one client follows.
const MAX_FOLLOWED: usize = limits::gateway::FOLLOWED;

/// What is followed, and how that is ended.
#[derive(Default)]
pub(super) struct Following {
    resources: HashMap<String, AbortHandle>,
    logs: Option<AbortHandle>,
}

impl Drop for Following {
    fn drop(&mut self) {
        let logs = self.logs.iter();
        for handle in self.resources.values().chain(logs) {
            handle.abort();
        }
    }
}

impl HostedClient {
    /// `resources/subscribe`
    pub(super) async fn follow(self: &Arc<Self>, request: &IncomingRequest) -> Answer {
        let Some(uri) = request_head::text_param(request.params.as_ref(), "uri") else {
            return answers::invalid("`uri` is missing");
        };
        let (Some((server, own)), Some(unasked)) = (self.endpoint.resource(&uri), &self.unasked)
        else {
            return answers::invalid("no such resource can be followed here");
        };
        if self.state().following.resources.len() >= MAX_FOLLOWED {
            return answers::invalid(format!("more than {MAX_FOLLOWED} resources are followed"));
        }
        let mut subscription = match self.attached.subscribe_resource(&server, own).await {
            Ok(subscription) => subscription,
            Err(toolway::SubscribeError::Call(error)) => return answers::failed(&error),
            Err(error) => return answers::invalid(error.to_string()),
        };
        let params = to_raw_value(&json!({ "uri": uri })).ok();
        let message = envelope::notification(method::RESOURCE_UPDATED, params.as_deref());
        let unasked = unasked.clone();
        let news = async move {
            while subscription.updated().await.is_ok() && !unasked.is_gone() {
                unasked.notify(message.clone());
            }
        };
        let handle = self.beside(news);
        let before = self
            .state()
            .following
            .resources
            .insert(uri.into_owned(), handle);
        if let Some(before) = before {
            before.abort();
        }
        answers::own(&json!({}), Era::Legacy)
    }

    /// `resources/unsubscribe`
    pub(super) fn unfollow(&self, request: &IncomingRequest) -> Answer {
        let Some(uri) = request_head::text_param(request.params.as_ref(), "uri") else {
            return answers::invalid("`uri` is missing");
        };
        if let Some(handle) = self.state().following.resources.remove(&*uri) {
            handle.abort();
        }
        answers::own(&json!({}), Era::Legacy)
    }

    /// Passes on what servers log while they work for nobody in particular.
    pub(super) fn hear_logs(self: &Arc<Self>, level: LogLevel) {
        let Some(unasked) = self.unasked.clone() else {
            return;
        };
        let client = Arc::downgrade(self);
        let mut snapshots = self.endpoint.view.watch();
        let news = async move {
            let mut heard = HashSet::<ServerName>::new();
            let mut streams = FuturesUnordered::new();
            loop {
                {
                    let Some(client) = client.upgrade() else {
                        return;
                    };
                    let snapshot = Arc::clone(&snapshots.borrow_and_update());
                    let present = connected(&snapshot).map(|(server, _)| server);
                    let present: Vec<_> =
                        present.filter(|it| client.endpoint.scope.has(it)).collect();
                    for server in present {
                        if heard.contains(server) {
                            continue;
                        }
                        if let Ok(stream) = client.attached.logs(server, level) {
                            heard.insert(server.clone());
                            streams.push(next_log(stream));
                        }
                    }
                }
                if unasked.is_gone() {
                    return;
                }
                tokio::select! {
                    changed = snapshots.changed() => if changed.is_err() { return },
                    Some((stream, news)) = streams.next() => {
                        if let LogNews::Message(message) = news {
                            let params = message.raw.as_raw();
                            unasked.notify(envelope::notification(method::MESSAGE, Some(params)));
                        }
                        streams.push(next_log(stream));
                    }
                }
            }
        };
        let handle = self.beside(news);
        let before = self.state().following.logs.replace(handle);
        if let Some(before) = before {
            before.abort();
        }
    }

    /// Runs something beside the service, until it is aborted.
    fn beside(&self, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let (handle, registration) = AbortHandle::new_pair();
        let work = Abortable::new(work, registration);
        self.core.beside(Box::pin(async move {
            let _ = work.await;
        }));
        handle
    }
}

async fn next_log(mut stream: LogStream) -> (LogStream, LogNews) {
    let news = stream.next().await;
    (stream, news)
}
